"""`bench` and its line in `history` as a shell runs them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench_samples import sample_report
from ortrim.bench.points import BenchReport, entries_of
from ortrim.bench.run import SECONDS, BenchRequest
from ortrim.cli.tasks import bench as bench_task
from ortrim.errors import StorageError
from ortrim.report.history import NAME, Record, append
from program_runs import Run


class Asked:
    """Takes the place of measuring: what was asked for, and what is answered."""

    def __init__(self) -> None:
        self.wanted: list[BenchRequest] = []
        self.report = sample_report(threads_is_2=0.5)

    def __call__(self, wanted: BenchRequest, _: object) -> BenchReport:
        self.wanted.append(wanted)
        return self.report


@pytest.fixture(name="asked")
def fixture_asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(bench_task, "measure", asked)
    return asked


def test_a_bench_is_a_table_and_names_its_journal(ortrim: Run, asked: Asked) -> None:
    Path("net.toml").touch()
    words = ("--sweep", "each", "--sweep", "threads=1,2", "--goal", "cpu", "--period", "10", "--rounds", "3")
    more = ("--training-run", "run-7", "--resume", "--library", "wheel", "--cores", "0")
    ended = ortrim("bench", "net.toml", *words, *more)
    assert (ended.code, ended.err) == (0, "")
    assert "★  threads=2" in ended.out
    assert "every run is in artifacts/bench/demo.jsonl" in ended.out
    (wanted,) = asked.wanted
    assert (wanted.request.spec, wanted.library) == (Path("net.toml"), "wheel")
    assert wanted.request.cores == (0,)
    assert (wanted.sweep, wanted.goal, wanted.deadline_ms, wanted.rounds) == (("each", "threads=1,2"), "cpu", 10.0, 3)
    assert (wanted.training_run, wanted.resume, wanted.seconds) == ("run-7", True, SECONDS)


@pytest.mark.usefixtures("asked")
def test_a_bench_as_json_is_one_document(ortrim: Run) -> None:
    document = ortrim("bench", "--spec", "vad.toml", "--json").document()
    assert document["schema"] == "ortrim-bench-report/1"
    assert document["models"][0]["recommended"] == "threads=2"
    assert len(document["models"][0]["rows"]) == 8


@pytest.mark.usefixtures("asked")
def test_the_recommended_session_and_markdown_are_written(ortrim: Run) -> None:
    ended = ortrim("bench", "--session", "session.json", "--markdown", "out/bench.md")
    assert ended.code == 0
    session = json.loads(Path("session.json").read_text())
    assert session["models"]["net"]["intra_op_num_threads"] == 2
    assert session["onnxruntime"] == "1.21.0"
    assert Path("out/bench.md").read_text().startswith("# Bench\n")


def test_a_bench_that_was_stopped_shows_what_it_has(ortrim: Run, asked: Asked) -> None:
    asked.report = replace(asked.report, done=7)
    ended = ortrim("bench")
    assert ended.code == 130
    assert "threads=2" in ended.out
    assert ended.err.startswith("error: bench-stopped\n")
    assert "--resume" in ended.err
    ended = ortrim("bench", "--json")
    assert (ended.code, ended.document()["done"]) == (130, 7)


@pytest.mark.parametrize(
    "words",
    [
        ("--goal", "speed"), ("--period", "0"), ("--period", "nan"), ("--period", "-1"), ("--period", "1e9"),
        ("--seconds", "soon"), ("--rounds", "0"), ("--rounds", "1.5"), ("--case", "x=1"), ("--cores", "x"),
        ("--training-run", "a\nb"), ("--training-run", "r" * 201), ("--model", "m.onnx", "--spec", "s.toml"),
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_refused(ortrim: Run, asked: Asked, words: tuple[str, ...]) -> None:
    """Before anything is measured, with the code of a wrong command line."""
    ended = ortrim("bench", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: bad-option\n")
    assert asked.wanted == []


@pytest.mark.usefixtures("asked")
def test_a_full_disk_is_a_diagnostic(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageError("disk-full", "there is no space left")

    monkeypatch.setattr("ortrim.cli.tasks.bench.write_atomically", full)
    assert ortrim("bench", "--markdown", "bench.md").code == 22


@pytest.mark.parametrize(
    ("words", "reference", "code"),
    [
        (("bench", "--model", "none.onnx"), "unknown-word", 2),
        (("bench", "--spec", "none.toml"), "spec-missing", 10),
        (("profile", "--model", "none.onnx"), "unknown-word", 2),
        (("profile", "--trace", "none.json"), "trace-missing", 19),
        (("profile", "--runs", "0"), "bad-option", 2),
        (("profile", "--model", "a", "--spec", "b"), "bad-option", 2),
        (("profile", "--trace", "none.json", "--case", "one"), "bad-option", 2),
    ],
)
def test_what_is_not_there_is_a_diagnostic(ortrim: Run, words: tuple[str, ...], reference: str, code: int) -> None:
    ended = ortrim(*words)
    assert (ended.code, f"error: {reference}" in ended.err) == (code, True)
    assert list(Path.cwd().iterdir()) == []


def test_history_shows_benches_of_what_was_never_built(ortrim: Run) -> None:
    append(Path("artifacts") / NAME, Record(benches=entries_of(sample_report(threads_is_2=0.5))))
    ended = ortrim("history")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("bench of demo · net · built\n")
    document = ortrim("history", "--spec", "demo", "--last", "2", "--json").document()
    assert document["builds"] == []
    assert [each["point"] for each in document["benches"]] == ["threads=2", "threads=2 arena=false"]
    assert ortrim("history", "--spec", "other").code == 2


def test_a_trace_of_a_device_is_read(ortrim: Run) -> None:
    """As `verify --trace` leaves it: a table, a document, and a file with one inference."""
    kernel = {"cat": "Node", "pid": 1, "tid": 1, "ph": "X", "ts": 5, "dur": 3, "name": "relu_kernel_time"}
    whole = {"cat": "Session", "pid": 1, "tid": 1, "ph": "X", "ts": 4, "dur": 9, "name": "model_run", "args": {}}
    Path("phone.json").write_text(json.dumps([{**kernel, "args": {"op_name": "Relu"}}, whole]))
    ended = ortrim("profile", "--trace", "phone.json", "--output", "out")
    assert (ended.code, ended.err) == (0, "")
    assert "Relu" in ended.out
    (found,) = ortrim("profile", "--trace", "phone.json", "--output", "out", "--json").document()["profiles"]
    assert found["profile"]["nodes"][0]["name"] == "relu"
    assert found["trace"] == "out/profile/phone.trace.json"
    assert [each["name"] for each in json.loads(Path(found["trace"]).read_text())["traceEvents"]] == [
        "process_name", "model_run", "relu_kernel_time",
    ]  # fmt: skip
