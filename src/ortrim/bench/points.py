"""What `invoke bench` measures and what comes of it: points, samples, rows, scores. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any, Final, Literal

from ortrim.base.json import to_canonical_json
from ortrim.buildspec.buildspec import DIRECTLY, IN_PLACE, SessionSettings, SessionSpec, settings_of
from ortrim.buildspec.problems import nearest
from ortrim.errors import UsageError
from ortrim.parity.measurements import Distribution, HostFacts
from ortrim.report.history import BenchEntry, BenchMeasure

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
    """All that is to be measured, and where; `deadline_ms` is the period in which an inference has to be over.

    `providers` are the execution providers of the buildspec's library, whichever is measured.
    """

    schema: Literal["ortrim-bench/1"] = "ortrim-bench/1"
    name: str
    target: str
    providers: tuple[str, ...] = ()
    recorded_at: str
    ortrim_version: str
    training_run: str
    library: BenchLibrary
    machine: HostFacts
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
    None where it is not known. Of `total_ms.count` runs, `missed` took longer than the deadline.
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


Value = bool | int | str
EACH: Final = "each"
"""Every setting alone, each in turn."""
LEVEL: Final = "level"
TRUTHS: Final = (False, True)
CHOICES: Final[Mapping[str, tuple[Value, ...]]] = MappingProxyType({
    "threads": (1, 2),
    "inter_op_threads": (1, 2),
    "spinning": TRUTHS,
    LEVEL: ("none", "basic", "extended", "all"),
    "load": ("map", "bytes", "file"),
    "in_place": TRUTHS,
    "prepacking": TRUTHS,
    "arena": TRUTHS,
    "memory_pattern": TRUTHS,
})  # fmt: skip
"""Each axis with the values that it takes unless it is told others; `threads` goes on to the number of cores."""
WORDS: Final = MappingProxyType({"true": True, "false": False})
MOST_THREADS: Final = 1024


def axis_from(word: str, cores: int) -> tuple[str, tuple[Value, ...]]:
    """Read `threads` or `threads=1,2`."""
    name, given, values = word.partition("=")
    if name not in CHOICES:
        hint = nearest(name, CHOICES, f"choose {EACH}, or some of {', '.join(CHOICES)}")
        raise UsageError(
            "bad-option", f"{name[:100]!r} is not a setting that can be varied", where="--sweep", hint=hint
        )
    if not given:
        return name, values_of(name, cores)
    return name, tuple(dict.fromkeys(_value(name, each.strip()) for each in values.split(",")))


def values_of(name: str, cores: int) -> tuple[Value, ...]:
    """Return the values of an axis on a machine with so many cores."""
    if name != "threads":
        return CHOICES[name]
    powers = [number for number in (1, 2, 4, 8, 16, 32, 64) if number < cores]
    return (*powers, max(cores, 1))


def with_value(point: BenchPoint, name: str, value: Value) -> BenchPoint:
    """Return a point with another value of one setting; its name stays."""
    if name == LEVEL:
        level: Any = value
        return replace(point, level=level)
    changed: dict[str, Any] = {name: value}
    return replace(point, session=replace(point.session, **changed))


def value_of(point: BenchPoint, name: str) -> Value | None:
    """Return the value that a point has of one setting."""
    if name == LEVEL:
        return point.level
    value: Value | None = getattr(point.session, name)
    return value


def name_of(point: BenchPoint, base: BenchPoint) -> str:
    """Name a point by its settings that differ from the base, as options: `threads=2 spinning=true`."""
    changed = [name for name in CHOICES if value_of(point, name) != value_of(base, name)]
    return " ".join(f"{name}={text_of(value_of(point, name))}" for name in changed) or base.name


def text_of(value: Value | None) -> str:
    """Write a value as TOML does, a word without its quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(name: str, word: str) -> Value:
    allowed = CHOICES[name]
    if word in WORDS and isinstance(allowed[0], bool):
        return WORDS[word]
    if isinstance(allowed[0], str) and word in allowed:
        return word
    number = len(word) <= len(str(MOST_THREADS)) and word.isascii() and word.isdecimal()
    if number and type(allowed[0]) is int and 1 <= int(word) <= MOST_THREADS:
        return int(word)
    known = f"numbers from 1 to {MOST_THREADS}" if type(allowed[0]) is int else ", ".join(map(text_of, allowed))
    raise UsageError("bad-option", f"{word[:100]!r} is no value of {name}", where="--sweep", hint=f"choose {known}")


DEFAULT: Final = "default"
MOST_POINTS: Final = 100


