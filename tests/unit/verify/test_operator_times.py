"""How long operators took, from a trace as ONNX Runtime 1.21.0 writes it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ortrim.errors import ExitCode, VerifyError
from ortrim.verify.operator_times import CUT_MICROSECONDS as CUT
from ortrim.verify.operator_times import nodes_by_provider, operator_times
from refusing import refused


def event(name: str, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    return {"cat": "Session", "pid": 7, "tid": 7, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": {}} | more


def kernel(node: str, operator: str, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    arguments = {"op_name": operator, "provider": "CPUExecutionProvider", "node_index": "3"}
    return event(f"{node}_kernel_time", ts, dur, cat="Node", args=arguments, **more)


def times(folder: Path, *events: dict[str, Any]) -> dict[str, float]:
    (folder / "trace.json").write_text(json.dumps(events))
    return operator_times(folder / "trace.json", "m.ort")


def test_the_kernels_of_an_operator_are_summed_up(tmp_path: Path) -> None:
    """Each with the half microsecond that is cut off on average; loading and the run as a whole are left out."""
    found = times(
        tmp_path,
        event("session_initialization", 0, 900),
        kernel("a", "Conv", 1000, 20),
        kernel("b", "Conv", 1020, 10),
        kernel("c", "Relu", 1030, 0),
        event("SequentialExecutor::Execute", 999, 40),
        event("model_run", 998, 50),
    )
    assert found == {"Conv": 30 + 2 * CUT, "Relu": CUT}


def test_nodes_are_counted_by_who_ran_them(tmp_path: Path) -> None:
    """Once each, whatever the inferences; the processor's own come last."""
    arguments = {"op_name": "Conv", "provider": "XnnpackExecutionProvider"}
    ours = [event("a_kernel_time", ts, 20, cat="Node", args=arguments) for ts in (0, 100)]
    rest = (kernel("b", "Relu", 20, 5), kernel("c", "Relu", 30, 5), event("model_run", 0, 50))
    (tmp_path / "trace.json").write_text(json.dumps([*rest, *ours]))
    found = nodes_by_provider(tmp_path / "trace.json", "m")
    assert list(found.items()) == [("XnnpackExecutionProvider", 1), ("CPUExecutionProvider", 2)]


def test_a_body_counts_for_its_own_operators(tmp_path: Path) -> None:
    """What the profile costs between two nodes of it counts for none."""
    found = times(
        tmp_path,
        kernel("body_conv", "Conv", 20, 50),
        kernel("body_pad", "Pad", 100, 6),
        event("SequentialExecutor::Execute", 12, 130),
        kernel("cond", "If", 10, 140),
        event("SequentialExecutor::Execute", 5, 150),
    )
    assert found == {"If": 140 - 130, "Conv": 50 + CUT, "Pad": 6 + CUT}


def test_of_two_of_one_length_the_later_one_is_around(tmp_path: Path) -> None:
    """An event is written when it ends."""
    found = times(
        tmp_path, kernel("a", "Relu", 10, 3), event("SequentialExecutor::Execute", 10, 3), kernel("b", "If", 10, 3)
    )
    assert found == {"If": 0, "Relu": 3 + CUT}


def test_a_kernel_that_begins_when_another_ends_is_not_within_it(tmp_path: Path) -> None:
    """Whole microseconds make many such."""
    assert times(tmp_path, kernel("a", "Conv", 0, 5), kernel("b", "Relu", 5, 1)) == {"Conv": 5 + CUT, "Relu": 1 + CUT}


def test_a_run_that_was_held_up_counts_as_the_median(tmp_path: Path) -> None:
    """The machine gave its processor to somebody else for four milliseconds."""
    runs = [kernel("a", "Relu", 10_000 * number, time) for number, time in enumerate((2, 4000, 2, 3, 2))]
    assert times(tmp_path, *runs) == {"Relu": 5 * (2 + CUT)}


def test_threads_are_told_apart(tmp_path: Path) -> None:
    """What another thread did meanwhile is within nothing."""
    found = times(tmp_path, kernel("a", "Conv", 0, 100), kernel("b", "Relu", 10, 5, tid=8))
    assert found == {"Conv": 100 + CUT, "Relu": 5 + CUT}


@pytest.mark.parametrize(
    "events",
    [
        [event("model_run", 0, 5)],
        [event("SequentialExecutor::Execute", 0, 5)],
        [event("a_kernel_time", 0, 5, cat="Node")],
        [event("a_kernel_time", 0, 5, cat="Node", args={"op_name": 3})],
        [event("a_kernel_time", 0, 5, cat="Node", args=None)],
    ],
)
def test_a_trace_without_operators_is_a_diagnostic(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    """As of a runtime that writes another profile; nothing is hot by guess."""
    error = refused(VerifyError, times, tmp_path, *events)
    assert (error.code, error.exit_code) == ("trace-without-operators", ExitCode.VERIFY)
    assert error.where == "m.ort"
