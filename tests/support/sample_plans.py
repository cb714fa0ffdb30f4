"""A small buildspec planned without any file: what golden plans are made from."""

from dataclasses import replace
from typing import Any

from ndk_layout import NDK_VERSION
from ortrim.buildspec.buildspec import AppleSpec, BuildSpec, ModelSpec, TargetSpec
from ortrim.buildspec.targets import APPLE, TARGETS, CLibrary, OperatingSystem, minimum_glibc
from ortrim.compiling.plan import BuildPlan, PlannedModel, Toolchain
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.models.operators import OperatorId, OperatorTypes, RequiredOperators, required_operators
from ortrim.pins.runtime import SourcePin
from ortrim.planning.planner import Contents, PlanInput, make_plan
from ortrim.platforms.android.ndk import ndk_toolchain
from ortrim.platforms.android.platform import android_of
from ortrim.platforms.apple.platform import deployment_target_of
from ortrim.platforms.apple.xcode import xcode_toolchain

SOURCES = (
    SourcePin(name="onnxruntime", version="1.21.0", kind="upstream", digest="a" * 64, licence="MIT"),
    SourcePin(name="eigen", version="3.4.0", kind="upstream", digest="b" * 64, licence="MPL-2.0"),
)
MODELS = (
    PlannedModel(
        name="tiny", onnx_sha256="1" * 64, ort_sha256="2" * 64, tests_sha256="3" * 64, style="fixed", level="extended"
    ),
)
OPERATORS = required_operators(
    [
        OperatorId(domain="ai.onnx", opset=13, name="Gemm"),
        OperatorId(domain="com.microsoft", opset=1, name="FusedConv"),
    ],
    {("ai.onnx", "Gemm"): OperatorTypes(inputs=((0, ("float",)),))},
)
SAMPLE_APPLE = AppleSpec(ios_deployment_target="15.1", macos_deployment_target="13.3")
XCODE_VERSION = "16.4"
FOREST = required_operators([OperatorId(domain="ai.onnx.ml", opset=3, name="TreeEnsembleClassifier")])


def sample_spec(**changes: Any) -> BuildSpec:
    targets = tuple(TargetSpec(id=identifier, glibc="2.28") for identifier in ("linux-x64", "linux-arm64"))
    spec: dict[str, Any] = {
        "name": "sample",
        "models": (ModelSpec(name="tiny"),),
        "targets": targets,
        "apple": SAMPLE_APPLE,
    }
    return BuildSpec(**spec | changes)


def sample_input(
    target: str = "linux-x64",
    operators: RequiredOperators = OPERATORS,
    *,
    models: tuple[PlannedModel, ...] = MODELS,
    selected: tuple[TargetSpec, ...] = (),
    unused_types: tuple[str, ...] = (),
    hot_operators: tuple[str, ...] = (),
    few_bits: tuple[tuple[int, int], ...] = (),
    **changes: Any,
) -> PlanInput:
    spec = sample_spec(**changes)
    targets = selected or tuple(each for each in spec.targets if each.id == target) or (sample_target(target),)
    contents = Contents(
        operators=operators, models=models, unused_types=unused_types, hot_operators=hot_operators, few_bits=few_bits
    )
    return PlanInput(spec=replace(spec, targets=targets), contents=contents)


def sample_plan(
    *words: Any, toolchain: Toolchain | None = None, sources: tuple[SourcePin, ...] = SOURCES, **named: Any
) -> BuildPlan:
    given = sample_input(*words, **named)
    return make_plan(
        given,
        sources=sources,
        tools=(("cmake", "3.31.10"), ("ninja", "1.13.2"), ("ziglang", "0.17.0")),
        toolchains={each.id: toolchain or sample_toolchain(given.spec, each) for each in given.spec.targets},
        runner_sha256="4" * 64,
        hooks_sha256="d" * 64,
        ortrim_version="0.1.0",
    )


def sample_target(identifier: str) -> TargetSpec:
    has_glibc = TARGETS[identifier].c_library is CLibrary.GLIBC
    return TargetSpec(id=identifier, glibc="2.28") if has_glibc else TargetSpec(id=identifier)


def sample_toolchain(spec: BuildSpec, target: TargetSpec) -> Toolchain:
    known = TARGETS[target.id]
    if known.system is OperatingSystem.ANDROID:
        api = android_of(spec, target).api
        assert api is not None
        return ndk_toolchain(known, api, NDK_VERSION)
    if known.system in APPLE:
        baseline = deployment_target_of(spec, target)
        assert baseline is not None
        return xcode_toolchain(known, baseline, XCODE_VERSION)
    return zig_toolchain(known, minimum_glibc(known, "2.28"), "0.17.0", target.cpu)


def system_gcc() -> Toolchain:
    names = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
    programs = ("gcc", "g++", "ar", "ranlib")
    return Toolchain(
        kind="gcc", version="12.2.0", triple="", environment=tuple(zip(names, programs, strict=True)), wrappers=()
    )
