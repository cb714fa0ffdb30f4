"""Rules about 64-bit numbers where the work is done."""

from collections.abc import Iterator
from typing import Final

from ortrim.core.graph_facts import NodeFacts, elements
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

HEAVY: Final = frozenset({
    "Conv", "ConvTranspose", "Einsum", "Gemm", "GRU", "LSTM", "MatMul", "RNN",
})  # fmt: skip
MOST_ELEMENTS: Final = 4096
"""Fewer are shapes and indices, whose cost nobody sees."""
WEIGHT_BYTES: Final = 64 * 1024


def float64(facts: LintFacts) -> Iterator[Shown]:
    """Find arithmetic in, and weights of, 64-bit floats."""
    yield from _hot(facts, "float64")


def int64(facts: LintFacts) -> Iterator[Shown]:
    """Find arithmetic in, and weights of, 64-bit integers that are not merely shapes and indices."""
    yield from _hot(facts, "int64")


def _hot(facts: LintFacts, element_type: str) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if node.operator not in {"Cast", "Constant"} and _is_hot(node, element_type):
            yield Shown(place=node.place, words=f"{node.operator} computes in {element_type}")
    for weight in facts.graph.weights:
        if weight.element_type == element_type and weight.size_bytes >= WEIGHT_BYTES:
            yield Shown(place=weight.name, words=f"{weight.size_bytes:,} bytes of weights are {element_type}")


def _is_hot(node: NodeFacts, element_type: str) -> bool:
    made = [value for value in node.outputs if value.element_type == element_type]
    if node.operator in HEAVY:
        return bool(made)
    taken = [value for value in node.inputs if value.element_type == element_type and value.name not in node.constants]
    return bool(made and taken) and max((elements(value) or 0 for value in (*made, *taken)), default=0) >= MOST_ELEMENTS
