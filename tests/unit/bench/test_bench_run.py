"""`bench` from what was asked for to its journal, its report and the history."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_samples import HOST, runner_output
from ortrim.base.cache import cache_folder, locked, record_entry
from ortrim.bench import run as bench_module
from ortrim.bench.points import BenchReport
from ortrim.bench.run import BenchRequest, bench, write_session
from ortrim.bench.scores import read_journal
from ortrim.compiling.plan import BuildJob
from ortrim.errors import StorageError, UsageError, VerifyError
from ortrim.parity.runner import RunnerOutput, RunRequest
from ortrim.report.history import NAME, benches
from pipeline_stages import Stages
from refusing import refused

TWO_CASES = '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\nseed = 1\n'
ROUNDS = 3
SWEEP = ("threads=1,2",)
TOTAL = ROUNDS * 2 * 3
"""Processes of two points and two cases, each point once without a case."""
MINIMAL = b"ONNX format model is not supported in this build"


class Machine:
    """Runs nothing: says what a runner would, and keeps what was asked of it; `before` is called first."""

    def __init__(self) -> None:
        self.asked: list[RunRequest] = []
        self.before: Callable[[RunRequest], None] = lambda _: None

    def __call__(self, _cores: tuple[int, ...] = ()) -> "Machine":
        """Stand in for the class of the machine on which ortrim runs."""
        return self

    def facts(self) -> Any:
        return HOST

    def run(self, request: RunRequest) -> RunnerOutput:
        self.asked.append(request)
        self.before(request)
        return runner_output(request, 1 / request.session.threads)

    def interrupted_at(self, number: int, error: BaseException) -> None:

        def fail(_: RunRequest) -> None:
            if len(self.asked) == number:
                raise error

        self.before = fail


@pytest.fixture(name="machine")
def fixture_machine(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Replace the machine and compiling the runner; the official wheel's library is a file of its own."""
    (stages.folder / "full.so").write_bytes(b"the whole runtime")
    made = Machine()
    monkeypatch.setattr(bench_module, "Host", made)
    executor = SimpleNamespace(run_runner=lambda _: Path("runner"))
    monkeypatch.setattr(bench_module, "executor_for", lambda *_: executor)
    return made


@pytest.fixture(name="wanted")
def fixture_wanted(stages: Stages) -> BenchRequest:
    request = stages.request(TWO_CASES)
    return BenchRequest(request=request, sweep=SWEEP, rounds=ROUNDS, deadline_ms=1.0, training_run="run-7")


def journal_of(report: BenchReport) -> Path:
    return Path(report.journal)


