"""One call of the benchmark: which cases are measured, the record as it grows, and what went wrong so far."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.table import Table

from build_time.bench import LIBRARIES, Bench, comparisons, read_through
from build_time.cases import CASES, Case, operators_in
from build_time.record import Measurement, Record, read_record, this_machine, wait_for_rest, write_record
from ortrim.base.console import Console, Step, duration_text, printable
from ortrim.base.scripts import packages_folder
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.pins.shipped import tool_requirements

HEADINGS = ("case", "n", "wall", "ratio", "CPU", "steps", "files", "memory", "library", "SHA-256")
"""`n` are the rounds, `ratio` is to upstream's wall time, `files` are compiled ones of all, the library is in bytes."""


def median_wall(measurements: Iterable[Measurement]) -> float | None:
    walls = [each.cost.wall_seconds for each in measurements]
    return median(walls) if walls else None


def median_processor(measurements: Iterable[Measurement]) -> float | None:
    times = [each.cost.cpu_seconds for each in measurements]
    return median(times) if times else None


def ratio_to_upstream(record: Record, spec: str, case: str) -> float | None:
    """Return a case's median wall time divided by that of upstream's recipe; None when either is missing."""
    own, upstream = (median_wall(record.latest(spec, name)) for name in (case, "upstream"))
    return None if own is None or upstream is None else own / upstream


def times_table(record: Record, spec: str) -> Table:
    """Return the table of one spec: a row for each case that was measured; `*` marks a machine that was not at rest."""
    table = Table(title=printable(spec), title_justify="left", box=None, collapse_padding=True, pad_edge=False)
    for heading in HEADINGS:
        left = heading in {"case", "SHA-256"}
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for case in CASES:
        if measurements := record.latest(spec, case.name):
            table.add_row(*_cells(record, measurements))
    return table


def points_table(points: Iterable[tuple[int, float]]) -> Table:
    """Return the table behind the graph: processor time by number of operator types."""
    table = Table("operator types", "processor", title="build time by operator types", title_justify="left", box=None)
    for number, seconds in points:
        table.add_row(str(number), duration_text(seconds))
    return table


def graph_points(record: Record, spec: str) -> tuple[tuple[int, float], ...]:
    """Return (operator types, median processor seconds) of the graph's cases, by number."""
    names = {each.case for each in record.measurements if each.spec == spec}
    found = ((operators_in(name), median_processor(record.latest(spec, name))) for name in names)
    return tuple(sorted((number, seconds) for number, seconds in found if number is not None and seconds is not None))


def _cells(record: Record, measurements: tuple[Measurement, ...]) -> Iterator[str]:
    last = measurements[-1]
    ratio = ratio_to_upstream(record, last.spec, last.case)
    yield last.case
    yield str(len(measurements)) + ("*" if any(each.disturbed for each in measurements) else "")
    yield duration_text(median(each.cost.wall_seconds for each in measurements))
    yield "" if ratio is None else f"{ratio:.3f}"
    yield duration_text(median(each.cost.cpu_seconds for each in measurements))
    yield str(last.steps or "")
    yield "{}/{}".format(*last.units) if last.units else ""
    yield f"{max(each.cost.peak_total_bytes for each in measurements) / 1e9:.2f} GB"
    yield f"{last.library.size_bytes:,}" if last.library else ""
    yield last.library.sha256[:8] if last.library else ""


RECORD: Final = "build-time.json"


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How cases are measured, whichever they are."""

    output: Path = Path("artifacts/benchmarks")
    again: bool = False
    rest_seconds: float = 180.0
    plan_only: bool = False


class Session:
    """The record as it grows: each measurement is in the file as soon as it is made."""

    def __init__(self, manner: Manner, console: Console) -> None:
        """Read what was measured before. Raises `StorageError` and `UsageError` as `read_record` does."""
        self.file = manner.output / RECORD
        self.record = read_record(self.file, this_machine())
        self.manner = manner
        self._console = console
        self._failures: list[Diagnostic] = []
        self._read: set[Path] = set()

    def run(self, bench: Bench, planned: tuple[tuple[int, Case], ...]) -> None:
        """Measure (round, case) of one spec, what is in the record already left out."""
        for number, case in planned:
            name = f"{bench.pair.own.name}: {case.name}, round {number}"
            if self._has(bench, case, number):
                self._console.note(f"= {name}: measured before")
            elif self.manner.plan_only:
                self._console.note(f"  {name}: to be measured ({case.text})")
            else:
                self._attempt(bench, case, number, name)

    def conclude(self, specs: tuple[str, ...]) -> None:
        """Show what was measured of some specs, now and before. Raises what went wrong."""
        for spec in specs:
            if (table := times_table(self.record, spec)).row_count:
                self._console.render(table)
            for line in comparisons(self.manner.output / LIBRARIES / spec):
                self._console.note(line)
        if any(each.disturbed for each in self.record.measurements):
            self._console.note("* something else was running")
        self._console.note(f"record: {self.file}")
        if self._failures:
            raise DiagnosticGroup(tuple(self._failures))

    def _attempt(self, bench: Bench, case: Case, number: int, name: str) -> None:
        try:
            with self._console.step(name) as step:
                self._measure(bench, case, number, step)
        except Diagnostic as failure:
            self._failures.append(failure)

    def _measure(self, bench: Bench, case: Case, number: int, step: Step) -> None:
        self._read_inputs(bench.pair.own.sources, step)
        cache = bench.prepare(case, step)
        busy = wait_for_rest(
            self.manner.rest_seconds, lambda now: step.progress(0, 0, f"waits: {now:.1f} processors are at work")
        )
        measurement = bench.measure(case, cache, number, busy, step)
        self.record = self.record.with_measurement(measurement)
        write_record(self.file, self.record)

    def _has(self, bench: Bench, case: Case, number: int) -> bool:
        found = self.record.of(bench.pair.own.name, case.name, bench.pair.key(case))
        return not self.manner.again and any(each.round == number for each in found)

    def _read_inputs(self, sources: Path, step: Step) -> None:
        """Read sources and tools once, or the first case would pay for the disk."""
        if sources not in self._read:
            step.progress(0, 0, "reads sources and tools")
            read_through(sources, packages_folder("tools", tool_requirements()))
            self._read.add(sources)
