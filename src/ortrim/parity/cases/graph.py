"""What a model's graph says of its inputs: sizes that its weights fix, vocabularies, and what branches compare with."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from ortrim.models.onnx_files import array_of, graphs_in
from ortrim.parity.cases.lookups import COMPARISONS, JOINING, Values, View, attribute, onward

Axes = tuple[int | None, ...] | None
"""For each axis of a value, the axis of the input that it is, None for one that is another; None: nothing is known."""

SAME_AXES: Final = frozenset({
    "Abs", "Add", "Cast", "CastLike", "Clip", "DequantizeLinear", "Div", "DynamicQuantizeLinear", "Exp", "Identity",
    "Imputer", "IsNaN", "Log", "Mul", "Neg", "Not", "Pow", "QuantizeLinear", "Relu", "Scaler", "Sqrt", "Sub",
})  # fmt: skip
OTHER_AXES: Final = frozenset({
    "ArrayFeatureExtractor", "Concat", "Expand", "FeatureVectorizer", "Flatten", "GatherElements", "GatherND", "Pad",
    "Reshape", "Slice", "Split", "Squeeze", "StringConcat", "StringNormalizer", "StringSplit", "Tile", "Tokenizer",
    "Unsqueeze", "Where",
})  # fmt: skip
INDEXED: Final = {
    "ArrayFeatureExtractor": (0, 1), "EmbedLayerNormalization": (2, 0), "Gather": (0, 1),
    "GatherBlockQuantized": (0, 1), "GatherElements": (0, 1), "GatherND": (0, 1),
}  # fmt: skip
"""Operators that take rows of a table: the positions of the table and of the indices among the inputs."""
MOST_COMPARED: Final = 3
LONGEST_COUNT: Final = 1 << 16
RESHAPED: Final = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
LONGEST_CHAIN: Final = 8
FARTHEST: Final = 2000
"""How many values are followed from one input."""


@dataclass(kw_only=True)
class Traits:
    """What is known of one input. `sizes` are what an axis has to be, and the operator that says so.

    `steps` and `batches` are the axes that recurrent operators take as such, `stride` is that of the first convolution.
    `vocabulary` is how many numbers there are, from 0, and `cells` how many elements of a table they lead to; `values`
    are what lookups, trees and the like tell apart; `compared` are constants that it is compared with; `decides` and
    `convolved` say whether If or convolutions read it.
    """

    sizes: dict[int, tuple[int, str]] = field(default_factory=dict)
    steps: set[int] = field(default_factory=set)
    batches: set[int] = field(default_factory=set)
    stride: int = 1
    vocabulary: int | None = None
    cells: int = 0
    values: Values = field(default_factory=Values)
    compared: list[float] = field(default_factory=list)
    decides: bool = False
    convolved: bool = False


class Graph:
    """A model's values, by name: who reads them, and those that it fixes."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.infos = {info.name: info for info in (*model.graph.input, *model.graph.value_info)}
        self.readers: dict[str, list[tuple[onnx.NodeProto, int]]] = defaultdict(list)
        self.fixed: dict[str, onnx.TensorProto] = {}
        self.made_by: dict[str, onnx.NodeProto] = {}
        for graph in graphs_in(model):
            self.fixed |= {tensor.name: tensor for tensor in graph.initializer}
            for node in graph.node:
                self._read(node)

    def _read(self, node: onnx.NodeProto) -> None:
        for position, name in enumerate(node.input):
            self.readers[name].append((node, position))
        self.made_by |= dict.fromkeys(node.output, node)
        if node.op_type == "Constant" and node.output:
            for each in node.attribute:
                if each.HasField("t"):
                    self.fixed[node.output[0]] = each.t
                elif each.name.startswith("value_"):
                    array = np.asarray(helper.get_attribute_value(each))
                    self.fixed[node.output[0]] = numpy_helper.from_array(
                        array.astype(object) if array.dtype.kind == "S" else array
                    )

    def dimensions(self, name: str) -> tuple[int, ...] | None:
        """Return the dimensions of a weight, also of one that is only made wider or is dequantized."""
        if name in self.fixed:
            return tuple(self.fixed[name].dims)
        node = self.made_by.get(name)
        if node is not None and node.op_type in {"Cast", "Identity", "DequantizeLinear"} and node.input:
            return self.dimensions(node.input[0]) if node.input[0] != name else None
        return None

    def constant(self, name: str) -> NDArray[Any] | None:
        """Return the content of a constant, also of one that only has another shape or type."""
        for _ in range(LONGEST_CHAIN):
            node = self.made_by.get(name)
            if name in self.fixed or node is None or node.op_type not in RESHAPED:
                break
            name = node.input[0]
        tensor = self.fixed.get(name)
        return array_of(tensor) if tensor is not None and prod(tensor.dims) <= LONGEST_COUNT else None

    def width(self, name: str) -> int | None:
        """Return the size of the last axis of a value, as far as its type or the node that makes it tells."""
        dims = self.infos[name].type.tensor_type.shape.dim if name in self.infos else ()
        if dims and dims[-1].HasField("dim_value"):
            return int(dims[-1].dim_value)
        node = self.made_by.get(name)
        if node is None:
            return None
        if node.op_type in JOINING:
            widths = [self.width(each) for each in node.input]
            return None if None in widths else sum(width or 0 for width in widths)
        if node.op_type in {*SAME_AXES, "LabelEncoder"}:
            return self.width(node.input[0])
        indices = self.constant(node.input[1]) if node.op_type == "ArrayFeatureExtractor" else None
        return None if indices is None else indices.size

    def element_type(self, name: str) -> int:
        """Return the number of a value's element type; 0 for an unknown one."""
        return int(self.infos[name].type.tensor_type.elem_type) if name in self.infos else 0

    def numbers(self, name: str) -> tuple[Any, ...]:
        """Return the finite numbers of a small constant."""
        tensor = self.fixed.get(name)
        array = array_of(tensor) if tensor is not None and prod(tensor.dims) <= MOST_COMPARED else None
        elements = () if array is None else array.reshape(-1).tolist()
        return tuple(each for each in elements if isinstance(each, int | float) and isfinite(each))

    def _counted(self, name: str) -> int | None:
        """Return how many numbers a constant counts up from 0, as one-hot encoding compares with them."""
        tensor = self.fixed.get(name)
        size = prod(tensor.dims) if tensor is not None else 0
        array = array_of(tensor) if tensor is not None and MOST_COMPARED < size <= LONGEST_COUNT else None
        return size if array is not None and np.array_equal(array.reshape(-1), np.arange(size)) else None

    def rank(self, name: str) -> int | None:
        """Return how many dimensions an input has, as far as a node that reads it tells."""
        for node, position in self.readers[name]:
            if node.op_type == "Transpose" and (order := attribute(node, "perm")):
                return len(order)
            if node.op_type in CONVOLUTIONS and position == 0 and (weight := self.dimensions(_weights_of(node))):
                return len(weight)
            if node.op_type in RECURRENT and position == 0:
                return 3
        return None

    def traits(self, name: str, rank: int) -> Traits:
        """Follow an input through the graph, also into the bodies of nodes."""
        traits, seen = Traits(), {name}
        waiting: list[tuple[str, Axes, View | None]] = [(name, tuple(range(rank)), View())]
        while waiting and len(seen) < FARTHEST:
            value, axes, view = waiting.pop(0)
            for node, position in self.readers[value]:
                self._look(node, position, axes, traits)
                if view is not None:
                    traits.values.note(node, position, view, self)
                after = None if view is None else onward(node, position, view, self, last=_is_last(node, axes))
                for output, other in self._onward(node, position, axes):
                    if output and output not in seen:
                        seen.add(output)
                        waiting.append((output, other, after))
        return traits

    def _onward(self, node: onnx.NodeProto, position: int, axes: Axes) -> Iterator[tuple[str, Axes]]:
        kind = node.op_type
        if kind == "Transpose":
            order = attribute(node, "perm") or ()
            yield node.output[0], tuple(axes[axis] for axis in order) if axes and len(axes) == len(order) else None
        elif kind in SAME_AXES and (position == 0 or kind in {"Add", "Mul"}):
            yield node.output[0], axes
        elif (kind in OTHER_AXES and kind not in INDEXED) or (kind in INDEXED and position == 0):
            for output in node.output:
                yield output, None

    def _look(self, node: onnx.NodeProto, position: int, axes: Axes, traits: Traits) -> None:
        """Note what a node that reads the input says of it."""
        self._note_values(node, position, traits)
        if position == 0 and node.op_type in {*CONVOLUTIONS, "STFT", "DFT"}:
            first = not traits.convolved and node.op_type != "ConvTranspose"
            traits.stride = max(attribute(node, "strides") or (1,)) if first else traits.stride
            traits.convolved = True
        if node.op_type in RECURRENT and axes and not attribute(node, "layout"):
            traits.steps |= {axis for axis in axes[:1] if axis is not None and position == 0}
            traits.batches |= {axis for axis in axes[int(position != 4) :][:1] if axis is not None}
        for axis, size in self._sizes(node, position):
            own = axes[axis] if axes and -len(axes) <= axis < len(axes) else None
            if own is not None and own not in traits.sizes:
                traits.sizes[own] = (size, node.op_type)

    def _note_values(self, node: onnx.NodeProto, position: int, traits: Traits) -> None:
        """Note which values make sense for a node, and which of them decide."""
        kind = node.op_type
        if kind in INDEXED and position == INDEXED[kind][1] and kind != "GatherND":
            self._note_table(node, traits)
        elif kind == "If":
            traits.decides = True
        elif kind == "OneHot" and position == 0 and (depth := self.numbers(node.input[1])) and depth[0] >= 1:
            traits.vocabulary = min(int(depth[0]), traits.vocabulary or int(depth[0]))
        elif kind in COMPARISONS and len(node.input) == 2:
            if count := self._counted(node.input[1 - position]):
                traits.vocabulary = min(count, traits.vocabulary or count)
            found = [number for number in self.numbers(node.input[1 - position]) if number not in traits.compared]
            traits.compared += found[: MOST_COMPARED - len(traits.compared)]

    def _note_table(self, node: onnx.NodeProto, traits: Traits) -> None:
        dimensions = self.dimensions(node.input[INDEXED[node.op_type][0]])
        axis = -1 if node.op_type == "ArrayFeatureExtractor" else attribute(node, "axis") or 0
        if not dimensions or axis >= len(dimensions):
            return
        count = dimensions[axis]
        if count > 1:
            traits.vocabulary = min(count, traits.vocabulary or count)
            traits.cells = max(traits.cells, prod(dimensions) if node.op_type == "GatherElements" else count)

    def _sizes(self, node: onnx.NodeProto, position: int) -> Iterator[tuple[int, int]]:
        """Yield axes and the sizes that they have to have for a node's weights."""
        kind = node.op_type
        if kind in CONVOLUTIONS and position == 0:
            weight = self.dimensions(_weights_of(node))
            if weight:
                yield 1, weight[0] if kind == "ConvTranspose" else weight[1] * (attribute(node, "group") or 1)
        elif kind in PRODUCTS and position == 0:
            weight = self.dimensions(_input(node, PRODUCTS[kind]))
            if weight and len(weight) >= 2:
                yield -1, weight[-1] if kind == "Gemm" and attribute(node, "transB") else weight[-2]
        elif kind in RECURRENT:
            yield from self._recurrent(node, position)
        elif kind in {"BatchNormalization", "InstanceNormalization"} and position == 0:
            yield from ((1, weight[0]) for weight in [self.dimensions(_input(node, 1))] if weight)
        elif kind in {"Add", "Sub", "Mul", "Div", "LayerNormalization"} and len(node.input) > 1:
            other = self.dimensions(node.input[1 - position]) if position < 2 else None
            yield from ((axis, other[axis]) for axis in range(-len(other or ()), 0) if other and other[axis] > 1)
        elif node.domain == "ai.onnx.ml":
            yield from _features(node)

    def _recurrent(self, node: onnx.NodeProto, position: int) -> Iterator[tuple[int, int]]:
        weight, other = (self.dimensions(_input(node, at)) for at in (1, 2))
        turned = node.op_type == "DynamicQuantizeLSTM"
        if position == 0 and weight:
            yield 2, weight[1 if turned else 2]
        if position in {5, 6} and other:
            yield 0, other[0]
            yield 2, other[1 if turned else 2]


