"""What is said of a bench; the forms only lay it out."""

from collections.abc import Iterator, Mapping
from typing import Final

from ortrim.console import counted, printable
from ortrim.core.bench import BenchReport, BenchRow, Goal, ModelBench, Score, session_lines
from ortrim.core.measurements import Distribution
from ortrim.report.figures import NONE, bytes_text, ms_text

GOALS: Final[Mapping[Goal, str]] = {"latency": "latency", "cpu": "processor time", "memory": "memory"}
SAME: Final = 0.02
"""Times nearer to one another than this are not told apart."""


def subject_text(report: BenchReport) -> str:
    """Say which library was measured."""
    library = report.plan.library
    version = "" if library.kind == "wheel" else f", ONNX Runtime {library.ort_version}"
    return printable(f"{library.name}{version}")


def machine_text(report: BenchReport) -> str:
    """Say where, and how far it went."""
    machine = report.plan.machine
    cores = (
        f"cores {', '.join(map(str, machine.pinned_cores))}" if machine.pinned_cores else counted(machine.cores, "core")
    )
    rounds = f"{counted(report.plan.rounds, 'round')} in turn"
    stopped = "" if report.done == report.total else f", stopped after {report.done} of {report.total} processes"
    return printable(f"{machine.cpu}, {cores}; {rounds}{stopped}")


def number_text(milliseconds: float | None) -> str:
    """Write milliseconds without their unit, for a column that names it."""
    return ms_text(milliseconds).removesuffix(" ms")


def megabytes_text(value: float) -> str:
    """Write megabytes without their unit."""
    return number_text(value / 1e6)


def parts_of(row: BenchRow) -> tuple[tuple[str, Distribution], ...]:
    """Return the parts of a run with their times."""
    return ("input", row.input_ms), ("inference", row.inference_ms), ("output", row.output_ms), ("total", row.total_ms)


def facts_of(row: BenchRow, deadline_ms: float | None) -> tuple[tuple[str, str], ...]:
    """Return what is to be said of a row beside its percentiles."""
    return (
        ("runs", f"{row.total_ms.count:,} in {counted(row.rounds, 'round')}"),
        ("jitter", f"{ms_text(row.jitter_ms)} (99th percentile less the median)"),
        *((("missed", missed_words(row, deadline_ms)),) if deadline_ms else ()),
        ("first run", ms_text(row.first_run_ms)),
        ("load", ms_text(row.load_ms)),
        ("peak memory", bytes_text(row.peak_rss_bytes)),
        ("processor", f"{ms_text(row.cpu_ms)} for one inference, all cores together"),
    )


def missed_words(row: BenchRow, deadline_ms: float) -> str:
    """Say how many runs took longer than the period."""
    return f"{row.missed:,} of {row.total_ms.count:,} runs took longer than {deadline_ms:g} ms"


def change_text(ratio: float) -> str:
    """Write how far a ratio is from 1: `+4.1 %`, `-31 %`; a dash for less than a thousandth."""
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.1:
        return NONE
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.1f} %"


def median_change(row: BenchRow, base: BenchRow) -> str:
    """Write how far a median is from the default's; a dash where that is within what either may be off."""
    ratio = row.total_ms.p50 / base.total_ms.p50
    return change_text(ratio) if abs(ratio - 1) > max(row.spread, base.spread, SAME) else NONE


def score_of(model: ModelBench, point: str) -> Score | None:
    """Return a point's score, None where it has none."""
    return next((score for score in model.scores if score.point == point), None)


def recommendation(report: BenchReport, model: ModelBench) -> Iterator[str]:
    """Yield what to take and what it changes; nothing when there was nothing to choose from."""
    score = score_of(model, model.recommended)
    if score is None:
        if len(model.scores) > 1:
            yield "nothing is recommended after so few rounds; give --rounds 3 or more"
        return
    goal = GOALS[report.goal]
    base, point = model.model.points[0], next(each for each in model.model.points if each.name == model.recommended)
    if point is base:
        yield f"recommended for {goal}: the default; nothing was better beyond the noise of this machine"
        return
    said = ", ".join(f"{name} {text}" for name, ratio in ratios_of(score) if (text := change_text(ratio)) != NONE)
    yield f"recommended for {goal}: {point.name} ({said})"
    if lines := session_lines(point, base):
        yield "in the buildspec, below the model:"
        yield from ("  [models.session]", *(f"  {line}" for line in lines))
    if point.level != base.level:
        yield f"optimization level: {point.level}"


def ratios_of(score: Score) -> tuple[tuple[str, float], ...]:
    """Return the figures of a score with their names."""
    return ("latency", score.latency), ("processor", score.cpu), ("memory", score.memory)
