"""Memory that runs out: said as such, wherever a limit is in force, and never of the model."""

import resource
import sys
from pathlib import Path

import pytest

from ortrim.analysis.inspect.run import inspect_onnx
from ortrim.base import command
from ortrim.base.command import is_shortage, memory_limit, out_of_memory, run
from ortrim.base.scripts import Python, ScriptCrash, run_script
from ortrim.errors import ExitCode, MemoryShortage

ANSWERS = """
import json, sys
from pathlib import Path
answer = {"failure": "conversion-failed", "words": "std::bad_alloc"}
Path(sys.argv[1]).with_name("answer.json").write_text(json.dumps(answer))
"""
PYTHON = Python(words=(sys.executable,), environment={})
LIMITED = """
import resource, sys
from pathlib import Path
import onnx
from ortrim.analysis.inspect.run import inspect_onnx
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20),) * 2)
try:
    inspect_onnx(Path(sys.argv[1]))
except Exception as error:
    print(error)
"""


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process take 2 GB."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_000_000_000, 2_000_000_000))


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    "said",
    [
        "RUNTIME_EXCEPTION : Exception during initialization: std::bad_alloc",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB",
        "ImportError: libx.so: failed to map segment from shared object",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_a_program_that_ran_into_the_limit_is_told_from_others(said: str) -> None:
    """Unless it had a lower limit of its own, which is the model's business."""
    assert is_shortage(said)
    assert is_shortage(said, own_limit=8_000_000_000)
    assert not is_shortage(said, own_limit=1_000_000_000)
    assert not is_shortage("Non-zero status code returned while running Add node")


def test_without_a_limit_the_model_asks_for_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is left to whoever knows the model."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory_limit() is None
    assert not is_shortage("std::bad_alloc")
    assert "ulimit" not in out_of_memory().hint


@pytest.mark.usefixtures("limited")
def test_the_limit_is_named() -> None:
    """With what raises it."""
    error = out_of_memory("m.onnx", "Arena alloc failed")
    assert (error.code, error.exit_code) == ("out-of-memory", ExitCode.MEMORY)
    assert error.what == "memory ran out: a process may use 2,000 MB here"
    assert error.hint == "raise the limit: ulimit -v unlimited"


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("code", ["raise MemoryError", ANSWERS])
def test_a_script_that_runs_out_is_no_crash(tmp_path: Path, code: str) -> None:
    """Whether it could still answer or not."""
    (tmp_path / "script.py").write_text(code)
    with pytest.raises(MemoryShortage) as caught:
        run_script(PYTHON, tmp_path / "script.py", {}, folder=tmp_path)
    assert "alloc" in caught.value.why or "MemoryError" in caught.value.why


def test_a_crash_without_a_limit_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the model that asks for too much."""
    monkeypatch.setattr(command, "memory_limit", lambda: None)
    (tmp_path / "script.py").write_text("raise MemoryError")
    with pytest.raises(ScriptCrash):
        run_script(PYTHON, tmp_path / "script.py", {}, folder=tmp_path)


def test_a_model_that_does_not_fit_is_not_damaged(tmp_path: Path) -> None:
    """For real: protobuf's own allocation fails."""
    import onnx  # noqa: PLC0415 - slow to import
    from onnx import helper  # noqa: PLC0415

    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, (16 << 20,), bytes(64 << 20), raw=True)
    graph = helper.make_graph([], "g", [], [], [weights])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert inspect_onnx(tmp_path / "m.onnx").facts.node_count == 0
    said = run([sys.executable, "-c", LIMITED, tmp_path / "m.onnx"]).stdout
    assert said.startswith("error: out-of-memory\n") or said == "\n"  # the latter is a MemoryError, worded by the tasks
    assert "not-onnx" not in said
