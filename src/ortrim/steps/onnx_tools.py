"""onnx's own tools that are not Python, in a program of their own.

- Shape inference, written into the model.
"""

import onnx

from ortrim.buildspec.step_specs import InferShapes
from ortrim.models.onnx_files import graphs_in
from ortrim.steps.runtime_tools import python_with_onnx, rewritten
from ortrim.steps.step import Stepped, Workplace, own_python


def by_onnx(model: onnx.ModelProto, what: str, place: Workplace, **request: object) -> onnx.ModelProto:
    """Return what `resources/scripts/step_onnx.py` makes of a model. Raises `ModelError` as `ask` does."""
    made, _ = rewritten(model, "step_onnx.py", {"do": what, **request}, place, python=own_python())
    return made


def inferred(model: onnx.ModelProto, place: Workplace, *, strict: bool = False) -> onnx.ModelProto:
    """Return a model with the shapes that onnx infers; `strict` fails where it cannot. Raises `ModelError`."""
    return by_onnx(model, "infer-shapes", place, strict=strict)


def infer_shapes(model: onnx.ModelProto, options: InferShapes, place: Workplace) -> Stepped:
    """Return the model with the shapes that are found. Raises `ModelError` as `ask` does."""
    before = _known(model)
    if options.symbolic:
        made, _ = rewritten(model, "step_symbolic.py", {}, place, python=python_with_onnx(place))
    else:
        made = inferred(model, place)
    return Stepped(model=made, notes=(f"shapes known of {_known(made):,} values inside, before of {before:,}",))


def _known(model: onnx.ModelProto) -> int:
    return sum(value.type.tensor_type.HasField("shape") for graph in graphs_in(model) for value in graph.value_info)
