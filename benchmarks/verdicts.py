"""Holds the verdicts of `check-compat` against what a trimmed library does, with thousands of models of one operator.

usage: verdicts.py PACKAGE_FOLDER [NUMBER] [SEED]

PACKAGE_FOLDER is an unpacked package for this machine. Each model is converted, judged, loaded and run. Prints each
model about which both do not agree, and the numbers. Takes a minute for a thousand models.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnx
import onnxruntime
from onnx import TensorProto, helper
from programs import compile_runner, print_now

from ortrim.analysis.compat import in_doubt, judge
from ortrim.analysis.compat_runtime import InstalledRuntime, read_runtime
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, SpecError, VerifyError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.kernels import kernel_versions
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.models.operators import ModelUses
from ortrim.models.ort_format import read_uses
from ortrim.parity.inputs import Case, make_cases
from ortrim.parity.runner import Repetition, RunRequest

TYPES: Final = (
    "FLOAT", "DOUBLE", "FLOAT16", "INT32", "INT64", "INT8", "UINT8", "INT16", "UINT32", "UINT64", "BOOL", "STRING",
)  # fmt: skip
OPSETS: Final = (8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
SQUARE: Final = (10, 10)
"""Random integers are from 0 to 9, so that all of them are indices."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """Models of one operator: types of its inputs (`T` is drawn), constants behind them, attributes, opsets."""

    name: str
    inputs: tuple[str, ...] = ("T",)
    shape: tuple[int, ...] = SQUARE
    constants: tuple[tuple[int, ...], ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    result: str = "T"
    outputs: int = 1
    opsets: tuple[int, int] = (1, 99)


UNARY: Final = (
    "Abs", "Ceil", "Clip", "Cos", "Erf", "Exp", "Flatten", "Floor", "Identity", "IsNaN", "Log", "Neg", "Not",
    "Reciprocal", "Relu", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Softmax", "Softplus", "Sqrt",
    "Tanh", "Transpose",
)  # fmt: skip
RESULTS: Final = {"IsNaN": "BOOL", "Shape": "INT64", "Size": "INT64"}
BINARY: Final = ("Add", "Equal", "Greater", "Less", "MatMul", "Max", "Min", "Mul", "Pow", "Sub", "Gemm")
COMPARING: Final = ("Equal", "Greater", "Less")
REDUCING: Final = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")
IMAGE: Final = (1, 1, 4, 4)
PATTERNS: Final = (
    *(Pattern(name=name, result=RESULTS.get(name, "T")) for name in UNARY),
    *(Pattern(name=name, inputs=("T", "T"), result="BOOL" if name in COMPARING else "T") for name in BINARY),
    *(Pattern(name="Gather", inputs=("T", kind)) for kind in ("INT32", "INT64")),
    *(Pattern(name="GatherElements", inputs=("T", kind), opsets=(11, 99)) for kind in ("INT32", "INT64")),
    *(Pattern(name="Pow", inputs=("T", kind), opsets=(12, 99)) for kind in ("FLOAT", "INT32", "INT64")),
    *(Pattern(name="Cast", attributes={"to": getattr(TensorProto, kind)}, result=kind) for kind in TYPES),
    *(Pattern(name=name, attributes={"axes": [0]}, opsets=(1, 17)) for name in REDUCING),
    *(Pattern(name=name, constants=((0,),), opsets=(18, 99)) for name in REDUCING),
    Pattern(name="ReduceSum", attributes={"axes": [0]}, opsets=(1, 12)),
    Pattern(name="ReduceSum", constants=((0,),), opsets=(13, 99)),
    Pattern(name="Concat", inputs=("T", "T"), attributes={"axis": 0}),
    Pattern(name="Where", inputs=("BOOL", "T", "T")),
    Pattern(name="Squeeze", shape=(1, 3), constants=((0,),), opsets=(13, 99)),
    Pattern(name="Unsqueeze", constants=((0,),), opsets=(13, 99)),
    Pattern(name="Split", outputs=2, opsets=(1, 17)),
    Pattern(name="Split", outputs=2, attributes={"num_outputs": 2}, opsets=(18, 99)),
    Pattern(name="Slice", constants=((0,), (2,)), opsets=(10, 99)),
    Pattern(name="Pad", shape=(3,), constants=((1, 1),), opsets=(11, 99)),
    Pattern(name="Reshape", constants=((100,),)),
    Pattern(name="Tile", constants=((1, 2),)),
    Pattern(name="Expand", shape=(1, 4), constants=((2, 4),)),
    Pattern(name="ConstantOfShape", inputs=("INT64",), shape=(2,), result="FLOAT"),
    Pattern(name="MaxPool", shape=IMAGE, attributes={"kernel_shape": [2, 2]}),
    Pattern(name="Conv", inputs=("T", "T"), shape=IMAGE),
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The package to be judged, with all that loads and runs a model on its library."""

    installed: InstalledRuntime
    library: Path
    runner: Path
    full: FullRuntime
    folder: Path
    kernels: dict[tuple[str, str], tuple[tuple[int, int], ...]] = field(default_factory=dict)


