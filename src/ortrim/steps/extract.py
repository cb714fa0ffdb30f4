"""Extract: the part of a model between some of its values."""

import onnx

from ortrim.core.step_specs import Extract
from ortrim.steps.dead import remove_dead_functions, remove_dead_initializers
from ortrim.steps.inner_values import with_outputs
from ortrim.steps.onnx_tools import by_onnx, inferred
from ortrim.steps.stepped import Feeding, Feeds, Stepped, Workplace


def extract(model: onnx.ModelProto, options: Extract, place: Workplace) -> Stepped:
    """Extract by onnx's own tool; what the values are in the whole model is what the part is fed and held against.

    Raises `ModelError` (`step-failed`), for values that are not there among others.
    """
    shapes = inferred(model, place)
    own_inputs = {value.name for value in model.graph.input}
    observed, _ = with_outputs(model, (*options.outputs, *(set(options.inputs) - own_inputs)), shapes)
    names = {"inputs": list(options.inputs), "outputs": list(options.outputs)}
    made = by_onnx(shapes, "extract", place, **names)
    remove_dead_initializers(made)
    remove_dead_functions(made)
    wanted = frozenset(options.inputs)
    return Stepped(model=made, observed=observed, feeding=Feeding(forward=lambda feeds: _only(feeds, wanted)))


def _only(feeds: Feeds, names: frozenset[str]) -> Feeds:
    return {name: array for name, array in feeds.items() if name in names}
