"""Libraries of several ONNX Runtime versions beside each other: what a version costs or saves, as tables and a page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from markupsafe import Markup
from pydantic import Field
from rich.console import Group, RenderableType

from ortrim.base.console import printable
from ortrim.errors import VerifyError
from ortrim.parity.measurements import RunnerResult, Unit, Verdict
from ortrim.report.charts import HALF_WIDTH, ChartBar, bar_chart
from ortrim.report.content import (
    measures_memory,
    measures_time,
    parity_text,
    parity_verdict,
    title,
    verdict_text,
)
from ortrim.report.figures import NONE, name_text, quantity_text
from ortrim.report.html import rendered
from ortrim.report.table import SYMBOLS, Table, columns, escaped
from ortrim.verify.reports import DeviceReport, VerifyReport

SMALLEST_CHANGE: Final = 0.0005  # Half of the last digit that is shown
TIMES: Final = (
    "Changes are against the first version. Sizes are exact. Memory and times come from one verification each, one "
    "after the other on the same machine."
)


Version = Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){2}$")]
Reference = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A version that could not be pinned, or not be built, and why: fields of a `Diagnostic`."""

    version: Version
    reference: Reference
    what: str
    why: str = ""


Outcome = VerifyReport | Refused  # the report of a version's library, or why there is none


@dataclass(frozen=True, kw_only=True)
class VersionFigure:
    """One quantity of each version; None where it has none, or where that means nothing on the device."""

    measure: str
    unit: Unit
    values: tuple[float | None, ...]


Figures = tuple[VersionFigure, ...]


@dataclass(frozen=True, kw_only=True)
class VersionsComparison:
    """The libraries of one buildspec and target for several versions; `notes` say how each ended, in words.

    `groups` are the figures of the library, which stand under no name, and of each model on each device.
    """

    title: str
    versions: tuple[str, ...]
    groups: tuple[tuple[str, Figures], ...]
    notes: tuple[str, ...]


def compared(outcomes: Sequence[Outcome]) -> VersionsComparison:
    """Return sizes, then for each device and model of the first report memory, load, and its longest case."""
    reports = [each if isinstance(each, VerifyReport) else None for each in outcomes]
    first = next(report for report in reports if report)
    for report in filter(None, reports):
        if (report.name, report.target) != (first.name, first.target):
            what = f"are of different things: {title(first)}, {title(report)}"
            raise VerifyError("reports-unlike", what, where="report.json", hint="build one buildspec for one target")
    sizes = (
        _figure("library", "bytes", reports, lambda report: report.size.file_bytes),
        _figure("library, compressed", "bytes", reports, lambda report: report.size.compressed_bytes),
        _figure("package", "bytes", reports, lambda report: report.package_bytes),
    )
    measured = (_measured(reports, device, run) for device in first.devices for run in _own(device))
    return VersionsComparison(
        title=title(first),
        versions=tuple(each.ort_version if isinstance(each, VerifyReport) else each.version for each in outcomes),
        groups=(("", sizes), *((where, figures) for where, figures in measured if figures)),
        notes=tuple(note for each in outcomes for note in _notes(each)),
    )


def _own(device: DeviceReport) -> Iterator[RunnerResult]:
    return (run for run in device.runs if run.library == "ours")


def _figure(
    measure: str, unit: Unit, reports: Sequence[VerifyReport | None], value: Callable[[VerifyReport], float | None]
) -> VersionFigure:
    values = tuple(value(report) if report else None for report in reports)
    return VersionFigure(measure=measure, unit=unit, values=values)


def _measured(reports: Sequence[VerifyReport | None], device: DeviceReport, run: RunnerResult) -> tuple[str, Figures]:
    """Name a model on a device, and return its figures that mean something there in one report at least."""
    finite = [case for case in run.cases if math.isfinite(case.inference_ms.p50)]
    case = max(finite, key=lambda case: case.inference_ms.p50).case if finite else ""
    time = f"latency p50, {name_text(case)}" if case else "latency p50"

    def found(report: VerifyReport, means: Callable[[DeviceReport], bool]) -> RunnerResult | None:
        same = next((each for each in report.devices if each.device == device.device), None)
        runs = _own(same) if same and means(same) else iter(())
        return next((each for each in runs if each.model == run.model), None)

    def value(
        means: Callable[[DeviceReport], bool], figure: Callable[[RunnerResult], float | None]
    ) -> Callable[[VerifyReport], float | None]:
        return lambda report: figure(own) if (own := found(report, means)) else None

    figures = (
        _figure("peak memory", "bytes", reports, value(measures_memory, lambda own: own.peak_rss_bytes.p50)),
        _figure("load", "ms", reports, value(measures_time, lambda own: own.load_ms.p50)),
        _figure(time, "ms", reports, value(measures_time, lambda own: _median(own, case))),
    )
    where = f"{name_text(run.model)} on {name_text(device.device)}"
    return where, tuple(each for each in figures if set(each.values) != {None})


