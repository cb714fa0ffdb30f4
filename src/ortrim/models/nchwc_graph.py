"""Models in NCHWc layout whose values stay in blocks from one convolution to the next.

ONNX Runtime lets Relu, Sigmoid, Tanh, sums and products of whole values work on blocks; for all other operators it
makes planes, and blocks again for the next convolution (core/optimizer/nchwc_transformer.cc). But an operator that
computes each element from the same one of its inputs does not care where that lies.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ortrim.models.graph import replace_nodes
from ortrim.models.onnx_files import array_of, fresh, read_names

NCHWC: Final = "com.microsoft.nchwc"
FROM_BLOCKS: Final = "ReorderOutput"
TO_BLOCKS: Final = "ReorderInput"
ELEMENTWISE: Final = frozenset(
    {
        *("Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "LeakyRelu", "Max", "Min", "Mul"),
        *("Neg", "Pow", "QuickGelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tanh"),
        "ThresholdedRelu",
    }
)
"""Operators of ONNX and, of the same meaning, of `com.microsoft`."""
Scalars = Mapping[str, float]
"""Constants of one float32, by name."""


def keep_blocks(path: Path, block_size: int) -> None:
    """Change an optimized model in NCHWc layout: hard-swish has two operators, what lies in blocks stays there.

    Convolutions take over products and sums with one constant.
    """
    model = onnx.load(path)
    scalars = _scalars(model.graph)
    replace_nodes(model.graph, list(_with_short_hard_swish(model.graph, scalars)))
    replace_nodes(model.graph, list(_in_blocks(model.graph, scalars, block_size)))
    _Folding(model.graph, scalars, block_size).fold()
    onnx.save(model, path)


def _scalars(graph: onnx.GraphProto) -> dict[str, float]:
    given = {value.name for value in graph.input}
    arrays = {each.name: array_of(each) for each in graph.initializer if each.name not in given}
    return {
        name: float(array.flat[0])
        for name, array in arrays.items()
        if array is not None and array.size == 1 and array.dtype == np.float32 and array.ndim <= 4
    }


def _reads(graph: onnx.GraphProto) -> Counter[str]:
    return Counter([*read_names(graph.node), *(value.name for value in graph.output)])


def _with_short_hard_swish(graph: onnx.GraphProto, scalars: Scalars) -> Iterator[onnx.NodeProto]:
    """Yield a graph's nodes, x * Clip(x + 3, 0, 6) / 6 as the product of x and a HardSigmoid."""
    made = {name: node for node in graph.node for name in node.output}
    reads = _reads(graph)
    gone: set[str] = set()
    new: dict[str, onnx.NodeProto] = {}

    def of(name: str, operator: str, *constants: float) -> list[str]:
        """Return what a value that is read once is made from beside these constants; nothing if it is not so made."""
        node = made.get(name)
        if node is None or node.op_type != operator or node.domain or reads[name] != 1 or len(node.output) != 1:
            return []
        others = [each for each in node.input if each not in scalars]
        return others if [scalars[each] for each in node.input if each in scalars] == [*constants] else []

    for node in graph.node:
        if node.op_type != "Div" or [scalars.get(each) for each in node.input] != [None, 6.0]:
            continue
        factors = of(node.input[0], "Mul")
        for x, clipped in (factors, factors[::-1]) if len(factors) == 2 else ():
            shifted = of(clipped, "Clip", 0.0, 6.0)
            if len(shifted) == 1 and of(shifted[0], "Add", 3.0) == [x]:
                gone |= {node.input[0], clipped, shifted[0]}
                gate = onnx.helper.make_node("HardSigmoid", [x], [clipped], name=node.name, alpha=1 / 6, beta=0.5)
                new[node.output[0]] = gate
    for node in graph.node:
        if node.output[0] in new:
            gate = new[node.output[0]]
            yield gate
            yield onnx.helper.make_node("Mul", [*gate.input, *gate.output], node.output)
        elif not gone.intersection(node.output):
            yield node


