"""Execution providers: what each adds to a build, and what is refused with the reason."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from ortrim.buildspec.buildspec import AndroidSpec, AppleSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.upstream_arguments import FLAGS, compiled_sources, require_providers
from ortrim.errors import ExitCode, PlanError
from ortrim.pins.runtime import SourcePin
from sample_plans import MODELS, SOURCES, sample_plan

Provider = Literal["nnapi", "xnnpack"]
OF_ANDROID: tuple[Provider, ...] = ("nnapi", "xnnpack")
COREML = AppleSpec(ios_deployment_target="15.1", macos_deployment_target="13.3", providers=("coreml",))
COREML_PINS = tuple(
    SourcePin(name=name, version="1", kind="upstream", digest="c" * 64, licence="BSD-3-Clause")
    for name in ("coremltools", "fp16", "psimd")
)
XNNPACK = tuple(
    SourcePin(name=name, version="1", kind="upstream", digest="c" * 64, licence="BSD-3-Clause")
    for name in ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai")
)
RUNTIME_STYLE = (replace(MODELS[0], style="runtime"),)


def job(target: str, *providers: Provider, **changes: Any) -> BuildJob:
    options = AndroidSpec(providers=providers)
    given = {"sources": (*SOURCES, *XNNPACK), "models": RUNTIME_STYLE, **changes}
    return sample_plan(target, android=options, **given).targets[0].job


def refused(target: str, *providers: Provider, **changes: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        job(target, *providers, **changes)
    assert caught.value.exit_code is ExitCode.PLAN
    assert caught.value.where == target
    assert caught.value.why
    assert caught.value.hint
    return caught.value


def sources_of(planned: BuildJob) -> set[str]:
    return {source.name for source in planned.sources} & {source.name for source in XNNPACK}


def test_the_processor_is_always_there_and_nothing_else_unless_asked_for() -> None:
    """Without a provider the build is the plain minimal one, and sources for providers are no sources of it."""
    planned = job("android-arm64-v8a")
    assert not set(FLAGS.values()) & set(planned.arguments)
    assert "extended" not in planned.arguments
    assert sources_of(planned) == {"cpuinfo"}
    assert sources_of(job("android-x86_64")) == set()


@pytest.mark.parametrize("provider", OF_ANDROID)
def test_a_provider_makes_the_minimal_build_an_extended_one(provider: Provider) -> None:
    """A provider takes nodes of a model at run time, which a plain minimal build has no code for."""
    arguments = job("android-x86_64", provider).arguments
    assert arguments[arguments.index("--minimal_build") + 1] == "extended"
    assert FLAGS[provider] in arguments


def test_both_providers_go_together() -> None:
    """Each flag once, whatever the order in the buildspec, and even if one is named twice."""
    one, other = (job("android-arm64-v8a", *names) for names in (("nnapi", "xnnpack"), ("xnnpack", "nnapi", "nnapi")))
    assert one == other
    assert {"--use_nnapi", "--use_xnnpack"} <= set(one.arguments)


@pytest.mark.parametrize(
    ("target", "needed"),
    [
        ("android-arm64-v8a", {"cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai"}),
        ("android-x86_64", {"cpuinfo", "fxdiv", "pthreadpool", "xnnpack"}),
        ("android-x86", {"cpuinfo", "fxdiv", "pthreadpool", "xnnpack"}),
    ],
)
def test_xnnpack_brings_its_sources(target: str, needed: set[str]) -> None:
    """Each counts as one of the library's, cpuinfo too where the library itself has no use for it."""
    planned = job(target, "xnnpack")
    assert sources_of(planned) == needed
    assert "onnxruntime_ENABLE_CPUINFO=ON" in planned.arguments


@pytest.mark.parametrize("lacking", ["cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai"])
def test_xnnpack_without_its_sources_is_refused(lacking: str) -> None:
    """What is missing is named, and how to get it."""
    error = refused("android-arm64-v8a", "xnnpack", sources=tuple(s for s in XNNPACK if s.name != lacking))
    assert (error.code, error.why) == ("provider-sources-missing", f"not there: {lacking}")
    assert "source = 'upstream'" in error.hint


