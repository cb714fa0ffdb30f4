"""A comparison of engines for the terminal and plain logs."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.console import printable
from ortrim.core.engine_comparison import ComparedCase, EngineComparison, EngineTimes
from ortrim.core.measurements import Verdict
from ortrim.report.engine_content import case_text, failure_text, machine_text, notes_of, parity_text, titles_of
from ortrim.report.figures import NONE, ms_text

HEADINGS: Final = ("engine", "p50 ms", "p99 ms", "of first", "CPU ms", "load ms", "peak MB", "lib MB", "difference")
PARITY_STYLE: Final = {Verdict.FAIL: "bold red", Verdict.PASS: "", Verdict.NOT_JUDGED: "dim"}


def engine_tables(comparison: EngineComparison) -> RenderableType:
    """Return a table for each case, what could not run below it, and how it was measured; it fits 80 columns."""
    blocks = [part for case in comparison.cases for part in (*_case(case), Text())]
    versions = ", ".join(title for name, title in titles_of(comparison).items() if _ran(name, comparison))
    lines = (*((versions,) if versions else ()), machine_text(comparison), *notes_of(comparison))
    return Group(*blocks, *(Text(printable(line), "dim") for line in lines))


def _ran(name: str, comparison: EngineComparison) -> bool:
    return any(row.engine == name and row.times for case in comparison.cases for row in case.rows)


def _case(case: ComparedCase) -> tuple[RenderableType, ...]:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0, header_style="bold")
    table.add_column(HEADINGS[0], overflow="fold")
    for heading in HEADINGS[1:]:
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
