"""Letting the contenders run in turn."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from build_time.measure import alone
from build_time.record import wait_for_rest

from footprint.contenders import Contender, Contest
from footprint.record import CaseSample, Record, Round, Sample
from ortrim.base.console import Console
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.parity.measurements import distribution
from ortrim.parity.runner import CaseRun, RunnerOutput


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


@dataclass(frozen=True, kw_only=True)
class Turns:
    """How many rounds there shall be; each waits up to `rest_seconds` for other work on the machine to end."""

    rounds: int
    rest_seconds: float


def measure_contest(
    contest: Contest, record: Record, turns: Turns, console: Console, keep: Callable[[Round], None]
) -> None:
    name = contest.model if contest.model == contest.spec else f"{contest.spec}, {contest.model}"
    there = {each.number for each in record.of(contest.spec, contest.model, contest.key)}
    missing = [number for number in range(1, turns.rounds + 1) if number not in there]
    with console.step(f"measure {name}") as step, closing(Host()) as device:
        if there:
            step.note(f"{len(there)} of {turns.rounds} rounds were measured before")
        for done, number in enumerate(missing):
            tell = partial(step.progress, done, len(missing))
            keep(_round_at_rest(device, contest, number, turns.rest_seconds, tell))


def _round_at_rest(
    device: ProgramDevice, contest: Contest, number: int, rest_seconds: float, tell: Callable[[str], None]
) -> Round:
    busy = wait_for_rest(rest_seconds, lambda now: tell(f"waits: {now:.1f} processors are at work"))
    return measure_round(device, contest, number, busy, lambda each: tell(f"round {number}, {each.name}"))


def measure_round(
    device: ProgramDevice, contest: Contest, number: int, busy_processors: float, on_run: Callable[[Contender], None]
) -> Round:
    started = datetime.now(tz=UTC).isoformat(timespec="seconds")
    samples = []
    for contender in contest.order(number):
        on_run(contender)
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
