"""Plans from elsewhere: what this ortrim would have decided otherwise is refused, before anything of it is run."""

from dataclasses import replace
from typing import Any

import pytest

from ortrim.build.plan import AppleBuild, BuildJob, BuildPlan, PlannedTarget
from ortrim.errors import ExitCode, PlanError
from ortrim.github import jobs
from ortrim.github.dispatch import decode_plan, encode_plan
from ortrim.github.jobs import accept, require_ours
from ortrim.pins.shipped import tool_versions
from ortrim.pipeline.planned import hooks_digest, make_planned
from ortrim.platforms.apple.xcode import xcode_toolchain
from ortrim.platforms.planner import with_arguments
from ortrim.spec.buildspec import AndroidSpec, AppleSpec
from ortrim.spec.targets import TARGETS
from pipeline_stages import Stages
from sample_plans import MODELS, SOURCES, sample_plan, sample_target, system_gcc


@pytest.fixture
def plan(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> BuildPlan:
    """Return a plan that was made here and went through letters, with sources that are here."""
    made = make_planned(stages.request(target="linux-x64,linux-arm64,android-arm64-v8a"), stages.console)
    monkeypatch.setattr(jobs, "fetch_sources", lambda *_, **__: made.sources)
    return decode_plan(encode_plan(made.plan))


def test_a_plan_of_the_same_ortrim_is_accepted(plan: BuildPlan, stages: Stages) -> None:
    """With zig and with an NDK; nothing of it is changed."""
    accepted = accept(plan, stages.console)
    assert accepted.plan == plan
    assert len(plan.targets) == 3


@pytest.mark.parametrize("identifier", TARGETS)
def test_every_target_can_be_dispatched(identifier: str) -> None:
    """What this ortrim plans, it accepts, whatever the target."""
    require_ours(own_target(identifier), "1.21.0", SOURCES)


@pytest.mark.parametrize(
    "changes",
    [
        {"linkage": "static"},
        {"profile": "upstream"},
        {"exceptions": True},
        {"android": {"providers": ("nnapi",)}},
        {"android": {"api": 30, "stl": "c++_shared"}},
        {"apple": {"ios_deployment_target": "17.0", "framework": "static", "xcode": "17.0.1"}},
    ],
)
def test_what_a_buildspec_may_choose_can_be_dispatched(changes: dict[str, Any]) -> None:
    """Choices that are the user's are not taken for differences."""
    identifier = {"android": "android-x86_64", "apple": "ios-arm64"}.get(next(iter(changes)), "linux-x64")
    require_ours(own_target(identifier, **changes), "1.21.0", SOURCES)


@pytest.mark.parametrize("minimum", ["15.1; id", '15.1"', "15.1\nid", "$(id)", "15", ""])
def test_an_oldest_system_that_is_no_version_is_refused(minimum: str) -> None:
    """It becomes part of the compilers' wrappers, which are scripts."""
    made = own_target("ios-arm64")
    job = replace(made.job, apple=AppleBuild(deployment_target=minimum))
    with pytest.raises(PlanError) as caught:
        require_ours(replace(made, job=job), "1.21.0", SOURCES)
    assert caught.value.code == "plan-not-ours"


def test_hot_operators_go_along() -> None:
    """A plan alone is enough for a build elsewhere."""
    made = own_target("linux-x64", hot_operators=("ai.onnx:Gemm",))
    assert made.job.hot_operators == ("ai.onnx:Gemm",)
    require_ours(made, "1.21.0", SOURCES)


@pytest.mark.parametrize("name", ["Conv", "", "ai.onnx:", "ai.onnx:Conv\n", "a b:Conv", "x:]==]", f"a:{'C' * 129}"])
def test_a_hot_operator_that_is_no_operators_name_is_refused(name: str) -> None:
    """Whoever may dispatch a workflow has no other way into what CMake reads."""
    made = own_target("linux-x64")
    job = replace(made.job, hot_operators=("ai.onnx:Gemm", name))
    with pytest.raises(PlanError) as caught:
        require_ours(replace(made, job=job), "1.21.0", SOURCES)
    assert (caught.value.code, caught.value.exit_code) == ("plan-not-ours", ExitCode.PLAN)
    assert "hot_operators" in caught.value.why


def test_wide_blocks_below_their_processor_are_refused() -> None:
    """Nobody asks the processor again: the library would end on one without AVX-512."""
    made = own_target("linux-x64")
    with pytest.raises(PlanError) as caught:
        require_ours(replace(made, job=replace(made.job, nchwc_block_size=16)), "1.21.0", SOURCES)
    assert caught.value.code == "plan-not-ours"
    assert "nchwc_block_size" in caught.value.why


def test_xcode_compiles_for_apple_alone() -> None:
    """A plan that says otherwise is none of ours."""
    made = own_target("linux-x64")
    job = replace(made.job, toolchain=xcode_toolchain(TARGETS["macos-arm64"], "13.3", "16.4"))
    with pytest.raises(PlanError) as caught:
        require_ours(replace(made, job=job), "1.21.0", SOURCES)
    assert caught.value.code == "plan-not-ours"


def own_target(identifier: str, **changes: Any) -> PlannedTarget:
    """Return a target as this ortrim plans it, with the pinned tools."""
    if "apple" in changes:
        changes["apple"] = AppleSpec(**changes["apple"])
    if "android" in changes:
        changes["android"] = AndroidSpec(**changes["android"])
        changes["models"] = tuple(replace(model, style="runtime") for model in MODELS)
    made = sample_plan(selected=(sample_target(identifier),), **changes).targets[0]
    job = with_arguments(
        replace(
            made.job,
            tools=tool_versions(),
            hooks_sha256=hooks_digest(),
        )
    )
    return replace(made, job=job, runner=jobs._runner(job))


JOB: Any = [
    ("arguments", lambda job: (*job.arguments, "--cmake_extra_defines", "X=$(id)")),
    ("finishing", lambda _: (("sh", "-c", "id"),)),
    ("tools", lambda _: (("cmake", "0.1"),)),
    ("hooks_sha256", lambda _: "0" * 64),
    ("toolchain", lambda job: replace(job.toolchain, wrappers=(("cc", "#!/bin/sh\nid\n"),))),
    ("toolchain", lambda job: replace(job.toolchain, environment=(("LD_PRELOAD", "x"),))),
    ("toolchain", lambda job: replace(job.toolchain, triple="x; id")),
    ("sources", lambda job: job.sources[:1]),
    ("sources", lambda job: (replace(job.sources[0], digest="0" * 64), *job.sources[1:])),
    ("operator_config", lambda job: job.operator_config + "# and\n"),
    ("expected_outputs", lambda _: ()),
    ("cpu", lambda _: "cortex-x; id"),
    ("minimum_glibc", lambda _: "2.28; id"),
    ("minimum_glibc", lambda _: '2.28"'),
    ("minimum_glibc", lambda _: "2.28\nid"),
    ("profile", lambda _: "mine"),
    ("ort_version", lambda _: "1.22.0"),
    ("exceptions", lambda job: not job.exceptions),
    ("linkage", lambda _: "static"),
    ("target", lambda _: replace(TARGETS["linux-x64"], identifier="linux-x65")),
    ("target", lambda _: TARGETS["linux-arm64"]),
]


@pytest.mark.parametrize(("name", "change"), JOB, ids=[f"{n}-{name}" for n, (name, _) in enumerate(JOB)])
def test_a_job_that_was_changed_is_refused(name: str, change: Any) -> None:
    """Whatever it is, nothing of it is written to a file or run."""
    target = own_target("linux-x64")
    changed: BuildJob = replace(target.job, **{name: change(target.job)})
    refused(replace(target, job=changed))


@pytest.mark.parametrize("word", ["--cmake_extra_defines", "float8 sparsetensor", "$(id)"])
def test_a_type_that_is_none_is_refused(word: str) -> None:
    """It would be an argument of upstream's, whose arguments can run any program; those of this job fit the word."""
    target = own_target("linux-x64")
    job = with_arguments(replace(target.job, without_types=("float8", word)))
    refused(replace(target, job=job, runner=jobs._runner(job)))


RUNNER: Any = [("arguments", ("-o", "/etc/x")), ("runner_sha256", "0" * 64), ("links", "../x"), ("headers", SOURCES[1])]


@pytest.mark.parametrize(("name", "value"), RUNNER)
def test_a_runner_that_was_changed_is_refused(name: str, value: Any) -> None:
    """It is compiled and run, too."""
    target = own_target("linux-x64")
    refused(replace(target, runner=replace(target.runner, **{name: value})))


@pytest.mark.parametrize("version", ["28.0.1-$(id)", "../../x", "27 ", ""])
def test_an_ndk_of_a_strange_version_is_refused(version: str) -> None:
    """It becomes part of a path and of a script."""
    target = own_target("android-x86_64")
    refused(replace(target, job=replace(target.job, toolchain=replace(target.job.toolchain, version=version))))


def test_a_compiler_of_another_machine_is_refused() -> None:
    """Nobody knows what its gcc was."""
    target = own_target("linux-x64")
    refused(replace(target, job=replace(target.job, toolchain=system_gcc())), why="compiler of the machine")


def refused(target: PlannedTarget, why: str = "") -> None:
    """Check that a target is refused."""
    with pytest.raises(PlanError) as caught:
        require_ours(target, "1.21.0", SOURCES)
    assert (caught.value.code, caught.value.exit_code) == ("plan-not-ours", ExitCode.PLAN)
    assert why in caught.value.why


@pytest.mark.parametrize(
    "change",
    [
        {"ortrim_version": "0.0.1"},
        {"spec_name": "../../x"},
        {"spec_name": "a b"},
        {"spec_name": ""},
        {"targets": ()},
        {"ort_version": "1.22.0"},
    ],
)
def test_a_plan_that_was_changed_is_refused(plan: BuildPlan, stages: Stages, change: dict[str, Any]) -> None:
    """Its name becomes that of artifacts."""
    with pytest.raises(PlanError) as caught:
        accept(replace(plan, **change), stages.console)
    assert caught.value.code == "plan-not-ours"


@pytest.mark.parametrize("kind", ["path", "none", "git;id"])
def test_sources_of_another_machine_are_refused(plan: BuildPlan, stages: Stages, kind: str) -> None:
    """A checkout that lies on a laptop cannot be had here."""
    job = plan.targets[0].job
    sources = tuple(replace(source, kind=kind) for source in job.sources)
    target = replace(plan.targets[0], job=replace(job, sources=sources))
    with pytest.raises(PlanError) as caught:
        accept(replace(plan, targets=(target,)), stages.console)
    assert "upstream, debian" in caught.value.why
