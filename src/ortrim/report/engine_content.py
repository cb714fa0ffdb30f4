"""What the tables of a comparison of engines say, for all of their forms alike."""

from collections.abc import Mapping
from typing import Final

from ortrim.core.engine_comparison import (
    ComparedCase,
    EngineComparison,
    EngineFacts,
    EngineParity,
    EngineRow,
    EngineTimes,
)
from ortrim.core.measurements import Verdict
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, shape_text, share_text

HEADINGS: Final = ("engine", "p50", "p99", "of first", "CPU", "load", "peak memory", "library", "difference")
BUSY: Final = 0.5
"""From this load of each core on, what the clock says of a run is largely other programs' doing."""
CANNOT_RUN: Final = "cannot run"


def cells_of(times: EngineTimes) -> tuple[str, ...]:
    """Return a row's cells, without its name."""
    return (
        ms_text(times.latency_ms.p50),
        ms_text(times.latency_ms.p99),
        share_text(times.ratio, times.spread),
        ms_text(times.processor_ms),
        ms_text(times.load_ms),
        bytes_text(times.peak_bytes),
        bytes_text(times.library_bytes),
        parity_text(times.parity),
    )


def parity_text(parity: EngineParity) -> str:
    """Return the largest difference, with a word when that is no parity."""
    match parity.verdict:
        case Verdict.FAIL:
            return f"FAIL {difference_text(parity.max_absolute)}" if parity.max_absolute else "FAIL"
        case Verdict.NOT_JUDGED:
            return "not judged"
        case _:
            return difference_text(parity.max_absolute)


def titles_of(comparison: EngineComparison) -> Mapping[str, str]:
    """Return each engine's title with its version, by its name."""
    return {engine.name: f"{engine.title} {engine.version}".strip() for engine in comparison.engines}


def case_text(case: ComparedCase) -> str:
    """Return a case's heading: the model, the case, and the shapes of its inputs."""
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in case.shapes)
    return f"{case.model}, {case.case}: {shapes or 'no inputs'}"


def failure_text(row: EngineRow) -> str:
    """Return why an engine could not run."""
    return f"{CANNOT_RUN} ({row.stage}): {row.reason}"


def machine_text(comparison: EngineComparison) -> str:
    """Return the machine, and how busy it was."""
    machine = comparison.machine
    pinned = f", kept on {','.join(map(str, machine.pinned_cores))}" if machine.pinned_cores else ""
    load = f"load average {comparison.load_average:.1f}"
    return f"{machine.cpu}, {machine.cores} cores{pinned}, {machine.os_version}, {load}"


def is_busy(comparison: EngineComparison) -> bool:
    """Whether other programs were at work when it began."""
    return comparison.load_average > BUSY * max(1, comparison.machine.cores)


def notes_of(comparison: EngineComparison) -> tuple[str, ...]:
    """Return what has to be known to read the tables."""
    first = comparison.engines[0].title if comparison.engines else "the first engine"
    rounds = "round" if comparison.rounds == 1 else "rounds"
    threads = "thread" if comparison.threads == 1 else "threads"
    notes = (
        f"{comparison.rounds} {rounds}, {comparison.threads} {threads}; engines in turn, each time a new process.",
        f"'of first' is p50 by that of {first}, round by round.",
        "Memory is what the process grew by; library is what it opened of the engine's native libraries.",
        f"Differences are to {comparison.reference}.",
    )
    busy = "Other programs were at work: trust the processor's time (CPU) more than the clock's."
    return (*notes, busy) if is_busy(comparison) else notes


def engine_text(engine: EngineFacts) -> tuple[str, ...]:
    """Return an engine's own row: title, version, how it was used, the bytes of all its native libraries."""
    return engine.title, engine.version or NONE, engine.use or NONE, bytes_text(engine.installed_bytes)
