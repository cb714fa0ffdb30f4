"""A comparison of engines, as Markdown and for the terminal."""

from collections.abc import Iterator, Mapping
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.bench.engines.rows import ComparedCase, EngineComparison, EngineFacts, EngineParity, EngineRow, EngineTimes
from ortrim.parity.measurements import Verdict
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, shape_text, share_text
from ortrim.report.table import Table, columns, escaped

HEADINGS: Final = ("engine", "p50", "p99", "of first", "CPU", "load", "peak memory", "library", "difference")
BUSY: Final = 0.5
"""From this load of each core on, what the clock says of a run is largely other programs' doing."""
CANNOT_RUN: Final = "cannot run"


def cells_of(times: EngineTimes) -> tuple[str, ...]:
    """Return a row's cells, without its name."""
    return (
        ms_text(times.latency_ms.p50),
        ms_text(times.latency_ms.p99),
        share_text(times.ratio, times.spread),
        ms_text(times.processor_ms),
        ms_text(times.load_ms),
        bytes_text(times.peak_bytes),
        bytes_text(times.library_bytes),
        parity_text(times.parity),
    )


def parity_text(parity: EngineParity) -> str:
    """Return the largest difference, with a word when that is no parity."""
    match parity.verdict:
        case Verdict.FAIL:
            return f"FAIL {difference_text(parity.max_absolute)}" if parity.max_absolute else "FAIL"
        case Verdict.NOT_JUDGED:
            return "not judged"
        case _:
            return difference_text(parity.max_absolute)


def titles_of(comparison: EngineComparison) -> Mapping[str, str]:
    """Return each engine's title with its version, by its name."""
    return {engine.name: f"{engine.title} {engine.version}".strip() for engine in comparison.engines}


def case_text(case: ComparedCase) -> str:
    """Return a case's heading: the model, the case, and the shapes of its inputs."""
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in case.shapes)
    return f"{case.model}, {case.case}: {shapes or 'no inputs'}"


def failure_text(row: EngineRow) -> str:
    """Return why an engine could not run."""
    return f"{CANNOT_RUN} ({row.stage}): {row.reason}"


def machine_text(comparison: EngineComparison) -> str:
    """Return the machine, and how busy it was."""
    machine = comparison.machine
    pinned = f", kept on {','.join(map(str, machine.pinned_cores))}" if machine.pinned_cores else ""
    load = f"load average {comparison.load_average:.1f}"
    return f"{machine.cpu}, {machine.cores} cores{pinned}, {machine.os_version}, {load}"


def is_busy(comparison: EngineComparison) -> bool:
    """Whether other programs were at work when it began."""
    return comparison.load_average > BUSY * max(1, comparison.machine.cores)


def notes_of(comparison: EngineComparison) -> tuple[str, ...]:
    """Return what has to be known to read the tables."""
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


def engine_text(engine: EngineFacts) -> tuple[str, ...]:
    """Return an engine's own row: title, version, how it was used, the bytes of all its native libraries."""
    return engine.title, engine.version or NONE, engine.use or NONE, bytes_text(engine.installed_bytes)


def engine_markdown(comparison: EngineComparison) -> str:
    """Return the page: how it was measured, the engines, and a table for each case."""
    headings = (*columns("text", "engine", "version", "used as"), *columns("number", "native libraries"))
    engines = Table(columns=headings, rows=[engine_text(engine) for engine in comparison.engines]).markdown()
    notes = "\n".join(f"- {escaped(note)}" for note in notes_of(comparison))
    head = f"# {escaped(comparison.name)} in several engines\n\n{escaped(machine_text(comparison))}"
    about = f"Recorded {escaped(comparison.recorded_at)} by ortrim {escaped(comparison.ortrim_version)}."
    sections = (part for case in comparison.cases for part in _case(case, comparison))
    return "\n\n".join((f"{head}\n{about}", notes, engines, *sections)) + "\n"


def _case(case: ComparedCase, comparison: EngineComparison) -> Iterator[str]:
    titles = titles_of(comparison)
    yield f"## {escaped(case_text(case))}"
    headings = (*columns("text", HEADINGS[0]), *columns("number", *HEADINGS[1:]))
    yield Table(columns=headings, rows=tuple(_rows(case, titles))).markdown()
    reasons = []
    for row in case.rows:
        name = titles.get(row.engine, row.engine)
        if row.times is None:
            reasons.append(f"- {escaped(f'{name} {failure_text(row)}')}")
        elif row.times.parity.verdict is Verdict.FAIL:
            reasons.append(f"- {escaped(f'{name} has no parity: {row.times.parity.reason}')}")
    if reasons:
        yield "\n".join(reasons)


def _rows(case: ComparedCase, titles: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for row in case.rows:
        name = titles.get(row.engine, row.engine)
        if row.times is None:
            yield (name, CANNOT_RUN, *("" for _ in HEADINGS[2:]))
        else:
            yield (name, *cells_of(row.times))


TERMINAL_HEADINGS: Final = (
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
PARITY_STYLE: Final = {Verdict.FAIL: "bold red", Verdict.PASS: "", Verdict.NOT_JUDGED: "dim"}


def engine_tables(comparison: EngineComparison) -> RenderableType:
    """Return a table for each case, what could not run below it, and how it was measured; it fits 80 columns."""
    blocks = [part for case in comparison.cases for part in (*_engine_terminal_case(case), Text())]
    versions = ", ".join(title for name, title in titles_of(comparison).items() if _ran(name, comparison))
    lines = (*((versions,) if versions else ()), machine_text(comparison), *notes_of(comparison))
    return Group(*blocks, *(Text(printable(line), "dim") for line in lines))


def _ran(name: str, comparison: EngineComparison) -> bool:
    return any(row.engine == name and row.times for case in comparison.cases for row in case.rows)


def _engine_terminal_case(case: ComparedCase) -> tuple[RenderableType, ...]:
    table = RichTable(box=SIMPLE_HEAD, show_edge=False, padding=0, header_style="bold")
    table.add_column(TERMINAL_HEADINGS[0], overflow="fold")
    for heading in TERMINAL_HEADINGS[1:]:
        table.add_column(heading, justify="right")
    failures = []
    for row in case.rows:
        if row.times is None:
            failures.append(Text(printable(f"{row.engine} {failure_text(row)}"), "yellow"))
            continue
        table.add_row(row.engine, *_cells(row.times))
        if row.times.parity.verdict is Verdict.FAIL:
            failures.append(Text(printable(f"{row.engine} has no parity: {row.times.parity.reason}"), "red"))
    return (Text(printable(case_text(case)), "bold"), *((table,) if table.row_count else ()), *failures)


def _cells(times: EngineTimes) -> tuple[str | Text, ...]:
    latency = times.latency_ms
    milliseconds = (ms_text(value).removesuffix(" ms") for value in (latency.p50, latency.p99))
    others = (ms_text(value).removesuffix(" ms") for value in (times.processor_ms, times.load_ms))
    megabytes = (f"{value / 1e6:.1f}" for value in (times.peak_bytes, times.library_bytes))
    parity = Text(parity_text(times.parity), PARITY_STYLE.get(times.parity.verdict, ""))
    return (*milliseconds, _ratio_text(times), *others, *megabytes, parity)


def _ratio_text(times: EngineTimes) -> str:
    if times.ratio is None:
        return NONE
    return f"{times.ratio:.3g} ±{times.spread:.0%}" if times.spread else f"{times.ratio:.3g}"
