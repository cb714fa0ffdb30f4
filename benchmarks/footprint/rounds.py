"""Letting the contenders run in turn."""

from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from build_time.measure import alone
from build_time.record import wait_for_rest
from records import read_record

from footprint.contenders import Contest
from footprint.record import CaseSample, Record, Round, Sample
from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.base.json import to_json
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.parity.measurements import distribution
from ortrim.parity.runner import CaseRun, RunnerOutput

R = TypeVar("R", bound=Record)


def one_by_one(specs: Iterable[Path], measure: Callable[[Path], None], show: Callable[[], None]) -> None:
    """Measure each spec, and `show` what there is in the end, interrupted or not."""
    failures = []
    with alone():
        try:
            for spec in specs:
                try:
                    measure(spec)
                except Diagnostic as failure:
                    failures.append(failure)
        finally:
            show()
    if failures:
        raise DiagnosticGroup(tuple(failures))


class Session(Generic[R]):
    """A record as it grows: each round is in the file as soon as it was measured.

    Each round waits up to `rest_seconds` for other work on the machine to end.
    """

    def __init__(self, path: Path, empty: R, *, rounds: int, rest_seconds: float, console: Console) -> None:
        self.record = read_record(path, empty)
        self._path, self._console = path, console
        self._rounds, self._rest_seconds = rounds, rest_seconds

    def keep(self, record: R) -> None:
        self.record = record
        write_atomically(self._path, to_json(record))

    def run(self, contests: Iterable[Contest]) -> None:
        """Measure the rounds of each contest that are not in the record."""
        for contest in contests:
            name = contest.model if contest.model == contest.spec else f"{contest.spec}, {contest.model}"
            there = {each.number for each in self.record.of(contest.spec, contest.model, contest.key)}
            missing = [number for number in range(1, self._rounds + 1) if number not in there]
            with self._console.step(f"measure {name}") as step, closing(Host()) as device:
                if there:
                    step.note(f"{len(there)} of {self._rounds} rounds were measured before")
                for done, number in enumerate(missing):
                    on_run = partial(step.progress, done, len(missing))
                    busy = wait_for_rest(self._rest_seconds, on_run)
                    new = measure_round(device, contest, number, busy, on_run)
                    self.keep(self.record.with_round(new))


def measure_round(
    device: ProgramDevice, contest: Contest, number: int, busy_processors: float, on_run: Callable[[str], None]
) -> Round:
    started = datetime.now(tz=UTC).isoformat(timespec="seconds")
    samples = []
    for contender in contest.order(number):
        on_run(f"round {number}, {contender.name}")
        samples.append(sample_of(contender.name, device.run(contest.request(contender))))
    return Round(
        spec=contest.spec,
        model=contest.model,
        key=contest.key,
        number=number,
        started=started,
        busy_processors=busy_processors,
        samples=tuple(samples),
    )


def sample_of(contender: str, output: RunnerOutput) -> Sample:
    return Sample(
        contender=contender,
        load_ms=output.load_ms,
        peak_rss_bytes=output.memory.peak_rss_bytes,
        cases=tuple(map(_case, output.cases)),
    )


def _case(run: CaseRun) -> CaseSample:
    times = distribution(run.inference_ms)
    return CaseSample(case=run.name, runs=run.runs, first_run_ms=run.first_run_ms, p50_ms=times.p50, p99_ms=times.p99)
