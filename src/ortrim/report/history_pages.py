"""The history of builds and benches as a page, and as tables for the terminal and plain logs."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.parity.measurements import Unit
from ortrim.report.charts import FAMILIES, Canvas, family, ticks
from ortrim.report.charts import STYLES as FAMILIES_STYLES
from ortrim.report.figures import NONE, bytes_text, name_text, number_text, quantity_text
from ortrim.report.history import BenchEntry, BuildEntry, Check, Measure
from ortrim.report.html import rendered
from ortrim.report.table import Cell, Table, columns

Stamp = tuple[str, str]
"""When something was recorded, as a day, and what it was, for who points at it."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One measure over builds or benches: `points` are (number of the build or bench, value)."""

    label: str
    unit: Unit
    points: tuple[tuple[int, float], ...]


Series = tuple[BuildEntry, ...]


def series(entries: Sequence[BuildEntry]) -> dict[tuple[str, str, str], Series]:
    """Return the builds of each spec, target and profile, in order; only those can be compared."""
    found: dict[tuple[str, str, str], list[BuildEntry]] = {}
    for entry in entries:
        found.setdefault((entry.spec, entry.target, entry.profile), []).append(entry)
    return {name: tuple(each) for name, each in found.items()}


def history_table(entries: Sequence[BuildEntry]) -> Table:
    """Return a line for each build, in their order, with how its library differs from the build before of its kind."""
    before: dict[tuple[str, str, str], BuildEntry] = {}
    rows = []
    for entry in entries:
        kind = (entry.spec, entry.target, entry.profile)
        when = printable(entry.recorded_at.removesuffix("+00:00").replace("T", " "))
        sizes = (f"{entry.file_bytes:,}", change_text(entry, before.get(kind)), bytes_text(entry.package_bytes))
        measured = (_largest(entry, measure) for measure in ("peak memory", "load", "p50"))
        names = (printable(entry.plan_digest[:12]), printable(entry.ort_version))
        rows.append((when, *names, *sizes, *measured, name_text(entry.verdict)))
        before[kind] = entry
    numbers = columns("number", "library", "change", "package", "peak memory", "load", "p50")
    texts = columns("text", "plan", "ONNX Runtime")
    return Table(columns=(("recorded (UTC)", "date"), *texts, *numbers, ("verdict", "text")), rows=rows)


def change_text(entry: BuildEntry, before: BuildEntry | None) -> str:
    """Write how a library differs in size from the one before: `+1,204 (+0.1 %)`, `same`; a dash for the first."""
    if before is None:
        return NONE
    difference = entry.file_bytes - before.file_bytes
    if not difference:
        return "same"
    percent = f" ({100 * difference / before.file_bytes:+.1f} %)" if before.file_bytes else ""
    return f"{difference:+,}{percent}"


def curves(entries: Series, measure: str) -> tuple[Curve, ...]:
    """Return what was measured over builds; of several cases of a model the one that takes longest."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    unit: Unit = "bytes"
    for number, entry in enumerate(entries):
        for each in entry.measures:
            if each.measure == measure:
                points = found.setdefault((each.device, each.model), {})
                points[number] = max(each.value, points.get(number, each.value))
                unit = each.unit
    return tuple(
        Curve(label=name_text(f"{model}, {device}"), unit=unit, points=tuple(sorted(points.items())))
        for (device, model), points in sorted(found.items())
    )


def _largest(entry: BuildEntry, measure: str) -> str:
    """Write the largest value of a measure on the build's first device; a dash when it was not measured."""
    found: list[Measure] = [each for each in entry.measures if each.measure == measure]
    values = [each.value for each in found if each.device == found[0].device]
    return quantity_text(max(values), found[0].unit) if found else NONE


WIDTH: Final = 1000.0
HEIGHT: Final = 260.0
LOW_HEIGHT: Final = 150.0
LEFT: Final = 70.0
RIGHT: Final = 24.0
TOP: Final = 12.0
BOTTOM: Final = 28.0
SHOWN: Final = 60
"""How many builds, the last ones, are drawn."""
WIDEST: Final = 44.0
TICKS: Final = 4
DATE_WIDTH: Final = 84.0
LINE_STYLES: Final = ("line-0", "line-1", "line-2", "line-3")
"""As many curves can be distinguished in one chart."""


