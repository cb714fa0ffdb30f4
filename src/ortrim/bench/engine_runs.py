"""Running the engines' script: one process for one engine and one case, which may crash or hang as it likes."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import ortrim
from ortrim.bench.engine_answers import (
    CannotRun,
    EngineConversion,
    EngineRun,
    conversion_answer,
    run_answer,
    shortened,
    stage_of,
)
from ortrim.bench.engine_catalogue import Engine
from ortrim.core.sessions import SessionSettings
from ortrim.errors import ToolError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import Completed, run

SCRIPT: Final = Path(ortrim.__file__).parent / "data" / "scripts" / "engines" / "drive.py"
TIMEOUT_SECONDS: Final = 300.0
MEMORY_BYTES: Final = 16 * 2**30
"""How much address space a process may take; TensorFlow, which one converter needs, takes several GB of it."""
OTHERS: Final = ("numpy", "ml_dtypes", "google", "charset_normalizer")
"""What lies in an engine's folder of packages and has native libraries that are not the engine's."""
MOST_PRINTED: Final = 16 * 2**20
ONE_THREAD: Final[Mapping[str, str]] = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an engine is: the words that start its Python, what that sees, and its native libraries' folder or file.

    `packages` is the folder of its packages; `converter` is the place of what converts for it, if that is another.
    """

    engine: Engine
    words: tuple[str, ...]
    environment: Mapping[str, str]
    packages: Path
    libraries: Path
    converter: "Place | None" = None


@dataclass(frozen=True, kw_only=True)
class Described:
    """One input or output of a model, with the shape and the type that the case gives it."""

    name: str
    shape: tuple[int, ...]
    element_type: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """One case of one model, as all engines get it; the trimmed runtime gets its own `library`, model and `session`."""

    case: str
    model: Path
    files: tuple[Path, ...]
    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    library: Path | None = None
    session: SessionSettings | None = None


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a case is run in one process: warm-up, then up to `runs`, none begun after `seconds`."""

    runs: int = 200
    warmup: int = 10
    seconds: float = 1.0
    timeout_seconds: float = TIMEOUT_SECONDS


Execute = Callable[..., Completed]


@dataclass(frozen=True, kw_only=True)
class Driver:
    """Runs engines in folders below `folder`, each with so many threads."""

    folder: Path
    threads: int = 1
    patience: Patience = field(default_factory=Patience)
    execute: Execute = run

    def convert(self, place: Place, job: Job) -> EngineConversion | CannotRun:
        """Have the engine convert the model, into a folder that its runs then find. Raises `StorageError`."""
        at = place.converter or place
        done = self._done(at, place, job, "convert")
        return done if isinstance(done, CannotRun) else conversion_answer(self._working(place), done)

    def run(self, place: Place, job: Job) -> EngineRun | CannotRun:
        """Run the case in one process; its outputs lie in `outputs(place)` afterwards. Raises `StorageError`."""
        done = self._done(place, place, job, "run")
        return done if isinstance(done, CannotRun) else run_answer(self._working(place), done)

    def outputs(self, place: Place) -> Path:
        """Return the folder below which an engine's outputs of each case lie."""
        return self._working(place) / "outputs"

    def _working(self, place: Place) -> Path:
        return self.folder / place.engine.name

    def _done(self, at: Place, place: Place, job: Job, action: str) -> Completed | CannotRun:
        """Start the script in the Python of `at` for the engine of `place`."""
        working = self._working(place)
        with storage_errors(working):
            _prepare(working, working / ("converted" if action == "convert" else f"outputs/{job.case}"))
            (working / "request.json").write_text(json.dumps(self._request(at, place, job, action)))
        environment = {**at.environment, **ONE_THREAD, "HOME": str(working)}
        words = (*at.words, str(SCRIPT), str(working / "request.json"))
        limits = {"timeout_seconds": self.patience.timeout_seconds, "most_bytes": MOST_PRINTED}
        try:
            return self.execute(words, cwd=working, environment=environment, **limits)
        except ToolError as error:
            return CannotRun(stage=stage_of(working), reason=shortened(f"it {error.what}"))

    def _request(self, at: Place, place: Place, job: Job, action: str) -> dict[str, object]:
        working = self._working(place)
        return {
            "action": action,
            "engine": place.engine.name,
            "model": str(job.model),
            "library": str(job.library) if job.library else None,
            "session": asdict(job.session) if job.session else None,
            "inputs": [str(file) for file in job.files],
            "input_names": [each.name for each in job.inputs],
            "input_shapes": [list(each.shape) for each in job.inputs],
            "input_types": [each.element_type for each in job.inputs],
            "output_names": [each.name for each in job.outputs],
            "output_types": [each.element_type for each in job.outputs],
            "output_shapes": [list(each.shape) for each in job.outputs],
            "outputs": str(self.outputs(place) / job.case),
            "converted": str(working / "converted"),
            "packages": str(at.packages),
            "library_roots": [str(place.libraries)],
            "others": OTHERS,
            "memory_bytes": MEMORY_BYTES,
            "threads": self.threads,
            "runs": self.patience.runs,
            "warmup": self.patience.warmup,
            "seconds": self.patience.seconds,
        }


def _prepare(working: Path, fresh: Path) -> None:
    """Make the folder of an engine, with one folder in it that is empty, and nothing of an earlier answer."""
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in ("answer.json", "stage"):
        (working / name).unlink(missing_ok=True)
