"""The summaries as tables: for a terminal, and as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from records import table_of

from footprint.contenders import DEFAULT, UPSTREAM, WHEEL
from footprint.record import Record
from footprint.summary import Summary
from ortrim.parity.measurements import Interval
from ortrim.report.figures import NONE, bytes_text, ms_text
from ortrim.report.table import Table, columns, escaped

SIZE: Final = "size"


def _size_of(*, packed: bool) -> Callable[[Summary], float | None]:
    return lambda one: one.library.file_bytes if one.library and one.library.packed is packed else None


def _at_default(*, convolutions: bool) -> Callable[[Summary], Interval | None]:
    def figure(one: Summary) -> Interval | None:
        asked = one.kind and one.kind.convolutions is convolutions and (one.kind.layout or not convolutions)
        return one.p50.of_default if asked else None

    return figure


GOALS: Final[tuple[tuple[str, float, str, Callable[[Summary], Interval | float | None]], ...]] = (
    ("library, bytes", 1.25e6, DEFAULT, _size_of(packed=False)),
    ("library with packed relocations, bytes", 1.15e6, DEFAULT, _size_of(packed=True)),
    ("library by profile size, bytes", 0.95e6, SIZE, lambda one: one.library.file_bytes if one.library else None),
    ("library of upstream's", 0.68, DEFAULT, lambda one: one.of_upstream),
    ("p50 of the wheel's at the same level", 1.0, DEFAULT, lambda one: one.p50.of_level),
    ("p50 of the wheel's at its default level, without convolutions", 1.0, DEFAULT, _at_default(convolutions=False)),
    (
        "p50 of the wheel's at its default level, convolutions with a layout named",
        1.05,
        DEFAULT,
        _at_default(convolutions=True),
    ),
    ("peak RSS of the wheel's", 0.33, DEFAULT, lambda one: one.peak_rss.of_default),
    ("load time of the wheel's", 0.45, DEFAULT, lambda one: one.load.of_default),
)
"""What is measured, at most, of which contender, and its figure, which is None where the goal does not apply.

At its default level the wheel lays convolutions out: models of them are asked there when a layout is named."""


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


def tables(found: Iterable[Summary]) -> Iterator[tuple[str, Table]]:
    for title, own in _by_model(found):
        yield title, table_of(HEADINGS, [_cells(each) for each in own])


def markdown(found: Sequence[Summary], record: Record) -> str:
    """Write all that was found: each model with its cases, and the goals."""
    parts = ["# Size, memory and speed", FOREWORD.format(wheel=WHEEL, upstream=UPSTREAM)]
    parts.append(f"{record.machine.cpu}, {record.machine.cores} cores, {record.machine.os_version}.")
    for title, own in _by_model(found):
        cases = table_of(CASE_HEADINGS, list(_case_cells(own)), texts=2)
        libraries = table_of(HEADINGS, [_cells(each) for each in own])
        parts += [f"## {escaped(title)}", libraries.markdown(), cases.markdown()]
    goals = Table(columns=columns("text", "model", "measure", "at most", "is", ""), rows=list(_goals(found)))
    parts += ["## Goals", goals.markdown()]
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
    for summary in found:
        for text, most, contender, figure_of in GOALS:
            if summary.contender == contender and (figure := figure_of(summary)) is not None:
                middle = figure.median if isinstance(figure, Interval) else figure
                met = "met" if middle <= most else "missed"
                yield summary.model, text, figure_text(most), figure_text(figure), met
