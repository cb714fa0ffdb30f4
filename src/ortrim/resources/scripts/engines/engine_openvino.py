"""OpenVINO on the CPU: the hint for the shortest time of one inference, in full float32, shapes as the model has them.

Fixing the shapes of the case beforehand is documented too; version 2026.4.1 then answers wrongly for one of our models
(text recognition, a difference of 0.13) and rightly with the model as it is.
"""

from collections.abc import Callable
from typing import Any

import openvino

Arrays = list[Any]


def version() -> str:
    """Return the engine's version, without the build's."""
    return str(openvino.__version__).partition("-")[0]


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Read the ONNX file and compile it."""
    core = openvino.Core()
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": request["threads"],
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(request["model"], "CPU", settings)
    inference = compiled.create_infer_request()
    names = request["input_names"]
    ports = [compiled.output(name) for name in request["output_names"]]

    def run(feeds: Arrays) -> Arrays:
        found = inference.infer(dict(zip(names, feeds, strict=True)), share_inputs=True)
        return [found[port] for port in ports]

    return run
