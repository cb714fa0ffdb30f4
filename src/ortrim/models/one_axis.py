"""Which convolutions along one axis are faster once `two_axes` has made them two-dimensional.

Upstream adds up what ConvTranspose makes by one kernel for two axes and another for any number of them, which takes
some 30 instructions more for each element of a filter at each position. Others are faster in NCHWc blocks.
"""

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from ortrim.base.cache import cached_folder
from ortrim.base.files import code_digest
from ortrim.base.json import to_canonical_json
from ortrim.errors import ModelError
from ortrim.models.graph import Wiring, attributes_of, is_onnx
from ortrim.models.models import PreparedModel
from ortrim.models.nchwc_graph import ELEMENTWISE
from ortrim.models.prepare import external_files, keep, read_facts
from ortrim.models.shapes import Shape, known_shapes, with_shapes
from ortrim.models.two_axes import FLAT_RANK, GLOBAL_POOLING, POOLING

InputShapes = Mapping[str, Shape]
"""By the names of inputs, in one case."""

FEWEST_POSITIONS: Final = 16
"""Below, plain convolutions have kernels of ours that blocks do not beat, as have windows that lie in place
(resources/cmake/direct_convolutions.h)."""
BLOCK: Final = 8
ALIGNED: Final = 4
"""What a number of channels is a multiple of, unless it is below a block: upstream reorders four at a time."""
ANY_CHANNELS: Final = (*POOLING, *GLOBAL_POOLING, "Add", "Mul", "Relu", "Sigmoid", "Tanh")
"""What upstream's transformer keeps in blocks that channels do not fill."""
TILED: Final = (3, 5)
"""Lengths of filters for which there are Winograd's products."""
WINOGRAD_CHANNELS: Final = 32
"""As many make use of a transform; resources/cmake/winograd.h takes fewer, too."""


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """What a machine takes for a product in plain layout (`gemm`), and for what else there is.

    An element of a `window` is copied for all filters of a group at once. A product in `blocks` takes more where few
    are in a `row` of a filter; at a position whose window reaches into the padding it takes `edge` times more, since
    that is in no tile with others. Products by `winograd` share a `transform` with those of all channels; tiles are too
    long by `excess` positions in all. A convolution of one filter a channel takes the same in either layout. A `node`
    reorders each element that becomes part of a block, or leaves it.
    """

    gemm: float
    window: float
    blocks: float
    row: float
    edge: float
    winograd: float
    transform: float
    excess: float
    reorder: float
    node: float


COSTS: Final = (
    # Picoseconds on Zen 5, plain layout's 5 % less than measured: its AVX-512 serves MLAS's GEMM best.
    _Costs(
        gemm=7.6,
        window=109,
        blocks=8.1,
        row=0,
        edge=1,
        winograd=4.5,
        transform=40,
        excess=16,
        reorder=210,
        node=200_000,
    ),
    # Instructions of a cortex-a76.
    _Costs(
        gemm=0.29,
        window=3.2,
        blocks=0.3,
        row=0.21,
        edge=0.1,
        winograd=0.16,
        transform=2.6,
        excess=4,
        reorder=2.5,
        node=2500,
    ),
)


FEWEST_COLUMNS: Final = 256
"""Elements that ConvTranspose adds up, from which on two changes of shape pay."""


@dataclass(frozen=True, kw_only=True)
class OneAxis:
    """The outputs of a model's convolutions along one axis that are faster along two, in any layout and in blocks."""

    anywhere: tuple[str, ...] = ()
    in_blocks: tuple[str, ...] = ()


def faster_in_two_axes(model: PreparedModel, cases: Sequence[InputShapes], root: Path) -> OneAxis:
    """Return which of a model's convolutions along one axis are faster along two, in each of these cases.

    They are on each machine, so that a target's model does not depend on the build's other targets. The answer is kept
    below `root`. There is none for what the sizes of the cases do not tell.
    """
    code = code_digest(Path(__file__).parent.glob("*.py"))
    identity = (model.facts.sha256, to_canonical_json([dict(case) for case in cases]), code)
    folder = root / hashlib.sha256("\n".join(identity).encode()).hexdigest()
    cached_folder(folder, lambda temporary: keep(_chosen(model, cases), temporary))
    return read_facts(folder, OneAxis)


