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
from typing import Any, Final, NamedTuple

import numpy as np
import onnx

from ortrim.base.cache import cached_folder
from ortrim.base.files import code_digest
from ortrim.base.json import to_canonical_json
from ortrim.errors import ModelError
from ortrim.models.graph import Array, Shapes, Wiring, attributes_of, free_initializers, is_onnx, opset_of, shapes_of
from ortrim.models.models import PreparedModel
from ortrim.models.nchwc_graph import ELEMENTWISE
from ortrim.models.onnx_files import filter_share, read_names
from ortrim.models.prepare import external_files, keep, read_facts
from ortrim.models.shapes import Shape, known_shapes, with_shapes
from ortrim.models.two_axes import BROADCASTING, FLAT_RANK, along_one_axis
from ortrim.models.two_axes import ELEMENTWISE as FOLLOWING

InputShapes = Mapping[str, Shape]
"""By the names of inputs, in one case."""

FEWEST_POSITIONS: Final = 16
"""Below, plain convolutions have kernels of ours that blocks do not beat, as have windows that lie in place
(resources/cmake/direct_convolutions.h)."""
BLOCK: Final = 8
ALIGNED: Final = 4
"""What a number of channels is a multiple of, unless it is below a block: upstream reorders four at a time."""
TAKEN: Final = {
    "Add": (7, 13, 14),
    "AveragePool": (1, 7, 10, 11),
    "BatchNormalization": (7, 9, 14),
    "Conv": (1, 11),
    "GlobalAveragePool": (1,),
    "GlobalMaxPool": (1,),
    "MaxPool": (1, 8, 10, 11, 12),
    "Mul": (7, 13, 14),
    "Pad": (11, 13, 18, 19),
    "Relu": (6, 13, 14),
    "Sigmoid": (6, 13),
    "Tanh": (6, 13),
}
"""The versions of operators that ONNX Runtime 1.21.0 takes into blocks, or into a convolution
(core/optimizer/nchwc_transformer.cc, pad_fusion.cc)."""
FUSED_NORMALIZATION: Final = 15
"""A later version of BatchNormalization that still becomes part of a Conv (core/optimizer/conv_bn_fusion.cc)."""
KEPT: Final = ELEMENTWISE.intersection((*FOLLOWING, *BROADCASTING))
"""What `keep_blocks` and `with_two_axes` both know."""
POOLING: Final = ("AveragePool", "MaxPool")
GLOBAL_POOLING: Final = ("GlobalAveragePool", "GlobalMaxPool")
TILED: Final = (3, 5)
"""Kernel sizes for which there are Winograd's products."""
WINOGRAD_CHANNELS: Final = 32
"""As many make use of a transform; resources/cmake/winograd.h takes fewer, too."""


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """What a machine takes for a product in plain layout (`gemm`), and for what else there is.

    An element of a `window` is copied once for all filters per group. A product in `blocks` takes more where few
    are in a `row` of a filter; at a position whose window reaches into the padding it takes `edge` times more, since
    that is in no tile with others. Products by `winograd` share a `transform` with those of all channels; tiles are too
    long by `excess` positions in all. A depthwise convolution takes the same in either layout. A `node`
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
    """The outputs of a model's convolutions along one axis that are faster along two, in any layout and in blocks.

    `share` is the share of the model's weights that those in blocks have.
    """

    anywhere: tuple[str, ...] = ()
    in_blocks: tuple[str, ...] = ()
    share: float = 0.0


def faster_in_two_axes(model: PreparedModel, cases: Sequence[InputShapes], root: Path) -> OneAxis:
    """Return which of a model's convolutions along one axis are faster along two, in each of these cases.

    By the costs of x64 and of ARM64, so that all targets of a build have the same model. The answer is kept below
    `root`. Convolutions whose sizes the cases do not tell are left as they are.
    """
    code = code_digest(Path(__file__).parent.glob("*.py"))
    identity = (model.facts.sha256, to_canonical_json([dict(case) for case in cases]), code, onnx.__version__)
    folder = root / hashlib.sha256("\n".join(identity).encode()).hexdigest()
    cached_folder(folder, lambda temporary: keep(_chosen(model, cases), temporary))
    return read_facts(folder, OneAxis)


def _chosen(model: PreparedModel, cases: Sequence[InputShapes]) -> OneAxis:
    whole = onnx.load(model.path, load_external_data=False)
    if external_files(whole, model.name):
        return OneAxis()
    free_initializers(whole)
    try:
        inferred = [with_shapes(deepcopy(whole), model.name, dimensions={}, shapes=case)[0] for case in cases]
        regions = _Regions(whole, [known_shapes(each.graph) for each in inferred])
        transposed, worth = tuple(regions.transposed()), tuple(regions.worth(COSTS))
    except (ModelError, onnx.defs.SchemaError):  # what is wrong with a damaged model is for its conversion to say
        return OneAxis()
    nodes = [node for node in whole.graph.node if node.output and node.output[0] in worth]
    return OneAxis(anywhere=transposed, in_blocks=worth, share=filter_share(whole.graph, FLAT_RANK, nodes))


@dataclass(frozen=True, kw_only=True)
class _Convolution:
    """A convolution that can be computed in blocks, of so many channels for each filter."""

    output: str
    channels: int
    kernel_size: int
    filters_per_group: int
    depthwise: bool
    reordered: bool  # whether its input is to lie in blocks
    tiled: bool  # whether Winograd's products can be used
    windows: bool  # whether windows are more than the input as it is
    padded: float  # output positions whose windows reach into the padding
    filling: float  # the share of the blocks' channels that are not zeros

    def gain(self, shape: Shape, costs: _Costs) -> float:
        """Return what blocks save."""
        plain = costs.gemm + costs.window * self.windows / self.filters_per_group
        if self.depthwise:
            return 0
        if self.tiled:
            blocks = (costs.winograd + costs.transform / self.channels) * (1 + costs.excess / shape[-1])
        else:
            blocks = (costs.blocks + costs.row / self.kernel_size) * (1 + costs.edge * self.padded / shape[-1])
        return math.prod(shape) * self.channels * self.kernel_size * (plain - blocks / self.filling)


class _Place(NamedTuple):
    """How a value lies in blocks: `taken` by upstream's transformer, otherwise because `keep_blocks` keeps it there.

    `origin` is the value whose shape one that was taken has, and whose blocks another one is computed from.
    """

    taken: bool
    origin: str


class _Regions:
    """A graph's values that can lie in blocks, in regions that convolutions and what follows them are joined to."""

    def __init__(self, model: onnx.ModelProto, cases: Sequence[Mapping[str, Shape]]) -> None:
        self._graph, self._opset, self._cases = model.graph, opset_of(model), cases
        self._wiring = Wiring(model.graph)
        self._shapes: Shapes = shapes_of(model)  # what upstream's transformer knows
        self._places: dict[str, _Place] = {}
        self._joined: dict[str, str] = {}  # for each value in blocks, another one of its region, or itself
        self._pads: dict[str, int] = {}  # zeros of a Pad that a convolution takes over
        self._found: list[_Convolution] = []
        self._reorders: list[tuple[str, str]] = []  # a value of a region, and what is reordered for it

    def transposed(self) -> Iterator[str]:
        """Yield the outputs of each ConvTranspose that adds up enough."""
        for node in self._graph.node:
            weights = self._constant(node, 1) if is_onnx(node, "ConvTranspose") else None
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
            known = all(name in case for name in reorders for case in self._cases)
            if known and all(_gain(convolutions, reorders, *each) > 0 for each in product(self._cases, machines)):
                yield from (each.output for each in convolutions)

    def _look_at(self, node: onnx.NodeProto) -> None:
        sources = [name for name in read_names([node]) if name in self._places]
        convolution = self._convolution(node)
        if convolution is None:
            place = self._place(node, sources) if sources and len(node.output) == 1 else None
            followed = place is not None
        else:
            place, followed = _Place(taken=True, origin=convolution.output), convolution.reordered
            self._found.append(convolution)
            if followed and not sources:
                self._reorders.append((convolution.output, node.input[0]))
        if place is not None:
            self._places[node.output[0]], self._joined[node.output[0]] = place, node.output[0]
        for source in sources:
            if followed:
                self._join(source, node.output[0])
            else:
                self._reorders.append((source, source))
        self._reorders += [
            (name, name) for name in node.output if name in self._places and name in self._wiring.outputs
        ]

    def _place(self, node: onnx.NodeProto, sources: Sequence[str]) -> _Place | None:
        """Return how an output lies in blocks as those inputs do; None where they are reordered for it."""
        first = self._places[sources[0]]
        all_taken = all(self._places[name].taken for name in sources)
        full = all(case.get(sources[0], (0, 1))[1] % BLOCK == 0 for case in self._cases)
        if full and (self._is(node, *POOLING) or (all_taken and self._is(node, *GLOBAL_POOLING))):
            return _Place(taken=True, origin=node.output[0])
        if all_taken and (
            self._is(node, "Relu", "Sigmoid", "Tanh")
            or self._is_normalization(node)
            or (len(sources) == len(node.input) and self._are_alike(node, full=full))
        ):
            return first
        if self._is_merged(node):
            return first
        others = [self._wiring.constant(name) for name in node.input if name and name not in sources]
        blocks = {name if self._places[name].taken else self._places[name].origin for name in sources}
        if full and len(blocks) == 1 and is_onnx(node, *KEPT) and all(map(_is_number, others)):
            return _Place(taken=False, origin=blocks.pop())
        return None

    def _is(self, node: onnx.NodeProto, *operators: str) -> bool:
        return is_onnx(node, *operators) and self._version(node) in TAKEN[node.op_type]

    def _version(self, node: onnx.NodeProto) -> int:
        return onnx.defs.get_schema(node.op_type, self._opset, "").since_version

    def _constant(self, node: onnx.NodeProto, index: int) -> Array | None:
        return self._wiring.constant(node.input[index]) if index < len(node.input) else None

    def _are_alike(self, node: onnx.NodeProto, *, full: bool) -> bool:
        """Whether upstream adds or multiplies values in blocks: sums always, products where it knows their sizes.

        The product of a value and its Sigmoid becomes a QuickGelu, which is kept in full blocks.
        """
        if not self._is(node, "Add", "Mul") or any(
            len({case.get(name) for name in node.input}) > 1 or None in map(case.get, node.input)
            for case in self._cases
        ):
            return False
        if node.op_type == "Add":
            return True
        if len({self._places[name].origin for name in node.input}) == 1:
            return full
        first, second = (self._shapes.get(name, (None,)) for name in node.input)
        return first == second and None not in first

    def _is_normalization(self, node: onnx.NodeProto) -> bool:
        """Whether a BatchNormalization becomes a convolution, or a part of the one before it."""
        if not is_onnx(node, "BatchNormalization") or attributes_of(node).get("spatial", 1) != 1:
            return False
        constants = [self._constant(node, index) for index in range(1, 5)]
        if any(each is None or each.ndim != 1 or each.dtype != np.float32 for each in constants):
            return False
        fused = self._wiring.only_reader(node.input[0]) and any(each.output == node.input[0] for each in self._found)
        return self._is(node, "BatchNormalization") or (fused and self._version(node) == FUSED_NORMALIZATION)

    def _is_merged(self, node: onnx.NodeProto) -> bool:
        """Whether upstream gives the zeros of a Pad to the one convolution behind it, as causal ones have it."""
        if not self._is(node, "Pad") or not self._wiring.only_reader(node.output[0]):
            return False
        readers = [each for each in self._graph.node if node.output[0] in each.input]
        pads, filling = self._constant(node, 1), self._constant(node, 2)
        if (
            pads is None
            or pads.shape != (2 * FLAT_RANK,)
            or pads.min() < 0
            or any(pads[[0, 1, FLAT_RANK, FLAT_RANK + 1]])
            or attributes_of(node).get("mode", "constant") != "constant"
            or (len(node.input) > 2 and (filling is None or np.any(filling)))
            or not all(self._is(each, "Conv") and not _automatic(attributes_of(each)) for each in readers)
        ):
            return False
        self._pads[node.output[0]] = int(pads.sum())
        return bool(readers)

    def _convolution(self, node: onnx.NodeProto) -> _Convolution | None:
        """Return what is to know of a convolution that is to be looked at: constant, many positions, not in place."""
        if not self._is(node, "Conv") or not along_one_axis(node) or not self._has_many_positions(node.output[0]):
            return None
        weights, *bias = (self._wiring.constant(name) for name in [*node.input[1:2], *filter(None, node.input[2:])])
        if weights is None or weights.dtype != np.float32 or weights.ndim != FLAT_RANK or any(b is None for b in bias):
            return None
        filters, channels, kernel_size = weights.shape
        attributes = attributes_of(node)
        groups = attributes.get("group", 1)
        stride, dilation = (attributes.get(name, [1])[0] for name in ("strides", "dilations"))
        if min(filters, channels, kernel_size, groups, stride, dilation) < 1 or not _is_taken(
            filters, channels, groups
        ):
            return None  # damaged, or not for blocks
        if channels == groups == 1 and _lies_in_place(attributes):
            return None
        span = (kernel_size - 1) * dilation
        zeros = 1 if channels < BLOCK else _aligned(channels) / channels
        return _Convolution(
            output=node.output[0],
            channels=channels,
            kernel_size=kernel_size,
            filters_per_group=filters // groups,
            depthwise=channels == 1 < groups,
            reordered=groups > 1 or channels >= BLOCK,
            tiled=kernel_size in TILED
            and stride == dilation == groups == 1
            and min(channels, filters) >= WINOGRAD_CHANNELS,
            windows=kernel_size * stride > 1,
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
    return filters % ALIGNED == filters % groups == 0 and (whole or (channels == 1 and filters == groups))


def _lies_in_place(attributes: Mapping[str, Any]) -> bool:
    """Whether windows of one channel are read where they lie, as frames of sound."""
    padded = any(attributes.get("pads", ())) or _is_fitted(attributes)
    return not padded and attributes.get("dilations", [1]) == [1]


def _automatic(attributes: Mapping[str, Any]) -> str:
    """Return how padding follows from sizes; an empty text where it is given."""
    given = str(attributes.get("auto_pad", ""))
    return "" if given == "NOTSET" else given


def _is_fitted(attributes: Mapping[str, Any]) -> bool:
    return _automatic(attributes).startswith("SAME")


def _is_number(constant: Array | None) -> bool:
    """Whether a constant is one that `keep_blocks` takes."""
    return constant is not None and constant.size == 1 and constant.dtype == np.float32


def _aligned(channels: int) -> int:
    return -(-channels // BLOCK) * BLOCK
