"""`compare` from what was asked for to its rows; the engines' script is stood in for, the rest is real."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench_samples import HOST
from engine_samples import RECORDED
from onnx_samples import relu
from ortrim.base.cache import cache_folder, locked, record_entry
from ortrim.base.command import Completed
from ortrim.bench import comparison as comparison_module
from ortrim.bench import engine_processes as processes
from ortrim.bench.comparison import Compared, compare_engines, write_comparison
from ortrim.bench.engines import EngineComparison
from ortrim.compiling.plan import BuildJob
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError, ToolError, UsageError
from ortrim.models.full_runtime import FullRuntime
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput
from ortrim.planning.request import Request, load
from pipeline_stages import Stages
from prepared_by_steps import STEPS, after_steps
from refusing import refused

TWO_CASES = '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\nseed = 1\n'
OK = Completed(argv=(), returncode=0, stdout="", stderr="")


class Script:
    """Stands in for the engines' processes: each answers y = relu(x), unless the test says otherwise by its name."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, Callable[[dict[str, Any], Path], Completed]] = {}

    def __call__(self, words: tuple[str, ...], **options: Any) -> Completed:
        request = json.loads(Path(words[-1]).read_text())
        self.asked.append((request["engine"], request["action"]))
        folder: Path = options["cwd"]
        (folder / "stage").write_text(request["action"])
        return self.answers.get(request["engine"], answered)(request, folder)


def answered(request: dict[str, Any], folder: Path, error: float = 0.0) -> Completed:
    if request["action"] == "convert":
        (folder / "answer.json").write_bytes((RECORDED / "mnn-converted.json").read_bytes())
        return OK
    (x,) = (np.load(file) for file in request["inputs"])
    np.save(Path(request["outputs"]) / "output_000.npy", 2 * x + np.float32(error))
    answer = json.loads((RECORDED / "onnxruntime-run.json").read_text())
    output = {"file": "output_000.npy", "element_type": "float32", "shape": list(x.shape)}
    (folder / "answer.json").write_text(json.dumps({**answer, "outputs": [output]}))
    return OK


@pytest.fixture(name="script")
def fixture_script(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Script:
    made = Script()
    monkeypatch.setattr(comparison_module, "Host", lambda _: type("Machine", (), {"facts": lambda _: HOST})())
    packages = stages.folder / "packages"
    (packages / "onnxruntime").mkdir(parents=True)
    runtime = FullRuntime(version="1.21.0", words=("python",), environment={}, packages=packages, library=packages)
    monkeypatch.setattr(comparison_module, "full_runtime", lambda *_: runtime)
    monkeypatch.setattr(comparison_module, "packages_folder", lambda *_: packages)
    monkeypatch.setattr(comparison_module, "reference_outputs", _reference)
    monkeypatch.setattr(comparison_module, "Driver", lambda **options: processes.Driver(**options, execute=made))
    return made


def _reference(model: Any, cases: Any, _: Any, folder: Path) -> SavedOutputs:
    """Work the cases out, as the full runtime would."""
    found = []
    for case in cases:
        x = np.load(case.folder / "input_000.npy")
        (folder / case.name).mkdir(parents=True, exist_ok=True)
        np.save(folder / case.name / "output_000.npy", 2 * x)
        output = SavedOutput(name="y", element_type="float32", shape=x.shape, file="output_000.npy")
        found.append(CaseOutputs(name=case.name, outputs=(output,)))
    return SavedOutputs(folder=folder, cases=tuple(found))


@pytest.fixture(name="compared")
def fixture_compared(stages: Stages) -> Compared:
    return Compared(request=stages.request(TWO_CASES), engines=("tract", "mnn"), rounds=2)


def rows(comparison: EngineComparison, case: int = 0) -> dict[str, Any]:
    return {row.engine: row for row in comparison.cases[case].rows}


def test_engines_take_turns(stages: Stages, script: Script, compared: Compared) -> None:
    """Each converts once for a case; each round begins with another one; all cases, and all figures."""
    comparison = compare_engines(compared, stages.console)
    assert script.asked[:7] == [
        ("mnn", "convert"),
        *(("onnxruntime", "run"), ("tract", "run"), ("mnn", "run")),
        *(("tract", "run"), ("mnn", "run"), ("onnxruntime", "run")),
    ]
    assert len(script.asked) == 14
    assert [case.case for case in comparison.cases] == ["one", "two"]
    found = rows(comparison)
    assert list(found) == ["onnxruntime", "tract", "mnn"]
    assert all(row.times.parity.verdict is Verdict.PASS and row.times.rounds == 2 for row in found.values())
    assert found["mnn"].times.convert_ms > 0
    assert found["tract"].times.convert_ms is None
    assert comparison.reference == "ONNX Runtime 1.21.0, optimizations off"
    assert [engine.version for engine in comparison.engines] == ["1.21.0"] * 3
    assert list(cache_folder("compare").iterdir()) == []


def test_what_an_engine_cannot_do_is_a_row(stages: Stages, script: Script, compared: Compared) -> None:
    """A crash while running, and a conversion that fails: neither is asked again, and the rest goes on."""
    script.answers["tract"] = lambda *_: replace(OK, returncode=-11)
    script.answers["mnn"] = lambda *_: replace(OK, returncode=1, stderr="no such operator: Foo\n")
    comparison = compare_engines(replace(compared, cases=("two",)), stages.console)
    found = rows(comparison)
    assert (found["tract"].stage, found["tract"].reason) == ("run", "it crashed (SIGSEGV)")
    assert found["mnn"].stage == "convert"
    assert "no such operator: Foo" in found["mnn"].reason
    assert found["onnxruntime"].times.rounds == 2
    assert len(script.asked) == 4


def test_a_failure_in_a_later_round_is_a_row_too(stages: Stages, script: Script, compared: Compared) -> None:
    """What it took before is not told, which would be of half the rounds."""
    done: list[int] = []

    def sometimes(request: dict[str, Any], folder: Path) -> Completed:
        done.append(1)
        return answered(request, folder) if len(done) == 1 else replace(OK, returncode=-9)

    script.answers["tract"] = sometimes
    row = rows(compare_engines(replace(compared, cases=("one",)), stages.console))["tract"]
    assert (row.times, row.stage) == (None, "run")
    assert "because memory ran out" in row.reason


def test_an_engine_that_hangs_is_a_row(stages: Stages, script: Script, compared: Compared) -> None:
    def hang(*_: object) -> Completed:
        raise ToolError("tool-timeout", "did not end within 300 seconds and was stopped")

    script.answers["tract"] = hang
    row = rows(compare_engines(compared, stages.console))["tract"]
    assert (row.stage, row.reason) == ("run", "it did not end within 300 seconds and was stopped")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NetworkError("index-unreachable", "pip cannot reach the package index", why="a\nlast line"), "index. last"),
        (StorageError("disk-full", "pip ran out of disk space"), "disk-full"),
        (ToolError("install-failed", "pip could not install", why="No matching distribution"), "No matching"),
    ],
)
@pytest.mark.usefixtures("script")
def test_an_engine_that_cannot_be_installed_is_a_row(
    stages: Stages, compared: Compared, monkeypatch: pytest.MonkeyPatch, error: Diagnostic, words: str
) -> None:
    def fail(*_: object) -> Path:
        raise error

    monkeypatch.setattr(comparison_module, "packages_folder", fail)
    comparison = compare_engines(compared, stages.console)
    row = rows(comparison)["tract"]
    assert row.stage == "install"
    assert words.replace("index. last", f"({error.code}). last line") in row.reason
    assert rows(comparison)["onnxruntime"].times is not None
    assert [engine.installed_bytes for engine in comparison.engines] == [0, None, None]


