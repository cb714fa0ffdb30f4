"""Multiply-accumulates of Einsum: one for each combination of its indices, and each operand after the first."""

import math
from typing import Final

from ortrim.core.counting_shapes import Counting, Uncountable, required
from ortrim.models.value_sizes import Shape

ELLIPSIS: Final = "..."


def einsum_macs(node: Counting) -> int:
    """Return the size of all indices together; nothing is multiplied where there is but one operand.

    Raises `Uncountable` for an equation that does not fit the operands.
    """
    terms = node.text("equation").replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(node.inputs):
        raise Uncountable("the equation does not fit the operands")
    sizes: dict[str, int] = {}
    for number, term in enumerate(terms):
        for index, size in _indices(term, required(node.inputs, number, "an operand")):
            sizes[index] = max(size, sizes.get(index, 0)) if size != 0 else 0
    return math.prod(sizes.values()) * (len(terms) - 1)


def _indices(term: str, shape: Shape) -> list[tuple[str, int]]:
    """Name the dimensions of an operand; those of an ellipsis are counted from the last."""
    before, dots, after = term.partition(ELLIPSIS)
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise Uncountable("the equation does not fit the operands")
    names = [*before, *(f"{ELLIPSIS}{number}" for number in range(hidden, 0, -1)), *after]
    return list(zip(names, shape, strict=True))
