"""From the runs of all rounds to one row for each engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from ortrim.bench.engine_answers import CannotRun, EngineConversion, EngineRun
from ortrim.core.engine_comparison import EngineParity, EngineRow, EngineTimes
from ortrim.core.statistics import distribution, median, median_interval


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of one engine with one case: its conversion, a run for each round, or why there are no more."""

    engine: str
    conversion: EngineConversion | None = None
    runs: tuple[EngineRun, ...] = ()
    failure: CannotRun | None = None
    parity: EngineParity | None = None


def rows_of(attempts: Sequence[Attempt]) -> tuple[EngineRow, ...]:
    """Sum up what engines took; ratios are to the first of them, round by round, unless it could not run."""
    first = next(iter(attempts), None)
    baseline = first.runs if first is not None and first.failure is None else ()
    return tuple(_row(attempt, baseline) for attempt in attempts)


def _row(attempt: Attempt, baseline: Sequence[EngineRun]) -> EngineRow:
    if attempt.failure is not None:
        return EngineRow(engine=attempt.engine, stage=attempt.failure.stage, reason=attempt.failure.reason)
    if not attempt.runs or attempt.parity is None:
        return EngineRow(engine=attempt.engine, stage="start", reason="it was not run")
    return EngineRow(engine=attempt.engine, times=_times(attempt, attempt.parity, baseline))


def _times(attempt: Attempt, parity: EngineParity, baseline: Sequence[EngineRun]) -> EngineTimes:
    runs = attempt.runs
    ratios = [median(run.samples_ms) / median(base.samples_ms) for run, base in zip(runs, baseline, strict=False)]
    ratio = median_interval(ratios) if ratios else None
    return EngineTimes(
        rounds=len(runs),
        open_ms=median(run.open_ms for run in runs),
        load_ms=median(run.load_ms for run in runs),
        first_run_ms=median(run.first_run_ms for run in runs),
        latency_ms=distribution(sample for run in runs for sample in run.samples_ms),
        processor_ms=median(run.processor_ms for run in runs),
        loaded_bytes=round(median(run.loaded_bytes for run in runs)),
        peak_bytes=round(median(run.peak_bytes for run in runs)),
        convert_ms=attempt.conversion.convert_ms if attempt.conversion else None,
        libraries=runs[0].libraries,
        ratio=ratio.median if ratio else None,
        spread=ratio.spread if ratio else None,
        parity=parity,
    )
