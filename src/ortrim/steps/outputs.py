"""Outputs: added, or dropped with what only they needed."""

import onnx

from ortrim.core.step_specs import Outputs
from ortrim.steps.dead import remove_dead_functions, remove_dead_initializers, remove_dead_nodes
from ortrim.steps.inner_values import with_outputs
from ortrim.steps.isolation import step_failed
from ortrim.steps.onnx_tools import inferred
from ortrim.steps.stepped import Stepped, Workplace


def change_outputs(model: onnx.ModelProto, options: Outputs, place: Workplace) -> Stepped:
    """Add and drop outputs. Raises `ModelError` (`step-failed`) for unknown ones, and when none is left."""
    known = [value.name for value in model.graph.output]
    unknown = [name for name in options.drop if name not in known]
    if unknown:
        raise step_failed(f"the model has no output '{unknown[0]}'", hint=f"its outputs are: {', '.join(known)}")
    observed, added = with_outputs(model, options.add, inferred(model, place)) if options.add else (None, ())
    made = onnx.ModelProto()
    made.CopyFrom(observed or model)
    for value in [each for each in made.graph.output if each.name in options.drop]:
        made.graph.output.remove(value)
    if not made.graph.output:
        raise step_failed("no output is left", hint="leave one of them")
    removed = remove_dead_nodes(made.graph) if options.drop else 0
    if removed:
        remove_dead_initializers(made)
        remove_dead_functions(made)
    notes = (f"removed {removed:,} nodes that only dropped outputs needed",) if removed else ()
    return Stepped(model=made, notes=notes, observed=observed if added else None)
