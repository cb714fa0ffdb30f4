"""The inference engines that ortrim knows, what each took for a model, and how that is shown. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.buildspec.problems import nearest
from ortrim.errors import UsageError
from ortrim.parity.measurements import Distribution, HostFacts, Verdict
from ortrim.pins.shipped import shipped_text
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, number_text, shape_text, share_text
from ortrim.report.table import Table, columns, escaped

ONNXRUNTIME: Final = "onnxruntime"
TRIMMED: Final = "trimmed"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine. `use` says how it is set up; `package` and `converter` name requirements files in the pins.

    Without a `package` it is not installed for a comparison: the full runtime and the trimmed one are there anyway.
    `converts` says that the model is brought into a form of the engine's own first, by the engine's packages unless
    there is a `converter`. One that is not `usual` is compared only when it is named, for what it takes to install.
    """

    name: str
    title: str
    use: str
    package: str = ""
    converts: bool = False
    converter: str = ""
    usual: bool = True


_ALL: Final = (
    Engine(name=ONNXRUNTIME, title="ONNX Runtime", use="all optimizations"),
    Engine(name=TRIMMED, title="ONNX Runtime, trimmed", use="C API, converted model, its session.json"),
    Engine(name="openvino", title="OpenVINO", use="CPU, latency hint, float32", package="openvino"),
    Engine(name="tract", title="tract", use="shapes of the case where the model allows it", package="tract"),
    Engine(name="mnn", title="MNN", use="converted by mnnconvert, precision high", package="mnn", converts=True),
    Engine(name="ncnn", title="ncnn", use="converted by pnnx, float32", package="ncnn", converts=True),
    Engine(
        name="litert",
        title="LiteRT",
        use="converted by onnx2tf, XNNPACK",
        package="litert",
        converts=True,
        converter="litert-converter",
        usual=False,
    ),
)
ENGINES: Final[Mapping[str, Engine]] = MappingProxyType({engine.name: engine for engine in _ALL})
USUAL: Final = tuple(engine.name for engine in _ALL if engine.usual)


def engines_named(names: tuple[str, ...]) -> tuple[Engine, ...]:
    """Return the engines of these names, the usual ones without any; the full runtime, which all is held to, first."""
    for name in names:
        if name not in ENGINES:
            hint = nearest(name, ENGINES, f"choose from {', '.join(ENGINES)}")
            raise UsageError("bad-option", f"{name[:100]!r} is no engine", where="--engine", hint=hint)
    return tuple(ENGINES[name] for name in dict.fromkeys((ONNXRUNTIME, *(names or USUAL))))


def engine_requirements(name: str) -> str:
    """Return the text of an engine's requirements file, or of its converter's; every line is pinned with hashes."""
    return shipped_text(f"requirements/engine-{name}.txt")


Stage = Literal["install", "import", "convert", "load", "run", "start"]
"""Where an engine came to its end; `start` for one that did not even begin."""
STAGES: Final[tuple[Stage, ...]] = ("install", "import", "convert", "load", "run", "start")


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """An engine: its name on the command line and in tables, its version, and how it was used.

    `installed_bytes` are those of all native libraries of its package; None for one that could not be had.
    `version` is empty as long as the engine has not said it.
    """

    name: str
    title: str
    version: str = ""
    use: str = ""
    installed_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class EngineLibrary:
    """A native library of an engine that a run had opened."""

    name: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class EngineParity:
    """The outputs of a case against the full runtime's without optimizations; the worst of them."""

    verdict: Verdict
    max_absolute: float
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineTimes:
    """What one engine took for one case, over all rounds; times in milliseconds.

    `latency_ms` has every timed run, from NumPy arrays to NumPy arrays; `processor_ms` is what one run took of the
    processor, all threads together. `open_ms` is the import of the engine or the opening of its library, `load_ms` from
    a model's file to one that can run. Memory is what the process grew by, from before the engine was there. `ratio` is
    the median over the rounds of its median latency by the first engine's, `spread` that ratio's relative half-width.
    """

    rounds: int
    open_ms: float
    load_ms: float
    first_run_ms: float
    latency_ms: Distribution
    processor_ms: float
    loaded_bytes: int
    peak_bytes: int
    convert_ms: float | None
    libraries: tuple[EngineLibrary, ...]
    ratio: float | None
    spread: float | None
    parity: EngineParity

    @property
    def library_bytes(self) -> int:
        """Size of the native libraries that the run had opened."""
        return sum(library.bytes for library in self.libraries)


