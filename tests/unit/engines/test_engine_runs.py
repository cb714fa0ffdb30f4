"""Starting the engines' script: what it is told, and what becomes of its end."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine_samples import RECORDED
from ortrim.base.command import Completed
from ortrim.bench import engine_processes as processes
from ortrim.bench.engines import ENGINES
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.errors import StorageError, ToolError
from ortrim.models.models import TensorInfo
from refusing import refused

ANSWERED = Completed(argv=(), returncode=0, stdout="", stderr="")


class Started:
    """Stands in for the program: leaves an answer, and keeps how it was called."""

    def __init__(self, answer: str = "onnxruntime-run.json", error: ToolError | None = None) -> None:
        self.answer, self.error = answer, error
        self.words: tuple[str, ...] = ()
        self.options: dict[str, Any] = {}
        self.request: dict[str, Any] = {}
        self.before: Callable[[Path], None] = lambda _: None

    def __call__(self, words: tuple[str, ...], **options: Any) -> Completed:
        """Do what the script would do in its folder."""
        self.words, self.options = words, options
        self.request = json.loads(Path(words[-1]).read_text())
        folder: Path = options["cwd"]
        self.before(folder)
        (folder / "stage").write_text("load")
        if self.error:
            raise self.error
        (folder / "answer.json").write_bytes((RECORDED / self.answer).read_bytes())
        return ANSWERED


def place(
    name: str, converter: processes.EngineEnvironment | None = None, environment: Mapping[str, str] | None = None
) -> processes.EngineEnvironment:
    return processes.EngineEnvironment(
        engine=ENGINES[name],
        words=("/python", "-S"),
        environment=environment or {"PYTHONPATH": f"/packages/{name}"},
        packages=Path("/packages") / name,
        libraries=Path("/packages") / name,
        converter=converter,
    )


JOB = processes.EngineJob(
    case="one",
    model=Path("/models/m.onnx"),
    files=(Path("/cases/input_000.npy"),),
    inputs=(TensorInfo(name="x", shape=(1, 2), element_type="float32"),),
    outputs=(TensorInfo(name="y", shape=(1, 3), element_type="int64"),),
)


def test_a_run_is_told_all_that_it_needs(tmp_path: Path) -> None:
    started = Started()
    assert isinstance(
        processes.Driver(folder=tmp_path, threads=2, execute=started).run(place("openvino"), JOB), processes.EngineRun
    )
    assert started.words == ("/python", "-S", str(processes.SCRIPT), str(tmp_path / "openvino" / "request.json"))
    environment = started.options["environment"]
    assert (environment["PYTHONPATH"], environment["OMP_NUM_THREADS"]) == ("/packages/openvino", "1")
    assert environment["HOME"] == str(tmp_path / "openvino")
    asked = started.request
    assert (asked["action"], asked["engine"], asked["model"], asked["threads"]) == (
        "run",
        "openvino",
        "/models/m.onnx",
        2,
    )
    assert (asked["input_names"], asked["input_shapes"], asked["input_types"]) == (["x"], [[1, 2]], ["float32"])
    assert (asked["output_names"], asked["output_types"], asked["output_shapes"]) == (["y"], ["int64"], [[1, 3]])
    assert (asked["library_roots"], asked["session"]) == (["/packages/openvino"], None)
    assert Path(asked["outputs"]).is_dir()


def test_a_converter_runs_in_its_own_place(tmp_path: Path) -> None:
    started = Started("mnn-converted.json")
    driver = processes.Driver(folder=tmp_path, execute=started)
    found = driver.convert(place("litert", converter=place("mnn")), JOB)
    assert isinstance(found, processes.EngineConversion)
    assert started.options["environment"]["PYTHONPATH"] == "/packages/mnn"
    assert (started.request["engine"], started.request["packages"]) == ("litert", "/packages/mnn")
    converted = started.request["converted"]
    assert converted == str(tmp_path / "litert" / "converted")
    started.answer = "onnxruntime-run.json"
    driver.run(place("litert"), JOB)
    assert started.request["converted"] == converted
    assert Path(converted).is_dir()


def test_the_trimmed_runtime_gets_its_library_and_session(tmp_path: Path) -> None:
    """In the words of the settings, but for the threads, which are every engine's."""
    started = Started()
    own = processes.EngineJob(
        **{**vars(JOB), "library": Path("/l.so"), "session": SessionSettings(load="map", arena=False)}
    )
    processes.Driver(folder=tmp_path, threads=2, execute=started).run(place("trimmed"), own)
    assert started.request["session"]["threads"] == 2
    assert started.request["library"] == "/l.so"
    assert (started.request["session"]["load"], started.request["session"]["arena"]) == ("map", False)


def test_nothing_of_an_earlier_run_is_taken_for_an_answer(tmp_path: Path) -> None:
    started = Started()
    driver = processes.Driver(folder=tmp_path, execute=started)
    driver.run(place("tract"), JOB)
    (driver.outputs(place("tract")) / "one" / "output_000.npy").write_bytes(b"old")
    seen: list[str] = []
    started.before = lambda folder: seen.extend(path.name for path in folder.rglob("*"))
    driver.run(place("tract"), JOB)
    assert sorted(seen) == ["one", "outputs", "request.json"]


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("tool-timeout", "did not end within 300 seconds and was stopped"),
        ("tool-endless", "printed more than 16777216 bytes and was stopped"),
        ("tool-missing", "is not installed"),
    ],
)
def test_a_script_that_hangs_or_does_not_start_is_a_reason(tmp_path: Path, reference: str, what: str) -> None:
    started = Started(error=ToolError(reference, what))
    found = processes.Driver(folder=tmp_path, execute=started).run(place("tract"), JOB)
    assert found == processes.CannotRun(stage="load", reason=f"it {what}")
    assert started.options["timeout_seconds"] == 300.0


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tract").write_text("in the way")
    error = refused(StorageError, processes.Driver(folder=tmp_path, execute=Started()).run, place("tract"), JOB)
    assert error.code == "path-in-the-way"
