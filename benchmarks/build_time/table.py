"""The measurements as tables for a terminal."""

from collections.abc import Iterable, Iterator
from statistics import median

from rich.table import Table

from build_time.cases import CASES, operators_in
from build_time.record import Measurement, Record
from ortrim.base.console import duration_text, printable

HEADINGS = ("case", "n", "wall", "ratio", "CPU", "steps", "files", "memory", "library", "SHA-256")
"""`n` are the rounds, `ratio` is to upstream's wall time, `files` are compiled ones of all, the library is in bytes."""


def median_wall(measurements: Iterable[Measurement]) -> float | None:
    walls = [each.cost.wall_seconds for each in measurements]
    return median(walls) if walls else None


def median_processor(measurements: Iterable[Measurement]) -> float | None:
    times = [each.cost.cpu_seconds for each in measurements]
    return median(times) if times else None


def ratio_to_upstream(record: Record, spec: str, case: str) -> float | None:
    """Return a case's median wall time divided by that of upstream's recipe; None when either is missing."""
    own, upstream = (median_wall(record.latest(spec, name)) for name in (case, "upstream"))
    return None if own is None or upstream is None else own / upstream


def times_table(record: Record, spec: str) -> Table:
    """Return the table of one spec: a row for each case that was measured; `*` marks a machine that was not at rest."""
    table = Table(title=printable(spec), title_justify="left", box=None, collapse_padding=True, pad_edge=False)
    for heading in HEADINGS:
        left = heading in {"case", "SHA-256"}
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for case in CASES:
        if measurements := record.latest(spec, case.name):
            table.add_row(*_cells(record, measurements))
    return table


def points_table(points: Iterable[tuple[int, float]]) -> Table:
    """Return the table behind the graph: processor time by number of operator types."""
    table = Table("operator types", "processor", title="build time by operator types", title_justify="left", box=None)
    for number, seconds in points:
        table.add_row(str(number), duration_text(seconds))
    return table


def graph_points(record: Record, spec: str) -> tuple[tuple[int, float], ...]:
    """Return (operator types, median processor seconds) of the graph's cases, by number."""
    names = {each.case for each in record.measurements if each.spec == spec}
    found = ((operators_in(name), median_processor(record.latest(spec, name))) for name in names)
    return tuple(sorted((number, seconds) for number, seconds in found if number is not None and seconds is not None))


def _cells(record: Record, measurements: tuple[Measurement, ...]) -> Iterator[str]:
    last = measurements[-1]
    ratio = ratio_to_upstream(record, last.spec, last.case)
    yield last.case
    yield str(len(measurements)) + ("*" if any(each.disturbed for each in measurements) else "")
    yield duration_text(median(each.cost.wall_seconds for each in measurements))
    yield "" if ratio is None else f"{ratio:.3f}"
    yield duration_text(median(each.cost.cpu_seconds for each in measurements))
    yield str(last.steps or "")
    yield "{}/{}".format(*last.units) if last.units else ""
    yield f"{max(each.cost.peak_total_bytes for each in measurements) / 1e9:.2f} GB"
    yield f"{last.library.size_bytes:,}" if last.library else ""
    yield last.library.sha256[:8] if last.library else ""
