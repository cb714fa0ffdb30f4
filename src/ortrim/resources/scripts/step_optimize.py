"""Optimise a model's graph and write it back as ONNX.

Runs inside the full runtime's own Python, so it imports only the standard library and onnxruntime. Called with the path
of a request in JSON; writes its answer beside it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import onnxruntime

SILENT = 4


def main(request_path: Path) -> None:
    """Answer `{}`, or `{"failure": words}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    onnxruntime.set_default_logger_severity(SILENT)
    answer: dict[str, Any] = {}
    try:
        optimize(request)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is the answer
        answer = {"failure": str(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def optimize(request: dict[str, Any]) -> None:
    """Load the model as asked and let the runtime write what it made of it."""
    providers = onnxruntime.get_available_providers()
    if request["provider"] not in providers:
        message = f"this ONNX Runtime has {', '.join(providers)}, and not {request['provider']}"
        raise ValueError(message)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    level = f"ORT_ENABLE_{request['level'].upper()}"
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = request["output"]
    onnxruntime.InferenceSession(request["model"], options, providers=[request["provider"]])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
