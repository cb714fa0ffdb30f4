"""Benches in the history as a compact table for the terminal and plain logs."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.console import counted, printable
from ortrim.core.bench_history import BenchEntry
from ortrim.report.bench_content import number_text
from ortrim.report.figures import bytes_text
from ortrim.report.names import name_text

Kind = tuple[str, str, str]


def bench_history_tables(entries: Sequence[BenchEntry], last: int) -> RenderableType:
    """Return the `last` benches of each model and library, the newest first; it fits 80 columns."""
    kinds: dict[Kind, list[BenchEntry]] = {}
    for entry in entries:
        kinds.setdefault((entry.spec, entry.model, entry.library), []).append(entry)
    blocks: list[RenderableType] = []
    for (spec, model, library), found in kinds.items():
        title = " · ".join(map(name_text, (f"bench of {spec}", model, library)))
        blocks += [Text(), Text(title, "bold"), _table(found[-last:])]
        if len(found) > last:
            blocks.append(Text(f"{counted(len(found) - last, 'earlier line')} not shown", "dim"))
    return Group(*blocks[1:])


def _table(entries: Sequence[BenchEntry]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("recorded (UTC)", no_wrap=True)
    table.add_column("settings", overflow="fold", min_width=21)
    for heading in ("p50 ms", "p99 ms", "peak"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("model, run", overflow="fold")
    for entry in reversed(entries):
        times = (_slowest(entry, name) for name in ("p50", "p99"))
        when = printable(entry.recorded_at[:16].replace("T", " "))
        plain = (when, entry.point, *map(number_text, times), bytes_text(_slowest(entry, "peak memory")))
        cells = (*plain, f"{entry.model_sha256[:8]} {entry.training_run}".rstrip())
        table.add_row(*(Text(name_text(each)) for each in cells), style="bold" if entry.recommended else "")
    return table


def _slowest(entry: BenchEntry, measure: str) -> float | None:
    """Return a figure of the case that takes longest, None when no case has it."""
    return max((each.value for each in entry.measures if each.measure == measure), default=None)
