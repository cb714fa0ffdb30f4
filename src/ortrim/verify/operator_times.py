"""How long each operator and node takes, as ONNX Runtime's own profile tells it, and a trace of one inference alone."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from ortrim.base.files import storage_errors
from ortrim.devices.device import ProgramDevice
from ortrim.errors import VerifyError
from ortrim.parity.measurements import median
from ortrim.parity.runner import TRACE, RunRequest, check_trace

KERNEL: Final = "_kernel_time"
"""How the events end that last as long as a node's kernel (`core/framework/sequential_executor.cc`)."""
EXECUTOR: Final = "SequentialExecutor::Execute"
"""The event that lasts as long as all nodes of a graph, or of a body, with what the profile costs between them."""
CUT_MICROSECONDS: Final = 0.5
"""What the runtime cuts off on average when it reports whole microseconds."""
CPU: Final = "CPUExecutionProvider"
Event = Mapping[str, Any]


def time_operators(device: ProgramDevice, request: RunRequest, folder: Path) -> dict[str, float]:
    """Run a model once more with a profile, which lies in `folder` meanwhile; return the times of `operator_times`."""
    device.run(replace(request, outputs=folder, trace=True))
    return operator_times(folder / TRACE, request.model.name)


def operator_times(path: Path, where: str) -> dict[str, float]:
    """Return the microseconds that a trace's kernels took, by name of operator.

    Every run of a node counts as the node's median, which the machine's other work does not reach. A control-flow
    operator has its own time without that of its body. The file is one that `check_trace` has passed.
    """
    times: dict[str, float] = defaultdict(float)
    for (operator, _), samples in kernel_times(_events(path), where).items():
        times[operator] += median(samples) * len(samples)
    return dict(times)


def kernel_times(events: Sequence[Event], where: str) -> dict[tuple[str, str], list[float]]:
    """Return the microseconds of each run of each node, by its operator and the name of its event."""
    timed = [event for event in events if event["name"] == EXECUTOR or _operator(event)]
    nodes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for thread in {event["tid"] for event in timed}:
        for event, time in _own_times([event for event in timed if event["tid"] == thread]):
            if operator := _operator(event):
                nodes[operator, event["name"]].append(time)
    if not nodes:
        raise VerifyError("trace-without-operators", "the profile has no operator", where=where)
    return dict(nodes)


def nodes_by_provider(path: Path, where: str) -> dict[str, int]:
    """Return how many nodes of the main graph and of bodies each execution provider ran, by its name in the runtime.

    The CPU's comes last. The file is one that `check_trace` has passed.
    """
    found = {(event["args"].get("provider", ""), event["name"]) for event in _events(path) if _operator(event)}
    if not found:
        raise VerifyError("trace-without-operators", "the profile has no operator", where=where)
    counted = Counter(provider for provider, _ in found)
    return dict(sorted(counted.items(), key=lambda each: (each[0] == CPU, each[0])))


def _operator(event: Event) -> str:
    """Return the operator whose kernel an event is about; empty for any other."""
    arguments = event.get("args")
    name = arguments.get("op_name") if isinstance(arguments, dict) else None
    is_kernel = event.get("cat") == "Node" and event["name"].endswith(KERNEL)
    return name if is_kernel and isinstance(name, str) else ""


def _own_times(events: Sequence[Event]) -> list[tuple[Event, float]]:
    """Return each event with its time, without that of the events within it; all are of one thread.

    An event is written when it ends: of two that begin together and last as long, the later one is around the other.
    """
    times: list[tuple[Event, float]] = []
    around: list[tuple[int, int]] = []
    for _, event in sorted(enumerate(events), key=lambda each: (each[1]["ts"], -each[1]["dur"], -each[0])):
        while around and event["ts"] >= around[-1][1]:
            around.pop()
        time = event["dur"] + CUT_MICROSECONDS
        if around:
            place = around[-1][0]
            times[place] = (times[place][0], max(0.0, times[place][1] - time))
        around.append((len(times), event["ts"] + event["dur"]))
        times.append((event, time))
    return times


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
    operators = [
        OperatorTime(
            operator=operator,
            nodes=len(own),
            calls=sum(node.calls for node in own),
            microseconds=sum(node.microseconds for node in own),
            share=sum(node.share for node in own),
        )
        for operator, own in by_operator.items()
    ]
    return tuple(sorted(operators, key=lambda each: (-each.microseconds, each.operator)))


RUN: Final = "model_run"
"""The event that lasts as long as one inference."""


def read_trace(path: Path, where: str) -> list[Event]:
    """Return the events of a trace."""
    check_trace(path, where)
    return _events(path)


def _events(path: Path) -> list[Event]:
    with storage_errors(path):
        events: list[Event] = json.loads(path.read_bytes())
    return events


def profiled(events: Sequence[Event], *, model: str, case: str, measured_with: str) -> OperatorProfile:
    """Return what each node takes of one inference, as the median of all that are in the trace."""
    times = kernel_times(events, model)
    runs = _runs(events, model)
    nodes = {key: (len(samples) / len(runs), median(samples)) for key, samples in times.items()}
    whole = sum(calls * time for calls, time in nodes.values())
    found = [
        NodeTime(
            name=name.removesuffix(KERNEL),
            operator=operator,
            calls=calls,
            microseconds=calls * time,
            share=calls * time / whole if whole else 0.0,
        )
        for (operator, name), (calls, time) in nodes.items()
    ]
    return OperatorProfile(
        model=model,
        case=case,
        measured_with=measured_with,
        inferences=len(runs),
        run_microseconds=median(run["dur"] for run in runs),
        operators=operators_of(found),
        nodes=tuple(sorted(found, key=lambda each: (-each.microseconds, each.name))),
    )


def one_inference(events: Sequence[Event], title: str) -> dict[str, Any]:
    """Return the inference of median length as a document in Chrome's trace event format, which begins at 0.

    The object form of https://perfetto.dev/docs/getting-started/other-formats.
    """
    runs = sorted(_runs(events, title), key=lambda run: run["dur"])
    run = runs[(len(runs) - 1) // 2]
    start, end = run["ts"], run["ts"] + run["dur"]
    inside = [event for event in events if start <= event["ts"] and event["ts"] + event["dur"] <= end]
    named = {"ph": "M", "name": "process_name", "pid": run["pid"], "tid": run["tid"], "args": {"name": title}}
    inside.sort(key=lambda event: (event["ts"], -event["dur"]))
    return {
        "displayTimeUnit": "ms",
        "traceEvents": [named, *({**event, "ts": event["ts"] - start} for event in inside)],
    }


def _runs(events: Sequence[Event], where: str) -> list[Event]:
    found = [event for event in events if event["name"] == RUN]
    if not found:
        raise VerifyError("trace-without-runs", "the profile has no inference", where=where)
    return found
