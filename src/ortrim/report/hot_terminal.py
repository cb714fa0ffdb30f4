"""The operators that models spend their time in, as a compact table for the terminal and plain logs."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ortrim.console import printable
from ortrim.core.hot_operators import RankedOperator
from ortrim.report.figures import share_text


def hot_table(operators: Sequence[RankedOperator]) -> Table:
    """Return every operator with its largest part of a model's time, the hot ones in bold."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("operator")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("model")
    for each in operators:
        style = "bold" if each.hot else "dim"
        words = (each.operator, share_text(each.share), "hot" if each.hot else "", each.model)
        table.add_row(*(Text(printable(word), style) for word in words))
    return table
