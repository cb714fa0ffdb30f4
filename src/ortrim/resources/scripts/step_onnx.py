"""Do one step to a model with onnx's own tools that are not Python, and may take the process with them.

Runs in ortrim's own Python, but imports only the standard library and onnx. Called with the path of a request in
JSON; writes its answer beside it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.utils
import onnx.version_converter


def main(request_path: Path) -> None:
    """Answer a request: `{}` when the model is written, else `{"failure": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    answer: dict[str, str] = {}
    try:
        STEPS[request["do"]](request)
    except Exception as error:  # noqa: BLE001 - whatever onnx raises is the answer
        answer = {"failure": f"{type(error).__name__}: {error}"}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def convert_version(request: dict[str, Any]) -> None:
    """Convert to another opset of ONNX's own domain."""
    onnx.save(
        onnx.version_converter.convert_version(onnx.load(request["model"]), request["version"]), request["output"]
    )


def infer_shapes(request: dict[str, Any]) -> None:
    """Infer shapes, and values that follow from them."""
    model = onnx.shape_inference.infer_shapes(
        onnx.load(request["model"]), check_type=False, strict_mode=request["strict"], data_prop=True
    )
    onnx.save(model, request["output"])


def extract(request: dict[str, Any]) -> None:
    """Extract the part between some values."""
    onnx.utils.extract_model(
        request["model"], request["output"], request["inputs"], request["outputs"], check_model=False
    )


STEPS = {"convert-version": convert_version, "infer-shapes": infer_shapes, "extract": extract}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
