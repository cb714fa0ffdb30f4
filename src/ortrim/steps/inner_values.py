"""Values inside a model that become its outputs."""

from collections.abc import Iterable

import onnx

from ortrim.errors import ModelError
from ortrim.steps.isolation import step_failed


def with_outputs(
    model: onnx.ModelProto, names: Iterable[str], shapes: onnx.ModelProto
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return a copy with these values among its outputs, and those that are none yet; `shapes` knows their types.

    Raises `ModelError` (`step-failed`) for a value that the model does not have.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    outputs = {value.name for value in model.graph.output}
    added = tuple(name for name in dict.fromkeys(names) if name not in outputs)
    known = {value.name: value for value in (*shapes.graph.value_info, *shapes.graph.input)}
    there = {name for node in model.graph.node for name in node.output} | {value.name for value in model.graph.input}
    for name in added:
        if not name or name not in there:
            raise _unknown(name)
        made.graph.output.append(known.get(name, onnx.ValueInfoProto(name=name)))
    return made, added


def _unknown(name: str) -> ModelError:
    what = f"the model has no value '{name}'"
    return step_failed(what, hint="invoke inspect and netron show its values; those of inner graphs cannot be taken")