def test_wrong_outputs_are_no_parity(stages: Stages, script: Script, compared: Compared) -> None:
    """Times are still told; an engine with other outputs, or none that can be read, has no parity either."""
    script.answers["tract"] = lambda request, folder: answered(request, folder, error=0.5)

    def without_file(request: dict[str, Any], folder: Path) -> Completed:
        done = answered(request, folder)
        for file in Path(request["outputs"]).glob("*.npy"):
            file.write_bytes(b"\x93NUMPY damaged")
        return done

    script.answers["mnn"] = without_file
    found = rows(compare_engines(compared, stages.console))
    assert found["tract"].times.parity.verdict is Verdict.FAIL
    assert found["tract"].times.parity.max_absolute == pytest.approx(0.5)
    assert "cannot be read" in found["mnn"].times.parity.reason


def test_a_missing_output_is_no_parity(stages: Stages, script: Script, compared: Compared) -> None:
    def none(request: dict[str, Any], folder: Path) -> Completed:
        done = answered(request, folder)
        answer = json.loads((folder / "answer.json").read_text())
        (folder / "answer.json").write_text(json.dumps({**answer, "outputs": []}))
        return done

    script.answers["tract"] = none
    parity = rows(compare_engines(compared, stages.console))["tract"].times.parity
    assert (parity.verdict, parity.reason) == (Verdict.FAIL, "it has 0 outputs, not 1")