def test_kleidiai_is_for_64_bit_arm_alone() -> None:
    """Where upstream does not take it, it may be missing."""
    planned = job("android-x86", "xnnpack", sources=tuple(s for s in XNNPACK if s.name != "kleidiai"))
    assert "--use_xnnpack" in planned.arguments


def test_xnnpack_on_32_bit_arm_is_refused() -> None:
    """Upstream needs a patch of XNNPACK for it; the hint says how to leave it out for this ABI alone."""
    error = refused("android-armeabi-v7a", "xnnpack")
    assert error.code == "provider-unsupported"
    assert "android = { providers = [] }" in error.hint


@pytest.mark.parametrize("provider", OF_ANDROID)
@pytest.mark.parametrize("level", ["extended", "all"])
def test_a_model_that_was_fused_for_the_processor_is_refused(provider: Provider, level: str) -> None:
    """A provider would find hardly a node that it knows."""
    model = replace(MODELS[0], style="fixed", level=level)
    error = refused("android-x86_64", provider, models=(*RUNTIME_STYLE, model))
    assert error.code == "provider-needs-runtime-style"
    assert "model tiny" in error.what
    assert "style = 'runtime'" in error.hint


@pytest.mark.parametrize(("style", "level"), [("runtime", "extended"), ("fixed", "basic"), ("fixed", "disable")])
def test_a_model_that_leaves_nodes_alone_is_accepted(style: str, level: str) -> None:
    """Either the phone fuses what is left over, or nothing does."""
    planned = job("android-x86_64", "nnapi", models=(replace(MODELS[0], style=style, level=level),))
    assert "--use_nnapi" in planned.arguments


@pytest.mark.parametrize("api", [21, 24, 36])
def test_nnapi_goes_with_every_level(api: int) -> None:
    """Upstream opens it at run time, and below Android 8.1 the processor does its work: its own package does so."""
    options = AndroidSpec(api=api, providers=("nnapi",))
    assert "--use_nnapi" in sample_plan("android-x86", android=options, models=RUNTIME_STYLE).targets[0].job.arguments


def test_linux_has_the_processor_alone() -> None:
    """Whatever the buildspec says for Android."""
    planned = sample_plan(android=AndroidSpec(providers=("nnapi",))).targets[0].job
    assert "--use_nnapi" not in planned.arguments
    require_providers(planned, MODELS)
    assert XNNPACK[3] not in compiled_sources(TARGETS["linux-x64"], XNNPACK)


@pytest.mark.parametrize("target", ["ios-arm64", "ios-simulator-x86_64", "macos-arm64", "maccatalyst-arm64"])
def test_coreml_makes_the_minimal_build_an_extended_one(target: str) -> None:
    """Upstream's CMake file stops without; its sources are the library's, and Linux has nothing of it."""
    planned = sample_plan(target, apple=COREML, models=RUNTIME_STYLE, sources=(*SOURCES, *COREML_PINS)).targets[0].job
    arguments = planned.arguments
    assert arguments[arguments.index("--minimal_build") + 1] == "extended"
    assert "--use_coreml" in arguments
    assert {pin.name for pin in COREML_PINS} <= {source.name for source in planned.sources}
    linux = sample_plan(apple=COREML, sources=(*SOURCES, *COREML_PINS)).targets[0].job
    assert not {"--use_coreml", "extended"} & set(linux.arguments)
    assert linux.sources == SOURCES


@pytest.mark.parametrize("lacking", ["coremltools", "fp16", "psimd"])
def test_coreml_without_its_sources_is_refused(lacking: str) -> None:
    """What is missing is named, and how to get it."""
    sources = (*SOURCES, *(pin for pin in COREML_PINS if pin.name != lacking))
    with pytest.raises(PlanError) as caught:
        sample_plan("ios-arm64", apple=COREML, models=RUNTIME_STYLE, sources=sources)
    assert (caught.value.code, caught.value.why) == ("provider-sources-missing", f"not there: {lacking}")
    assert "coreml" in caught.value.what
    assert "source = 'upstream'" in caught.value.hint


def test_coreml_wants_nodes_that_are_not_fused() -> None:
    """As the others do."""
    with pytest.raises(PlanError) as caught:
        sample_plan("ios-arm64", apple=COREML, sources=(*SOURCES, *COREML_PINS))
    assert (caught.value.code, caught.value.where) == ("provider-needs-runtime-style", "ios-arm64")
