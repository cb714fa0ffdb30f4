"""What the samples of a bench come to, which points are worth having, and the journal that keeps the samples."""

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import le
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import read_json, to_canonical_json
from ortrim.bench.points import BenchModel, BenchPlan, BenchReport, BenchRow, Goal, ModelBench, Sample, Score
from ortrim.errors import StorageError
from ortrim.parity.measurements import distribution, median, median_interval

FEWEST_ROUNDS: Final = 3
"""From fewer, nothing is recommended: what else the machine does would decide."""
LEAST_RESOLUTION: Final = 0.02
"""Two figures nearer than this to one another are the same, however quiet the machine is."""
ORDERS: Final[Mapping[Goal, tuple[str, ...]]] = {
    "latency": ("latency", "cpu", "memory"),
    "cpu": ("cpu", "latency", "memory"),
    "memory": ("memory", "latency", "cpu"),
}


def scores_of(rows: Sequence[BenchRow], default: str) -> tuple[Score, ...]:
    """Compare every point that has all the cases of the default with it, and mark the Pareto set.

    Empty when the default was not measured.
    """
    by_point: dict[str, dict[str, BenchRow]] = {}
    for row in rows:
        by_point.setdefault(row.point, {})[row.case] = row
    base = by_point.get(default, {})
    scores = [_score(point, own, base) for point, own in by_point.items() if base and own.keys() == base.keys()]
    return _marked(scores, resolution(rows))


