"""What `invoke bench` measures and what comes of it: points, samples, rows, scores. Pure."""

from dataclasses import asdict, dataclass
from typing import Literal

from ortrim.core.measurements import Distribution, Host
from ortrim.core.model_spec import SessionSpec

Level = Literal["none", "basic", "extended", "all"]
LibraryKind = Literal["built", "wheel", "file"]
"""The buildspec's finished build, the official wheel, or a library that was named."""
Goal = Literal["latency", "cpu", "memory"]


@dataclass(frozen=True, kw_only=True)
class BenchPoint:
    """One choice of session settings. `name` says how it differs from the default; `level` is of ONNX models alone."""

    name: str
    session: SessionSpec
    level: Level | None = None


@dataclass(frozen=True, kw_only=True)
class BenchCase:
    """One case: the digest of its inputs, and how often each process runs it, `warmup` runs before those timed."""

    name: str
    digest: str
    runs: int
    warmup: int


@dataclass(frozen=True, kw_only=True)
class BenchModel:
    """One model: the digest of the file as its author gave it, and what it is measured with, the default first."""

    name: str
    sha256: str
    cases: tuple[BenchCase, ...]
    points: tuple[BenchPoint, ...]


@dataclass(frozen=True, kw_only=True)
class BenchLibrary:
    """The library that is measured; one that is `full` reads models in ONNX format, any other converted ones."""

    kind: LibraryKind
    name: str
    sha256: str
    ort_version: str
    full: bool


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """All that is to be measured, and where; `deadline_ms` is the period in which an inference has to be over."""

    schema: Literal["ortrim-bench/1"] = "ortrim-bench/1"
    name: str
    target: str
    recorded_at: str
    ortrim_version: str
    training_run: str
    library: BenchLibrary
    machine: Host
    deadline_ms: float | None
    rounds: int
    models: tuple[BenchModel, ...]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One process: a model with one point and one case, or without a case, when it was only loaded.

    `cpu_seconds` are those of the whole process, `inferences` all that it made, the first and the warm-up among them.
    `failure` says why there is nothing else.
    """

    round: int
    model: str
    point: str
    case: str
    load_ms: float = 0.0
    first_run_ms: float = 0.0
    peak_rss_bytes: int = 0
    cpu_seconds: float = 0.0
    inferences: int = 0
    input_ms: tuple[float, ...] = ()
    inference_ms: tuple[float, ...] = ()
    output_ms: tuple[float, ...] = ()
    failure: str = ""

    @property
    def total_ms(self) -> tuple[float, ...]:
        """Input, inference and output of each run together, as an application waits for them."""
        return tuple(map(sum, zip(self.input_ms, self.inference_ms, self.output_ms, strict=True)))


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """One point with one case, over all its rounds; times in milliseconds.

    `jitter_ms` is the total's 99th percentile less its median. `spread` is the relative half-width of the interval that
    holds the true median. `cpu_ms` is the processor's time for one inference on all cores, without that of loading;
    None where it could not be told. Of `total_ms.count` runs, `missed` took longer than the deadline.
    """

    model: str
    point: str
    case: str
    rounds: int
    load_ms: float
    first_run_ms: float
    input_ms: Distribution
    inference_ms: Distribution
    output_ms: Distribution
    total_ms: Distribution
    jitter_ms: float
    missed: int
    cpu_ms: float | None
    peak_rss_bytes: float
    spread: float


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a point costs as ratios to the default's: the geometric mean over the cases.

    `in_front` says that no other point is as good in everything and better in something.
    """

    point: str
    latency: float
    cpu: float
    memory: float
    in_front: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelBench:
    """What was measured of one model. `recommended` is a point's name, empty without at least two of them.

    It is empty after too few rounds as well. `failures` are points with why they do not run.
    """

    model: BenchModel
    rows: tuple[BenchRow, ...]
    scores: tuple[Score, ...]
    recommended: str
    failures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """All of a run. `done` of `total` processes were run; `journal` is the file with every sample."""

    schema: Literal["ortrim-bench-report/1"] = "ortrim-bench-report/1"
    plan: BenchPlan
    goal: Goal
    models: tuple[ModelBench, ...]
    done: int
    total: int
    journal: str


def session_lines(point: BenchPoint, base: BenchPoint) -> tuple[str, ...]:
    """Return the lines of a buildspec's `[session]` that make the base's session that of the point."""
    before = asdict(base.session)
    changed = {name: value for name, value in asdict(point.session).items() if value is not None}
    return tuple(f"{name} = {_toml(value)}" for name, value in changed.items() if value != before[name])


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
