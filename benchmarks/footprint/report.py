"""The summaries as tables: for a terminal, and as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from rich.table import Table

from footprint.contenders import DEFAULT, UPSTREAM, WHEEL
from footprint.record import Record
from footprint.summary import Summary
from ortrim.base.console import printable
from ortrim.parity.measurements import Interval
from ortrim.report.figures import NONE, bytes_text, ms_text
from ortrim.report.table import Table as ReportTable
from ortrim.report.table import columns, escaped

SIZE: Final = "size"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """One goal; `asked` says of which contenders and models, with the figure that is `measured` of them."""

    text: str
    most: float
    asked: Callable[[Summary], bool]
    measured: Callable[[Summary], Interval | float | None]

    def is_met(self, summary: Summary) -> bool | None:
        """Whether a summary meets the goal; None where the figure could not be taken."""
        figure = self.measured(summary)
        middle = figure.median if isinstance(figure, Interval) else figure
        return None if middle is None else middle <= self.most


def _default(summary: Summary) -> bool:
    return summary.contender == DEFAULT


def _packed(summary: Summary) -> bool:
    return summary.library is not None and summary.library.packed


def _bytes(summary: Summary) -> float | None:
    return summary.library.file_bytes if summary.library else None


def _at_default(summary: Summary) -> Interval | None:
    return summary.p50.of_default


GOALS: Final = (
    Goal(text="library, bytes", most=1.25e6, asked=lambda one: _default(one) and not _packed(one), measured=_bytes),
    Goal(
        text="library with packed relocations, bytes",
        most=1.15e6,
        asked=lambda one: _default(one) and _packed(one),
        measured=_bytes,
    ),
    Goal(
        text="library by profile size, bytes",
        most=0.95e6,
        asked=lambda one: one.contender == SIZE,
        measured=_bytes,
    ),
    Goal(text="library of upstream's", most=0.68, asked=_default, measured=lambda one: one.of_upstream),
    Goal(
        text="p50 of the wheel's at the same level",
        most=1.0,
        asked=_default,
        measured=lambda one: one.p50.of_level,
    ),
    Goal(
        text="p50 of the wheel's at its default level, without convolutions",
        most=1.0,
        asked=lambda one: _default(one) and one.kind is not None and not one.kind.convolutions,
        measured=_at_default,
    ),
    Goal(
        text="p50 of the wheel's at its default level, convolutions with a layout named",
        most=1.05,
        asked=lambda one: _default(one) and one.kind is not None and one.kind.convolutions and one.kind.layout,
        measured=_at_default,
    ),
    Goal(text="peak RSS of the wheel's", most=0.33, asked=_default, measured=lambda one: one.peak_rss.of_default),
    Goal(text="load time of the wheel's", most=0.45, asked=_default, measured=lambda one: one.load.of_default),
)
"""At its default level the wheel lays convolutions out: models of them are asked there when a layout is named."""


HEADINGS = (
    "library", "bytes", "of upstream's", "compressed", "outputs", "peak RSS", "of wheel's", "load", "of wheel's",
    "first run", "p50", "p99", "p50 of wheel's, same level", "p50 of wheel's, default",
)  # fmt: skip
CASE_HEADINGS = ("case", "library", "first run", "p50", "p99", "p50 of wheel's, same level", "p50 of wheel's, default")
FOREWORD = """\
Medians over the rounds; first run, p50 and p99 are those of the first case. Ratios are taken within each round; beside
each stands the half-width of its 90 % interval. The ratios of p50 are of the geometric mean over all cases. `{wheel}`
is the official library with the original model, at its default level; `wheel, .ort` is the same library with the model
converted for ours, which is optimized as far as ours is. `{upstream}` is upstream's own recipe. `*`: something else was
running.
"""


def figure_text(figure: Interval | float | None) -> str:
    """Write a ratio, with the half-width of its interval when it has one: `0.907 ±0.012`; and whole bytes."""
    if isinstance(figure, Interval):
        return f"{figure.median:.3f} ±{(figure.high - figure.low) / 2:.3f}"
    return NONE if figure is None else f"{figure:,.0f}" if figure > 1e4 else f"{figure:.3f}"


def tables(found: Iterable[Summary]) -> Iterator[Table]:
    for title, own in _by_model(found):
        shown = Table(title=printable(title), title_justify="left", box=None, collapse_padding=True, pad_edge=False)
        for heading in HEADINGS:
            shown.add_column(heading, justify="left" if heading == "library" else "right")
        for summary in own:
            shown.add_row(*map(printable, _cells(summary)))
        yield shown


def markdown(found: Iterable[Summary], record: Record) -> str:
    """Write all that was found: each model with its cases, and the goals."""
    found = tuple(found)
    parts = ["# Size, memory and speed", FOREWORD.format(wheel=WHEEL, upstream=UPSTREAM)]
    parts.append(f"{record.machine.cpu}, {record.machine.cores} cores, {record.machine.system}.")
    for title, own in _by_model(found):
        headings = (*columns("text", HEADINGS[0]), *columns("number", *HEADINGS[1:]))
        parts += [f"## {escaped(title)}", ReportTable(columns=headings, rows=list(map(_cells, own))).markdown()]
        headings = (*columns("text", *CASE_HEADINGS[:2]), *columns("number", *CASE_HEADINGS[2:]))
        parts += [ReportTable(columns=headings, rows=list(_case_cells(own))).markdown()]
    headings = columns("text", "model", "measure", "at most", "is", "")
    parts += ["## Goals", ReportTable(columns=headings, rows=list(_goals(found))).markdown()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _by_model(found: Iterable[Summary]) -> Iterator[tuple[str, tuple[Summary, ...]]]:
    for (spec, model), own in groupby(found, key=lambda each: (each.spec, each.model)):
        summaries = tuple(own)
        mark = "*" if any(each.disturbed for each in summaries) else ""
        name = model if model == spec else f"{spec}: {model}"
        yield f"{name}{mark} ({summaries[0].rounds} rounds)", summaries


def _cells(summary: Summary) -> tuple[str, ...]:
    library, first = summary.library, summary.cases[0]
    return (
        summary.contender,
        f"{library.file_bytes:,}" if library else NONE,
        figure_text(summary.of_upstream),
        f"{library.compressed_bytes:,}" if library else NONE,
        f"{library.outputs_agree}/{library.outputs}" if library and library.outputs else NONE,
        bytes_text(summary.peak_rss_bytes),
        figure_text(summary.peak_rss.of_default),
        ms_text(summary.load_ms),
        figure_text(summary.load.of_default),
        *map(ms_text, (first.first_run_ms, first.p50_ms, first.p99_ms)),
        figure_text(summary.p50.of_level),
        figure_text(summary.p50.of_default),
    )


def _case_cells(own: Sequence[Summary]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of all cases, the libraries of a case beneath each other."""
    for together in zip(*(summary.cases for summary in own), strict=True):
        for summary, case in zip(own, together, strict=True):
            times = map(ms_text, (case.first_run_ms, case.p50_ms, case.p99_ms))
            ratios = (figure_text(case.p50.of_level), figure_text(case.p50.of_default))
            yield (case.case, summary.contender, *times, *ratios)


def _goals(found: Iterable[Summary]) -> Iterator[tuple[str, ...]]:
    words = {None: NONE, True: "met", False: "missed"}
    for summary in found:
        for goal in GOALS:
            if goal.asked(summary):
                figure, met = figure_text(goal.measured(summary)), words[goal.is_met(summary)]
                yield summary.model, goal.text, figure_text(goal.most), figure, met