def test_a_sweep_is_measured_kept_and_recorded(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    report = bench(wanted, stages.console)
    assert (report.done, report.total, len(machine.asked)) == (TOTAL, TOTAL, TOTAL + 2)
    (model,) = report.models
    assert model.recommended == "threads=2"
    row = next(row for row in model.rows if (row.point, row.case) == ("default", "two"))
    assert row.total_ms.p50 == pytest.approx(1.2)
    assert (row.rounds, row.missed) == (ROUNDS, row.total_ms.count)
    assert row.input_ms.p50 == row.output_ms.p50 == 0.1
    assert all(len(request.cases) <= 1 for request in machine.asked)
    assert len(read_journal(journal_of(report)).samples) == TOTAL
    entries = benches(stages.folder / "artifacts" / NAME)
    assert [(each.point, each.training_run, each.library) for each in entries] == [
        ("default", "run-7", "wheel"), ("threads=2", "run-7", "wheel"),
    ]  # fmt: skip


def test_the_official_wheel_is_taken_where_nothing_was_built(
    stages: Stages, machine: Machine, wanted: BenchRequest
) -> None:
    """With the model in ONNX format, at its own level, and the settings of the buildspec; which one it is, is said."""
    report = bench(wanted, stages.console)
    assert (report.plan.library.kind, report.plan.library.full) == ("wheel", True)
    (request, *_) = machine.asked
    assert (request.library.name, request.model.suffix, request.session.optimization_level) == (
        "full.so",
        ".onnx",
        "all",
    )
    assert request.session.configuration == ()
    assert "measuring onnxruntime 1.21.0 (official wheel)" in stages.stdout.getvalue()


def test_the_build_is_taken_where_there_is_one(
    stages: Stages, machine: Machine, wanted: BenchRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the converted model and what its package says of its session, execution providers among it."""
    library = tmp_path / "build" / "libonnxruntime.so"
    library.parent.mkdir()
    library.write_bytes(MINIMAL)
    record_entry(library.parent)
    monkeypatch.setattr(bench_module, "finished_build", lambda _: library.parent)
    monkeypatch.setattr(bench_module, "result_of", lambda _: SimpleNamespace(library=library))
    monkeypatch.setattr(BuildJob, "provider_names", ("XNNPACK",))
    report = bench(wanted, stages.console)
    assert (report.plan.library.kind, report.plan.library.full) == ("built", False)
    assert (machine.asked[0].library, machine.asked[0].model.suffix) == (library, ".ort")
    assert machine.asked[0].session.load == "map"
    assert machine.asked[0].session.providers == ("XNNPACK",)
    write_session(report, tmp_path / "session.json")
    (written,) = json.loads((tmp_path / "session.json").read_text())["models"].values()
    assert written["execution_providers"] == ["XNNPACK"]
    machine.asked.clear()
    bench(replace(wanted, library="wheel"), stages.console)
    (request, *_) = machine.asked
    assert request.library.name == "full.so"
    assert not request.session.providers


def test_a_library_of_ones_own(stages: Stages, machine: Machine, wanted: BenchRequest, tmp_path: Path) -> None:
    """One that is minimal gets the converted model; what is no file is refused."""
    library = tmp_path / "own.so"
    library.write_bytes(b"..." + MINIMAL)
    assert bench(replace(wanted, library=str(library)), stages.console).plan.library.kind == "file"
    assert machine.asked[0].model.suffix == ".ort"
    for word in (str(tmp_path), str(tmp_path / "none.so")):
        error = refused(UsageError, bench, replace(wanted, library=word), stages.console)
        assert (error.code, error.where) == ("bad-option", "--library")


@pytest.mark.usefixtures("machine")
def test_a_build_that_is_not_there_is_reported(stages: Stages, wanted: BenchRequest) -> None:
    assert refused(UsageError, bench, replace(wanted, library="built"), stages.console).code == "not-built"


def test_targets_of_other_machines_do_not_matter(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    request = stages.request('[[targets]]\nid = "android-arm64-v8a"\n')
    assert bench(replace(wanted, request=request), stages.console).plan.target == "linux-x64"
    assert machine.asked


def test_ctrl_c_keeps_what_was_measured(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    """The report says how far it went; nothing enters the history; the next run goes on and measures nothing twice."""
    machine.interrupted_at(2 + 8, KeyboardInterrupt())
    stopped = bench(wanted, stages.console)
    assert (stopped.done, stopped.total) == (7, TOTAL)
    assert not (stages.folder / "artifacts" / NAME).exists()
    assert "--resume continues" in stages.stdout.getvalue()
    machine.asked.clear()
    machine.before = lambda _: None
    whole = bench(replace(wanted, resume=True), stages.console)
    assert (whole.done, whole.journal) == (TOTAL, stopped.journal)
    assert len(machine.asked) == 2 + TOTAL - 7
    assert len(benches(stages.folder / "artifacts" / NAME)) == 2


@pytest.mark.usefixtures("machine")
def test_there_may_be_nothing_to_go_on_with(stages: Stages, wanted: BenchRequest) -> None:
    bench(wanted, stages.console)
    assert refused(UsageError, bench, replace(wanted, resume=True), stages.console).code == "nothing-to-resume"


def test_without_resume_a_new_journal_is_begun(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    machine.interrupted_at(5, KeyboardInterrupt())
    stopped = bench(wanted, stages.console)
    machine.before = lambda _: None
    whole = bench(wanted, stages.console)
    assert whole.journal != stopped.journal
    assert len(read_journal(journal_of(stopped)).samples) == stopped.done


def test_a_point_that_fails_is_reported_and_left_out(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    def fail(request: RunRequest) -> None:
        if request.session.threads == 2 and request.cases:
            raise VerifyError("runner-crashed", "the runner was ended by SIGABRT")

    machine.before = fail
    report = bench(wanted, stages.console)
    (model,) = report.models
    assert model.failures == (("threads=2", "the runner was ended by SIGABRT (runner-crashed)"),)
    assert {row.point for row in model.rows} == {"default"}
    assert (report.done, model.recommended) == (TOTAL, "")
    assert sum(request.session.threads == 2 and bool(request.cases) for request in machine.asked) == 1


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_default_that_fails_ends_it(stages: Stages, machine: Machine, wanted: BenchRequest, number: int) -> None:
    """In the trial or later; what was measured before stays in the journal."""
    machine.interrupted_at(number, VerifyError("inference-failed", "running the model failed"))
    assert refused(VerifyError, bench, wanted, stages.console).code == "inference-failed"
    kept = list((stages.folder / "artifacts" / "bench").glob("*.jsonl"))
    assert [len(read_journal(path).samples) for path in kept] == ([] if number < 3 else [1])


def test_two_at_once_would_measure_one_another(stages: Stages, machine: Machine, wanted: BenchRequest) -> None:
    with locked(cache_folder("bench") / "machine"):
        thread = threading.Thread(target=bench, args=(wanted, stages.console))
        thread.start()
        thread.join(0.5)
        assert (thread.is_alive(), machine.asked) == (True, [])
    thread.join()
    assert machine.asked


def test_a_full_disk_keeps_what_was_measured(
    stages: Stages, machine: Machine, wanted: BenchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        if len(machine.asked) == 6:
            raise StorageError("disk-full", "there is no space left")

    monkeypatch.setattr("ortrim.bench.scores.os.fsync", full)
    assert refused(StorageError, bench, wanted, stages.console).code == "disk-full"
    monkeypatch.undo()
    (kept,) = (stages.folder / "artifacts" / "bench").glob("*.jsonl")
    assert len(read_journal(kept).samples) >= 3


@pytest.mark.usefixtures("machine")
def test_a_folder_that_cannot_be_written_is_reported_before_the_work(stages: Stages, wanted: BenchRequest) -> None:
    (stages.folder / "artifacts").write_text("")
    assert refused(StorageError, bench, wanted, stages.console).code == "path-in-the-way"


@pytest.mark.usefixtures("machine")
def test_a_history_that_cannot_be_written_is_a_warning(stages: Stages, wanted: BenchRequest) -> None:
    (stages.folder / "artifacts" / NAME).mkdir(parents=True)
    assert bench(wanted, stages.console).done == TOTAL
    assert "this bench is not in the history" in stages.stdout.getvalue()
