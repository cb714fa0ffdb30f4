"""What the samples of a point come to."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ortrim.bench.scores import FEWEST_ROUNDS, recommended, resolution, scores_of
from ortrim.core.bench import BenchModel, BenchPlan, BenchReport, BenchRow, Goal, ModelBench, Sample
from ortrim.core.measurements import Distribution
from ortrim.core.statistics import distribution, median, median_interval


def report_of(plan: BenchPlan, samples: Sequence[Sample], goal: Goal, journal: str) -> BenchReport:
    """Sum up what was measured so far."""
    return BenchReport(
        plan=plan,
        goal=goal,
        models=tuple(_of_model(model, samples, plan.deadline_ms, goal) for model in plan.models),
        done=len(samples),
        total=process_count(plan),
        journal=journal,
    )


def process_count(plan: BenchPlan) -> int:
    """Return how many processes a whole bench runs: each point is loaded alone, and then with each case."""
    return sum(plan.rounds * len(model.points) * (1 + len(model.cases)) for model in plan.models)


def _of_model(model: BenchModel, samples: Sequence[Sample], deadline_ms: float | None, goal: Goal) -> ModelBench:
    own = [sample for sample in samples if sample.model == model.name]
    rows = tuple(_rows(model, own, deadline_ms))
    default = model.points[0].name
    scores = scores_of(rows, default)
    enough = min((row.rounds for row in rows), default=0) >= FEWEST_ROUNDS
    failures = {sample.point: sample.failure for sample in own if sample.failure}
    return ModelBench(
        model=model,
        rows=rows,
        scores=scores,
        recommended=recommended(scores, goal, default, resolution(rows)) if enough else "",
        failures=tuple(failures.items()),
    )


def _rows(model: BenchModel, samples: Sequence[Sample], deadline_ms: float | None) -> Iterator[BenchRow]:
    """Yield the rows of the points that never failed, as far as they were measured."""
    failed = {sample.point for sample in samples if sample.failure}
    for point in model.points:
        own = [sample for sample in samples if sample.point == point.name and point.name not in failed]
        loading = [sample for sample in own if not sample.case]
        for case in model.cases:
            runs = [sample for sample in own if sample.case == case.name]
            if runs:
                yield _row(runs, loading, deadline_ms)


def _row(runs: Sequence[Sample], loading: Sequence[Sample], deadline_ms: float | None) -> BenchRow:
    total = [time for run in runs for time in run.total_ms]
    times = distribution(total)
    return BenchRow(
        model=runs[0].model,
        point=runs[0].point,
        case=runs[0].case,
        rounds=len(runs),
        load_ms=median(sample.load_ms for sample in (*loading, *runs)),
        first_run_ms=median(run.first_run_ms for run in runs),
        input_ms=_joined(runs, lambda run: run.input_ms),
        inference_ms=_joined(runs, lambda run: run.inference_ms),
        output_ms=_joined(runs, lambda run: run.output_ms),
        total_ms=times,
        jitter_ms=times.p99 - times.p50,
        missed=0 if deadline_ms is None else sum(time > deadline_ms for time in total),
        cpu_ms=_cpu_ms(runs, loading),
        peak_rss_bytes=median(run.peak_rss_bytes for run in runs),
        spread=median_interval(median(run.total_ms) for run in runs).spread,
    )


def _joined(runs: Iterable[Sample], column: Callable[[Sample], Iterable[float]]) -> Distribution:
    return distribution(time for run in runs for time in column(run))


def _cpu_ms(runs: Sequence[Sample], loading: Sequence[Sample]) -> float | None:
    """Return the processor's time of one inference: that of the process, less that of one which only loads."""
    if not loading:
        return None
    without = median(sample.cpu_seconds for sample in loading)
    return 1e3 * median(max(0.0, run.cpu_seconds - without) / run.inferences for run in runs)
