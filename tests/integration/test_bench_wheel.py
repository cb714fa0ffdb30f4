"""`bench` and `profile` with the official wheel and the real runner, as a shell runs them."""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from onnx import helper

from onnx_samples import model_of, value, write
from ortrim.base.command import Completed, run, started
from ortrim.bench.scores import read_journal

pytestmark = pytest.mark.network

PROGRAM: Final = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ortrim.cli.program import program
program.run(["ortrim", *sys.argv[1:]])
"""
SWEEP: Final = (
    *("--sweep", "threads=1,2", "--sweep", "level=none,all", "--rounds", "3", "--seconds", "0.1"),
    *("--period", "10", "--training-run", "run-7"),
)
NAMES: Final = {"default", "threads=2", "level=none", "threads=2 level=none"}
PATIENCE: Final = 240.0


@pytest.fixture(name="model")
def fixture_model(tmp_path: Path) -> Path:
    """Return a model of two nodes, whose length is open."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["s"], name="twice"),
        helper.make_node("Tanh", ["s"], ["y"], name="bent"),
    ]
    ends = [value("x", shape=("n", 64))], [value("y", shape=("n", 64))]
    return write(tmp_path / "net.onnx", model_of(nodes, *ends))


def words_for(task: str, model: Path, *words: str) -> tuple[str, ...]:
    """Return the command line of a task for the model, with one of its cases: the first found, or one of 100 rows."""
    case = "small" if task == "profile" else "rows:x=100x64"
    common = (str(model), "--case", case, "--output", str(model.parent / "out"))
    return (sys.executable, "-c", PROGRAM, task, *common, *words)


def journals(model: Path) -> list[Path]:
    return sorted((model.parent / "out" / "bench").glob("*.jsonl"))


def samples_in(model: Path) -> int:
    """Return how many samples the bench that is under way has written, which may write another right now."""
    return sum(path.read_bytes().count(b"\n") - 1 for path in journals(model))


def run_task(task: str, model: Path, *words: str) -> Completed:
    return run(words_for(task, model, *words), cwd=model.parent, timeout_seconds=PATIENCE)


def test_a_sweep_that_is_stopped_goes_on_where_it_was(model: Path) -> None:
    """Ctrl-C shows what there is and ends with its code; the run that goes on measures the rest alone."""
    with started(words_for("bench", model, *SWEEP), model.parent, None) as process:
        ends = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < ends and samples_in(model) < 2:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "error: bench-stopped" in errors
    assert "official wheel" in printed
    (journal,) = journals(model)
    before = read_journal(journal).samples
    assert 1 < len(before) < 24
    done = run_task("bench", model, *SWEEP, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    after = read_journal(journal).samples
    assert (len(after), after[: len(before)]) == (24, before)
    assert journals(model) == [journal]
    check_report(json.loads(done.stdout)["models"][0])
    history = run((sys.executable, "-c", PROGRAM, "history", "--output", "out", "--json"), cwd=model.parent)
    benches = json.loads(history.stdout)["benches"]
    assert {each["point"] for each in benches} == NAMES
    assert {each["training_run"] for each in benches} == {"run-7"}


def check_report(found: dict[str, Any]) -> None:
    """See that every point has figures that make sense."""
    assert {point["name"] for point in found["model"]["points"]} == NAMES
    assert found["recommended"] in NAMES
    assert found["failures"] == []
    assert len(found["rows"]) == 4
    for row in found["rows"]:
        assert 0 < row["inference_ms"]["p50"] <= row["total_ms"]["p50"] <= row["total_ms"]["maximum"]
        assert row["cpu_ms"] >= 0
        assert row["peak_rss_bytes"] > 1_000_000


def test_a_profile_with_the_official_wheel(model: Path) -> None:
    """Both nodes with their operators, and a trace of one inference."""
    done = run_task("profile", model, "--runs", "5", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["profiles"]
    assert {(node["name"], node["operator"], node["calls"]) for node in found["profile"]["nodes"]} == {
        ("twice", "Add", 1.0), ("bent", "Tanh", 1.0),
    }  # fmt: skip
    assert found["profile"]["inferences"] == 7
    events = json.loads((model.parent / found["trace"]).read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "Node"] == [
        "twice_kernel_time",
        "bent_kernel_time",
    ]