def _in_blocks(graph: onnx.GraphProto, scalars: Scalars, block_size: int) -> Iterator[onnx.NodeProto]:
    """Yield a graph's nodes; planes are made of blocks only for operators that want them."""
    source: dict[str, onnx.NodeProto] = {}  # for each value that can lie in blocks, the reorder whose shape it has
    for node in graph.node:
        found = node if _is_reorder(node, FROM_BLOCKS, block_size) else _source_of(node, source, scalars)
        if found is not None:
            source[node.output[0]] = found
    wanted: set[str] = set()  # what some way leads from to where blocks are made of planes
    for node in reversed(graph.node):
        if _is_reorder(node, TO_BLOCKS) or (node.output[0] in wanted and node is not source[node.output[0]]):
            wanted.update(name for name in node.input if name in source)
    left = [node for node in graph.node if node.output[0] not in wanted and not _is_reorder(node, TO_BLOCKS)]
    planes = {*read_names(left), *(value.name for value in graph.output)}
    names = {name for node in graph.node for name in node.output}
    blocks: dict[str, str] = {}
    for node in graph.node:
        made = node.output[0]
        in_planes = wanted if made not in wanted else ()
        node.input[:] = [name if name in in_planes else blocks.get(name, name) for name in node.input]
        if _is_reorder(node, TO_BLOCKS) and node.input[0] in wanted:
            blocks[made] = blocks[node.input[0]]
        elif made not in wanted:
            yield node
        else:
            back = source[made]
            blocks[made] = node.input[0]
            if node is not back:
                blocks[made] = node.output[0] = fresh(f"{made}_blocks", names)
                yield node
            if made in planes:
                yield onnx.helper.make_node(FROM_BLOCKS, [blocks[made]], [made], domain=NCHWC, channels=_channels(back))


def _is_reorder(node: onnx.NodeProto, operator: str, block_size: int = 1) -> bool:
    """Whether a node is this reorder of planes, of as many channels as whole blocks have."""
    last = any(each.name == "channels_last" and each.i for each in node.attribute)
    return (node.domain, node.op_type) == (NCHWC, operator) and not last and _channels(node) % block_size == 0


def _channels(node: onnx.NodeProto) -> int:
    return next((each.i for each in node.attribute if each.name == "channels"), 0)


def _source_of(node: onnx.NodeProto, source: Mapping[str, onnx.NodeProto], scalars: Scalars) -> onnx.NodeProto | None:
    """Return the reorder that all inputs of an operator have their shape from, but for constants of one element."""
    if node.op_type not in ELEMENTWISE or node.domain not in ("", "com.microsoft") or len(node.output) != 1:
        return None
    found = [source.get(name) for name in node.input if name and name not in scalars]
    return found[0] if found and all(each is found[0] for each in found) else None


Affine = tuple[str, float, float]
"""A value, the factor that an operator multiplies it by, and the term that it adds; one of them does nothing."""


def _affine(node: onnx.NodeProto, scalars: Scalars) -> Affine | None:
    """Return what an operator does that has one value and one constant, and is one of the four."""
    values = [name for name in node.input if name not in scalars]
    if node.domain or node.op_type not in ("Add", "Sub", "Mul", "Div") or len(node.input) != 2 or len(values) != 1:
        return None
    (constant,) = (scalars[name] for name in node.input if name in scalars)
    first = node.input[0] == values[0]
    if node.op_type == "Mul" or (node.op_type == "Div" and first and constant):
        return values[0], constant if node.op_type == "Mul" else 1 / constant, 0.0
    if node.op_type == "Add" or (node.op_type == "Sub" and first):
        return values[0], 1.0, constant if node.op_type == "Add" else -constant
    return None