def size_columns(entries: Series) -> Markup:
    """Draw a column for each of the last builds: the bytes in memory by family, from zero."""
    shown = entries[-SHOWN:]
    sizes = [_by_family(entry) for entry in shown]
    top = max((sum(each.values()) for each in sizes), default=0)
    if not top:
        return Markup("")
    canvas = Canvas(WIDTH, HEIGHT, f"bytes in memory of the last {len(shown)} builds, by family")
    scale = (HEIGHT - TOP - BOTTOM) / top
    _axis(canvas, HEIGHT, top, "bytes", scale)
    width = min(WIDEST, 0.76 * _step(len(shown)))
    for number, (entry, parts) in enumerate(zip(shown, sizes, strict=True)):
        place = len(entries) - len(shown) + number
        before = entries[place - 1] if place else None
        y = HEIGHT - BOTTOM
        library = f"library {entry.file_bytes:,} bytes, {change_text(entry, before)}"
        x = _x(number, len(shown)) - width / 2
        for name in FAMILIES:
            height = parts[name] * scale
            tip = f"{_when(entry)}\n{name}: {bytes_text(parts[name])}\n{library}"
            canvas.rectangle(x, y - height, width, height, FAMILIES_STYLES[name], tip=tip)
            y -= height
    _dates(canvas, [entry.recorded_at[:10] for entry in shown], HEIGHT)
    return canvas.markup()


def measure_lines(stamps: Sequence[Stamp], curves: Sequence[Curve], label: str) -> Markup:
    """Draw a line for each of the first few curves over the last builds or benches, from zero."""
    first = max(0, len(stamps) - SHOWN)
    shown = stamps[first:]
    drawn = [each for each in curves[: len(LINE_STYLES)] if any(number >= first for number, _ in each.points)]
    top = max((value for each in drawn for number, value in each.points if number >= first), default=0.0)
    if not (top > 0 and math.isfinite(top)):
        return Markup("")
    canvas = Canvas(WIDTH, LOW_HEIGHT, label)
    scale = (LOW_HEIGHT - TOP - BOTTOM) / top
    unit = drawn[0].unit
    _axis(canvas, LOW_HEIGHT, top, unit, scale)
    for style, curve in zip(LINE_STYLES, drawn, strict=False):
        points = [
            (_x(number - first, len(shown)), LOW_HEIGHT - BOTTOM - value * scale, number, value)
            for number, value in curve.points
            if number >= first
        ]
        for (x1, y1, *_), (x2, y2, *_) in pairwise(points):
            canvas.line(x1, y1, x2, y2, style)
        for x, y, number, value in points:
            tip = f"{stamps[number][1]}\n{curve.label}: {quantity_text(value, unit)}"
            canvas.dot(x, y, 3.2, style, tip=tip)
    _dates(canvas, [day for day, _ in shown], LOW_HEIGHT)
    return canvas.markup()


def _by_family(entry: BuildEntry) -> dict[str, int]:
    sizes = dict.fromkeys(FAMILIES, 0)
    for part in entry.components:
        sizes[family(part.component)] += max(0, part.size_bytes)
    return sizes


def _axis(canvas: Canvas, height: float, top: float, unit: Unit, scale: float) -> None:
    for value in ticks(0, top, TICKS):
        y = height - BOTTOM - value * scale
        canvas.line(LEFT, y, WIDTH - RIGHT, y, "grid")
        canvas.text(LEFT - 8, y + 4, quantity_text(value, unit), "figure end")


def _dates(canvas: Canvas, days: Sequence[str], height: float) -> None:
    every = max(1, math.ceil(DATE_WIDTH / _step(len(days))))
    for number in range(0, len(days), every):
        canvas.text(_x(number, len(days)), height - 8, days[number], "tick")


def _x(number: int, count: int) -> float:
    return LEFT + _step(count) * (number + 0.5)


def _step(count: int) -> float:
    return min(2 * WIDEST, (WIDTH - LEFT - RIGHT) / max(1, count))


def _when(entry: BuildEntry) -> str:
    run = f"\ntraining run {name_text(entry.training_run)}" if entry.training_run else ""
    return f"{entry.recorded_at[:16].replace('T', ' ')} plan {entry.plan_digest[:12]}{run}"


BENCH_MEASURES: Final = (
    ("p50", "Latency, median of the slowest case"),
    ("p99", "Latency, 99th percentile of the slowest case"),
    ("processor", "Processor's time for one inference"),
    ("peak memory", "Peak resident memory"),
)
Kind = tuple[str, str, str, str]


