"""MNN: converted beforehand, then loaded as a module on the CPU, in full precision."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import MNN
import MNN.expr
import MNN.nn
import numpy as np

Arrays = list[Any]
FILE = "model.mnn"


def version() -> str:
    """Return the engine's version."""
    return str(MNN.version())


def convert(request: dict[str, Any]) -> None:
    """Convert with the program of the wheel. Raises RuntimeError when no file comes of it."""
    import _tools  # noqa: PLC0415 - the converter, which no run needs

    target = Path(request["converted"]) / FILE
    files = ["--modelFile", request["model"], "--MNNModel", str(target)]
    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", *files, "--bizCode", "ortrim"])
    if not target.is_file() or target.stat().st_size == 0:
        raise RuntimeError("the converter wrote no model")


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Load the converted model."""
    file = str(Path(request["converted"]) / FILE)
    manager = MNN.nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": request["threads"]},))
    module = MNN.nn.load_module_from_file(
        file, request["input_names"], request["output_names"], runtime_manager=manager
    )
    types = {"int64": np.int32, "bool": np.int32, "float64": np.float32}

    def run(feeds: Arrays) -> Arrays:
        given = [variable(feed.astype(types.get(feed.dtype.name, feed.dtype), copy=False)) for feed in feeds]
        return [np.array(value.read()) for value in module.forward(given)]

    return run


def variable(array: Any) -> Any:
    """Return an array as an input of MNN's."""
    kind = {"float32": MNN.expr.float, "int32": MNN.expr.int, "uint8": MNN.expr.uint8, "int8": MNN.expr.int8}
    return MNN.expr.const(array, list(array.shape), MNN.expr.NCHW, kind[array.dtype.name])
