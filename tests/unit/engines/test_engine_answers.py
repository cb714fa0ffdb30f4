"""What the engines' script answers, from recorded answers and damaged ones."""

import json
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_samples import RECORDED
from ortrim.base.command import Completed
from ortrim.bench import engine_processes as processes


def done(returncode: int = 0, stderr: str = "") -> Completed:
    return Completed(argv=("python", "drive.py"), returncode=returncode, stdout="", stderr=stderr)


def given_answer(folder: Path, name: str, stage: str = "run") -> Path:
    (folder / "answer.json").write_bytes((RECORDED / name).read_bytes())
    (folder / "stage").write_text(stage)
    return folder


@pytest.mark.parametrize(
    ("name", "version", "libraries"), [("openvino-run.json", "2026.4.1", 8), ("onnxruntime-run.json", "1.21.0", 1)]
)
def test_a_recorded_run_is_read(tmp_path: Path, name: str, version: str, libraries: int) -> None:
    """With each time, the outputs, and the native libraries that the engine opened, NumPy's not among them."""
    run = processes.run_answer(given_answer(tmp_path, name), done())
    assert isinstance(run, processes.EngineRun)
    assert (run.version, len(run.samples_ms), len(run.outputs)) == (version, 12, 2)
    assert len(run.libraries) >= libraries
    assert not [each.name for each in run.libraries if "numpy" in each.name or each.name == "python"]
    assert sum(each.bytes for each in run.libraries) > 20_000_000
    assert 0 < run.loaded_bytes <= run.peak_bytes


def test_a_recorded_conversion_is_read(tmp_path: Path) -> None:
    found = processes.conversion_answer(given_answer(tmp_path, "mnn-converted.json"), done())
    assert isinstance(found, processes.EngineConversion)
    assert found.convert_ms > 0


@pytest.mark.parametrize(
    ("name", "stage", "words"),
    [
        ("tract-refused.json", "load", "Attempt to squeeze an axis which dimension is not one"),
        ("ncnn-refused.json", "convert", "pnnx ended with 255: inputshape2 = [1,512]f32,[]i64,[2,512,128]f32"),
    ],
)
def test_a_recorded_refusal_is_a_reason(tmp_path: Path, name: str, stage: str, words: str) -> None:
    found = processes.run_answer(given_answer(tmp_path, name), done())
    assert isinstance(found, processes.CannotRun)
    assert found.stage == stage
    assert words in found.reason
    assert "\n" not in found.reason
    assert len(found.reason) <= processes.LONGEST_REASON


def test_what_native_code_said_is_added_to_a_short_refusal(tmp_path: Path) -> None:
    """On standard error ncnn says which layer it does not know; paths of the run's own folder are left out."""
    message = f"RuntimeError: cannot load {tmp_path}/converted/model.param"
    answer = {"status": "error", "stage": "load", "message": message}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    found = processes.run_answer(tmp_path, done(stderr="noise\nlayer Foo not exists\nfailed\n"))
    words = "RuntimeError: cannot load converted/model.param (layer Foo not exists / failed)"
    assert found == processes.CannotRun(stage="load", reason=words)


@pytest.mark.parametrize(
    ("returncode", "stderr", "words"),
    [
        (-signal.SIGSEGV, "", "it crashed (SIGSEGV)"),
        (-signal.SIGABRT, "a\nstd::bad_alloc\n", "it crashed (SIGABRT): a / std::bad_alloc"),
        (-signal.SIGKILL, "", "killed by the system, usually because memory ran out"),
        (-200, "", "it crashed (signal 200)"),
        (3, "no module\n", "it ended with exit code 3 and no answer: no module"),
        (0, "", "it ended with exit code 0 and no answer"),
    ],
)
def test_a_crash_is_a_reason(tmp_path: Path, returncode: int, stderr: str, words: str) -> None:
    """Told by its signal and the last words, at the stage that the script wrote down before."""
    (tmp_path / "stage").write_text("load")
    assert processes.run_answer(tmp_path, done(returncode, stderr)) == processes.CannotRun(stage="load", reason=words)


@pytest.mark.parametrize("stage", [None, "", "elsewhere", b"\xff"])
def test_a_crash_before_any_stage_is_at_the_start(tmp_path: Path, stage: str | bytes | None) -> None:
    if stage is not None:
        (tmp_path / "stage").write_bytes(stage if isinstance(stage, bytes) else stage.encode())
    found = processes.run_answer(tmp_path, done(1))
    assert isinstance(found, processes.CannotRun)
    assert found.stage == "start"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "12",
        '{"status": "ok"}',
        '{"status": "error", "stage": "nowhere", "message": ""}',
        "[" * 9999,
    ],
)
def test_a_damaged_answer_is_a_reason(tmp_path: Path, text: str) -> None:
    (tmp_path / "answer.json").write_text(text)
    found = processes.run_answer(tmp_path, done())
    assert isinstance(found, processes.CannotRun)
    assert "cannot be read" in found.reason


def test_a_run_without_a_single_time_is_a_reason(tmp_path: Path) -> None:
    answer = json.loads((RECORDED / "onnxruntime-run.json").read_text())
    (tmp_path / "answer.json").write_text(json.dumps({**answer, "samples_ms": []}))
    found = processes.run_answer(tmp_path, done())
    assert isinstance(found, processes.CannotRun)
    assert found.stage == "run"


@given(data=st.binary(max_size=200))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_are_too_odd(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "answer.json").write_bytes(data)
    assert isinstance(processes.run_answer(tmp_path, done()), processes.CannotRun)
