"""Pre-processing put into the model: bytes, axes and channels as a decoder gives them, and their normalisation.

Where all that reads the input are convolutions with constant weights, factors and the order of channels go into the
weights, and so does what is subtracted, unless a convolution pads with zeros; else nodes are put before the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto

from ortrim.buildspec.step_specs import FoldInput
from ortrim.errors import ModelError
from ortrim.models.graph import (
    Array,
    Names,
    Wiring,
    add_constant,
    attributes_of,
    drop_unread,
    free_initializers,
    is_onnx,
    new_node,
    replace_nodes,
)
from ortrim.models.onnx_files import graphs_in, read_names
from ortrim.steps.step import Feeding, Feeds, Stepped


def foldable(graph: onnx.GraphProto, name: str, wiring: Wiring, channels: int | None) -> list[onnx.NodeProto]:
    """Return what reads a value, if these are convolutions of all its channels with constant weights and biases."""
    readers = [node for node in graph.node if name in read_names([node])]
    return readers if all(_fits(node, name, wiring, channels) for node in readers) else []


def pads_nothing(node: onnx.NodeProto) -> bool:
    """Whether a convolution looks at nothing but its input."""
    attributes = attributes_of(node)
    return not np.any(attributes.get("pads", 0)) and attributes.get("auto_pad", "NOTSET") in {"NOTSET", "VALID"}


def fold_into(
    graph: onnx.GraphProto,
    node: onnx.NodeProto,
    wiring: Wiring,
    names: Names,
    *,
    factor: Array,
    offset: Array,
    order: slice,
) -> list[str]:
    """Let a convolution take `x` where it took `(x + offset) * factor` by channel, these in another order before.

    Returns the constants that it reads no more.
    """
    weights = wiring.constant(node.input[1])
    assert weights is not None, "only suitable convolutions are folded into"
    scaled = weights.astype(np.float64) * factor.reshape(1, -1, *[1] * (weights.ndim - 2))
    replaced = [node.input[1]]
    if offset.any():
        shifted = scaled * offset.reshape(1, -1, *[1] * (weights.ndim - 2))
        addend = shifted.reshape(len(weights), -1).sum(axis=1)
        bias = wiring.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1)
        replaced += node.input[2:]
        moved = (np.asarray(bias, np.float64) + addend).astype(weights.dtype)
        node.input[:] = [*node.input[:2], add_constant(graph, names.fresh(f"{node.input[1]}_bias"), moved)]
    made = scaled[:, order].astype(weights.dtype)
    node.input[1] = add_constant(graph, names.fresh(f"{node.input[1]}_folded"), made)
    return replaced


def _fits(node: onnx.NodeProto, name: str, wiring: Wiring, channels: int | None) -> bool:
    if not is_onnx(node, "Conv") or len(node.input) < 2 or list(node.input).count(name) != 1 or node.input[0] != name:
        return False
    weights = wiring.constant(node.input[1])
    biased = len(node.input) > 2 and node.input[2] != ""
    bias = wiring.constant(node.input[2]) if biased else np.zeros(1)
    return (
        weights is not None
        and weights.ndim > 2
        and channels in {None, weights.shape[1]}
        and weights.dtype.kind == "f"
        and attributes_of(node).get("group", 1) == 1
        and bias is not None
        and bias.ndim == 1
        and bias.size in {1, len(weights)}
    )


LARGEST_BYTE: Final = 255


@dataclass(frozen=True, kw_only=True)
class Normalisation:
    """What becomes of an input of `rank` dimensions: `(input * scale - mean) / std`, each one number or one a channel.

    Worked out as `(input + offset) * factor`. `channels` is None when nothing tells how many there are; `dtype` is that
    of the old input.
    """

    scale: float
    mean: Array
    std: Array
    rank: int
    channels: int | None
    dtype: type

    @property
    def factor(self) -> Array:
        """What the input is multiplied by."""
        return np.asarray(self.scale / self.std)

    @property
    def offset(self) -> Array:
        """What is added to the input before."""
        return np.asarray(-self.mean / self.scale)


def feeding_for(name: str, options: FoldInput, numbers: Normalisation) -> Feeding:
    """Return how arrays for the old input become such for the new one; bytes are rounded, and lead back to others."""
    factor, offset = (values.reshape(-1, *[1] * (numbers.rank - 2)) for values in (numbers.factor, numbers.offset))
    order = slice(None, None, -1 if options.swap_channels else 1)

    def forward(feeds: Feeds) -> Feeds:
        ordered = (feeds[name].astype(np.float64) / factor - offset)[:, order]
        placed = np.moveaxis(ordered, 1, -1) if options.channels_last else ordered
        rounded = np.clip(np.rint(placed), 0, LARGEST_BYTE).astype(np.uint8) if options.uint8 else placed
        return {**feeds, name: np.ascontiguousarray(rounded.astype(np.uint8 if options.uint8 else numbers.dtype))}

    def back(feeds: Feeds) -> Feeds:
        placed = np.moveaxis(feeds[name], -1, 1) if options.channels_last else feeds[name]
        plain = (placed[:, order].astype(np.float64) + offset) * factor
        return {name: np.ascontiguousarray(plain.astype(numbers.dtype))}

    return Feeding(forward=forward, back=back if options.uint8 else None)


FLOATS: Final[Mapping[int, type]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
    TensorProto.DOUBLE: np.float64,
}
SMALLEST_RANK: Final = 3


def fold_input(model: onnx.ModelProto, options: FoldInput) -> Stepped:
    """Give the model an input of another form, under the same name."""
    free_initializers(model)
    value = _input(model.graph, options)
    normalisation = _normalisation(value, options)
    notes = _Folding(model, value, options, normalisation).run()
    feeding = feeding_for(value.name, options, normalisation)
    return Stepped(model=model, notes=tuple(notes), feeding=feeding)


def _input(graph: onnx.GraphProto, options: FoldInput) -> onnx.ValueInfoProto:
    provided = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in provided}
    if options.input is None and len(inputs) != 1:
        what, hint = "the model has more than one input, or none", "name one of them: input = '...'"
        raise ModelError("no-such-input", what, why=f"its inputs: {', '.join(inputs)}", hint=hint)
    name = options.input or next(iter(inputs))
    if name not in inputs:
        what = f"the model has no input '{name}'"
        raise ModelError("no-such-input", what, hint=f"its inputs: {', '.join(inputs)}")
    if name in {value.name for value in graph.output}:
        what, hint = f"the input '{name}' is an output, too", "remove the output first: use = 'outputs'"
        raise ModelError("input-does-not-fit", what, hint=hint)
    found: onnx.ValueInfoProto = inputs[name]
    return found


def _normalisation(value: onnx.ValueInfoProto, options: FoldInput) -> Normalisation:
    """Return the options' numbers for each channel, once they fit the input."""
    tensor = value.type.tensor_type
    rank = len(tensor.shape.dim)
    if tensor.elem_type not in FLOATS or rank < SMALLEST_RANK:
        what = f"the input '{value.name}' is not of floats with three dimensions or more"
        raise ModelError("input-does-not-fit", what, hint="fold-input is for images: (N, C, H, W)")
    lengths = {len(given) for given in (options.mean, options.std) if len(given) > 1}
    channels = tensor.shape.dim[1]
    known = {channels.dim_value} if channels.HasField("dim_value") and channels.dim_value > 0 else set[int]()
    if len(lengths | known) > 1:
        what = f"the input '{value.name}' and the numbers for it have different numbers of channels"
        raise ModelError("input-does-not-fit", what, why=f"they have {', '.join(map(str, sorted(lengths | known)))}")
    count = next(iter(lengths | known), None)
    if count is None and options.swap_channels:
        what, hint = f"it is not known how many channels the input '{value.name}' has", "give a mean for each channel"
        raise ModelError("input-does-not-fit", what, hint=hint)
    mean, std = (
        np.array(given or (default,), np.float64) for given, default in ((options.mean, 0.0), (options.std, 1.0))
    )
    width = max(lengths, default=1)
    return Normalisation(
        scale=options.scale,
        mean=np.resize(mean, width),
        std=np.resize(std, width),
        rank=rank,
        channels=count,
        dtype=FLOATS[int(tensor.elem_type)],
    )


