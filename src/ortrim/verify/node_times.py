"""A trace as the time of each node in one inference, and as a trace of one inference alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ortrim.core.operator_profile import NodeTime, OperatorProfile, operators_of
from ortrim.core.statistics import median
from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors
from ortrim.verify.operator_times import KERNEL, Event, kernel_times
from ortrim.verify.traces import check_trace

RUN: Final = "model_run"
"""The event that lasts as long as one inference."""


def read_trace(path: Path, where: str) -> list[Event]:
    """Return the events of a trace. Raises as `check_trace` does, and `StorageError`."""
    check_trace(path, where)
    with storage_errors(path):
        events: list[Event] = json.loads(path.read_bytes())
    return events


def profiled(events: Sequence[Event], *, model: str, case: str, measured_with: str) -> OperatorProfile:
    """Return what each node takes of one inference, as the median of all that are in the trace.

    Raises `VerifyError` (`trace-without-operators`, `trace-without-runs`).
    """
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

    The object form of https://perfetto.dev/docs/getting-started/other-formats. Raises `VerifyError`
    (`trace-without-runs`).
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
        raise VerifyError("trace-without-runs", "the profile tells of no inference", where=where)
    return found
