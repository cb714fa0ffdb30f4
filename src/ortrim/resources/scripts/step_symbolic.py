"""Infer shapes by ONNX Runtime's symbolic inference, which follows named dimensions through the model.

Runs in a Python that has onnxruntime, onnx and sympy. Called with the path of a request in JSON; writes its answer
beside it.
"""

import json
import sys
import traceback
from pathlib import Path

import onnx
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

LARGEST_SIZE = 2**31 - 1


def main(request_path: Path) -> None:
    """Answer a request: `{}` when the model is written, else `{"failure": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    answer: dict[str, str] = {}
    try:
        model = SymbolicShapeInference.infer_shapes(onnx.load(request["model"]), LARGEST_SIZE, auto_merge=True)
        onnx.save(model, request["output"])
    except Exception as error:  # noqa: BLE001 - whatever the inference raises is the answer
        answer = {"failure": words_of(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def words_of(error: Exception) -> str:
    """Say what was raised, with the line that raised it: assertions often say nothing themselves."""
    line = traceback.extract_tb(error.__traceback__)[-1].line
    return f"{type(error).__name__}: {str(error) or line}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
