"""Load a model with the CPU execution provider alone: the only thing that really tells whether it has all kernels.

Runs inside the full runtime's own Python, so it imports only the standard library and onnxruntime. Called with
the path of a request in JSON; writes its answer beside it.
"""

import json
import sys
from pathlib import Path

import onnxruntime

SILENT = 4


def main(request_path: Path) -> None:
    """Answer a request: `{}` when the model loads, else `{"failure": ..., "words": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    answer = {}
    try:
        load(request["model"], optimized=request.get("optimized", True))
    except Exception as error:  # noqa: BLE001 - whatever loading raises is the answer
        answer = {"failure": "load-failed", "words": str(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def load(model: str, *, optimized: bool) -> None:
    """Make a session and drop it."""
    onnxruntime.set_default_logger_severity(SILENT)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