def _chosen(model: PreparedModel, cases: Sequence[InputShapes]) -> OneAxis:
    whole = onnx.load(model.path, load_external_data=False)
    if external_files(whole, model.name):
        return OneAxis()
    try:
        inferred = [with_shapes(deepcopy(whole), model.name, dimensions={}, shapes=case)[0] for case in cases]
        regions = _Regions(whole.graph, [known_shapes(each.graph) for each in inferred])
        return OneAxis(anywhere=tuple(regions.transposed()), in_blocks=tuple(regions.worth(COSTS)))
    except ModelError:  # what is wrong with a damaged model is for its conversion to say
        return OneAxis()


@dataclass(frozen=True, kw_only=True)
class _Convolution:
    """A convolution that can be computed in blocks, of so many channels for each filter."""

    output: str
    channels: int
    length: int
    rows: int  # filters of a group
    depthwise: bool
    reordered: bool  # whether its input is to lie in blocks
    tiled: bool  # whether Winograd's products can be used
    windows: bool  # whether windows are more than the input as it is
    padded: float  # positions whose windows reach into the padding
    filling: float  # the share of the blocks' channels that are not zeros

    def gain(self, shape: Shape, costs: _Costs) -> float:
        """Return what blocks save."""
        plain = costs.gemm + costs.window * self.windows / self.rows
        if self.depthwise:
            return 0
        if self.tiled:
            blocks = (costs.winograd + costs.transform / self.channels) * (1 + costs.excess / shape[-1])
        else:
            blocks = (costs.blocks + costs.row / self.length) * (1 + costs.edge * self.padded / shape[-1])
        return math.prod(shape) * self.channels * self.length * (plain - blocks / self.filling)