CONVOLUTIONS: Final = frozenset({"Conv", "ConvInteger", "ConvTranspose", "FusedConv", "QLinearConv"})
PRODUCTS: Final = {"MatMul": 1, "MatMulInteger": 1, "Gemm": 1, "QLinearMatMul": 3, "DynamicQuantizeMatMul": 1}
RECURRENT: Final = frozenset({"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"})


def _features(node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
    """Yield how many features a classic model reads."""
    lengths = [len(found) for name in ("offset", "imputed_value_floats") if (found := attribute(node, name))]
    if classes := attribute(node, "classlabels_ints") or attribute(node, "classlabels_strings"):
        rows = len(attribute(node, "intercepts") or classes)
        coefficients = attribute(node, "coefficients") or ()
        lengths.append(len(coefficients) // rows if node.op_type == "LinearClassifier" else 0)
    elif node.op_type == "LinearRegressor":
        lengths.append(len(attribute(node, "coefficients") or ()) // (attribute(node, "targets") or 1))
    if vectors := attribute(node, "support_vectors"):
        lengths.append(
            len(vectors) // (sum(attribute(node, "vectors_per_class") or ()) or attribute(node, "n_supports") or 1)
        )
    if indices := attribute(node, "nodes_featureids"):
        lengths.append(max(indices) + 1)
    yield from ((1, length) for length in lengths if length > 1)


def _weights_of(convolution: onnx.NodeProto) -> str:
    return _input(convolution, 3 if convolution.op_type == "QLinearConv" else 1)


def _input(node: onnx.NodeProto, position: int) -> str:
    return node.input[position] if position < len(node.input) else ""


def _is_last(node: onnx.NodeProto, axes: Axes) -> bool:
    """Whether the axis that a node names is the last, as far as that is known; features are that of rows."""
    axis = attribute(node, "axis") or 0
    return axis == -1 or node.domain == "ai.onnx.ml" or axis == (len(axes) - 1 if axes else 1)


def told_sizes(model: onnx.ModelProto) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers that exporters leave as metadata, such as ultralytics' `imgsz` and `stride`."""
    return {
        entry.key: tuple(int(number) for number in re.findall(r"\d{1,5}", entry.value))
        for entry in model.metadata_props
        if entry.key in {"imgsz", "stride", "input_size", "image_size"}
    }
