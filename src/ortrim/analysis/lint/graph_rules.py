"""Rules about the names of inputs and outputs.

- Rules about kinds of nodes: control flow, chance, training.
- Rules about 64-bit numbers where the work is done.
- Rules about forms that tie a model to the sizes it was exported with.
- Rules about texts that travel in a model.
- Rules about weights.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ortrim.analysis.lint.findings import LintFacts, Shown
from ortrim.models.graph_facts import (
    NAMELESS,
    NodeFacts,
    TextFacts,
    WeightFacts,
    dynamic_dimensions,
    elements,
    locale_of,
)
from ortrim.models.models import TensorInfo
from ortrim.models.shapes import BY_CHANCE

MACHINE: Final = re.compile(
    r"\d+"
    r"|(input|output|args?|kwargs|x|var|tensor|l_|getitem|primals|tangents)[._]\d+"
    r"|(onnx|aten|prim|torch_nn|_val)[:_]*\S*[:_]\d+"
    r"|.*::\S*"
    r"|(serving_default_\S*|StatefulPartitionedCall|PartitionedCall)(:\d+)?"
    r"|\S+:\d+"
)
"""What exporters call a value for which the author gave no name: PyTorch's numbers and traces, TensorFlow's ports."""


def unnamed(facts: LintFacts) -> Iterator[Shown]:
    """Find inputs and outputs without a name."""
    for kind, position, value in _ends(facts):
        if not value.name:
            yield Shown(place=f"{kind} {position}", words=f"{kind} {position} has no name")


def machine_named(facts: LintFacts) -> Iterator[Shown]:
    """Find inputs and outputs that an exporter named."""
    for kind, _, value in _ends(facts):
        if MACHINE.fullmatch(value.name):
            yield Shown(place=value.name, words=f"the {kind} is called '{value.name}'")


def _ends(facts: LintFacts) -> Iterator[tuple[str, int, TensorInfo]]:
    model = facts.graph.model
    kinds: Iterable[tuple[str, tuple[TensorInfo, ...]]] = (("input", model.inputs), ("output", model.outputs))
    for kind, values in kinds:
        yield from ((kind, position, value) for position, value in enumerate(values))


CONTROL: Final = ("If", "Loop", "Scan", "SequenceMap")


def control_flow(facts: LintFacts) -> Iterator[Shown]:
    """Find operators with graphs inside."""
    for node in facts.graph.nodes:
        if node.operator in CONTROL and node.domain == "ai.onnx":
            yield Shown(place=node.place, words=f"{node.operator} contains graphs")


def random_output(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that make their output by chance."""
    for node in facts.graph.nodes:
        if node.operator in BY_CHANCE and node.domain == "ai.onnx":
            seeded = " from a seed, in an order that depends on the runs before" if node.attribute("seed") else ""
            yield Shown(place=node.place, words=f"{node.operator} draws numbers{seeded}")


def device_locale(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that need a locale where they run."""
    for node in facts.graph.nodes:
        if locale := locale_of(node):
            yield Shown(place=node.place, words=f"{node.operator} needs the locale '{locale}' on every device")


def training_mode(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that were exported as they are in training."""
    switched_on = {weight.name for weight in facts.graph.weights if weight.values == (1,)}
    for node in facts.graph.nodes:
        if node.domain == "ai.onnx" and _trains(node, switched_on):
            yield Shown(place=node.place, words=f"{node.operator} is in training mode")


def _trains(node: NodeFacts, switched_on: set[str]) -> bool:
    """Read the attribute of one, and the third input of the other, when the model fixes that."""
    if node.operator == "BatchNormalization":
        return node.attribute("training_mode") == "1"
    return node.operator == "Dropout" and len(node.inputs) > 2 and node.inputs[2].name in switched_on


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


PATH: Final = re.compile(
    r"(?:/(?:home|Users|root|mnt|opt|usr|tmp|var|data|work|workspace|content|srv|media|private|builds?)/[^\s\"':;,]+"
    r"|\b[A-Za-z]:[\\/][^\s\"':;,]+"
    r"|\bFile \"[^\"]+\""
    r"|[^\s\"'()<>:;,]+\.py(?=[(:]\d+|\"|', line))"
)
"""Folders of Unix, of Windows, and the lines of Python's traces; a node's own name such as `/conv/Conv` is none."""
LONGEST: Final = 80


def source_paths(facts: LintFacts) -> Iterator[Shown]:
    """Find paths of the exporting machine in doc strings, metadata and names."""
    places: dict[str, list[str]] = {}
    for text in facts.graph.texts:
        if not _is_module(text) and (found := PATH.search(text.text)):
            places.setdefault(found[0], []).append(text.place)
    for path, shown in places.items():
        more = f" and {len(shown) - 1:,} more places" if len(shown) > 1 else ""
        yield Shown(place=shown[0], words=f"the {shown[0]}{more} shows '{_short(path)}'")


def _is_module(text: TextFacts) -> bool:
    """Tell the name that PyTorch's exporter gives a node, modules and operator (`/data/conv/Relu`), from a path."""
    _, of, operator = text.place.partition("name of ")
    return bool(of) and re.fullmatch(rf"/\S*/{re.escape(operator)}(_\d+)?", text.text) is not None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


DOMINANT: Final = 0.5
DOMINANT_BYTES: Final = 1_000_000
WASTED_BYTES: Final = 1024


def dominant(facts: LintFacts) -> Iterator[Shown]:
    """Find a single weight that is half of all or more, and large."""
    total = sum(weight.size_bytes for weight in facts.graph.weights)
    for weight in facts.graph.weights:
        if weight.size_bytes >= max(DOMINANT_BYTES, total * DOMINANT):
            share = f"{weight.size_bytes:,} of {total:,} bytes of weights"
            shape = "x".join(map(str, weight.dimensions))
            yield Shown(place=weight.name, words=f"'{weight.name}' ({weight.element_type} {shape}) is {share}")


def duplicates(facts: LintFacts) -> Iterator[Shown]:
    """Find weights with the same content."""
    groups: dict[str, list[WeightFacts]] = {}
    for weight in facts.graph.weights:
        if weight.digest:
            groups.setdefault(weight.digest, []).append(weight)
    for group in groups.values():
        wasted = sum(weight.size_bytes for weight in group[1:])
        if wasted >= WASTED_BYTES:
            words = f"{len(group)} tensors are equal, {wasted:,} bytes too many: {_names(group)}"
            yield Shown(place=group[0].name, words=words)


def _names(group: list[WeightFacts]) -> str:
    shown = ", ".join(f"'{weight.name}'" for weight in group[:3])
    return f"{shown} and {len(group) - 3} more" if len(group) > 3 else shown
