"""The page of a model: one HTML file that asks the network for nothing.

- Pictures for the page of a model: its arithmetic by operator, its memory over a run, and its share of the bytes.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import amount_text
from ortrim.analysis.page.content import (
    COMMON,
    MODEL,
    MODELS,
    OTHERS,
    OWN,
    RUNTIME,
    LintGroup,
    ModelSubject,
    OperatorTimes,
    SizeShare,
    case_text,
    cost_lines,
    cost_notes,
    graph_facts,
    heaviest,
    kernel_lines,
    memory_lines,
    memory_text,
    operator_counts,
    peak_lines,
    report_of_model,
    share_lines,
    step_lines,
    tensors,
    tiles,
)
from ortrim.base.console import counted, printable
from ortrim.parity.measurements import Verdict
from ortrim.report.charts import (
    FULL_WIDTH,
    HALF_WIDTH,
    Canvas,
    ChartBar,
    bar_chart,
    ticks,
)
from ortrim.report.figures import bytes_text, name_text, share_text
from ortrim.report.html import device_parts, rendered
from ortrim.report.summary import verdict_text
from ortrim.verify.reports import VerifyReport

BARS: Final = 10
"""How many operators are drawn; the others are one bar."""
COLUMNS: Final = 400
"""How many columns a run is drawn in; of more nodes, each column has the one with most alive."""
HEIGHT: Final = 230.0
LEFT: Final = 70.0
TOP: Final = 26.0
BOTTOM: Final = 30.0
SHARE_HEIGHT: Final = 44.0
LARGEST: Final = 2**63
"""Only a damaged model needs more bytes than this, and a float may not hold them."""
PART_STYLES: Final = {
    OWN: "family-kernels", COMMON: "family-language", OTHERS: "family-linker", RUNTIME: "family-runtime",
    MODEL: "family-libraries", MODELS: "family-untold",
}  # fmt: skip
"""The classes of the style sheet, one for each part."""

Timeline = Sequence[tuple[str, int]]


def arithmetic_chart(cost: ModelCost) -> Markup:
    """Draw each operator's multiply-accumulates; other operations where there are none."""
    values = [(each.operator, each.macs) for each in cost.operators if each.macs]
    values = values or [(each.operator, each.operations) for each in cost.operators if each.operations]
    return _operator_bars("arithmetic by operator", values, amount_text)


def time_chart(times: OperatorTimes) -> Markup:
    """Draw each operator's time as a share of that of all."""
    ordered = sorted(((name, round(1000 * time)) for name, time in times.times), key=lambda each: -each[1])
    return _operator_bars("time by operator", ordered, lambda nanoseconds: f"{nanoseconds / 1e6:.3g} ms")


def memory_timeline(cost: ModelCost) -> Markup:
    """Draw the bytes that a run takes while each node runs, in ONNX Runtime's order, with the peak marked."""
    timeline = cost.memory.timeline
    top = max((size for _, size in timeline), default=0)
    if not 0 < top <= LARGEST:
        return Markup("")
    canvas = Canvas(FULL_WIDTH, HEIGHT, f"bytes in memory while each of {len(timeline)} nodes runs")
    scale, bottom = (HEIGHT - TOP - BOTTOM) / top, HEIGHT - BOTTOM
    for value in ticks(0, top, 4):
        canvas.line(LEFT, bottom - value * scale, FULL_WIDTH, bottom - value * scale, "grid")
        canvas.text(LEFT - 8, bottom - value * scale + 4, bytes_text(value), "figure end")
    shown = _columns(timeline)
    width = (FULL_WIDTH - LEFT) / len(shown)
    for number, (node, size) in enumerate(shown):
        style = "peak" if size == top else "ours"
        tip = f"{name_text(node)}\n{bytes_text(size)}"
        canvas.rectangle(LEFT + number * width, bottom - size * scale, width + 0.05, size * scale, style, tip=tip)
    canvas.text(LEFT, 14, f"peak {bytes_text(top)} in {name_text(cost.memory.node)}", "figure strong")
    canvas.text(LEFT, HEIGHT - 9, "first node", "figure")
    canvas.text(FULL_WIDTH, HEIGHT - 9, f"last of {len(timeline):,} nodes", "figure end")
    return canvas.markup()


