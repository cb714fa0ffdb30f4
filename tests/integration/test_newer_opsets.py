"""What ortrim says of models of newer opsets and types, compared with what the wheel of each version does with them."""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_samples import model_of, value, write
from ortrim.analysis.compat import check_compatibility
from ortrim.analysis.lint.run import LintRequest, lint_models
from ortrim.base.console import Console
from ortrim.cli.options import request_from
from ortrim.models.full_runtime import FullRuntime, full_runtime, run_script
from ortrim.pins.runtime import runtime_pins

pytestmark = [pytest.mark.slow, pytest.mark.network]

IR_VERSIONS: Final = {22: 10, 23: 11, 24: 12, 25: 13}
TYPES: Final = ("INT4", "UINT4", "INT2", "FLOAT8E4M3FN", "FLOAT8E8M0", "FLOAT4E2M1")
LOST: Final = tuple(f"weights of {name}" for name in ("INT4", "UINT4", "INT2"))
IMAGE: Final = (1, 2, 4, 8)


def models(opset: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield models of one opset: what has a new form in it, what is new in it, and types that came later than it."""
    scale = helper.make_tensor("s", TensorProto.FLOAT, [], [0.1])
    zero = helper.make_tensor("z", TensorProto.INT8, [], [0])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8], [1.0] * 8)
    quantize = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
    dequantize = helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])
    yield "Relu", one(opset, helper.make_node("Relu", ["x"], ["y"]))
    yield "QDQ", one(opset, quantize, dequantize, initializers=(scale, zero))
    for name in TYPES:
        kind = getattr(TensorProto, name)
        back = helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)
        yield name, one(opset, helper.make_node("Cast", ["x"], ["q"], to=kind), back)
        add = helper.make_node("Add", ["x", "d"], ["y"])
        small = helper.make_tensor("w", kind, IMAGE, [1.0] * math.prod(IMAGE))
        dequantize = helper.make_node("DequantizeLinear", ["w", "s"], ["d"])
        yield f"weights of {name}", one(opset, dequantize, add, initializers=(scale, small))
    if opset >= 23:
        yield "Attention", one(opset, helper.make_node("Attention", ["x", "x", "x"], ["y"]))
        norm = helper.make_node("RMSNormalization", ["x", "w"], ["y"])
        yield "RMSNormalization", one(opset, norm, initializers=(weights,))
    if opset >= 24:
        yield "Swish", one(opset, helper.make_node("Swish", ["x"], ["y"]))


def one(opset: int, *nodes: onnx.NodeProto, initializers: Sequence[TensorProto] = ()) -> onnx.ModelProto:
    ends = [value("x", shape=IMAGE)], [value("y", shape=IMAGE)]
    return model_of(nodes, *ends, opsets=[("", opset)], ir_version=IR_VERSIONS[opset], initializers=initializers)


def loads(runtime: FullRuntime, path: Path) -> bool:
    request = {"do": "load", "model": str(path)}
    return not run_script(runtime, "models.py", request, folder=path.parent, where=path.stem)


@pytest.mark.parametrize("opset", IR_VERSIONS)
@pytest.mark.parametrize("version", ["1.21.0", "1.23.2", "1.24.4", "1.30.0"])
def test_what_is_said_is_what_the_wheel_does(tmp_path: Path, version: str, opset: int) -> None:
    """`lint` has errors, and `check-compat` says that it does not fit, where the wheel refuses it, and nowhere else."""
    pins = runtime_pins(version)
    runtime = full_runtime(version, pins.converter_requirements)
    everything = tmp_path / "everything.config"
    everything.write_text("!no_ops_specified_means_all_ops_are_required\n")
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    wrong = []
    for name, model in models(opset):
        path = write(tmp_path / f"{name}.onnx", model)
        (linted,) = lint_models(
            LintRequest(models=(str(path),), request=request_from(None), ort_version=version), console
        )
        fits = check_compatibility(everything, (path,), console, ort_version=version).fits
        said = not linted.errors, fits
        real = loads(runtime, path) and not (version == "1.30.0" and name in LOST)
        if said != (real, real):
            wrong.append((name, f"lint, check-compat: {said}", f"wheel: {real}"))
    assert wrong == []