def sweep_points(base: BenchPoint, words: Sequence[str], *, cores: int, full: bool) -> tuple[BenchPoint, ...]:
    """Return the base and what is to be measured beside it.

    `each` changes every setting alone; all other words (`threads=1,2`) are combined with one another. `each` leaves out
    what means nothing to the library: levels where it is not `full`, and weights in place where it is.
    """
    named = dict(axis_from(word, cores) for word in words if word != EACH)
    if LEVEL in named and not full:
        what = "a converted model was optimized when it was converted"
        raise UsageError("bad-option", what, where="--sweep level", hint="measure the official one: --library wheel")
    alone = _one_at_a_time(base, cores, full=full) if EACH in words else ()
    points: dict[str, BenchPoint] = {base.name: base}
    for point in (*alone, *_combined(base, named)):
        points.setdefault(name := name_of(point, base), replace(point, name=name))
    if len(points) > MOST_POINTS:
        hint = "give fewer values, such as --sweep threads=1,2"
        raise UsageError(
            "sweep-too-large", f"these are {len(points)} combinations; at most {MOST_POINTS} are possible", hint=hint
        )
    return tuple(points.values())


def turns(model: BenchModel, number: int) -> Iterator[tuple[BenchPoint, str]]:
    """Yield each point with each case in the order of a round; each round begins with the next point.

    A point is loaded once without a case before its cases.
    """
    first = number % len(model.points)
    for point in model.points[first:] + model.points[:first]:
        yield point, ""
        for case in model.cases:
            yield point, case.name


def _one_at_a_time(base: BenchPoint, cores: int, *, full: bool) -> Iterator[BenchPoint]:
    left_out = "in_place" if full else LEVEL
    for name in CHOICES:
        if name != left_out:
            start = _with_threads(base, cores) if name == "spinning" else base
            yield from (
                with_value(start, name, value) for value in values_of(name, cores) if value_of(base, name) != value
            )


def _with_threads(base: BenchPoint, cores: int) -> BenchPoint:
    """Return a point with several threads: one alone has nobody to wait for, so that it never spins."""
    return base if (base.session.threads or 1) > 1 else with_value(base, "threads", max(2, cores))


def _combined(base: BenchPoint, axes: Mapping[str, tuple[Value, ...]]) -> Iterator[BenchPoint]:
    for values in product(*axes.values()):
        point = base
        for name, value in zip(axes, values, strict=True):
            point = with_value(point, name, value)
        yield point


CONVERTED_ALONE: Final = (DIRECTLY, IN_PLACE)
"""Entries that say nothing to a model in ONNX format, whose bytes are always copied."""


def settings_at(point: BenchPoint, *, style: str, reads_in_place: bool, onnx: bool) -> SessionSettings:
    """Return the settings of a point for a converted model, or for one in ONNX format."""
    settings = settings_of(point.session, style=style, reads_in_place=reads_in_place)
    if not onnx:
        return settings
    entries = tuple(entry for entry in settings.configuration if entry not in CONVERTED_ALONE)
    return replace(settings, optimization_level=point.level, configuration=entries)


def entries_of(report: BenchReport) -> tuple[BenchEntry, ...]:
    """Return what is kept of a finished bench; points that failed are not."""
    found = []
    for each in report.models:
        for point in each.model.points:
            rows = [row for row in each.rows if row.point == point.name]
            if rows:
                found.append(_entry(report.plan, each.model, point, rows, chosen=each.recommended == point.name))
    return tuple(found)


def _entry(plan: BenchPlan, model: BenchModel, point: BenchPoint, rows: list[BenchRow], *, chosen: bool) -> BenchEntry:
    return BenchEntry(
        recorded_at=plan.recorded_at,
        spec=plan.name,
        target=plan.target,
        model=model.name,
        model_sha256=model.sha256,
        training_run=plan.training_run,
        library=plan.library.kind,
        library_sha256=plan.library.sha256,
        ort_version=plan.library.ort_version,
        ortrim_version=plan.ortrim_version,
        point=point.name,
        settings=to_canonical_json({"level": point.level, "session": point.session}),
        recommended=int(chosen),
        rounds=plan.rounds,
        deadline_ms=plan.deadline_ms or 0.0,
        system=plan.machine.os_version,
        cpu=plan.machine.cpu,
        cores=len(plan.machine.pinned_cores) or plan.machine.cores,
        measures=tuple(measure for row in rows for measure in _measures(row, plan.deadline_ms)),
    )


def _measures(row: BenchRow, deadline_ms: float | None) -> Iterator[BenchMeasure]:
    times = {
        "p50": row.total_ms.p50,
        "p90": row.total_ms.p90,
        "p99": row.total_ms.p99,
        "maximum": row.total_ms.maximum,
        "jitter": row.jitter_ms,
        "input": row.input_ms.p50,
        "inference": row.inference_ms.p50,
        "output": row.output_ms.p50,
        "load": row.load_ms,
        "first run": row.first_run_ms,
    }
    if row.cpu_ms is not None:
        times["processor"] = row.cpu_ms
    for name, value in times.items():
        yield BenchMeasure(case=row.case, measure=name, unit="ms", value=value)
    yield BenchMeasure(case=row.case, measure="peak memory", unit="bytes", value=row.peak_rss_bytes)
    if deadline_ms is not None:
        yield BenchMeasure(case=row.case, measure="missed deadlines", unit="runs", value=row.missed)