def main(package: Path, number: int = 1000, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory(prefix="verdicts-") as name:
        bench = open_bench(package, Path(name))
        found: Counter[str] = Counter()
        for label, model in drawn(bench.installed, seed):
            agreement = tried(bench, label, model)
            found[agreement] += 1
            if agreement.startswith("differ"):
                print_now(f"{label}: {agreement}")
            if found.total() - found["not convertible"] >= number:
                break
        print_now(*(f"{count:6} {words}" for words, count in found.most_common()))


def open_bench(package: Path, folder: Path) -> Bench:
    onnxruntime.set_default_logger_severity(4)
    installed = read_runtime(package)
    runner = compile_runner(package / "include" / "onnxruntime", folder / "runner")
    library, full = package / "lib" / "libonnxruntime.so", full_runtime(installed.ort_version, None)
    return Bench(installed=installed, library=library, runner=runner, full=full, folder=folder)


def drawn(installed: InstalledRuntime, seed: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    present = {operator.name for operator in installed.operators.operators}
    every = [
        (pattern, kind, opset)
        for pattern in PATTERNS
        for kind in TYPES
        for opset in OPSETS
        if pattern.name in present and pattern.opsets[0] <= opset <= pattern.opsets[1]
    ]
    random.Random(seed).shuffle(every)  # noqa: S311 - to be repeatable, not secret
    for pattern, kind, opset in every:
        words = (pattern.name, str(opset), kind, *pattern.inputs, pattern.result)
        yield "-".join(words).lower(), made(pattern, kind, opset)


def made(pattern: Pattern, kind: str, opset: int) -> onnx.ModelProto:
    kinds = [kind if each == "T" else each for each in (*pattern.inputs, pattern.result)]
    numbers = [getattr(TensorProto, each) for each in kinds]
    names = [f"x{index}" for index in range(len(pattern.inputs))]
    constants = [
        helper.make_tensor(f"c{index}", TensorProto.INT64, [len(values)], values)
        for index, values in enumerate(pattern.constants)
    ]
    ends = [f"y{index}" for index in range(pattern.outputs)]
    node = helper.make_node(pattern.name, [*names, *(each.name for each in constants)], ends, **pattern.attributes)
    inputs = [
        helper.make_tensor_value_info(name, number, pattern.shape)
        for name, number in zip(names, numbers[:-1], strict=True)
    ]
    outputs = [helper.make_tensor_value_info(name, numbers[-1], None) for name in ends]
    graph = helper.make_graph([node], "graph", inputs, outputs, initializer=constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def tried(bench: Bench, label: str, model: onnx.ModelProto) -> str:
    """Return in words how the verdict and the library go together."""
    path = bench.folder / "model.ort"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001 - it raises its own kinds, and most types have no kernel in the full runtime either
        return "not convertible"
    fits, refusal = judged(bench, read_uses(path)), outcome(bench, path, cases_of(bench, label, model))
    if fits is (refusal is None):
        return f"agree: {'fits' if fits else f'does not fit ({refusal.code})'}" if refusal else "agree: fits"
    return f"differ: judged {'fit' if fits else 'unfit'}, {refusal.why if refusal else 'ran'}"


def judged(bench: Bench, uses: ModelUses) -> bool:
    doubt = {(each.domain, each.name) for each in in_doubt(bench.installed, uses)} - set(bench.kernels)
    bench.kernels.update(kernel_versions(doubt, runtime=bench.full, folder=bench.folder))
    return judge(bench.installed, uses, bench.kernels).fits


def cases_of(bench: Bench, label: str, model: onnx.ModelProto) -> tuple[Case, ...]:
    """Return one random case; none when ortrim cannot make one, so that the model is only loaded."""
    facts = facts_of(model, "0" * 64, 1, label)
    prepared = PreparedModel(name=label, path=bench.folder / "model.onnx", facts=facts)
    try:
        return make_cases(prepared, ModelSpec(name=label, path=prepared.path), bench.folder, bench.folder / label)
    except SpecError:
        return ()


def outcome(bench: Bench, path: Path, cases: tuple[Case, ...]) -> Diagnostic | None:
    """Load and run a model; return what went wrong."""
    repetition = Repetition(runs=1, warmup=0, timeout_seconds=60)
    request = RunRequest(runner=bench.runner, library=bench.library, model=path, cases=cases, repetition=repetition)
    try:
        Host().run(request)
    except VerifyError as error:
        return error
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]))
