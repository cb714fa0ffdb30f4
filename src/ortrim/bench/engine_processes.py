"""One process for one engine and one case, which may crash or hang as it likes, and the rows that its runs make."""

import json
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from ortrim.base.command import Completed, run
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.base.json import first_fault, from_json
from ortrim.bench.engines import STAGES, Engine, EngineLibrary, EngineParity, EngineRow, EngineTimes, Stage
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.errors import ToolError
from ortrim.models.models import TensorInfo
from ortrim.parity.measurements import distribution, median, median_interval
from ortrim.parity.runner import DEFAULT_REPETITION, Repetition

T = TypeVar("T")
LONGEST_REASON: Final = 300
LAST_LINES: Final = 2
KILLED: Final = "killed by the system, usually because memory ran out"


@dataclass(frozen=True, kw_only=True)
class SavedArray:
    """One output, in a file of the folder that the request named."""

    file: str
    element_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """One process of one engine with one case."""

    status: Literal["ok"]
    version: str
    open_ms: float
    load_ms: float
    first_run_ms: float
    samples_ms: tuple[float, ...]
    processor_ms: float
    loaded_bytes: int
    peak_bytes: int
    outputs: tuple[SavedArray, ...]
    libraries: tuple[EngineLibrary, ...]


@dataclass(frozen=True, kw_only=True)
class EngineConversion:
    """One model brought into an engine's own form."""

    status: Literal["ok"]
    version: str
    convert_ms: float


@dataclass(frozen=True, kw_only=True)
class CannotRun:
    """At which stage an engine ended, and why, in one line."""

    stage: Stage
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    status: Literal["error"]
    stage: Stage
    message: str


def run_answer(folder: Path, done: Completed) -> EngineRun | CannotRun:
    """Read the answer of a run in `folder`."""
    found = _answer(folder, done, EngineRun)
    if isinstance(found, EngineRun) and not found.samples_ms:
        return CannotRun(stage="run", reason="it took no time: nothing was measured")
    return found


def conversion_answer(folder: Path, done: Completed) -> EngineConversion | CannotRun:
    """Read the answer of a conversion in `folder`."""
    return _answer(folder, done, EngineConversion)


def _answer(folder: Path, done: Completed, kind: type[T]) -> T | CannotRun:
    try:
        text = (folder / "answer.json").read_text(encoding="utf-8")
        with suppress(ValidationError):
            return _refused(from_json(_Refusal, text), done, folder)
        return from_json(kind, text)
    except (OSError, UnicodeDecodeError):
        return CannotRun(stage=stage_of(folder), reason=shortened(_crash(done)))
    except ValidationError as error:
        what = first_fault(error)
        return CannotRun(stage=stage_of(folder), reason=shortened(f"its answer cannot be read: {what}"))


def _refused(refusal: _Refusal, done: Completed, folder: Path) -> CannotRun:
    """Return an engine's own words, and those of its native code where the error itself says little."""
    words = shortened(refusal.message.replace(f"{folder}/", ""))
    said = _last_words(done) if refusal.stage == "load" and len(words) < LONGEST_REASON / 2 else ""
    return CannotRun(stage=refusal.stage, reason=shortened(f"{words} ({said})" if said else words))


def stage_of(folder: Path) -> Stage:
    """Return what a script was at when it wrote last."""
    try:
        word = (folder / "stage").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "start"
    return next((stage for stage in STAGES if stage == word), "start")


def _crash(done: Completed) -> str:
    said = _last_words(done)
    if done.returncode == -signal.SIGKILL:
        return KILLED
    if done.returncode >= 0:
        return f"it ended with exit code {done.returncode} and no answer" + (f": {said}" if said else "")
    try:
        name = signal.Signals(-done.returncode).name
    except ValueError:
        name = f"signal {-done.returncode}"
    return f"it crashed ({name})" + (f": {said}" if said else "")


def _last_words(done: Completed) -> str:
    return " / ".join(line.strip() for line in done.stderr.strip().splitlines()[-LAST_LINES:])


def shortened(words: str) -> str:
    """Return words on one line, cut where they go on for long."""
    flat = " ".join(words.split())
    return flat if len(flat) <= LONGEST_REASON else f"{flat[: LONGEST_REASON - 1]}\N{HORIZONTAL ELLIPSIS}"


SCRIPT: Final = shipped_folder("scripts") / "engines" / "drive.py"
MEMORY_BYTES: Final = 16 * 2**30
"""How much address space a process may take; TensorFlow, which one converter needs, takes several GB of it."""
OTHERS: Final = ("numpy", "ml_dtypes", "google", "charset_normalizer")
"""What lies in an engine's folder of packages and has native libraries that are not the engine's."""
MOST_PRINTED: Final = 16 * 2**20
ONE_THREAD: Final[Mapping[str, str]] = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EngineEnvironment:
    """Where an engine is: the words that start its Python, what that sees, and its native libraries' folder or file.

    `packages` is the folder of its packages; `converter` is the place of what converts for it, if that is another.
    """

    engine: Engine
    words: tuple[str, ...]
    environment: Mapping[str, str]
    packages: Path
    libraries: Path
    converter: "EngineEnvironment | None" = None


