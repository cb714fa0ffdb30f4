"""One call of the benchmark: which cases are measured, the record as it grows, and what went wrong so far."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from records import read_record, table_of

from build_time.bench import LIBRARIES, Bench, comparisons, read_through
from build_time.cases import CASES, Case, operators_in
from build_time.meter import Cost
from build_time.record import Measurement, Record, wait_for_rest
from ortrim.base.console import Console, Step, duration_text
from ortrim.base.files import write_atomically
from ortrim.base.json import to_json
from ortrim.base.scripts import packages_folder
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.pins.shipped import tool_requirements
from ortrim.report.table import Table

HEADINGS = ("case", "n", "wall", "ratio", "CPU", "steps", "files", "memory", "library", "SHA-256")
"""`n` are the rounds, `ratio` is to upstream's wall time, `files` are compiled ones of all, the library is in bytes."""


def median_cost(measurements: Iterable[Measurement], seconds: Callable[[Cost], float]) -> float | None:
    found = [seconds(each.cost) for each in measurements]
    return median(found) if found else None


def cpu_seconds(cost: Cost) -> float:
    return cost.cpu_seconds


def wall_seconds(cost: Cost) -> float:
    return cost.wall_seconds


def times_table(record: Record, spec: str) -> Table:
    """Return the table of one spec: a row for each case that was measured; `*` marks a machine that was not at rest."""
    found = (record.latest(spec, case.name) for case in CASES)
    return table_of(HEADINGS, [tuple(_cells(record, each)) for each in found if each])


def graph_points(record: Record, spec: str) -> tuple[tuple[int, float], ...]:
    """Return (operator types, median processor seconds) of the graph's cases, by number."""
    names = {each.case for each in record.measurements if each.spec == spec}
    found = ((operators_in(name), median_cost(record.latest(spec, name), cpu_seconds)) for name in names)
    return tuple(sorted((number, seconds) for number, seconds in found if number is not None and seconds is not None))


def _cells(record: Record, measurements: tuple[Measurement, ...]) -> Iterator[str]:
    last = measurements[-1]
    upstream = median_cost(record.latest(last.spec, "upstream"), wall_seconds)
    wall = median(wall_seconds(each.cost) for each in measurements)
    yield last.case
    yield str(len(measurements)) + ("*" if any(each.disturbed for each in measurements) else "")
    yield duration_text(wall)
    yield f"{wall / upstream:.3f}" if upstream else ""
    yield duration_text(median(each.cost.cpu_seconds for each in measurements))
    yield str(last.steps or "")
    yield "{}/{}".format(*last.units) if last.units else ""
    yield f"{max(each.cost.peak_total_bytes for each in measurements) / 1e9:.2f} GB"
    yield f"{last.library.size_bytes:,}" if last.library else ""
    yield last.library.sha256[:8] if last.library else ""


RECORD: Final = "build-time.json"


class Session:
    """The record as it grows: each measurement is in the file as soon as it is made.

    With `again`, what is in the record is measured, too; with `plan_only`, nothing is. Raises as `read_record` does.
    """

    def __init__(self, output: Path, console: Console, *, again: bool, rest_seconds: float, plan_only: bool) -> None:
        self.file = output / RECORD
        self.record = read_record(self.file, Record(machine=Host().facts()))
        self.plan_only = plan_only
        self._again, self._rest_seconds = again, rest_seconds
        self._console = console
        self._failures: list[Diagnostic] = []
        self._read: set[Path] = set()

    def run(self, bench: Bench, planned: tuple[tuple[int, Case], ...]) -> None:
        """Measure (round, case) of one spec, what is in the record already left out."""
        for number, case in planned:
            name = f"{bench.pair.own.name}: {case.name}, round {number}"
            if self._has(bench, case, number):
                self._console.note(f"= {name}: measured before")
            elif self.plan_only:
                self._console.note(f"  {name}: to be measured ({case.text})")
            else:
                self._attempt(bench, case, number, name)

    def conclude(self, specs: tuple[str, ...]) -> None:
        """Show what was measured of some specs, now and before. Raises what went wrong."""
        for spec in specs:
            if (table := times_table(self.record, spec)).rows:
                self._console.note(spec)
                self._console.render(table.terminal(rule=False))
            for line in comparisons(self.file.parent / LIBRARIES / spec):
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
        busy = wait_for_rest(self._rest_seconds, lambda text: step.progress(0, 0, text))
        measurement = bench.measure(case, cache, number, busy, step)
        self.record = self.record.with_measurement(measurement)
        write_atomically(self.file, to_json(self.record))

    def _has(self, bench: Bench, case: Case, number: int) -> bool:
        found = self.record.of(bench.pair.own.name, case.name, bench.pair.key(case))
        return not self._again and any(each.round == number for each in found)

    def _read_inputs(self, sources: Path, step: Step) -> None:
        """Read sources and tools once, or the first case would pay for the disk."""
        if sources not in self._read:
            step.progress(0, 0, "reads sources and tools")
            read_through(sources, packages_folder("tools", tool_requirements()))
            self._read.add(sources)
