"""The full ONNX Runtime: all optimizations, as a session has them unasked."""

from collections.abc import Callable
from typing import Any

import onnxruntime

Arrays = list[Any]
QUIET = 3


def version() -> str:
    """Return the engine's version."""
    return str(onnxruntime.__version__)


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Make a session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    session = onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    names = request["input_names"]

    def run(feeds: Arrays) -> Arrays:
        return list(session.run(request["output_names"], dict(zip(names, feeds, strict=True))))

    return run
