"""What is asked of upstream's build for Apple's systems."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from ortrim.buildspec.buildspec import AppleSpec, TargetSpec
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.compiling.plan import AssemblyJob, BuildJob
from ortrim.errors import ExitCode, PlanError
from ortrim.platforms.apple import arguments as apple_platform
from sample_plans import MODELS, SAMPLE_APPLE, SOURCES, sample_plan

OURS = [name for name, target in TARGETS.items() if target.system in APPLE]


def job(target: str = "ios-arm64", **changes: Any) -> BuildJob:
    return sample_plan(target, **changes).targets[0].job


@pytest.mark.parametrize("target", OURS)
def test_a_static_framework_is_one_object_that_shows_the_api_alone(target: str) -> None:
    """Joined with upstream's own list of exports, from what the shared library asks for; without dates in it."""
    planned = job(target, apple=replace(SAMPLE_APPLE, framework="static"))
    assert planned.linkage == "static"
    join, archive = planned.finishing[-2:]
    assert join[0] == "${wrappers}/join"
    assert "-Wl,-exported_symbols_list,${build}/MinSizeRel/onnxruntime.lds" in join
    assert join[-1].endswith("onnxruntime.dir/generated_source.c.o")
    assert archive[:3] == ("${wrappers}/libtool", "-static", "-D")
    assert planned.expected_outputs[-1] == PurePosixPath("libonnxruntime.a")


@pytest.mark.parametrize(
    ("linkage", "framework", "expected"),
    [
        ("shared", None, "shared"),
        ("static", None, "static"),
        ("static", "dynamic", "shared"),
        ("shared", "static", "static"),
    ],
)
def test_a_framework_is_what_it_is_asked_to_be(linkage: Any, framework: Any, expected: str) -> None:
    """Its own key first, then what holds for all targets; other systems go by the latter alone."""
    options = replace(SAMPLE_APPLE, framework=framework)
    assert job(linkage=linkage, apple=options).linkage == expected
    assert job("linux-arm64", linkage=linkage, apple=options).linkage == linkage


def test_a_runner_needs_the_systems_own_library_alone() -> None:
    """Of a static library it needs what that needs: C++ and the frameworks."""
    plain = sample_plan("macos-arm64").targets[0].runner.arguments
    assert not [word for word in plain if word.startswith(("-l", "-framework"))]
    static = sample_plan("macos-arm64", linkage="static").targets[0].runner.arguments
    assert {"${archive}", "-lc++", "-DORTRIM_LINKED", "Foundation"} <= set(static)
    assert static.index("${archive}") < static.index("-lc++")
    assert "CoreML" not in static


def test_coreml_is_linked_where_it_is_inside() -> None:
    """And nowhere else."""
    planned = replace(job("ios-arm64"), providers=("coreml",))
    assert apple_platform.frameworks(planned) == ("Foundation", "CoreML")
    assert apple_platform.frameworks(job("ios-arm64")) == ("Foundation",)


def test_all_slices_are_one_xcframework() -> None:
    """In the order of the plan, whatever else is in it."""
    names = ("macos-arm64", "linux-x64", "ios-arm64", "android-x86", "ios-simulator-arm64")
    plan = sample_plan("", selected=tuple(TargetSpec(id=name) for name in names))
    assert plan.assemblies == (
        AssemblyJob(identifier="android", targets=("android-x86",)),
        AssemblyJob(identifier="apple", targets=("macos-arm64", "ios-arm64", "ios-simulator-arm64")),
    )
    assert apple_platform.assembly(()) is None


def refused(*targets: TargetSpec) -> PlanError:
    """Plan targets that do not go together and return the diagnostic."""
    with pytest.raises(PlanError) as caught:
        sample_plan("", selected=targets, sources=SOURCES, models=MODELS)
    assert caught.value.exit_code is ExitCode.PLAN
    assert caught.value.hint
    return caught.value


def test_dynamic_and_static_do_not_mix() -> None:
    """An app links the framework of one kind for every platform."""
    error = refused(TargetSpec(id="ios-arm64", apple=AppleSpec(framework="static")), TargetSpec(id="macos-arm64"))
    assert (error.code, error.where) == ("mixed-frameworks", "ios-arm64, macos-arm64")
    assert "apple.framework" in error.hint


def test_what_is_one_file_has_one_oldest_system() -> None:
    """Both architectures of the simulator are in it; the phone may begin elsewhere."""
    later = AppleSpec(ios_deployment_target="16.0")
    error = refused(TargetSpec(id="ios-simulator-arm64"), TargetSpec(id="ios-simulator-x86_64", apple=later))
    assert (error.code, error.where) == ("mixed-deployment-targets", "ios-simulator-arm64, ios-simulator-x86_64")
    assert "15.1 and 16.0" in error.why
    apart = (TargetSpec(id="ios-simulator-arm64"), TargetSpec(id="ios-arm64", apple=later))
    assert len(sample_plan("", selected=apart).assemblies) == 1


@pytest.mark.parametrize("target", OURS)
def test_the_oldest_system_is_another_library(target: str) -> None:
    """And another path to the compiler; nothing of another system changes."""
    later = AppleSpec(ios_deployment_target="17.0", macos_deployment_target="14.0")
    assert job(target, apple=later) != job(target)
    assert job("linux-x64", apple=later) == job("linux-x64")
