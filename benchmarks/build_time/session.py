"""One call of the benchmark: which cases are measured, the record as it grows, and what went wrong so far."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build_time.bench import LIBRARIES, Bench
from build_time.cases import Case
from build_time.library import comparisons
from build_time.machine import this_machine, wait_for_rest
from build_time.record import read_record, write_record
from build_time.scratch import read_through
from build_time.table import times_table
from ortrim.base.console import Console, Step
from ortrim.base.scripts import packages_folder
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.pins.shipped import tool_requirements

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