@dataclass(frozen=True, kw_only=True)
class EngineRow:
    """One engine and one case: what it took, or at which stage it ended, and why."""

    engine: str
    times: EngineTimes | None = None
    stage: Stage | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """One case of one model in all engines, in the requested order."""

    model: str
    model_sha256: str
    case: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    rows: tuple[EngineRow, ...]


@dataclass(frozen=True, kw_only=True)
class EngineComparison:
    """A whole comparison, as it is written to a file. `load_average` is the machine's when it began."""

    schema: Literal["ortrim-compare/1"] = "ortrim-compare/1"
    name: str
    recorded_at: str
    ortrim_version: str
    reference: str
    machine: HostFacts
    load_average: float
    threads: int
    rounds: int
    engines: tuple[EngineFacts, ...]
    cases: tuple[ComparedCase, ...]


HEADINGS: Final = ("engine", "p50", "p99", "of first", "CPU", "load", "peak memory", "library", "difference")
SHORT_HEADINGS: Final = (
    "engine",
    "p50 ms",
    "p99 ms",
    "of first",
    "CPU ms",
    "load ms",
    "peak MB",
    "lib MB",
    "difference",
)
BUSY: Final = 0.5
"""From this load of each core on, what the clock says of a run is largely other programs' doing."""
CANNOT_RUN: Final = "cannot run"
PARITY_STYLE: Final = {Verdict.FAIL: "bold red", Verdict.PASS: "", Verdict.NOT_JUDGED: "dim"}


def parity_text(parity: EngineParity) -> str:
    """Return the largest difference, with a word when that is no parity."""
    match parity.verdict:
        case Verdict.FAIL:
            return f"FAIL {difference_text(parity.max_absolute)}" if parity.max_absolute else "FAIL"
        case Verdict.NOT_JUDGED:
            return "not judged"
        case _:
            return difference_text(parity.max_absolute)


def _titles(comparison: EngineComparison) -> Mapping[str, str]:
    return {engine.name: f"{engine.title} {engine.version}".strip() for engine in comparison.engines}


def _case_text(case: ComparedCase) -> str:
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in case.shapes)
    return f"{case.model}, {case.case}: {shapes or 'no inputs'}"


def _trouble(row: EngineRow, name: str) -> str:
    """Say why an engine could not run, or that its outputs are wrong; empty when all is well."""
    if row.times is None:
        return f"{name} {CANNOT_RUN} ({row.stage}): {row.reason}"
    failed = row.times.parity.verdict is Verdict.FAIL
    return f"{name} has no parity: {row.times.parity.reason}" if failed else ""


def _machine_text(comparison: EngineComparison) -> str:
    machine = comparison.machine
    pinned = f", kept on {','.join(map(str, machine.pinned_cores))}" if machine.pinned_cores else ""
    load = f"load average {comparison.load_average:.1f}"
    return f"{machine.cpu}, {machine.cores} cores{pinned}, {machine.os_version}, {load}"


def is_busy(comparison: EngineComparison) -> bool:
    """Whether other programs were at work when it began."""
    return comparison.load_average > BUSY * max(1, comparison.machine.cores)


def _notes(comparison: EngineComparison) -> tuple[str, ...]:
    first = comparison.engines[0].title if comparison.engines else "the first engine"
    rounds, threads = counted(comparison.rounds, "round"), counted(comparison.threads, "thread")
    notes = (
        f"{rounds}, {threads}; engines alternately, each in a new process.",
        f"'of first' is p50 divided by that of {first}, round by round.",
        "Memory is the growth of the process; library is the size of the native libraries that it opened.",
        f"Differences are to {comparison.reference}.",
    )
    busy = "Other programs were running: CPU time is more reliable than wall time."
    return (*notes, busy) if is_busy(comparison) else notes