class _Folding:
    """A model that gets another input."""

    def __init__(
        self, model: onnx.ModelProto, value: onnx.ValueInfoProto, options: FoldInput, normalisation: Normalisation
    ) -> None:
        self.graph, self.value, self.options, self.numbers = model.graph, value, options, normalisation
        self.names, self.wiring = Names(model), Wiring(model.graph)
        self.model = model
        self.nodes: list[onnx.NodeProto] = []
        self.last = value.name
        self.unread: list[str] = []

    def run(self) -> list[str]:
        """Change the graph; say what was done."""
        readers = foldable(self.graph, self.value.name, self.wiring, self.numbers.channels)
        before = list(self.graph.node)
        if self.options.channels_last:
            rank = self.numbers.rank
            self._add("Transpose", perm=[0, rank - 1, *range(1, rank - 1)])
        if self.options.uint8:
            self._add("Cast", to=self.value.type.tensor_type.elem_type)
        if not self.options.swap_channels and (self.numbers.factor == 1).all() and not self.numbers.offset.any():
            notes = []
        else:
            notes = self._folded(readers) if readers else self._in_front()
        # Let all that read the input read what it has become, in inner graphs too.
        inner = [node for graph in graphs_in(self.model) if graph is not self.graph for node in graph.node]
        for node in (*before, *inner):
            node.input[:] = [self.last if name == self.value.name else name for name in node.input]
        self._retype()
        if self.nodes:
            replace_nodes(self.graph, [*self.nodes, *before])
        drop_unread(self.model, self.unread)
        return [f"put before the model: {', '.join(node.op_type for node in self.nodes) or 'nothing'}", *notes]

    def _folded(self, readers: list[onnx.NodeProto]) -> list[str]:
        """Put factors and order into the weights, and what is subtracted, if nothing is padded."""
        order = slice(None, None, -1 if self.options.swap_channels else 1)
        offset = self.numbers.offset
        if offset.any() and not all(map(pads_nothing, readers)):
            self._add_number("Sub", -offset[order])
            offset = np.zeros(1)
        for node in readers:
            numbers = {"factor": self.numbers.factor, "offset": offset}
            self.unread += fold_into(self.graph, node, self.wiring, self.names, **numbers, order=order)
        return [f"put into the weights of {', '.join(node.name or node.output[0] for node in readers)}: the rest"]

    def _in_front(self) -> list[str]:
        if self.options.swap_channels and self.numbers.channels is not None:
            indices = np.arange(self.numbers.channels, dtype=np.int64)[::-1]
            self._add("Gather", add_constant(self.graph, self.names.fresh("channel_order"), indices), axis=1)
        if self.numbers.offset.any():
            self._add_number("Sub", -self.numbers.offset)
        if (self.numbers.factor != 1).any():
            self._add_number("Mul", self.numbers.factor)
        return []

    def _add_number(self, operator: str, values: Array) -> None:
        shaped: Array = values.reshape(-1, *[1] * (self.numbers.rank - 2)).astype(self.numbers.dtype)
        self._add(operator, add_constant(self.graph, self.names.fresh(f"{self.value.name}_{operator}"), shaped))

    def _add(self, operator: str, *more: str, **attributes: Any) -> None:
        result = self.names.fresh(f"{self.value.name}_{operator}")
        node = new_node(operator, [self.last, *more], [result], name=result, **attributes)
        self.nodes.append(node)
        self.last = result

    def _retype(self) -> None:
        tensor = self.value.type.tensor_type
        if self.options.uint8:
            tensor.elem_type = TensorProto.UINT8
        if self.options.channels_last:
            sizes = [onnx.TensorShapeProto.Dimension.FromString(each.SerializeToString()) for each in tensor.shape.dim]
            del tensor.shape.dim[:]
            tensor.shape.dim.extend([sizes[0], *sizes[2:], sizes[1]])