class _Folding:
    """A graph whose convolutions take over the products and sums with one constant right behind and before them."""

    def __init__(self, graph: onnx.GraphProto, scalars: Scalars, block_size: int) -> None:
        self._graph, self._scalars, self._block_size = graph, scalars, block_size
        self._nodes = list(graph.node)
        self._tensors = {each.name: each for each in graph.initializer}
        self._new: dict[str, NDArray[Any]] = {}
        self._names = {name for node in graph.node for name in (*node.input, *node.output)}

    def fold(self) -> None:
        """Change the graph."""
        for node in list(self._nodes):
            self._fold_behind(node)
        for node in reversed(list(self._nodes)):
            self._fold_before(node)
        replace_nodes(self._graph, self._nodes)
        reads = _reads(self._graph)
        for tensor in [each for each in self._tensors.values() if not reads[each.name]]:
            self._graph.initializer.remove(tensor)
        new = {name: array.astype(np.float32) for name, array in self._new.items() if reads[name]}
        self._graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in new.items())

    def _fold_behind(self, node: onnx.NodeProto) -> None:
        affine = _affine(node, self._scalars)
        if affine is None or self._readers(affine[0]) != [node]:
            return
        value, factor, term = affine
        for convolution in self._nodes:
            free = not any(convolution.input[3:]) and all(each.name != "activation" for each in convolution.attribute)
            if value in convolution.output and free and self._is_convolution(convolution):
                self._change(convolution, factor, factor, term)
                convolution.output[0] = node.output[0]
                self._drop(node)

    def _fold_before(self, node: onnx.NodeProto) -> None:
        readers = self._readers(node.output[0]) or []
        takers = [each for each in readers if each.input[0] == node.output[0] and self._is_convolution(each)]
        affine = _affine(node, self._scalars)
        if affine is None or not readers or len(takers) < len(readers):
            return
        value, factor, term = affine
        if term and any(_is_padded(each) for each in takers):
            self._fold_product(node, affine, takers)
            return
        for each in takers:
            sums = self._weights(each, 1).reshape(-1, self._rows(each), self._block_size).sum(axis=1).ravel()
            self._change(each, factor, 1, term * sums)
            each.input[0] = value
        self._drop(node)

    def _fold_product(self, node: onnx.NodeProto, affine: Affine, takers: list[onnx.NodeProto]) -> None:
        """Fold the product before a sum that stays, since it does not reach what convolutions are padded with."""
        value, _, term = affine
        for before in self._nodes:
            product = _affine(before, self._scalars) if value in before.output else None
            if product is None or product[1] in (0, 1) or self._readers(value) != [node]:
                continue
            multiplied, factor, _ = product
            self._new[name := fresh(f"{node.output[0]}_term", self._names)] = np.array(term / factor)
            node.op_type, node.input[:] = "Add", [multiplied, name]
            for each in takers:
                self._change(each, factor, 1, 0)
            self._drop(before)

    def _readers(self, name: str) -> list[onnx.NodeProto] | None:
        """Return what reads a value; None when others than this graph's own nodes do, or one does so twice."""
        found = [node for node in self._nodes for read in read_names([node]) if read == name]
        own = all(list(node.input).count(name) == 1 for node in found)
        return found if own and all(value.name != name for value in self._graph.output) else None

    def _is_convolution(self, node: onnx.NodeProto) -> bool:
        known = (self._tensors.keys() | self._new.keys()).issuperset(filter(None, node.input[1:3]))
        return (node.domain, node.op_type) == (NCHWC, "Conv") and known

    def _weights(self, convolution: onnx.NodeProto, position: int) -> NDArray[Any]:
        name = convolution.input[position]
        array = self._new.get(name)
        return numpy_helper.to_array(self._tensors[name]).astype(np.float64) if array is None else array

    def _rows(self, convolution: onnx.NodeProto) -> int:
        """Return how many weights each of a block's filters has; they lie side by side."""
        weights = self._weights(convolution, 1)
        return int(weights.size) // int(weights.shape[0])

    def _change(self, convolution: onnx.NodeProto, filters: float, bias: float, terms: "float | NDArray[Any]") -> None:
        """Multiply a convolution's filters and its bias, and add terms to the bias."""
        arrays = {1: self._weights(convolution, 1) * filters}
        if any(convolution.input[2:3]):
            arrays[2] = self._weights(convolution, 2) * bias + terms
        elif np.any(terms):
            convolution.input.extend([""] * (3 - len(convolution.input)))
            arrays[2] = np.zeros(arrays[1].shape[0]) + terms
        for position, array in arrays.items():
            convolution.input[position] = name = fresh(f"{convolution.output[0]}_{position}", self._names)
            self._new[name] = array

    def _drop(self, node: onnx.NodeProto) -> None:
        self._nodes = [each for each in self._nodes if each is not node]


def _is_padded(convolution: onnx.NodeProto) -> bool:
    attributes = {each.name: each for each in convolution.attribute}
    fitted = "auto_pad" in attributes and attributes["auto_pad"].s not in (b"NOTSET", b"VALID")
    return fitted or ("pads" in attributes and any(attributes["pads"].ints))
