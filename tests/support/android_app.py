"""An app with our AAR, made by Android's Gradle plugin: its project, what it is asked to run, and what it left."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ortrim.base.command import Completed, run
from ortrim.base.console import Console
from ortrim.base.json import from_json
from ortrim.buildspec.buildspec import SessionFile
from ortrim.buildspec.tolerances import SAME_GRAPH_ELSEWHERE
from ortrim.parity.compare import compare, with_same_graph
from ortrim.parity.inputs import load_array, numpy_type, save_array
from ortrim.parity.measurements import OutputParity
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput
from ortrim.pipeline.verification import _subjects
from ortrim.planning.planned import Planned
from ortrim.verify.verification import ModelUnderTest

PROJECT: Final = Path(__file__).parents[1] / "integration" / "data" / "android_app"
MAIN: Final = PROJECT / "src" / "main"
LEVELS: Final = {"ORT_DISABLE_ALL": 0, "ORT_ENABLE_ALL": 99}
MODES: Final = {"ORT_SEQUENTIAL": 0, "ORT_PARALLEL": 1}
HEAD: Final = re.compile(rb"([0-9 ]+)\n")
"""Of a tensor: how many dimensions, their sizes, and how many bytes follow."""
MEDIA: Final = "/sdcard/Android/media/ortrim.app"
APIS: Final = ("java", "cpp")


def subjects_of(planned: Planned) -> tuple[ModelUnderTest, ...]:
    with Console().step("references") as step:
        return _subjects(planned, planned.plan.targets[0].job.target, step)


def write_requests(folder: Path, session: str, subjects: Sequence[ModelUnderTest]) -> None:
    settings = from_json(SessionFile, session).models
    folder.mkdir(parents=True)
    for subject in subjects:
        one = settings[subject.prepared.name]
        words = (
            LEVELS[one.graph_optimization_level], MODES[one.execution_mode],
            one.intra_op_num_threads, one.inter_op_num_threads,
            int(one.enable_cpu_mem_arena), int(one.enable_mem_pattern),
            len(one.session_configuration), *(word for entry in one.session_configuration.items() for word in entry),
            len(subject.cases),
        )  # fmt: skip
        text = "".join(f"{word}\n" for word in words).encode()
        inputs = (path for case in subject.cases for path in sorted(case.folder.glob("input_*")))
        (folder / subject.prepared.name).write_bytes(text + b"".join(map(_tensor, inputs)))


def _tensor(path: Path) -> bytes:
    array = load_array(path)
    assert array.dtype != np.dtype(object), "the app gives models no strings"
    content = array.tobytes()
    return " ".join(map(str, (array.ndim, *array.shape, len(content)))).encode() + b"\n" + content


def parity(subject: ModelUnderTest, results: Path, folder: Path) -> tuple[OutputParity, ...]:
    data = results.read_bytes()
    cases = []
    for case in subject.cases:
        (folder / case.name).mkdir(parents=True)
        outputs = []
        for number, info in enumerate(subject.prepared.facts.outputs):
            found = HEAD.match(data)
            assert found
            _, *shape, size = map(int, found[1].split())
            content, data = data[found.end() : found.end() + size], data[found.end() + size :]
            array = np.frombuffer(content, numpy_type(info.element_type)).reshape(shape)
            file = save_array(folder / case.name, f"output_{number:03}", array)
            outputs.append(
                SavedOutput(name=info.name, element_type=info.element_type, shape=array.shape, file=file.name)
            )
        cases.append(CaseOutputs(name=case.name, outputs=tuple(outputs)))
    assert data == b""
    ours = SavedOutputs(folder=folder, cases=tuple(cases))
    name, tolerances = subject.prepared.name, subject.spec.tolerances
    again = compare(name, subject.same_graph, ours, tolerances, defaults=SAME_GRAPH_ELSEWHERE)
    return with_same_graph(compare(name, subject.reference, ours, tolerances), again)


def write_app(folder: Path, package: Path, subjects: Sequence[ModelUnderTest]) -> None:
    manifest = json.loads((package / "manifest.json").read_text())
    shutil.copytree(PROJECT, folder)
    shutil.copytree(package / "maven", folder / "maven")
    with (folder / "gradle.properties").open("a") as properties:
        properties.write(f"ortrim.coordinates={manifest['coordinates']}\n")
    session = (package / "models" / "session.json").read_text()
    write_requests(folder / "src" / "main" / "assets" / "requests", session, subjects)


def run_app(project: Path, results: Path) -> None:
    """Have Gradle make the app, run it on the phone that adb reaches, and fetch what it left into a new folder."""
    done(("gradle", "--no-daemon", "assembleRelease"), cwd=project)
    done(("adb", "install", "-r", project / "build/outputs/apk/release/ortrim-app-release.apk"))
    told = done(("adb", "shell", "am", "instrument", "-w", "ortrim.app/.RunModels"))
    if "INSTRUMENTATION_CODE: -1" not in told.stdout:
        log = run(("adb", "logcat", "-d", "-t", "300"), timeout_seconds=60).stdout
        raise AssertionError(f"{told.stdout}\n{log}")
    done(("adb", "pull", MEDIA, results))


def done(words: tuple[str | Path, ...], cwd: Path | None = None) -> Completed:
    completed = run(words, cwd=cwd, timeout_seconds=1800)
    assert completed.returncode == 0, completed.stdout[-5000:] + completed.stderr[-5000:]
    return completed