def test_ctrl_c_keeps_the_cases_that_were_finished(stages: Stages, script: Script, compared: Compared) -> None:
    """In the first case there is nothing to keep; no folder is left behind."""

    def interrupt(*_: object) -> Completed:
        raise KeyboardInterrupt

    script.answers["tract"] = lambda request, folder: (
        answered(request, folder) if len(script.asked) < 8 else interrupt()
    )
    comparison = compare_engines(compared, stages.console)
    assert [case.case for case in comparison.cases] == ["one"]
    assert "stopped" in stages.stdout.getvalue()
    script.answers["tract"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        compare_engines(compared, stages.console)
    assert list(cache_folder("compare").iterdir()) == []


def test_the_trimmed_runtime_that_was_not_built_is_a_row(stages: Stages, script: Script, compared: Compared) -> None:
    row = rows(compare_engines(replace(compared, engines=("trimmed",)), stages.console))["trimmed"]
    assert (row.stage, row.reason) == ("start", "it was not built for this machine: run invoke build")


def test_a_library_of_ones_own_is_the_trimmed_one(
    stages: Stages, script: Script, compared: Compared, tmp_path: Path
) -> None:
    library = tmp_path / "own.so"
    library.write_bytes(b"library")
    asked: list[dict[str, Any]] = []

    def keep(request: dict[str, Any], folder: Path) -> Completed:
        asked.append(request)
        return answered(request, folder)

    script.answers["trimmed"] = keep
    comparison = compare_engines(replace(compared, engines=("trimmed",), library=library), stages.console)
    assert rows(comparison)["trimmed"].times.rounds == 2
    assert (asked[0]["library"], Path(asked[0]["model"]).suffix) == (str(library), ".ort")
    assert (asked[0]["session"]["load"], asked[0]["session"]["providers"]) == ("map", [])
    assert comparison.engines[1].installed_bytes == 7


def test_the_build_runs_with_its_execution_providers(
    stages: Stages, compared: Compared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its `session.json` has them."""
    library = tmp_path / "build" / "libonnxruntime.so"
    library.parent.mkdir()
    library.write_bytes(b"library")
    record_entry(library.parent)
    monkeypatch.setattr(comparison_module, "finished_build", lambda _: library.parent)
    monkeypatch.setattr(comparison_module, "result_of", lambda _: SimpleNamespace(library=library))
    monkeypatch.setattr(BuildJob, "provider_names", ("XNNPACK",))
    loaded = load(compared.request)
    found = comparison_module.trimmed_of(loaded, compared.request, None, stages.console)
    assert not isinstance(found, processes.CannotRun)
    assert [session.providers for _, session in found[1].values()] == [("XNNPACK",)]


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"engines": ("opencv",)}, ("bad-option", "--engine")),
        ({"cases": ("on",)}, ("no-such-case", "--case")),
        ({"models": ("tyni",)}, ("no-such-model", "--only")),
    ],
)
def test_what_does_not_exist_is_refused(
    stages: Stages, script: Script, compared: Compared, changes: dict[str, Any], refusal: tuple[str, str]
) -> None:
    error = refused(UsageError, compare_engines, replace(compared, **changes), stages.console)
    assert (error.code, error.where, error.exit_code) == (*refusal, ExitCode.USAGE)
    assert script.asked == []


def test_bad_buildspecs_are_refused(stages: Stages, script: Script, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("models = 3")
    for name, code in (("none.toml", ExitCode.SPEC), ("bad.toml", ExitCode.SPEC)):
        error = refused(Diagnostic, compare_engines, Compared(request=Request(spec=tmp_path / name)), stages.console)
        assert error.exit_code == code
    assert script.asked == []


def test_two_at_once_would_measure_each_other(stages: Stages, script: Script, compared: Compared) -> None:
    """So the second waits; the lock is that of `bench`."""
    with locked(cache_folder("bench") / "machine"):
        thread = threading.Thread(target=compare_engines, args=(compared, stages.console))
        thread.start()
        thread.join(0.5)
        assert (thread.is_alive(), script.asked) == (True, [])
    thread.join()
    assert script.asked


def test_inputs_of_text_are_not_brought_to_engines(
    stages: Stages, script: Script, compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:

    def with_text(*arguments: Any) -> SavedOutputs:
        for case in arguments[1]:
            (case.folder / "input_000.npy").rename(case.folder / "input_000.strings")
        return SavedOutputs(folder=stages.folder, cases=())

    monkeypatch.setattr(comparison_module, "reference_outputs", with_text)
    monkeypatch.setattr("ortrim.bench.comparison.input_shapes", lambda *_: ())
    found = rows(compare_engines(replace(compared, cases=("one",)), stages.console))
    assert all(row.stage == "start" and "text inputs" in row.reason for row in found.values())


def test_both_files_are_written(stages: Stages, script: Script, compared: Compared, tmp_path: Path) -> None:
    comparison = compare_engines(compared, stages.console)
    folder = write_comparison(comparison, tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == ["compare.json", "compare.md"]
    assert json.loads((folder / "compare.json").read_text())["schema"] == "ortrim-compare/1"
    (tmp_path / "file").write_text("")
    assert refused(StorageError, write_comparison, comparison, tmp_path / "file").code == "path-in-the-way"


def test_models_are_compared_after_their_steps(
    stages: Stages, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every engine: the trimmed runtime has no other, and cases are those that the model takes then."""
    asked: list[str] = []

    def keep(request: dict[str, Any], folder: Path) -> Completed:
        asked.append(Path(request["model"]).name)
        return answered(request, folder)

    script.answers["onnxruntime"] = script.answers["tract"] = keep
    after_steps(monkeypatch, tmp_path, relu())
    compare_engines(Compared(request=stages.request(STEPS), engines=("tract",), rounds=1), stages.console)
    assert asked == ["after.onnx", "after.onnx"]