class _Regions:
    """A graph's values that can lie in blocks, in regions that convolutions and what follows them are joined to."""

    def __init__(self, graph: onnx.GraphProto, cases: Sequence[Mapping[str, Shape]]) -> None:
        self._graph, self._cases = graph, cases
        self._wiring = Wiring(graph)
        self._joined: dict[str, str] = {}  # for each value in blocks, another one of its region, or itself
        self._pads: dict[str, int] = {}  # zeros of a Pad that convolutions take over
        self._found: list[_Convolution] = []
        self._reorders: list[tuple[str, str]] = []  # a value of a region, and what is reordered for it

    def transposed(self) -> Iterator[str]:
        """Yield the outputs of each ConvTranspose that adds up enough."""
        for node in self._graph.node:
            weights = self._wiring.constant(node.input[1]) if is_onnx(node, "ConvTranspose") else None
            if weights is not None and weights.ndim == FLAT_RANK:
                filters = math.prod(weights.shape[1:]) * attributes_of(node).get("group", 1)
                shapes = [case.get(node.input[0], ()) for case in self._cases]
                if all(shape and shape[0] * shape[-1] * filters >= FEWEST_COLUMNS for shape in shapes):
                    yield node.output[0]

    def worth(self, machines: Sequence[_Costs]) -> Iterator[str]:
        """Yield the outputs of the convolutions of those regions that are faster in each case on each machine."""
        for node in self._graph.node:
            self._look_at(node)
        for region in dict.fromkeys(self._region(each.output) for each in self._found):
            convolutions = [each for each in self._found if self._region(each.output) == region]
            reorders = {name for value, name in self._reorders if self._region(value) == region}
            if all(_gain(convolutions, reorders, *each) > 0 for each in product(self._cases, machines)):
                yield from (each.output for each in convolutions)

    def _look_at(self, node: onnx.NodeProto) -> None:
        sources = [name for name in node.input if name in self._joined]
        convolution = self._convolution(node)
        if convolution is not None:
            self._found.append(convolution)
            self._joined[convolution.output] = convolution.output
            if sources:
                self._join(sources[0], convolution.output)
            elif convolution.reordered:
                self._reorders.append((convolution.output, node.input[0]))
        elif sources and (self._follows(node) or self._is_merged(node)):
            self._joined[node.output[0]] = sources[0]
            for source in sources[1:]:
                self._join(source, sources[0])
        else:
            self._reorders += [(name, name) for name in sources]
        self._reorders += [
            (name, name) for name in node.output if name in self._joined and name in self._wiring.outputs
        ]

    def _follows(self, node: onnx.NodeProto) -> bool:
        """Whether an output can lie in blocks as the inputs do: all of one shape, beside constants of one element."""
        if len(node.output) != 1 or not is_onnx(node, *ELEMENTWISE, *POOLING, *GLOBAL_POOLING, "BatchNormalization"):
            return False
        if node.op_type == "BatchNormalization":
            return True
        values = [name for name in node.input if name in self._joined]
        others = (self._wiring.constant(name) for name in node.input if name and name not in self._joined)
        return all(other is not None and other.size == 1 for other in others) and all(
            case.get(name, ()) == case.get(values[0]) and (case[name][1] % BLOCK == 0 or node.op_type in ANY_CHANNELS)
            for case in self._cases
            for name in values
        )

    def _is_merged(self, node: onnx.NodeProto) -> bool:
        """Whether upstream gives the zeros of a Pad to the convolutions behind it, as causal ones have it."""
        pads = self._wiring.constant(node.input[1]) if is_onnx(node, "Pad") and len(node.input) > 1 else None
        readers = [each for each in self._graph.node if node.output[0] in each.input]
        zeros = attributes_of(node).get("mode", "constant") == "constant" and not any(node.input[2:])
        if pads is None or not zeros or pads.min() < 0 or not all(is_onnx(each, "Conv") for each in readers):
            return False
        self._pads[node.output[0]] = int(pads.sum())
        return node.output[0] not in self._wiring.outputs

    def _convolution(self, node: onnx.NodeProto) -> _Convolution | None:
        """Return what is to know of a convolution that is to be looked at: constant, many positions, not in place."""
        if not is_onnx(node, "Conv") or not self._has_many_positions(node.output[0]):
            return None
        weights, *bias = (self._wiring.constant(name) for name in filter(None, node.input[1:]))
        if weights is None or weights.dtype != np.float32 or weights.ndim != FLAT_RANK or any(b is None for b in bias):
            return None
        filters, channels, length = weights.shape
        attributes = attributes_of(node)
        groups = attributes.get("group", 1)
        if not _is_taken(filters, channels, groups) or (channels == groups == 1 and _lies_in_place(attributes)):
            return None
        stride, dilation = (attributes.get(name, [1])[0] for name in ("strides", "dilations"))
        span = (length - 1) * dilation
        zeros = 1 if channels < BLOCK else _aligned(channels) / channels
        return _Convolution(
            output=node.output[0],
            channels=channels,
            length=length,
            rows=filters // groups,
            depthwise=channels == 1 < groups,
            reordered=groups > 1 or channels >= BLOCK,
            tiled=length in TILED and stride == dilation == groups == 1 and min(channels, filters) >= WINOGRAD_CHANNELS,
            windows=length * stride > 1,
            padded=(sum(attributes.get("pads", [span * _is_fitted(attributes)])) + self._pads.get(node.input[0], 0))
            / stride,
            filling=filters / (_aligned(filters) * zeros),
        )

    def _has_many_positions(self, output: str) -> bool:
        shapes = [case.get(output, ()) for case in self._cases]
        return all(len(shape) == FLAT_RANK and shape[-1] >= FEWEST_POSITIONS for shape in shapes)

    def _region(self, value: str) -> str:
        while self._joined[value] != value:
            value = self._joined[value]
        return value

    def _join(self, one: str, other: str) -> None:
        self._joined[self._region(one)] = self._region(other)


def _gain(
    convolutions: Sequence[_Convolution], reorders: Collection[str], shapes: Mapping[str, Shape], costs: _Costs
) -> float:
    gained = sum(each.gain(shapes[each.output], costs) for each in convolutions)
    return gained - sum(costs.reorder * math.prod(shapes[name]) + costs.node for name in reorders)


def _is_taken(filters: int, channels: int, groups: int) -> bool:
    """Whether upstream's transformer takes a convolution of so many filters, of so many channels each."""
    if groups == 1:
        return channels < BLOCK or channels % ALIGNED == 0
    whole = channels % BLOCK == 0 and filters // groups % BLOCK == 0
    return filters % ALIGNED == 0 and (whole or (channels == 1 and filters == groups))


def _lies_in_place(attributes: Mapping[str, Any]) -> bool:
    """Whether windows of one channel are read where they lie, as frames of sound."""
    padded = any(attributes.get("pads", ())) or _is_fitted(attributes)
    return not padded and attributes.get("dilations", [1]) == [1]


def _is_fitted(attributes: Mapping[str, Any]) -> bool:
    return str(attributes.get("auto_pad", "")).startswith("SAME")


def _aligned(channels: int) -> int:
    return -(-channels // BLOCK) * BLOCK
