"""What a model costs by its shapes alone: arithmetic, parameters and the memory of its activations.

The rules of counting are those of `docs/cost.md`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class NodeCost:
    """One node's cost.

    `name` is a path when the node lies in a graph inside another node. `operator` is `Conv`, or `com.microsoft:QGemm`
    outside ONNX's own domain. `macs` are multiply-accumulates, `operations` the elements that operators without any
    of these work on; both leave out what `unknown` says, in words. `parameters` are elements of constants, counted at
    their first reader. `output_bytes` is the memory of the outputs.
    """

    name: str
    operator: str
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    output_bytes: int
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LiveTensor:
    """A tensor that is in memory at the peak."""

    name: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The most memory that activations take at a time: while which node runs, and for which tensors, largest first.

    `timeline` has each node in the order of running, those of the graphs inside in place of the node around them, with
    the bytes of what is alive while it runs.
    """

    size_bytes: int
    node: str
    tensors: tuple[LiveTensor, ...]
    timeline: tuple[tuple[str, int], ...] = ()


NO_PEAK: Final = Peak(size_bytes=0, node="", tensors=())


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """The sum over the nodes of one operator."""

    operator: str
    nodes: int
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    output_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModelCost:
    """The cost of one inference of a model with inputs of the given shapes; None for a dimension that is not known.

    `nodes` are those that run, in the order of the file. `constant_nodes` is the number of those that depend on no
    input: they are worked out when the model is loaded. `memory` is what a run of ONNX Runtime takes for activations
    and its kernels, by its own plan of buffers and without an arena. With `at_least`, something could not be counted,
    and every sum is a lower bound; `unknown` says what, for the model as a whole.
    """

    model: str
    sha256: str
    case: str
    inputs: tuple[tuple[str, tuple[int | None, ...] | None], ...]
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    peak: Peak
    constant_nodes: int
    at_least: bool
    unknown: tuple[str, ...]
    operators: tuple[OperatorCost, ...]
    nodes: tuple[NodeCost, ...]
    memory: Peak = NO_PEAK


def by_operator(nodes: Iterable[NodeCost]) -> tuple[OperatorCost, ...]:
    """Sum nodes up by operator; the one with the most arithmetic comes first."""
    groups: dict[str, list[NodeCost]] = {}
    for node in nodes:
        groups.setdefault(node.operator, []).append(node)
    sums = (_sum(operator, group) for operator, group in groups.items())
    return tuple(sorted(sums, key=lambda each: (-each.macs, -each.operations, each.operator)))


def _sum(operator: str, group: list[NodeCost]) -> OperatorCost:
    return OperatorCost(
        operator=operator,
        nodes=len(group),
        macs=sum(node.macs for node in group),
        operations=sum(node.operations for node in group),
        parameters=sum(node.parameters for node in group),
        parameter_bytes=sum(node.parameter_bytes for node in group),
        output_bytes=sum(node.output_bytes for node in group),
    )
