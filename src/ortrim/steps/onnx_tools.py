"""onnx's own tools that are not Python, in a program of their own."""

import onnx

from ortrim.steps.isolation import own_python
from ortrim.steps.runtime_tools import rewritten
from ortrim.steps.stepped import Workplace


def by_onnx(model: onnx.ModelProto, what: str, place: Workplace, **request: object) -> onnx.ModelProto:
    """Return what `data/scripts/step_onnx.py` makes of a model. Raises `ModelError` as `ask` does."""
    made, _ = rewritten(model, "step_onnx.py", {"do": what, **request}, place, python=own_python())
    return made


def inferred(model: onnx.ModelProto, place: Workplace, *, strict: bool = False) -> onnx.ModelProto:
    """Return a model with the shapes that onnx infers; `strict` fails where it cannot. Raises `ModelError`."""
    return by_onnx(model, "infer-shapes", place, strict=strict)
