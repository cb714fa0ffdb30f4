"""What ONNX Runtime's profile of one model comes to: the time of its operators and of its nodes. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class NodeTime:
    """One node, as the runtime runs it after its own optimizations: microseconds and calls of one inference.

    A node in a loop's body is called several times. `share` is its part of the time of all nodes.
    """

    name: str
    operator: str
    calls: float
    microseconds: float
    share: float


@dataclass(frozen=True, kw_only=True)
class OperatorTime:
    """All nodes of one operator."""

    operator: str
    nodes: int
    calls: float
    microseconds: float
    share: float


@dataclass(frozen=True, kw_only=True)
class OperatorProfile:
    """One model with one case, or one trace: its operators and its nodes, those that take longest first.

    `measured_with` names the library, or the file that was read. `inferences` are those in the trace, the first among
    them; `run_microseconds` is the median of one, profile and all.
    """

    schema: Literal["ortrim-profile/1"] = "ortrim-profile/1"
    model: str
    case: str
    measured_with: str
    inferences: int
    run_microseconds: float
    operators: tuple[OperatorTime, ...]
    nodes: tuple[NodeTime, ...]


def operators_of(nodes: Iterable[NodeTime]) -> tuple[OperatorTime, ...]:
    """Sum up nodes by operator, the one that takes longest first."""
    by_operator: dict[str, list[NodeTime]] = {}
    for node in nodes:
        by_operator.setdefault(node.operator, []).append(node)
    operators = [_summed(operator, own) for operator, own in by_operator.items()]
    return tuple(sorted(operators, key=lambda each: (-each.microseconds, each.operator)))


def _summed(operator: str, nodes: list[NodeTime]) -> OperatorTime:
    return OperatorTime(
        operator=operator,
        nodes=len(nodes),
        calls=sum(node.calls for node in nodes),
        microseconds=sum(node.microseconds for node in nodes),
        share=sum(node.share for node in nodes),
    )
