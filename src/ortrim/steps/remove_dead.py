"""Remove what no output needs."""

import onnx

from ortrim.core.step_specs import RemoveDead
from ortrim.steps.dead import remove_dead_functions, remove_dead_initializers, remove_dead_nodes
from ortrim.steps.graphs import read_names
from ortrim.steps.isolation import step_failed
from ortrim.steps.stepped import Feeding, Feeds, Stepped


def remove_dead(model: onnx.ModelProto, options: RemoveDead) -> Stepped:
    """Remove dead nodes, then the initializers and functions that only they used.

    Raises `ModelError` (`step-failed`) when all inputs would go.
    """
    removed = (
        (remove_dead_nodes(model.graph), "nodes"),
        (remove_dead_initializers(model), "initializers"),
        (remove_dead_functions(model), "functions"),
    )
    notes = [f"removed {count:,} {what}" for count, what in removed if count]
    unread = _unread_inputs(model.graph) if options.inputs else ()
    if not unread:
        return Stepped(model=model, notes=tuple(notes))
    for value in unread:
        model.graph.input.remove(value)
    kept = frozenset(value.name for value in model.graph.input)
    if not kept:
        raise step_failed("no output needs any input: the model is a constant")
    notes.append("removed inputs: " + ", ".join(value.name for value in unread))
    return Stepped(model=model, notes=tuple(notes), feeding=Feeding(forward=lambda feeds: _only(feeds, kept)))


def _unread_inputs(graph: onnx.GraphProto) -> tuple[onnx.ValueInfoProto, ...]:
    read = {*read_names(graph.node), *(value.name for value in graph.output)}
    return tuple(value for value in graph.input if value.name not in read)


def _only(feeds: Feeds, names: frozenset[str]) -> Feeds:
    return {name: array for name, array in feeds.items() if name in names}
