"""Convert a model's numbers of 32 bits to 16, by ONNX Runtime's own converter.

Runs inside the full runtime's Python with onnx beside it, so it imports nothing of ortrim. Called with the path of a
request in JSON; writes its answer beside it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel


def main(request_path: Path) -> None:
    """Answer `{"blocked": [...]}`, the operators that stayed, or `{"failure": words}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    try:
        answer = convert(request)
    except Exception as error:  # noqa: BLE001 - whatever the converter raises is the answer
        answer = {"failure": f"{type(error).__name__}: {error}"}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def convert(request: dict[str, Any]) -> dict[str, Any]:
    """Convert as asked and write the model."""
    blocked = request["blocked_operators"]
    made = convert_float_to_float16(
        onnx.load(request["model"]),
        keep_io_types=request["keep_io_types"],
        op_block_list=blocked,
        node_block_list=request["blocked_nodes"],
    )
    OnnxModel(made).topological_sort()  # the casts are at the end
    onnx.save(made, request["output"])
    wanted = set(DEFAULT_OP_BLOCK_LIST if blocked is None else blocked)
    return {"blocked": sorted({node.op_type for node in made.graph.node if node.op_type in wanted})}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
