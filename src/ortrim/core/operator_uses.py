"""What the nodes of one converted model use: operators, with the element types that they work on. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ortrim.core.operators import OperatorId, OperatorTypes, RequiredOperators


@dataclass(frozen=True, kw_only=True, order=True)
class OperatorUse:
    """An operator with the element types of one node's inputs and outputs, in C++ names as in `OperatorTypes`.

    An input that is left out, and one that is no tensor, has an empty type. `node` names one of the nodes that are
    alike.
    """

    operator: OperatorId
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class ModelUses:
    """What a model in ORT format asks of the runtime that loads it.

    `saved` are the operators that optimizations saved in the model make; a plain minimal build does not apply these.
    `element_types` are those of all its values, in C++ names, of the elements of sequences and maps too, sorted; one
    that is not known is empty. `sparse` says whether it has sparse weights.
    """

    format_version: str
    uses: tuple[OperatorUse, ...]
    saved: tuple[OperatorId, ...] = ()
    element_types: tuple[str, ...] = ()
    sparse: bool = False


def uses_of(required: RequiredOperators) -> tuple[OperatorUse, ...]:
    """Return uses that together ask for what a configuration lists: each operator, and of each slot each type."""
    return tuple(
        use
        for operator in required.operators
        for use in _uses(operator, required.types_of(operator.domain, operator.name))
    )


def _uses(operator: OperatorId, types: OperatorTypes) -> Iterator[OperatorUse]:
    yield OperatorUse(operator=operator, inputs=(), outputs=())
    for index, names in types.inputs:
        yield from (OperatorUse(operator=operator, inputs=("",) * index + (name,), outputs=()) for name in names)
    for index, names in types.outputs:
        yield from (OperatorUse(operator=operator, inputs=(), outputs=("",) * index + (name,)) for name in names)
