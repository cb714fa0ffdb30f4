"""A trace as the time of each node, and as one inference that viewers open."""

import json
from pathlib import Path
from typing import Any

import pytest

from ortrim.errors import ExitCode, VerifyError
from ortrim.verify.operator_times import one_inference, profiled, read_trace
from refusing import refused

CUT = 0.5
LENGTHS = (50, 30, 40)


def event(name: str, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    return {"cat": "Session", "pid": 7, "tid": 7, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": {}} | more


def kernel(node: str, operator: str, ts: int, dur: int) -> dict[str, Any]:
    return event(f"{node}_kernel_time", ts, dur, cat="Node", args={"op_name": operator})


def trace() -> list[dict[str, Any]]:
    """Return a trace of three inferences of two nodes, one of which is called twice, after a session was made."""
    events = [event("session_initialization", 0, 900)]
    for number, length in enumerate(LENGTHS):
        start = 1000 * (number + 1)
        events += [
            kernel("a", "Conv", start + 1, 10),
            kernel("b", "Relu", start + 12, 2),
            kernel("b", "Relu", start + 15, 2),
        ]
        events.append(event("model_run", start, length))
    return events


def test_nodes_and_operators_of_one_inference() -> None:
    """Calls and times are of one, shares of all nodes; the longest comes first."""
    found = profiled(trace(), model="net", case="one", measured_with="a wheel")
    assert [(each.name, each.operator, each.calls) for each in found.nodes] == [("a", "Conv", 1.0), ("b", "Relu", 2.0)]
    assert [each.microseconds for each in found.nodes] == [10 + CUT, 2 * (2 + CUT)]
    assert sum(each.share for each in found.nodes) == pytest.approx(1)
    assert [(each.operator, each.nodes, each.calls) for each in found.operators] == [("Conv", 1, 1.0), ("Relu", 1, 2.0)]
    assert (found.inferences, found.run_microseconds) == (3, 40)


def test_one_inference_is_a_document_that_viewers_open() -> None:
    """That of median length, from 0 on, with nothing of the others, outer events before inner ones."""
    document = json.loads(json.dumps(one_inference(trace(), "net one")))
    named, *events = document["traceEvents"]
    assert (named["ph"], named["args"], named["pid"]) == ("M", {"name": "net one"}, 7)
    assert [each["name"] for each in events] == ["model_run", "a_kernel_time", "b_kernel_time", "b_kernel_time"]
    assert [each["ts"] for each in events] == [0, 1, 12, 15]
    assert events[0]["dur"] == 40
    assert all(each["ph"] == "X" and {"pid", "tid", "dur", "cat"} <= each.keys() for each in events)


def test_a_trace_without_inferences_is_a_diagnostic() -> None:
    """As of a model that was only loaded."""
    error = refused(VerifyError, profiled, [kernel("a", "Conv", 0, 5)], model="net", case="", measured_with="w")
    assert (error.code, error.exit_code) == ("trace-without-runs", ExitCode.VERIFY)
    error = refused(VerifyError, profiled, [event("model_run", 0, 5)], model="net", case="", measured_with="w")
    assert error.code == "trace-without-operators"


@pytest.mark.parametrize(
    ("content", "reference"),
    [(None, "trace-missing"), ("", "trace-unreadable"), ("{}", "trace-unreadable"), ("[]", "trace-unreadable"),
     ("[" * 100_000, "trace-unreadable"), ('[{"ph": "X", "name": "a', "trace-unreadable")],
)  # fmt: skip
def test_what_is_no_trace_is_a_diagnostic(tmp_path: Path, content: str | None, reference: str) -> None:
    """Missing, empty, cut short, or something else."""
    if content is not None:
        (tmp_path / "trace.json").write_text(content)
    assert refused(VerifyError, read_trace, tmp_path / "trace.json", "net").code == reference


def test_a_trace_is_read(tmp_path: Path) -> None:
    """As ONNX Runtime wrote it."""
    (tmp_path / "trace.json").write_text(json.dumps(trace()))
    assert read_trace(tmp_path / "trace.json", "net") == trace()
