"""Benches in the history of an output folder."""

from collections.abc import Callable
from pathlib import Path

from ortrim.core.bench import BenchReport
from ortrim.core.bench_history import BenchEntry, entries_of
from ortrim.core.build_history import BuildEntry
from ortrim.errors import StorageError, UsageError
from ortrim.history.benches import benches, record_all
from ortrim.history.store import NAME
from ortrim.pipeline.history.builds import history_of, spec_name


def record_benches(report: BenchReport, output: Path, warn: Callable[[str], None]) -> None:
    """Put a finished bench into the history; what hinders that is a warning, since the journal has all of it."""
    try:
        aside = record_all(output / NAME, entries_of(report))
    except StorageError as error:
        warn(f"this bench is not in the history: {error.where}: {error.what} ({error.why or error.reference})")
        return
    if aside:
        warn(f"history-damaged: {output / NAME} could not be read; it is now {aside}, and a new history is begun")


def builds_and_benches_of(
    output: Path, spec: str | None, target: str | None
) -> tuple[tuple[BuildEntry, ...], tuple[BenchEntry, ...]]:
    """Return what is recorded, oldest first; there may be benches of what was never built.

    Raises as `history_of` does when there is neither.
    """
    name = spec_name(spec) if spec else ""
    found = benches(output / NAME, spec=name, target=target or "") if (output / NAME).is_file() else ()
    try:
        return history_of(output, spec, target), found
    except UsageError as error:
        if error.reference == "no-such-build" and found:
            return (), found
        raise