def share_bar(share: SizeShare) -> Markup:
    """Draw all that is shipped as one bar of parts."""
    total = sum(part.size_bytes for part in share.parts)
    if not total:
        return Markup("")
    canvas = Canvas(FULL_WIDTH, SHARE_HEIGHT, "the bytes of the library and model, by use")
    x = 0.0
    for part in share.parts:
        width = FULL_WIDTH * part.size_bytes / total
        tip = f"{part.name}\n{bytes_text(part.size_bytes)}, {share_text(part.size_bytes / total)}"
        canvas.rectangle(x, 2, max(0.0, width - 1.5), SHARE_HEIGHT - 4, PART_STYLES[part.name], tip=tip)
        x += width
    return canvas.markup()


def _columns(timeline: Timeline) -> list[tuple[str, int]]:
    """Return at most `COLUMNS` of a run's nodes, of those that share a column the one with most alive."""
    if len(timeline) <= COLUMNS:
        return list(timeline)
    edges = [number * len(timeline) // COLUMNS for number in range(COLUMNS + 1)]
    return [max(timeline[first:last], key=lambda each: each[1]) for first, last in pairwise(edges)]


def _operator_bars(label: str, values: Sequence[tuple[str, int]], text: Callable[[int], str]) -> Markup:
    """Draw the first few operators, and the others together; `values` are in order."""
    total = sum(value for _, value in values)
    rest = sum(value for _, value in values[BARS:])
    shown = [*values[:BARS], *([(f"{len(values) - BARS} others", rest)] if rest else [])]
    bars = [
        ChartBar(
            label=printable(name.rpartition(":")[2]),
            value=value / total,
            text=f"{text(value)}, {share_text(value / total)}",
            style="ours",
        )
        for name, value in shown
        if total
    ]
    return bar_chart(label, bars, HALF_WIDTH)


UNMEASURED = "Not verified yet: the page is made from the model's file and has no measurements."


def model_page(subject: ModelSubject) -> str:
    """Return the page of one model; every name in it is escaped."""
    report = report_of_model(subject.report, subject.name) if subject.report else None
    graph = subject.graph
    return rendered(
        "model.html.j2",
        title=name_text(subject.name),
        subtitle=_subtitle(subject),
        verdict=report.verdict if report else Verdict.NOT_JUDGED,
        verdict_text=verdict_text(report) if report else UNMEASURED,
        tiles=tiles(subject),
        facts=graph_facts(subject),
        inputs=tensors(graph.model.inputs),
        outputs=tensors(graph.model.outputs),
        operators=operator_counts(graph),
        lint=[_lint(group) for group in subject.lint],
        lint_text=_lint_text(subject.lint),
        not_checked=tuple(map(printable, subject.not_checked)),
        steps=step_lines(subject),
        prepared=subject.steps is not None,
        cost=_cost(heaviest(subject.costs)),
        cases=[(case_text(each), cost_lines(each)) for each in subject.costs],
        times=[(name_text(each.device), time_chart(each)) for each in subject.times],
        share=_share(subject.share),
        devices=_devices(report) if report else (),
    )


def _subtitle(subject: ModelSubject) -> str:
    return f"a model of {name_text(subject.product)} for {name_text(subject.target)}, ONNX Runtime " + printable(
        subject.converted.ort_version
    )


def _lint(group: LintGroup) -> dict[str, Any]:
    return {
        "verdict": Verdict.FAIL if group.level == "error" else Verdict.INCONCLUSIVE,
        "level": group.level,
        "code": group.code,
        "title": printable(group.title),
        "why": printable(group.why),
        "fix": printable(group.fix),
        "places": tuple(map(printable, group.places)),
    }


def _lint_text(groups: tuple[LintGroup, ...]) -> str:
    errors = sum(group.level == "error" for group in groups)
    if not groups:
        return "Nothing was found."
    advice = len(groups) - errors
    found = [counted(errors, "error")] if errors else []
    return ", ".join(
        [*found, *([f"{advice} pieces of advice" if advice > 1 else "one piece of advice"] if advice else [])]
    )


def _cost(cost: ModelCost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "case": case_text(cost),
        "chart": arithmetic_chart(cost),
        "of": "multiply-accumulates" if cost.macs else "operations",
        "notes": cost_notes(cost),
        "timeline": memory_timeline(cost),
        "memory": memory_text(cost),
        "peak": peak_lines(cost),
    }


def _share(share: SizeShare | None) -> dict[str, Any] | None:
    if share is None:
        return None
    lines = [(PART_STYLES[name], name, size, part) for name, size, part in share_lines(share)]
    return {"bar": share_bar(share), "lines": lines, "kernels": kernel_lines(share)}


def _devices(report: VerifyReport) -> list[dict[str, Any]]:
    return [
        {**device_parts(device, number, report.baseline), "memory": memory_lines(device)}
        for number, device in enumerate(report.devices, 1)
    ]
