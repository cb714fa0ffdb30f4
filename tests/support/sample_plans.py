"""A small buildspec planned without any file: what golden plans are made from."""

from typing import Any

from ortrim.core.buildspec import BuildSpec, ModelSpec, TargetSpec
from ortrim.core.operators import OperatorId, OperatorTypes, RequiredOperators, required_operators
from ortrim.core.plan import BuildPlan, PlannedModel, SourcePin, Toolchain
from ortrim.core.targets import TARGETS, minimum_glibc
from ortrim.planning import make_plan
from ortrim.toolchains.zig import zig_toolchain

SOURCES = (
    SourcePin(name="onnxruntime", version="1.21.0", kind="archive", digest="a" * 64, licence="MIT"),
    SourcePin(name="eigen", version="3.4.0", kind="archive", digest="b" * 64, licence="MPL-2.0"),
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
FOREST = required_operators([OperatorId(domain="ai.onnx.ml", opset=3, name="TreeEnsembleClassifier")])


def sample_spec(**changes: Any) -> BuildSpec:
    """Return a buildspec for two Linux targets."""
    targets = tuple(TargetSpec(id=identifier, glibc="2.28") for identifier in ("linux-x64", "linux-arm64"))
    spec: dict[str, Any] = {"name": "sample", "models": (ModelSpec(name="tiny"),), "targets": targets}
    return BuildSpec(**spec | changes)


def sample_plan(
    target: str = "linux-x64",
    operators: RequiredOperators = OPERATORS,
    toolchain: Toolchain | None = None,
    **changes: Any,
) -> BuildPlan:
    """Return the plan of one target, of the sample or another; `changes` are keys of its buildspec."""
    spec = sample_spec(**changes)
    targets = tuple(each for each in spec.targets if each.id == target) or (TargetSpec(id=target, glibc="2.28"),)
    glibc, cpu = minimum_glibc(TARGETS[target], "2.28"), targets[0].cpu
    return make_plan(
        spec,
        operators,
        targets=targets,
        models=MODELS,
        sources=SOURCES,
        tools=(("cmake", "3.31.10"), ("ninja", "1.13.2"), ("ziglang", "0.17.0")),
        toolchains={target: toolchain or zig_toolchain(TARGETS[target], glibc, "0.17.0", cpu)},
        runner_sha256="4" * 64,
        hooks_sha256="d" * 64,
        ortrim_version="0.1.0",
    )


def system_gcc() -> Toolchain:
    """Return a toolchain like `system_toolchain`'s, of a gcc that need not be installed."""
    names = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
    programs = ("gcc", "g++", "ar", "ranlib")
    return Toolchain(
        kind="gcc", version="12.2.0", triple="", environment=tuple(zip(names, programs, strict=True)), wrappers=()
    )