def bench_kinds(entries: Sequence[BenchEntry]) -> list[dict[str, Any]]:
    """Return the plots of each spec, target, model and library; entries are in the order in which they were recorded.

    A line is of one choice of settings on one kind of machine, since only such figures can be compared.
    """
    kinds: dict[Kind, list[BenchEntry]] = {}
    for entry in entries:
        kinds.setdefault((entry.spec, entry.target, entry.model, entry.library), []).append(entry)
    return [
        {"name": " · ".join(map(name_text, ("bench", *kind))), "measures": _bench_plots(found)}
        for kind, found in kinds.items()
    ]


def _bench_plots(entries: list[BenchEntry]) -> list[dict[str, Any]]:
    benches = {each.recorded_at: each for each in entries}
    moments = {moment: number for number, moment in enumerate(benches)}
    found = [(heading, tuple(_curves(entries, measure, moments))) for measure, heading in BENCH_MEASURES]
    return _plots(list(map(_stamp, benches.values())), found, "benches")


def _plots(stamps: Sequence[Stamp], found: list[tuple[str, tuple[Curve, ...]]], what: str) -> list[dict[str, Any]]:
    plots = (
        {
            "heading": heading,
            "picture": measure_lines(stamps, each, f"{heading}, over {what}"),
            "curves": [(style, curve.label) for style, curve in zip(LINE_STYLES, each, strict=False)],
            "left_out": max(0, len(each) - len(LINE_STYLES)),
        }
        for heading, each in found
    )
    return [each for each in plots if each["picture"]]


def _curves(entries: list[BenchEntry], measure: str, moments: Mapping[str, int]) -> Iterator[Curve]:
    """Yield a line for each choice of settings and machine, those of the last bench first, in its order."""
    groups: dict[tuple[str, str, int], list[BenchEntry]] = {}
    for entry in sorted(entries, key=lambda each: -moments[each.recorded_at]):
        groups.setdefault((entry.settings, entry.cpu, entry.cores), []).append(entry)
    for (_, cpu, cores), found in groups.items():
        values = [(moments[each.recorded_at], _slowest(each, measure)) for each in reversed(found)]
        points = tuple((number, value) for number, value in values if value is not None)
        label = name_text(f"{found[0].point}, {cpu}, {cores} cores")
        unit: Unit = next((each.unit for each in found[0].measures if each.measure == measure), "ms")
        yield Curve(label=label, unit=unit, points=points)


def _stamp(entry: BenchEntry) -> Stamp:
    run = f"\ntraining run {name_text(entry.training_run)}" if entry.training_run else ""
    when = printable(f"{entry.recorded_at[:16].replace('T', ' ')} model {entry.model_sha256[:12]}")
    return printable(entry.recorded_at[:10]), f"{when}{run}"


MEASURES: Final = (
    ("peak memory", "Peak resident memory"),
    ("load", "Time to load a model"),
    ("p50", "Latency, median of the slowest case"),
)
LINES: Final = 200
"""How many builds, the last ones, the table has."""


def history_page(entries: Sequence[BuildEntry], benches: Sequence[BenchEntry] = ()) -> str:
    """Return the page about builds and benches, which are in order.

    Builds have plots for each spec, target and profile, benches for each spec, target, model and library.
    """
    found = series(entries)
    told = {family(part.component) for entry in entries for part in entry.components}
    number = len({each.recorded_at for each in benches})
    more = f", and {number:,} {'bench' if number == 1 else 'benches'}" if number else ""
    return rendered(
        "history.html.j2",
        title="Builds over time",
        subtitle=f"{counted(len(entries), 'build')} of {counted(len(found), 'kind')}{more}",
        legend=[(FAMILIES_STYLES[name], name) for name in FAMILIES if name in told],
        kinds=[_kind(name, each) for name, each in found.items()],
        benches=bench_kinds(benches),
    )


def _kind(name: tuple[str, str, str], entries: Series) -> dict[str, Any]:
    table = history_table(entries)
    earlier = [(f"{counted(len(entries) - LINES, 'earlier build')} not shown",)] if len(entries) > LINES else []
    found = [(heading, curves(entries, measure)) for measure, heading in MEASURES]
    return {
        "name": " · ".join(map(name_text, name)),
        "columns": size_columns(entries),
        "measures": _plots([(entry.recorded_at[:10], _when(entry)) for entry in entries], found, "builds"),
        "table": replace(table, rows=[*table.rows[: -LINES - 1 : -1], *earlier]),
    }


STYLES: Final = {"+": "yellow", "-": "green"}
"""Colours of a change by its first letter."""


