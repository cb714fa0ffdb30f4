"""Benches over time, as plots for the page of the history."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ortrim.console import printable
from ortrim.core.bench_history import BenchEntry
from ortrim.core.measurements import Unit
from ortrim.report.history_charts import LINE_STYLES, measure_lines
from ortrim.report.history_content import Curve, Stamp
from ortrim.report.names import name_text

MEASURES: Final = (
    ("p50", "Latency, median of the slowest case"),
    ("p99", "Latency, 99th percentile of the slowest case"),
    ("processor", "Processor's time for one inference"),
    ("peak memory", "Peak resident memory"),
)
Kind = tuple[str, str, str, str]


def bench_kinds(entries: Sequence[BenchEntry]) -> list[dict[str, Any]]:
    """Return the plots of each spec, target, model and library; entries are in the order in which they were recorded.

    A line is of one choice of settings on one kind of machine, since only such figures can be compared.
    """
    kinds: dict[Kind, list[BenchEntry]] = {}
    for entry in entries:
        kinds.setdefault((entry.spec, entry.target, entry.model, entry.library), []).append(entry)
    return [_kind(kind, found) for kind, found in kinds.items()]


def _kind(kind: Kind, entries: list[BenchEntry]) -> dict[str, Any]:
    plots = (_measure(entries, *measure) for measure in MEASURES)
    name = " · ".join(map(name_text, ("bench", *kind)))
    return {"name": name, "measures": [each for each in plots if each["picture"]]}


def _measure(entries: list[BenchEntry], measure: str, heading: str) -> dict[str, Any]:
    moments = {moment: number for number, moment in enumerate(dict.fromkeys(each.recorded_at for each in entries))}
    stamps = [_stamp(moment, [each for each in entries if each.recorded_at == moment]) for moment in moments]
    found = tuple(_curves(entries, measure, moments))
    return {
        "heading": heading,
        "picture": measure_lines(stamps, found, f"{heading}, over benches"),
        "curves": [(style, curve.label) for style, curve in zip(LINE_STYLES, found, strict=False)],
        "left_out": max(0, len(found) - len(LINE_STYLES)),
    }


def _curves(entries: list[BenchEntry], measure: str, moments: Mapping[str, int]) -> Iterator[Curve]:
    """Yield a line for each choice of settings and machine, those of the last bench first, in its order."""
    groups: dict[tuple[str, str, int], list[BenchEntry]] = {}
    for entry in sorted(entries, key=lambda each: -moments[each.recorded_at]):
        groups.setdefault((entry.settings, entry.cpu, entry.cores), []).append(entry)
    for (_, cpu, cores), found in groups.items():
        values = [(moments[each.recorded_at], _largest(each, measure)) for each in reversed(found)]
        points = tuple((number, value) for number, value in values if value is not None)
        label = name_text(f"{found[0].point}, {cpu}, {cores} cores")
        yield Curve(label=label, unit=_unit(found[0], measure), points=points)


def _largest(entry: BenchEntry, measure: str) -> float | None:
    return max((each.value for each in entry.measures if each.measure == measure), default=None)


def _unit(entry: BenchEntry, measure: str) -> Unit:
    return next((each.unit for each in entry.measures if each.measure == measure), "ms")


def _stamp(moment: str, entries: list[BenchEntry]) -> Stamp:
    """Say of a bench when it was, of which model, and which training run that is of."""
    entry = entries[-1]
    run = f"\ntraining run {name_text(entry.training_run)}" if entry.training_run else ""
    when = printable(f"{moment[:16].replace('T', ' ')} model {entry.model_sha256[:12]}")
    return Stamp(day=printable(moment[:10]), tip=f"{when}{run}")