def resolution(rows: Iterable[BenchRow]) -> float:
    """Return the relative difference below which two times are the same: what the machine's own noise comes to."""
    spreads = sorted(row.spread for row in rows)
    return max(LEAST_RESOLUTION, spreads[len(spreads) // 2] if spreads else 0.0)


def recommended(scores: Sequence[Score], goal: Goal, default: str, noise: float) -> str:
    """Return the point to take: the best by the goal; of those as good, the best by what comes next, then the default.

    Empty with less than two points to choose from.
    """
    if len(scores) < 2:
        return ""
    left = list(scores)
    for objective in ORDERS[goal]:
        best = min(getattr(each, objective) for each in left)
        left = [each for each in left if getattr(each, objective) <= best * (1 + noise)]
    names = [each.point for each in left]
    return default if default in names else names[0]


def _score(point: str, own: Mapping[str, BenchRow], base: Mapping[str, BenchRow]) -> Score:
    def mean(figure: Callable[[BenchRow], float | None]) -> float:
        """Return the geometric mean of the ratios, which are 1 where either side is not known."""
        pairs = ((figure(own[case]), figure(base[case])) for case in base)
        return geometric_mean(ours / theirs if ours and theirs else 1.0 for ours, theirs in pairs)

    latency, memory = mean(lambda row: row.total_ms.p50), mean(lambda row: row.peak_rss_bytes)
    return Score(point=point, latency=latency, cpu=mean(lambda row: row.cpu_ms), memory=memory)


def _marked(scores: Sequence[Score], noise: float) -> tuple[Score, ...]:
    """Mark the scores that no other beats, on a scale whose steps are as wide as the noise: chance beats none."""
    widths = (noise, noise, LEAST_RESOLUTION)
    steps = [
        tuple(
            round(math.log(figure) / math.log1p(width))
            for figure, width in zip((score.latency, score.cpu, score.memory), widths, strict=True)
        )
        for score in scores
    ]
    return tuple(
        replace(score, in_front=not any(other != own and all(map(le, other, own)) for other in steps))
        for score, own in zip(scores, steps, strict=True)
    )


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
    failed = {sample.point for sample in samples if sample.failure}
    for point in model.points:
        own = [sample for sample in samples if sample.point == point.name and point.name not in failed]
        loading = [sample for sample in own if not sample.case]
        for case in model.cases:
            runs = [sample for sample in own if sample.case == case.name]
            if runs:
                yield _row(runs, loading, deadline_ms)


def _row(runs: Sequence[Sample], loading: Sequence[Sample], deadline_ms: float | None) -> BenchRow:
    """Sum a case up. Its processor's time is that of its processes, less that of those which only load the model."""
    total = [time for run in runs for time in run.total_ms]
    times, without = distribution(total), median(sample.cpu_seconds for sample in loading) if loading else None
    inferring = (max(0.0, run.cpu_seconds - (without or 0.0)) / run.inferences for run in runs)
    return BenchRow(
        model=runs[0].model,
        point=runs[0].point,
        case=runs[0].case,
        rounds=len(runs),
        load_ms=median(sample.load_ms for sample in (*loading, *runs)),
        first_run_ms=median(run.first_run_ms for run in runs),
        input_ms=distribution(time for run in runs for time in run.input_ms),
        inference_ms=distribution(time for run in runs for time in run.inference_ms),
        output_ms=distribution(time for run in runs for time in run.output_ms),
        total_ms=times,
        jitter_ms=times.p99 - times.p50,
        missed=0 if deadline_ms is None else sum(time > deadline_ms for time in total),
        cpu_ms=None if without is None else 1e3 * median(inferring),
        peak_rss_bytes=median(run.peak_rss_bytes for run in runs),
        spread=median_interval(median(run.total_ms) for run in runs).spread,
    )


ENDING: Final = ".jsonl"
DIGITS: Final = 8
STAMP: Final = str.maketrans("", "", "-:+")


@dataclass(frozen=True, kw_only=True)
class Journal:
    """A journal as it is on the disk."""

    path: Path
    plan: BenchPlan
    samples: tuple[Sample, ...]


def new_journal(folder: Path, plan: BenchPlan) -> Journal:
    """Begin a journal in a file of its own, named after what is measured and when. Raises `StorageError`."""
    stamp = plan.recorded_at.partition("+")[0].translate(STAMP)
    stem = f"{plan.name}-{_likeness(plan)}-{stamp}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 10_000)))
    path = next(path for name in names if not (path := folder / f"{name}{ENDING}").exists())
    write_atomically(path, to_canonical_json(plan) + "\n")
    return Journal(path=path, plan=plan, samples=())


def unfinished(folder: Path, plan: BenchPlan, total: int) -> Journal | None:
    """Return the newest journal of the same measurement that is not at its end, mended; None when there is none.

    How often each case is run may differ: it is decided by a first run.
    """
    for path in sorted(folder.glob(f"{plan.name}-{_likeness(plan)}-*{ENDING}"), reverse=True):
        journal = read_journal(path)
        if len(journal.samples) < total:
            return journal
    return None


def read_journal(path: Path) -> Journal:
    """Read a journal; what was cut short is taken off its end."""
    with storage_errors(path):
        content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_atomically(path, whole)
    first, *rest = whole.splitlines() or [b""]
    what, hint = "the journal of a bench is damaged", "remove the file, then run the same command again"
    damaged = StorageError("journal-damaged", what, where=str(path), hint=hint)
    samples = tuple(read_json(Sample, line, damaged) for line in rest)
    return Journal(path=path, plan=read_json(BenchPlan, first, damaged), samples=samples)


def add(path: Path, sample: Sample) -> None:
    """Append a sample to a journal and see it on the disk. Raises `StorageError`; the lines before stay."""
    with storage_errors(path), path.open("ab") as file:
        file.write(to_canonical_json(sample).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _likeness(plan: BenchPlan) -> str:
    """Return the digest of what two runs must have in common to be one: all but the time, and how often is run."""
    models = tuple(
        replace(model, cases=tuple(replace(case, runs=0, warmup=0) for case in model.cases)) for model in plan.models
    )
    alike: Mapping[str, Any] = {"recorded_at": "", "models": models}
    return hashlib.sha256(to_canonical_json(replace(plan, **alike)).encode()).hexdigest()[:DIGITS]