def history_tables(entries: Sequence[BuildEntry], last: int) -> RenderableType:
    """Return the `last` builds of each spec, target and profile, the newest first; it fits 80 columns."""
    blocks: list[RenderableType] = []
    for name, found in series(entries).items():
        rows = [
            (str(when)[:16], library, Text(str(change), STYLES.get(str(change)[:1], "dim")), peak, p50, verdict)
            for when, _, _, library, change, _, peak, _, p50, verdict in history_table(found).rows[: -last - 1 : -1]
        ]
        numbers = columns("number", "library", "change", "peak", "p50")
        table = Table(columns=(("recorded (UTC)", "text"), *numbers, ("verdict", "short")), rows=rows)
        blocks += [Text(" · ".join(map(name_text, name)), "bold"), table.terminal(), Text()]
        if len(found) > last:
            blocks.insert(-1, Text(f"{counted(len(found) - last, 'earlier build')} not shown", "dim"))
    return Group(*blocks[:-1])


def bench_history_tables(entries: Sequence[BenchEntry], last: int) -> RenderableType:
    """Return the `last` benches of each model and library, the newest first; it fits 80 columns."""
    kinds: dict[tuple[str, str, str], list[BenchEntry]] = {}
    for entry in entries:
        kinds.setdefault((entry.spec, entry.model, entry.library), []).append(entry)
    blocks: list[RenderableType] = []
    for (spec, model, library), found in kinds.items():
        title = " · ".join(map(name_text, (f"bench of {spec}", model, library)))
        blocks += [Text(), Text(title, "bold"), _bench_history_table(found[: -last - 1 : -1])]
        if len(found) > last:
            blocks.append(Text(f"{counted(len(found) - last, 'earlier line')} not shown", "dim"))
    return Group(*blocks[1:])


def _bench_history_table(entries: Sequence[BenchEntry]) -> RichTable:
    rows = []
    for entry in entries:
        times = (number_text(_slowest(entry, name)) for name in ("p50", "p99"))
        ends = (bytes_text(_slowest(entry, "peak memory")), f"{entry.model_sha256[:8]} {entry.training_run}".rstrip())
        rows.append(tuple(map(name_text, (entry.recorded_at[:16].replace("T", " "), entry.point, *times, *ends))))
    texts, numbers = columns("text", "recorded (UTC)", "settings"), columns("number", "p50 ms", "p99 ms", "peak")
    styles = ["bold" if entry.recommended else "" for entry in entries]
    table = Table(columns=(*texts, *numbers, ("model, run", "text")), rows=rows, styles=styles).terminal()
    table.columns[0].no_wrap, table.columns[1].min_width = True, 21
    return table


def _slowest(entry: BenchEntry, measure: str) -> float | None:
    """Return a figure of the case that takes longest, None when no case has it."""
    return max((each.value for each in entry.measures if each.measure == measure), default=None)


VERDICT_STYLES: Final = {"regressed": "red", "within": "green", "not compared": "dim"}


def check_tables(check: Check) -> RenderableType:
    """Return what is compared, and below it what is not and why; it fits 80 columns."""
    latest, accepted = check.latest, check.accepted
    head = Text(f"{name_text(latest.spec)} · {name_text(latest.target)}", "bold")
    words = f" ({name_text(accepted.note)})" if accepted.note else ""
    plans = (printable(each.plan_digest[:12]) for each in (latest, accepted.entry))
    against = Text(f"plan {' against '.join(plans)}, accepted ", "dim")
    against.append(printable(accepted.accepted_at[:16].replace("T", " ")) + words)
    notes = [Text(f"note: {name_text(note)}", "yellow") for note in check.notes]
    compared = [line for line in check.lines if line.outcome != "not compared"]
    rows: list[tuple[Cell, ...]] = [
        (
            name_text(", ".join(filter(None, (line.measure, line.model, line.case, line.device)))),
            *(quantity_text(value, line.unit) for value in (line.before, line.after)),
            NONE if line.growth is None else f"{100 * line.growth:+.1f} %",
            f"+{100 * line.allowed:g} %",
            Text(line.outcome, VERDICT_STYLES[line.outcome]),
        )
        for line in compared
    ]
    numbers = columns("number", "accepted", "now", "change", "allowed")
    table = Table(columns=(("measure", "text"), *numbers, ("", "short")), rows=rows).terminal()
    reasons = Counter(line.reason for line in check.lines if line.outcome == "not compared")
    left = (Text(f"{counted(number, 'figure')} not compared: {reason}", "dim") for reason, number in reasons.items())
    return Group(head, against, *notes, table, *left)
