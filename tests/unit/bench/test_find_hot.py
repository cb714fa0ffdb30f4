"""Hot operators in the pipeline: measured and written beside the buildspec, and read when a build is planned."""

from pathlib import Path
from typing import Any

import pytest

from ortrim.base.console import Console
from ortrim.bench import profile
from ortrim.bench.profile import HOT_RUNS, ROUNDS, HotOperators, find_hot
from ortrim.cli.tasks import bench as bench_task
from ortrim.compiling.plan import digest
from ortrim.devices.device import Device
from ortrim.errors import Diagnostic, ExitCode, StorageError, VerifyError
from ortrim.models.hot_operators import hot_file, ranked, read_hot
from ortrim.parity.runner import RunRequest
from ortrim.planning.planned import planned_for
from pipeline_stages import Stages
from program_runs import Run
from refusing import refused

TWO_CASES = '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\nseed = 1\n'


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    asked: list[RunRequest] = []

    def times(_: Device, request: RunRequest, folder: Path) -> dict[str, float]:
        assert folder.is_dir()
        asked.append(request)
        return {"Relu": 7.0, "MemcpyToHost": 3.0}

    monkeypatch.setattr(profile, "_runner", lambda *_: Path("runner"))
    monkeypatch.setattr(profile, "time_operators", times)
    return asked


def test_the_hot_operators_are_written_beside_the_buildspec(stages: Stages, timed: list[RunRequest]) -> None:
    """Of what the models have; the runtime and the machine are named for people."""
    request = stages.request(TWO_CASES)
    found = find_hot(request, stages.console)
    assert found.file == stages.folder / "sample.hot.toml"
    (operator,) = found.operators
    assert (operator.operator, operator.hot) == ("ai.onnx:Relu", True)
    assert operator.share == pytest.approx(1.0)
    assert read_hot(found.file) == ("ai.onnx:Relu",)
    assert f"# Measured with {found.measured_with}.\n" in found.file.read_text()
    assert "onnxruntime 1.21.0 (official wheel), on " in found.measured_with
    assert len(timed) == 2 * ROUNDS


def test_the_official_library_runs_the_converted_model_with_one_thread(stages: Stages, timed: list[RunRequest]) -> None:
    """Each case in processes of its own, whatever the model's session has."""
    find_hot(stages.request("[session]\nthreads = 4\ninter_op_threads = 2\n"), stages.console, runs=5)
    (request, *_) = timed
    assert (request.library.name, request.model.suffix) == ("full.so", ".ort")
    assert (request.session.threads, request.session.inter_op_threads, len(request.cases)) == (1, 1, 1)
    assert (request.repetition.runs, HOT_RUNS) == (5, 20)


@pytest.mark.usefixtures("timed")
def test_targets_of_other_machines_and_an_older_file_do_not_matter(stages: Stages) -> None:
    request = stages.request('[[targets]]\nid = "android-arm64-v8a"\n')
    hot_file(request.spec).write_text("operators = [")
    find_hot(request, stages.console)
    assert read_hot(hot_file(request.spec)) == ("ai.onnx:Relu",)


