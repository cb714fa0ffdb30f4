"""How long each operator takes, as ONNX Runtime's own profile tells it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ortrim.core.statistics import median
from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors
from ortrim.verify.devices.base import Device, RunRequest
from ortrim.verify.traces import TRACE

KERNEL: Final = "_kernel_time"
"""How the events end that last as long as a node's kernel (`core/framework/sequential_executor.cc`)."""
EXECUTOR: Final = "SequentialExecutor::Execute"
"""The event that lasts as long as all nodes of a graph, or of a body, with what the profile costs between them."""
CUT_MICROSECONDS: Final = 0.5
"""What the runtime cuts off on average when it tells whole microseconds."""
Event = Mapping[str, Any]


def time_operators(device: Device, request: RunRequest, folder: Path) -> dict[str, float]:
    """Run a model once more with a profile, which lies in `folder` meanwhile; return the times of `operator_times`.

    Raises as `Device.run` and `operator_times` do.
    """
    device.run(replace(request, outputs=folder, trace=True))
    return operator_times(folder / TRACE, request.model.name)


def operator_times(path: Path, where: str) -> dict[str, float]:
    """Return the microseconds that a trace's kernels took, by name of operator.

    Every run of a node counts as the node's median, which the machine's other work does not reach. A control-flow
    operator has its own time without that of its body. Raises `VerifyError`
    (`trace-without-operators`) and `StorageError`; the file is one that `check_trace` has passed.
    """
    with storage_errors(path):
        events = json.loads(path.read_bytes())
    times: dict[str, float] = defaultdict(float)
    for (operator, _), samples in kernel_times(events, where).items():
        times[operator] += median(samples) * len(samples)
    return dict(times)


def kernel_times(events: Sequence[Event], where: str) -> dict[tuple[str, str], list[float]]:
    """Return the microseconds of each run of each node, by its operator and the name of its event.

    Raises `VerifyError` (`trace-without-operators`).
    """
    timed = [event for event in events if event["name"] == EXECUTOR or _operator(event)]
    nodes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for thread in {event["tid"] for event in timed}:
        for event, time in _own_times([event for event in timed if event["tid"] == thread]):
            if operator := _operator(event):
                nodes[operator, event["name"]].append(time)
    if not nodes:
        raise VerifyError("trace-without-operators", "the profile tells of no operator", where=where)
    return dict(nodes)


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
