"""What the history keeps of a bench: figures that can be compared across models and libraries. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from ortrim.core.bench import BenchModel, BenchPlan, BenchPoint, BenchReport, BenchRow
from ortrim.core.measurements import Unit
from ortrim.core.serialization import to_canonical_json


@dataclass(frozen=True, kw_only=True)
class BenchMeasure:
    """One figure of one case.

    Of the whole run `p50`, `p90`, `p99`, `maximum`, `jitter` and, with a deadline, `missed deadlines`; `input`,
    `inference` and `output`, each a median; `load`, `first run`, `processor` and `peak memory`.
    """

    case: str
    measure: str
    unit: Unit
    value: float


@dataclass(frozen=True, kw_only=True)
class BenchEntry:
    """One point of one model in one bench; `recorded_at` is UTC as ISO 8601 and the same for all of a bench.

    `settings` is the session as JSON with sorted keys, `point` how it differs from that bench's default.
    `training_run` is whatever identifies the run that made the model, empty when it was not given. `deadline_ms` is 0
    without one.
    """

    recorded_at: str
    spec: str
    target: str
    model: str
    model_sha256: str
    training_run: str
    library: str
    library_sha256: str
    ort_version: str
    ortrim_version: str
    point: str
    settings: str
    recommended: int
    rounds: int
    deadline_ms: float
    system: str
    cpu: str
    cores: int
    measures: tuple[BenchMeasure, ...]


def entries_of(report: BenchReport) -> tuple[BenchEntry, ...]:
    """Return what is kept of a finished bench; points that failed are not."""
    found = []
    for each in report.models:
        for point in each.model.points:
            rows = [row for row in each.rows if row.point == point.name]
            if rows:
                found.append(_entry(report.plan, each.model, point, rows, chosen=each.recommended == point.name))
    return tuple(found)


def _entry(plan: BenchPlan, model: BenchModel, point: BenchPoint, rows: list[BenchRow], *, chosen: bool) -> BenchEntry:
    return BenchEntry(
        recorded_at=plan.recorded_at,
        spec=plan.name,
        target=plan.target,
        model=model.name,
        model_sha256=model.sha256,
        training_run=plan.training_run,
        library=plan.library.kind,
        library_sha256=plan.library.sha256,
        ort_version=plan.library.ort_version,
        ortrim_version=plan.ortrim_version,
        point=point.name,
        settings=to_canonical_json({"level": point.level, "session": point.session}),
        recommended=int(chosen),
        rounds=plan.rounds,
        deadline_ms=plan.deadline_ms or 0.0,
        system=plan.machine.os_version,
        cpu=plan.machine.cpu,
        cores=len(plan.machine.pinned_cores) or plan.machine.cores,
        measures=tuple(measure for row in rows for measure in _measures(row, plan.deadline_ms)),
    )


def _measures(row: BenchRow, deadline_ms: float | None) -> Iterator[BenchMeasure]:
    times = {
        "p50": row.total_ms.p50,
        "p90": row.total_ms.p90,
        "p99": row.total_ms.p99,
        "maximum": row.total_ms.maximum,
        "jitter": row.jitter_ms,
        "input": row.input_ms.p50,
        "inference": row.inference_ms.p50,
        "output": row.output_ms.p50,
        "load": row.load_ms,
        "first run": row.first_run_ms,
    }
    if row.cpu_ms is not None:
        times["processor"] = row.cpu_ms
    for name, value in times.items():
        yield BenchMeasure(case=row.case, measure=name, unit="ms", value=value)
    yield BenchMeasure(case=row.case, measure="peak memory", unit="bytes", value=row.peak_rss_bytes)
    if deadline_ms is not None:
        yield BenchMeasure(case=row.case, measure="missed deadlines", unit="runs", value=row.missed)