@pytest.mark.parametrize(
    "ending", [VerifyError("runner-crashed", "it crashed"), KeyboardInterrupt()], ids=["crashed", "Ctrl-C"]
)
def test_a_measurement_that_fails_leaves_the_older_file(
    stages: Stages, timed: list[RunRequest], ending: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = stages.request()
    hot_file(request.spec).write_text('operators = ["a:B"]')
    before = sorted(stages.folder.iterdir())

    def fail(*_: object) -> dict[str, float]:
        raise ending

    monkeypatch.setattr(profile, "time_operators", fail)
    with pytest.raises(type(ending)):
        find_hot(request, stages.console)
    assert read_hot(hot_file(request.spec)) == ("a:B",)
    assert timed == []
    assert {path for path in stages.folder.iterdir() if path.suffix == ".toml"} <= set(before)


def test_a_folder_that_cannot_be_written_is_reported_before_the_work(
    stages: Stages, timed: list[RunRequest], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    error = refused(StorageError, find_hot, stages.request(spec=tmp_path / "file" / "sample.toml"), stages.console)
    assert error.code == "path-in-the-way"
    assert timed == []
    assert stages.ran == []


def plan_with(stages: Stages, text: str, **changes: Any) -> tuple[tuple[str, ...], str]:
    request = stages.request(**changes)
    hot_file(request.spec).write_text(text)
    plan = planned_for(request, stages.console).plan
    return plan.targets[0].job.hot_operators, digest(plan)


def test_the_file_is_part_of_the_plan(stages: Stages) -> None:
    """Another set of operators is another library; their order and the comments are not."""
    without = digest(planned_for(stages.request(), stages.console).plan)
    hot_operators, first = plan_with(stages, 'operators = ["ai.onnx:Relu"]')
    assert hot_operators == ("ai.onnx:Relu",)
    assert first != without
    assert plan_with(stages, '# again\noperators = [\n  "ai.onnx:Relu",  # 3 %\n]')[1] == first


@pytest.mark.parametrize("profile", ["size", "upstream"])
def test_a_profile_that_optimises_all_alike_takes_none(stages: Stages, profile: str) -> None:
    without = digest(planned_for(stages.request(profile=profile), stages.console).plan)
    assert plan_with(stages, 'operators = ["ai.onnx:Relu"]', profile=profile) == ((), without)


def test_operators_that_no_model_has_are_noted(stages: Stages, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(environment={})
    request = stages.request()
    hot_file(request.spec).write_text('operators = ["ai.onnx:LSTM", "ai.onnx:Relu"]')
    job = planned_for(request, console).plan.targets[0].job
    assert job.hot_operators == ("ai.onnx:Relu",)
    said = "".join(capsys.readouterr()).replace("\n", " ")
    assert "no model has ai.onnx:LSTM" in said


def test_a_damaged_file_is_refused_before_any_work(stages: Stages) -> None:
    request = stages.request()
    hot_file(request.spec).write_text("operators = 3")
    error = refused(Diagnostic, planned_for, request, stages.console)
    assert (error.code, error.exit_code) == ("wrong-type", ExitCode.SPEC)
    assert stages.ran == []


ROWS = ranked({"vad": {"ai.onnx:LSTM": 0.75, "ai.onnx:Conv": 0.21, "ai.onnx:Pad": 0.04}})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int]]:
    seen: list[tuple[Path, int]] = []

    def find(request: Any, _: Any, runs: int) -> HotOperators:
        seen.append((request.spec, runs))
        return HotOperators(file=Path("vad.hot.toml"), measured_with="a library", operators=ROWS)

    monkeypatch.setattr(bench_task, "find_hot", find)
    return seen


def test_hot_shows_a_table(ortrim: Run, asked: list[tuple[Path, int]]) -> None:
    """All operators with their shares, and the file that names the hot ones."""
    ended = ortrim("hot", "--spec", "vad.toml")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["ai.onnx:LSTM", "75.0", "%", "hot", "vad"] in lines
    assert ["ai.onnx:Pad", "4.0", "%", "vad"] in lines
    assert "vad.hot.toml names 2 of them as hot" in ended.out
    assert asked == [(Path("vad.toml"), HOT_RUNS)]


def test_hot_as_json_is_one_document(ortrim: Run, asked: list[tuple[Path, int]]) -> None:
    document = ortrim("hot", "--spec", "vad.toml", "--runs", "3", "--json").document()
    assert document["file"] == "vad.hot.toml"
    assert [each["hot"] for each in document["operators"]] == [True, True, False]
    assert asked == [(Path("vad.toml"), 3)]


@pytest.mark.parametrize(
    ("words", "reference", "code"),
    [(("hot", "--runs", "0"), "bad-option", 2), (("hot", "--spec", "missing.toml"), "spec-missing", 10)],
)
def test_what_is_not_possible_is_a_diagnostic(ortrim: Run, words: tuple[str, ...], reference: str, code: int) -> None:
    ended = ortrim(*words)
    assert (ended.code, f"error: {reference}" in ended.err) == (code, True)
    assert list(Path.cwd().iterdir()) == []
