"""Execution providers: what each adds to a build, and what is refused with the reason."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.buildspec.buildspec import LoadedSpec, ModelSpec, Provider, RuntimeSpec, TargetSpec
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.upstream_arguments import FETCHED, FLAGS, optional_sources
from ortrim.errors import ExitCode, PlanError
from ortrim.pins.runtime import SourcePin
from ortrim.planning.planned import possible_targets
from ortrim.planning.request import Request
from sample_plans import MODELS, SOURCES, sample_plan

PINS = tuple(
    SourcePin(name=name, version="1", kind="upstream", digest="c" * 64, licence="BSD-3-Clause")
    for name in ("cpuinfo", *sorted(frozenset().union(*FETCHED.values())))
)
RUNTIME_STYLE = (replace(MODELS[0], style="runtime"),)
TARGETS: dict[Provider, tuple[str, ...]] = {
    "coreml": ("ios-arm64", "ios-simulator-x86_64", "macos-arm64", "maccatalyst-arm64"),
    "xnnpack": ("linux-x64", "linux-arm64", "android-x86_64", "android-arm64-v8a", "android-x86", "macos-arm64"),
}
BOTH = [(provider, target) for provider, targets in TARGETS.items() for target in targets]


def job(target: str, *providers: Provider, **changes: Any) -> BuildJob:
    given = {"sources": (*SOURCES, *PINS), "models": RUNTIME_STYLE, "providers": providers, **changes}
    return sample_plan(target, **given).targets[0].job


def refused(target: str, *providers: Provider, **changes: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        job(target, *providers, **changes)
    assert caught.value.exit_code is ExitCode.PLAN
    assert caught.value.where == target
    assert caught.value.why
    assert caught.value.hint
    return caught.value


def sources_of(planned: BuildJob) -> set[str]:
    return {source.name for source in planned.sources} & {source.name for source in PINS}


@pytest.mark.parametrize(("target", "own"), [("android-arm64-v8a", {"cpuinfo"}), ("linux-x64", set())])
def test_the_processor_is_always_there_and_nothing_else_unless_asked_for(target: str, own: set[str]) -> None:
    """Without a provider the build is the plain minimal one, and sources for providers are no sources of it."""
    planned = job(target)
    assert not set(FLAGS.values()) & set(planned.arguments)
    assert "extended" not in planned.arguments
    assert sources_of(planned) == own
    assert planned.provider_names == ()


@pytest.mark.parametrize(("provider", "target"), BOTH)
def test_a_provider_brings_its_sources_and_an_extended_minimal_build(provider: Provider, target: str) -> None:
    """A provider takes nodes of a model at run time, which a plain minimal build has no code for."""
    planned = job(target, provider)
    assert planned.arguments[planned.arguments.index("--minimal_build") + 1] == "extended"
    assert FLAGS[provider] in planned.arguments
    assert sources_of(planned) - {"cpuinfo"} == FETCHED[provider]
    assert FETCHED[provider] <= optional_sources((provider,))


def test_a_target_may_do_without() -> None:
    """Its own key replaces the buildspec's."""
    plan = sample_plan(
        selected=(TargetSpec(id="linux-x64"), TargetSpec(id="linux-armhf", providers=())),
        providers=("xnnpack",),
        sources=(*SOURCES, *PINS),
        models=RUNTIME_STYLE,
    )
    assert [target.job.providers for target in plan.targets] == [("xnnpack",), ()]
    assert [target.job.provider_names for target in plan.targets] == [("XNNPACK",), ()]


@pytest.mark.parametrize(
    ("provider", "lacking"), [(provider, name) for provider, names in FETCHED.items() for name in sorted(names)]
)
def test_a_provider_without_its_sources_is_refused(provider: Provider, lacking: str) -> None:
    """What is missing is named, and how to get it."""
    error = refused("macos-x86_64", provider, sources=tuple(pin for pin in (*SOURCES, *PINS) if pin.name != lacking))
    assert (error.code, error.why) == ("provider-sources-missing", f"not there: {lacking}")
    assert provider in error.what
    assert "source = 'upstream'" in error.hint


@pytest.mark.parametrize(
    ("provider", "target"),
    [
        ("xnnpack", "android-armeabi-v7a"),
        ("xnnpack", "linux-riscv64"),
        ("coreml", "linux-x64"),
    ],
)
def test_a_provider_that_a_target_cannot_have_is_refused(provider: Provider, target: str) -> None:
    """The hint says how to leave it out for this target alone."""
    error = refused(target, provider)
    assert error.code == "provider-unsupported"
    assert "providers = []" in error.hint


def test_xnnpack_is_refused_for_an_onnx_runtime_that_was_never_built_with_it() -> None:
    """What leaves out a part of XNNPACK knows the one that 1.21.0 names."""
    error = refused("linux-x64", "xnnpack", onnxruntime=RuntimeSpec(version="1.22.0"))
    assert (error.code, error.why) == ("provider-unsupported", "ortrim builds it with ONNX Runtime 1.21.0 alone")
    assert error.hint == "say onnxruntime.version = '1.21.0', or leave it out: give the target linux-x64 providers = []"


def test_that_is_said_before_any_source_is_looked_for() -> None:
    models = (ModelSpec(name="kws", path=Path("kws.onnx")),)
    runtime, target = RuntimeSpec(version="1.22.0"), TargetSpec(id="linux-x64")
    loaded = LoadedSpec(
        name="kws", models=models, file=Path("kws.toml"), providers=("xnnpack",), onnxruntime=runtime, targets=(target,)
    )
    with pytest.raises(PlanError) as caught:
        possible_targets(loaded, Request(spec=Path("kws.toml")), to_run=False)
    assert caught.value.code == "provider-unsupported"


@pytest.mark.parametrize(("provider", "target"), [("xnnpack", "linux-x64"), ("coreml", "ios-arm64")])
@pytest.mark.parametrize("level", ["extended", "all"])
def test_a_model_that_was_fused_for_the_processor_is_refused(provider: Provider, target: str, level: str) -> None:
    """A provider would find hardly a node that it knows."""
    model = replace(MODELS[0], style="fixed", level=level)
    error = refused(target, provider, models=(*RUNTIME_STYLE, model))
    assert error.code == "provider-needs-runtime-style"
    assert "model tiny" in error.what
    assert "style = 'runtime'" in error.hint


@pytest.mark.parametrize(("style", "level"), [("runtime", "extended"), ("fixed", "basic"), ("fixed", "disable")])
def test_a_model_that_leaves_nodes_alone_is_accepted(style: str, level: str) -> None:
    """Either the device fuses what is left over, or nothing does."""
    planned = job("linux-x64", "xnnpack", models=(replace(MODELS[0], style=style, level=level),))
    assert "--use_xnnpack" in planned.arguments
