"""Shape inference, written into the model."""

import onnx

from ortrim.core.step_specs import InferShapes
from ortrim.steps.graphs import graphs_in
from ortrim.steps.onnx_tools import inferred
from ortrim.steps.runtime_tools import python_with_onnx, rewritten
from ortrim.steps.stepped import Stepped, Workplace


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