def engine_markdown(comparison: EngineComparison) -> str:
    """Return the page: how it was measured, the engines, and a table for each case."""
    engines = [
        (engine.title, engine.version or NONE, engine.use or NONE, bytes_text(engine.installed_bytes))
        for engine in comparison.engines
    ]
    headings = (*columns("text", "engine", "version", "used as"), *columns("number", "native libraries"))
    notes = "\n".join(f"- {escaped(note)}" for note in _notes(comparison))
    head = f"# {escaped(comparison.name)} in several engines\n\n{escaped(_machine_text(comparison))}"
    about = f"Recorded {escaped(comparison.recorded_at)} by ortrim {escaped(comparison.ortrim_version)}."
    sections = (part for case in comparison.cases for part in _case_markdown(case, _titles(comparison)))
    table = Table(columns=headings, rows=engines).markdown()
    return "\n\n".join((f"{head}\n{about}", notes, table, *sections)) + "\n"


def _case_markdown(case: ComparedCase, titles: Mapping[str, str]) -> Iterator[str]:
    named = [(row, titles.get(row.engine, row.engine)) for row in case.rows]
    empty = (CANNOT_RUN, *("" for _ in HEADINGS[2:]))
    rows = [(name, *(_cells(row.times) if row.times else empty)) for row, name in named]
    yield f"## {escaped(_case_text(case))}"
    yield Table(columns=(*columns("text", HEADINGS[0]), *columns("number", *HEADINGS[1:])), rows=rows).markdown()
    if troubles := list(filter(None, (_trouble(row, name) for row, name in named))):
        yield "\n".join(f"- {escaped(trouble)}" for trouble in troubles)


def _cells(times: EngineTimes) -> tuple[str, ...]:
    return (
        *map(ms_text, (times.latency_ms.p50, times.latency_ms.p99)),
        share_text(times.ratio, times.spread),
        *map(ms_text, (times.processor_ms, times.load_ms)),
        *map(bytes_text, (times.peak_bytes, times.library_bytes)),
        parity_text(times.parity),
    )


def engine_tables(comparison: EngineComparison) -> RenderableType:
    """Return a table for each case, what could not run below it, and how it was measured; it fits 80 columns."""
    blocks = [part for case in comparison.cases for part in (*_case_table(case), Text())]
    ran = {row.engine for case in comparison.cases for row in case.rows if row.times}
    versions = ", ".join(title for name, title in _titles(comparison).items() if name in ran)
    lines = (*((versions,) if versions else ()), _machine_text(comparison), *_notes(comparison))
    return Group(*blocks, *(Text(printable(line), "dim") for line in lines))


def _case_table(case: ComparedCase) -> Iterator[RenderableType]:
    yield Text(printable(_case_text(case)), "bold")
    rows = [(row.engine, *_short_cells(row.times)) for row in case.rows if row.times]
    if rows:
        headings = (*columns("text", SHORT_HEADINGS[0]), *columns("number", *SHORT_HEADINGS[1:]))
        yield Table(columns=headings, rows=rows).terminal(padding=0)
    for row in case.rows:
        if trouble := _trouble(row, row.engine):
            yield Text(printable(trouble), "red" if row.times else "yellow")


def _short_cells(times: EngineTimes) -> tuple[str | Text, ...]:
    spread = f" ±{times.spread:.0%}" if times.spread else ""
    return (
        *map(number_text, (times.latency_ms.p50, times.latency_ms.p99)),
        NONE if times.ratio is None else f"{times.ratio:.3g}{spread}",
        *map(number_text, (times.processor_ms, times.load_ms)),
        *(f"{value / 1e6:.1f}" for value in (times.peak_bytes, times.library_bytes)),
        Text(parity_text(times.parity), PARITY_STYLE.get(times.parity.verdict, "")),
    )