@dataclass(frozen=True, kw_only=True)
class EngineJob:
    """One case of one model, as all engines get it, with the shapes and types that it has of inputs and outputs.

    The trimmed runtime gets its own `library`, model and `session`.
    """

    case: str
    model: Path
    files: tuple[Path, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    library: Path | None = None
    session: SessionSettings | None = None


Execute = Callable[..., Completed]


@dataclass(frozen=True, kw_only=True)
class Driver:
    """Runs engines in folders below `folder`, each with so many threads."""

    folder: Path
    threads: int = 1
    repetition: Repetition = DEFAULT_REPETITION
    execute: Execute = run

    def convert(self, place: EngineEnvironment, job: EngineJob) -> EngineConversion | CannotRun:
        """Have the engine convert the model, into a folder that its runs then find. Raises `StorageError`."""
        at = place.converter or place
        done = self._done(at, place, job, "convert")
        return done if isinstance(done, CannotRun) else conversion_answer(self._working(place), done)

    def run(self, place: EngineEnvironment, job: EngineJob) -> EngineRun | CannotRun:
        """Run the case in one process; its outputs lie in `outputs(place)` afterwards. Raises `StorageError`."""
        done = self._done(place, place, job, "run")
        return done if isinstance(done, CannotRun) else run_answer(self._working(place), done)

    def outputs(self, place: EngineEnvironment) -> Path:
        """Return the folder below which an engine's outputs of each case lie."""
        return self._working(place) / "outputs"

    def _working(self, place: EngineEnvironment) -> Path:
        return self.folder / place.engine.name

    def _done(
        self, at: EngineEnvironment, place: EngineEnvironment, job: EngineJob, action: str
    ) -> Completed | CannotRun:
        """Start the script in the Python of `at` for the engine of `place`."""
        working = self._working(place)
        with storage_errors(working):
            _prepare(working, working / ("converted" if action == "convert" else f"outputs/{job.case}"))
            (working / "request.json").write_text(json.dumps(self._request(at, place, job, action)), encoding="utf-8")
        environment = {**at.environment, **ONE_THREAD, "HOME": str(working)}
        words = (*at.words, str(SCRIPT), str(working / "request.json"))
        limits = {"timeout_seconds": self.repetition.timeout_seconds, "most_bytes": MOST_PRINTED}
        try:
            return self.execute(words, cwd=working, environment=environment, **limits)
        except ToolError as error:
            return CannotRun(stage=stage_of(working), reason=shortened(f"it {error.what}"))

    def _request(
        self, at: EngineEnvironment, place: EngineEnvironment, job: EngineJob, action: str
    ) -> dict[str, object]:
        working = self._working(place)
        return {
            "action": action,
            "engine": place.engine.name,
            "model": str(job.model),
            "library": str(job.library) if job.library else None,
            "session": asdict(replace(job.session, threads=self.threads)) if job.session else None,
            "inputs": [str(file) for file in job.files],
            "input_names": [each.name for each in job.inputs],
            "input_shapes": [each.shape for each in job.inputs],
            "input_types": [each.element_type for each in job.inputs],
            "output_names": [each.name for each in job.outputs],
            "output_types": [each.element_type for each in job.outputs],
            "output_shapes": [each.shape for each in job.outputs],
            "outputs": str(self.outputs(place) / job.case),
            "converted": str(working / "converted"),
            "packages": str(at.packages),
            "library_roots": [str(place.libraries)],
            "others": OTHERS,
            "memory_bytes": MEMORY_BYTES,
            "threads": self.threads,
            "runs": self.repetition.runs,
            "warmup": self.repetition.warmup,
            "seconds": self.repetition.seconds,
        }


def _prepare(working: Path, fresh: Path) -> None:
    """Make the folder of an engine, with one folder in it that is empty, and nothing of an earlier answer."""
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in ("answer.json", "stage"):
        (working / name).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of one engine with one case: its conversion, a run for each round, or why there are no more."""

    engine: str
    convert_ms: float | None = None
    runs: tuple[EngineRun, ...] = ()
    failure: CannotRun | None = None
    parity: EngineParity | None = None


def rows_of(attempts: Sequence[Attempt]) -> tuple[EngineRow, ...]:
    """Sum up what engines took; ratios are to the first of them, round by round, unless it could not run."""
    first = next(iter(attempts), None)
    baseline = first.runs if first is not None and first.failure is None else ()
    rows = []
    for attempt in attempts:
        if attempt.failure is not None:
            rows.append(EngineRow(engine=attempt.engine, stage=attempt.failure.stage, reason=attempt.failure.reason))
        elif not attempt.runs or attempt.parity is None:
            rows.append(EngineRow(engine=attempt.engine, stage="start", reason="it was not run"))
        else:
            rows.append(EngineRow(engine=attempt.engine, times=_times(attempt, attempt.parity, baseline)))
    return tuple(rows)


def _times(attempt: Attempt, parity: EngineParity, baseline: Sequence[EngineRun]) -> EngineTimes:
    runs = attempt.runs
    ratios = [median(run.samples_ms) / median(base.samples_ms) for run, base in zip(runs, baseline, strict=False)]
    ratio = median_interval(ratios) if ratios else None
    return EngineTimes(
        rounds=len(runs),
        open_ms=median(run.open_ms for run in runs),
        load_ms=median(run.load_ms for run in runs),
        first_run_ms=median(run.first_run_ms for run in runs),
        latency_ms=distribution(sample for run in runs for sample in run.samples_ms),
        processor_ms=median(run.processor_ms for run in runs),
        loaded_bytes=round(median(run.loaded_bytes for run in runs)),
        peak_bytes=round(median(run.peak_bytes for run in runs)),
        convert_ms=attempt.convert_ms,
        libraries=runs[0].libraries,
        ratio=ratio.median if ratio else None,
        spread=ratio.spread if ratio else None,
        parity=parity,
    )
