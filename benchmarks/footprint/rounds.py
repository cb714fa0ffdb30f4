"""Letting the contenders run in turn."""

from collections.abc import Callable
from datetime import UTC, datetime

from footprint.contenders import Contender, Contest
from footprint.record import CaseSample, Round, Sample
from ortrim.core.statistics import distribution
from ortrim.verify.devices.base import CaseRun, Device, RunnerOutput


def measure_round(
    device: Device, contest: Contest, number: int, busy_processors: float, on_run: Callable[[Contender], None]
) -> Round:
    """Run every contender once, each in a process of its own; `on_run` is told before each.

    Raises what `Device.run` raises; a round is whole or is none.
    """
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
    """Sum up what one process measured."""
    return Sample(
        contender=contender,
        load_ms=output.load_ms,
        peak_rss_bytes=output.memory.peak_rss_bytes,
        cases=tuple(map(_case, output.cases)),
    )


def _case(run: CaseRun) -> CaseSample:
    times = distribution(run.inference_ms)
    return CaseSample(case=run.name, runs=run.runs, first_run_ms=run.first_run_ms, p50_ms=times.p50, p99_ms=times.p99)
