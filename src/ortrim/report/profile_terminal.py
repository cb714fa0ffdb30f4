"""A profile of operators and nodes as compact tables for the terminal and plain logs."""

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.console import counted, printable
from ortrim.core.operator_profile import NodeTime, OperatorProfile, OperatorTime
from ortrim.report.figures import ms_text, share_text, shortened

TOP: Final = 10
NAME_CELLS: Final = 34
BAR_CELLS: Final = 16


def profile_tables(profile: OperatorProfile, top: int | None) -> RenderableType:
    """Return the `top` operators and nodes by their time in one inference; it fits 80 columns."""
    most = top or TOP
    return Group(
        Text(_title(profile), "bold"), Text(_about(profile), "dim"), Text(), _operators(profile, most), Text(),
        _nodes(profile, most),
    )  # fmt: skip


def microseconds_text(value: float) -> str:
    """Write microseconds: `12.5 µs`, `3.20 ms`."""
    return ms_text(value / 1e3) if value >= 1000 else f"{ms_text(value).removesuffix(' ms')} µs"


def _title(profile: OperatorProfile) -> str:
    return printable(f"{profile.model}, {profile.case}" if profile.case else profile.model)


def _about(profile: OperatorProfile) -> str:
    nodes = sum(node.microseconds for node in profile.nodes)
    of = f"{microseconds_text(nodes)} in nodes of {microseconds_text(profile.run_microseconds)} for an inference"
    return printable(f"{profile.measured_with}; median of {counted(profile.inferences, 'inference')}: {of}")


def _operators(profile: OperatorProfile, most: int) -> Table:
    table = _table("by operator", "nodes")
    for each in profile.operators[:most]:
        table.add_row(_shown(each.operator), *_cells(each, profile), f"{each.nodes:,}")
    _add_rest(table, profile.operators[most:], "operator")
    return table


def _nodes(profile: OperatorProfile, most: int) -> Table:
    table = _table("by node", "operator")
    for each in profile.nodes[:most]:
        table.add_row(_shown(each.name), *_cells(each, profile), _shown(each.operator))
    _add_rest(table, profile.nodes[most:], "node")
    return table


def _table(first: str, last: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(first, overflow="fold")
    for name in ("time", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column(last, justify="right" if last == "nodes" else "left", overflow="fold")
    return table


def _cells(each: OperatorTime | NodeTime, profile: OperatorProfile) -> tuple[RenderableType, ...]:
    bar = ProgressBar(total=_largest(each, profile), completed=each.share, width=BAR_CELLS, complete_style="cyan")
    return microseconds_text(each.microseconds), share_text(each.share), bar, _calls(each.calls)


def _largest(each: OperatorTime | NodeTime, profile: OperatorProfile) -> float:
    same = profile.operators if isinstance(each, OperatorTime) else profile.nodes
    return same[0].share or 1.0


def _calls(calls: float) -> str:
    return f"{calls:,.0f}" if calls == round(calls) else f"{calls:,.1f}"


def _add_rest(table: Table, rest: Sequence[OperatorTime | NodeTime], noun: str) -> None:
    if rest:
        time, share = sum(each.microseconds for each in rest), sum(each.share for each in rest)
        calls = _calls(sum(each.calls for each in rest))
        name = counted(len(rest), f"other {noun}")
        table.add_row(name, microseconds_text(time), share_text(share), "", calls, "", style="dim")


def _shown(name: str) -> Text:
    return Text(shortened(printable(name), NAME_CELLS))
