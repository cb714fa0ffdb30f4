"""Say which operators have CPU kernels, and count what mobile execution providers take of a model.

Runs inside the full runtime's own Python, so it imports only the standard library, onnxruntime, and onnx where that is
installed. Called with the path of a request in JSON; writes its answer beside it.
"""

import json
import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

limit_memory = runpy.run_path(str(Path(__file__).with_name("memory.py")))["limit_memory"]
Operator = tuple[str, ...]
XNNPACK_RANK = 4
MATRIX_RANK = 2
GEMM_WITH_C = 3  # inputs; upstream's kernel asks C for its shape (1.21.0)
COREML = (
    ("CoreML (NeuralNetwork)", "coreml_supported_neuralnetwork_ops.md"),
    ("CoreML (MLProgram)", "coreml_supported_mlprogram_ops.md"),
)
XNNPACK = {
    "AveragePool", "Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "QLinearConv", "Resize", "Softmax",
}  # fmt: skip
"""What `node_support_checker.cc` of ONNX Runtime 1.21.0 takes, all of ONNX's own domain; upstream has no list of it."""
WITH_CONSTANTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def main(request_path: Path) -> None:
    """Answer `{"without": [[domain, name]], "unheard": [...], "providers": [...], "unusable": words}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    limit_memory(request["memory_bytes"])
    without, unheard = lacking([tuple(each) for each in request["operators"]])
    answer: dict[str, Any] = {"without": without, "unheard": unheard, "providers": [], "unusable": ""}
    try:
        answer["providers"] = providers(Path(request["model"]))
    except Exception as error:  # noqa: BLE001 - upstream's tool and onnx raise what they like
        answer["unusable"] = f"{type(error).__name__}: {error}"
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def lacking(operators: list[Operator]) -> tuple[list[Operator], list[Operator]]:
    """Return the operators without any CPU kernel, and those of which there is no schema either."""
    kernels = {
        (kernel.domain or "ai.onnx", kernel.op_name)
        for kernel in state.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider"
    }
    schemas = {(schema.domain or "ai.onnx", schema.name) for schema in state.get_all_operator_schema()}
    without = [each for each in operators if each not in kernels]
    return without, [each for each in without if each not in schemas]


def providers(path: Path) -> list[dict[str, Any]]:
    """Count with upstream's checker, as it does itself: of the model after basic optimization, if that is possible."""
    import onnx  # noqa: PLC0415 - not every environment has it
    from onnxruntime.tools.mobile_helpers import usability_checker as checker  # noqa: PLC0415 - imports onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(optimized(path), load_external_data=False))
    if not model.graph.node:
        return []
    counts = [
        (name, partial(checker.check_coreml_partitions, model, config_filename=listing)) for name, listing in COREML
    ]
    counts.append(
        ("XNNPACK", partial(checker.check_partitioning, model.graph, Xnnpack(model.graph), max_rank=XNNPACK_RANK))
    )
    return [counted(name, count) for name, count in counts]


def optimized(path: Path) -> Path:
    """Return a copy of the model with basic optimizations, or the model itself when the runtime refuses it."""
    from onnxruntime.tools.onnx_model_utils import optimize_model  # noqa: PLC0415 - imports onnx

    onnxruntime.set_default_logger_severity(4)
    copy = Path("optimized.onnx").absolute()
    try:
        optimize_model(path, copy, use_external_initializers=True)
    except Exception:  # noqa: BLE001 - the judgement is of operators, which the model has as it is, too
        return path
    return copy


class Xnnpack:
    """What the checker asks of a list of operators, answered as far as a graph tells what the provider's code asks."""

    def __init__(self, graph: Any) -> None:
        self._constants = {each.name for each in graph.initializer}
        self._ranks = {each.name: len(each.type.tensor_type.shape.dim) for each in (*graph.input, *graph.value_info)}

    def is_op_supported(self, node: Any) -> bool:
        """Whether the provider takes a node; it makes none a part of another in a library of ortrim's."""
        if node.domain not in {"", "ai.onnx"} or node.op_type not in XNNPACK:
            return False
        if node.op_type in WITH_CONSTANTS and node.input[1] not in self._constants:
            return False
        if node.op_type in {"Gemm", "MatMul"} and self._ranks.get(node.input[0], 0) > MATRIX_RANK:
            return False
        if node.op_type == "Gemm" and len(node.input) < GEMM_WITH_C:
            return False
        return node.op_type != "Resize" or any(each.name == "mode" and each.s == b"linear" for each in node.attribute)


def counted(name: str, count: Callable[..., Any]) -> dict[str, Any]:
    """Count with shapes as they are, and as if all were fixed."""
    now, fixed = (count(require_fixed_input_sizes=value) for value in (True, False))
    return {
        "name": name,
        "nodes": now.num_nodes,
        "supported": now.num_supported_nodes,
        "partitions": now.num_partitions,
        "fixed_supported": fixed.num_supported_nodes,
        "fixed_partitions": fixed.num_partitions,
        "unsupported": sorted(operator.removeprefix("ai.onnx:") for operator in now.unsupported_ops),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
