"""One table for every report: for the terminal, as Markdown, and as HTML."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from markupsafe import Markup
from rich import table as rich_table
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.parity.measurements import Verdict
from ortrim.report.figures import shortened

SYMBOLS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.INCONCLUSIVE: "≈", Verdict.NOT_JUDGED: "·"}
STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_JUDGED: "dim",
}
Kind = Literal["text", "code", "short", "verdict", "number", "label", "date", "markdown"]
"""What a column holds: text and code wrap, numbers stand on the right, Markdown is not escaped, others are short."""
CLASSES: Final[Mapping[Kind, str]] = {
    "text": "", "code": "code", "short": "", "verdict": "v", "number": "n", "label": "label", "date": "n",
    "markdown": "",
}  # fmt: skip
"""Those of the style sheet for a column's cells."""


@dataclass(frozen=True)
class Judged:
    """A cell with a verdict; without a `text` it names the verdict. A `reason` follows it in Markdown and HTML."""

    verdict: Verdict
    text: str = ""
    reason: str | None = None

    def __str__(self) -> str:
        return f"{SYMBOLS[self.verdict]} {self.text or self.verdict.value}" + (f" {self.reason}" if self.reason else "")

    def terminal(self) -> Text:
        """Return the symbol in its colour, and the text."""
        return Text.assemble((SYMBOLS[self.verdict], STYLES[self.verdict]), " ", self.text or self.verdict.value)

    def __html__(self) -> Markup:
        span = Markup('<span class="{}">{} {}</span>')
        shown = span.format(self.verdict.name.lower(), SYMBOLS[self.verdict], self.text or self.verdict.value)
        return shown if self.reason is None else shown + " " + self.reason


RANKED_CELLS: Final = 34
Cell = str | Judged | RenderableType
Columns = tuple[tuple[str, Kind], ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under the headings of `columns`; a row of one cell is a heading. `styles` are for the terminal's rows."""

    columns: Columns
    rows: Sequence[Sequence[Cell]]
    styles: Sequence[str] = ()
    title: str = ""

    def terminal(self, *, rule: bool = True, head: bool = True, padding: int = 1) -> rich_table.Table:
        """Return the table as rich draws it, with a rule below its headings; cells end with `padding` blanks."""
        table = rich_table.Table(
            box=SIMPLE_HEAD if rule else None,
            show_edge=False,
            pad_edge=rule,
            show_header=head,
            padding=(0, padding, 0, 0),
            header_style="bold",
        )
        for heading, kind in self.columns:
            wraps = kind in {"text", "code", "label"}
            table.add_column(
                heading, justify="right" if kind == "number" else "left", no_wrap=not wraps, overflow="fold"
            )
        for number, row in enumerate(self.rows):
            if len(row) == 1:
                table.add_section()
                table.add_row(Text(str(row[0]), "bold"))
            else:
                table.add_row(*map(terminal_cell, row), style=self.styles[number] if self.styles else None)
        return table

    def markdown(self) -> str:
        """Write GitHub-flavoured Markdown, or that there is none of it; no cell can become markup."""
        rule = "|".join("---:" if kind == "number" else "---" for _, kind in self.columns)
        blank = [""] * (len(self.columns) - 1)
        kinds = [kind for _, kind in self.columns]
        rows = (
            [f"**{escaped(str(row[0]))}**", *blank]
            if len(row) == 1
            else [
                str(cell) if kind == "markdown" else escaped(str(cell)) for cell, kind in zip(row, kinds, strict=True)
            ]
            for row in self.rows
        )
        lines = [f"| {' | '.join(cells)} |" for cells in ([escaped(heading) for heading, _ in self.columns], *rows)]
        return "\n".join([lines[0], f"|{rule}|", *lines[1:]]) if self.rows else "None."

    def html(self, nothing: str = "", *, label: str = "", head: bool = True) -> Markup:
        """Return it as HTML that can be scrolled; `nothing` stands in place of rows, `label` names what scrolls."""
        region = Markup(' tabindex="0" role="region" aria-label="{}"').format(label) if label else ""
        heads = (_element("th", text, kind if kind in {"number", "verdict"} else "text") for text, kind in self.columns)
        soft = Markup('<td class="soft" colspan="{}">{}</td>')
        kinds = [kind for _, kind in self.columns]
        rows = [
            [soft.format(len(kinds), *row)] if len(row) == 1 else map(_element, ["td"] * len(row), row, kinds)
            for row in self.rows or [(nothing,)]
        ]
        top = Markup("<thead><tr>{}</tr></thead>\n").format(_joined(heads)) if head else ""
        body = _joined(Markup("<tr>{}</tr>\n").format(_joined(row)) for row in rows)
        return Markup('<div class="scroll"{}><table>\n{}<tbody>\n{}</tbody></table></div>').format(region, top, body)


def columns(kind: Kind, *headings: str) -> Columns:
    """Return columns of one kind."""
    return tuple((heading, kind) for heading in headings)


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return labels with their values."""
    return Table(columns=(("what", "label"), ("value", "text")), rows=tuple(facts))


def ranking(
    noun: str, numbers: Sequence[str], found: Sequence[Any], most: int, cells: Callable[..., Sequence[Cell]]
) -> rich_table.Table:
    """Lay out nodes or operators (`noun`) with the cells of each, and those beyond `most` together in one dim line."""
    of_nodes = noun == "node"
    rows: list[tuple[Cell, ...]] = []
    for each in found[:most]:
        names = (each.name, each.operator) if of_nodes else (each.operator, f"{each.nodes:,}")
        first, last = (shortened(printable(name), RANKED_CELLS) for name in names)
        rows.append((first, *cells([each], alone=True), last))
    styles = [""] * len(rows)
    if rest := found[most:]:
        rows.append((counted(len(rest), f"other {noun}"), *cells(rest, alone=False), ""))
        styles.append("dim")
    last_column: tuple[str, Kind] = ("operator", "text") if of_nodes else ("nodes", "number")
    headings = ((f"by {noun}", "text"), *columns("number", *numbers), last_column)
    return Table(columns=headings, rows=rows, styles=styles).terminal()


def terminal_cell(cell: Cell) -> RenderableType:
    """Return a cell as rich draws it; text has no markup."""
    return cell.terminal() if isinstance(cell, Judged) else Text(cell) if isinstance(cell, str) else cell


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def _element(tag: str, cell: Cell, kind: Kind) -> Markup:
    style = Markup(' class="{}"').format(CLASSES[kind]) if CLASSES[kind] else ""
    return Markup("<{0}{1}>{2}</{0}>").format(tag, style, cell)


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, HTML, mention, link or table cell comes of it."""
    flat = " ".join(text.split())
    shown = re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", flat)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")