def _median(run: RunnerResult, name: str) -> float | None:
    return next((case.inference_ms.p50 for case in run.cases if case.case == name), None)


def _notes(outcome: Outcome) -> Iterator[str]:
    if isinstance(outcome, Refused):
        why = f": {outcome.why}" if outcome.why else ""
        yield f"{SYMBOLS[Verdict.FAIL]} {outcome.version}: {outcome.reference}: {outcome.what}{why}"
        return
    yield f"{SYMBOLS[outcome.verdict]} {outcome.ort_version}: {verdict_text(outcome)}"
    for device in outcome.devices:
        symbol, place = SYMBOLS[parity_verdict(device)], name_text(device.device)
        yield f"{symbol} {outcome.ort_version}: parity on {place}: {parity_text(device)}"


def cells(comparison: VersionsComparison, figures: Figures) -> Iterator[tuple[str, ...]]:
    """Yield the row of each version: its number, then its figures with the change against the first that has one."""
    for number, version in enumerate(comparison.versions):
        yield version, *(_cell(figure, number) for figure in figures)


def _cell(figure: VersionFigure, number: int) -> str:
    """Write a figure and how much larger it is: `1.34 MB, +1.2 %`."""
    value = figure.values[number]
    start = next((at for at, each in enumerate(figure.values) if each is not None), 0)
    text = quantity_text(value, figure.unit) if value is not None else NONE
    change = _change(figure.values[start], value) if number > start else ""
    return f"{text}, {change}" if change else text


def _change(first: float | None, value: float | None) -> str:
    if first is None or value is None or not (math.isfinite(first) and math.isfinite(value)) or first <= 0:
        return ""
    ratio = value / first - 1
    return "0 %" if abs(ratio) < SMALLEST_CHANGE else f"{100 * ratio:+.1f} %"


def versions_markdown(comparison: VersionsComparison) -> str:
    """Return the comparison as Markdown. No name in it can become markup."""
    parts = [f"## {escaped(comparison.title)}"]
    for where, figures in comparison.groups:
        heading = [f"### {escaped(where)}"] if where else []
        parts += [*heading, _table(comparison, figures).markdown()]
    notes = "\n".join(f"- {escaped(note)}" for note in comparison.notes)
    return "\n\n".join((*parts, notes, TIMES)) + "\n"


def versions_tables(comparison: VersionsComparison) -> RenderableType:
    """Return the comparison as tables for the terminal."""
    tables = []
    for where, figures in comparison.groups:
        made = _table(comparison, figures).terminal()
        made.title, made.title_justify = printable(where) or None, "left"
        tables.append(made)
    return Group(printable(comparison.title), *tables, *map(printable, comparison.notes), TIMES)


def _table(comparison: VersionsComparison, figures: Figures) -> Table:
    headings = (*columns("text", "ONNX Runtime"), *columns("number", *(figure.measure for figure in figures)))
    return Table(columns=headings, rows=tuple(cells(comparison, figures)))


def versions_page(comparison: VersionsComparison) -> str:
    """Return a page with a bar for each figure of each version."""
    charts = [(printable(where or "library"), tuple(_bars(comparison, each))) for where, each in comparison.groups]
    return rendered(
        "versions.html.j2",
        title=f"{printable(comparison.title)}: ONNX Runtime {', '.join(comparison.versions)}",
        subtitle=TIMES,
        charts=charts,
        notes=tuple(map(printable, comparison.notes)),
    )


def _bars(comparison: VersionsComparison, figures: Figures) -> Iterator[Markup]:
    """Yield a picture of each figure, on a scale of its own."""
    rows = tuple(cells(comparison, figures))
    for column, figure in enumerate(figures, start=1):
        bars = [
            ChartBar(
                group=figure.measure,
                label=row[0],
                value=math.nan if value is None else value,  # of none there is no bar
                text=row[column],
                style="ours",
            )
            for row, value in zip(rows, figure.values, strict=True)
        ]
        yield bar_chart(figure.measure, bars, HALF_WIDTH)
