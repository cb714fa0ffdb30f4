"""Rules about forms that tie a model to the sizes it was exported with."""

import re
from collections.abc import Iterator
from typing import Final

from ortrim.core.graph_facts import NAMELESS, NodeFacts, dynamic_dimensions
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

CONTRACTION: Final = re.compile(r"\s*([a-zA-Z.\s]+),([a-zA-Z.\s]+)->([a-zA-Z.\s]+)")


def einsum(facts: LintFacts) -> Iterator[Shown]:
    """Find Einsum, and say which of them are a convolution of length one."""
    for node in facts.graph.nodes:
        if node.operator == "Einsum" and node.domain == "ai.onnx":
            equation = node.attribute("equation")
            yield Shown(place=node.place, words=f"Einsum '{equation}'{_as_convolution(node, equation)}")


def _as_convolution(node: NodeFacts, equation: str) -> str:
    """Recognise a product with a weight matrix over one axis, which is what a convolution of length one does."""
    found = CONTRACTION.fullmatch(equation)
    if found is None or len(node.inputs) != 2 or not node.constants:
        return ""
    first, second, result = ("".join(part.split()) for part in found.groups())
    value, weight = (second, first) if node.inputs[0].name in node.constants else (first, second)
    summed, added = set(value) & set(weight) - set(result), (set(weight) - set(value)) & set(result)
    if len(weight) == 2 and len(summed) == len(added) == 1:
        return ": a convolution of length 1 with the same weights does this for any length"
    return ""


def transposed_product(facts: LintFacts) -> Iterator[Shown]:
    """Find products with a weight matrix between two transpositions that undo each other."""
    makers = {value.name: node for node in facts.graph.nodes for value in node.outputs if not node.scope}
    for node in facts.graph.nodes:
        product = _product(node, makers) if node.operator == "Transpose" and not node.scope else None
        if product is not None:
            before = _maker(product, makers)
            if before is not None and before.operator == "Transpose" and _undo(before, node):
                words = f"'{product.place}' stands between two Transposes: a convolution of length 1 without them"
                yield Shown(place=product.place, words=words)


def _product(node: NodeFacts, makers: dict[str, NodeFacts]) -> NodeFacts | None:
    """Return the product with a weight matrix that a node reads, as it is or with a bias added."""
    found = _maker(node, makers)
    if found is not None and found.operator == "Add" and len(found.constants) == 1:
        found = next((makers[value.name] for value in found.inputs if value.name in makers), None)
    return found if found is not None and found.operator == "MatMul" and found.constants else None


def _maker(node: NodeFacts, makers: dict[str, NodeFacts]) -> NodeFacts | None:
    return makers.get(node.inputs[0].name) if node.inputs else None


def _undo(first: NodeFacts, second: NodeFacts) -> bool:
    orders = [each.attribute("perm").split(",") for each in (first, second)]
    if not all(number.isdecimal() for order in orders for number in order) or len(orders[0]) != len(orders[1]):
        return False
    one, other = ([int(number) for number in order] for order in orders)
    return all(number < len(one) for number in other) and [one[number] for number in other] == list(range(len(one)))


def pinned_reshape(facts: LintFacts) -> Iterator[Shown]:
    """Find Reshapes to a fixed shape of values whose size is open, in a model with dynamic dimensions."""
    if not dynamic_dimensions(facts.graph.model.inputs):
        return
    values = {weight.name: weight.values for weight in facts.graph.weights}
    for node in facts.graph.nodes:
        shape = values.get(node.inputs[1].name, ()) if node.operator == "Reshape" and len(node.inputs) > 1 else ()
        if shape and min(shape) > 0 and _open(node):
            yield Shown(place=node.place, words=f"Reshape to {list(shape)}, of a value whose size is not fixed")


def _open(node: NodeFacts) -> bool:
    shape = node.inputs[0].shape
    return shape is not None and any(not isinstance(size, int) for size in shape)


def unnamed_dimension(facts: LintFacts) -> Iterator[Shown]:
    """Find dynamic dimensions of inputs that have no name."""
    for value in facts.graph.model.inputs:
        for axis, size in enumerate(value.shape or ()):
            if size is None or size in NAMELESS:
                yield Shown(place=value.name, words=f"dimension {axis} of input '{value.name}' is open and has no name")
