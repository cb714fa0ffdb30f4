"""LiteRT: converted beforehand by onnx2tf for the shapes of the case, then interpreted with XNNPACK, its default."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_edge_litert
import numpy as np

Arrays = list[Any]
FILE = "model_float32.tflite"


def version() -> str:
    """Return the engine's version."""
    return str(ai_edge_litert.__version__)


def convert(request: dict[str, Any]) -> None:
    """Convert with onnx2tf, inputs and outputs laid out as the model has them."""
    import onnx2tf  # noqa: PLC0415 - lies in another environment than the runtime

    names = request["input_names"]
    shapes = [
        f"{name}:{','.join(map(str, shape))}"
        for name, shape in zip(names, request["input_shapes"], strict=True)
        if shape
    ]
    onnx2tf.convert(
        input_onnx_file_path=request["model"],
        output_folder_path=request["converted"],
        overwrite_input_shape=shapes,
        keep_shape_absolutely_input_names=names,
        copy_onnx_input_output_names_to_tflite=True,
        non_verbose=True,
    )
    stem = Path(request["model"]).stem
    (Path(request["converted"]) / f"{stem}_float32.tflite").rename(Path(request["converted"]) / FILE)


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Load the converted model."""
    from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415 - the converter's environment lacks parts of it

    interpreter = Interpreter(str(Path(request["converted"]) / FILE), num_threads=request["threads"])
    inputs = placed(interpreter.get_input_details(), request["input_names"])
    for detail, shape in zip(inputs, request["input_shapes"], strict=True):
        if detail["shape"].tolist() != shape:  # the converter makes 1 of some sizes, and leaves them open
            interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    outputs = placed(interpreter.get_output_details(), request["output_names"])

    def run(feeds: Arrays) -> Arrays:
        for detail, feed in zip(inputs, feeds, strict=True):
            interpreter.set_tensor(detail["index"], np.asarray(feed, dtype=detail["dtype"]))
        interpreter.invoke()
        found = (interpreter.get_tensor(detail["index"]) for detail in outputs)
        return [channels_first(value, shape) for value, shape in zip(found, request["output_shapes"], strict=True)]

    return run


def channels_first(value: Any, shape: list[int]) -> Any:
    """Return an output with the channels where the model has them: the converter moves them to the end."""
    moved = np.moveaxis(value, -1, 1) if value.ndim > 2 else value
    return moved if list(value.shape) != shape and list(moved.shape) == shape else value


def placed(details: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the tensors in the model's order; by place where the converter has given them other names."""
    found = {detail["name"].removeprefix("serving_default_").partition(":")[0]: detail for detail in details}
    return [found[name] for name in names] if set(names) <= set(found) else details
