"""The page of a model: one HTML file that asks the network for nothing."""

from typing import Any

from ortrim.console import counted, printable
from ortrim.core.measurements import Verdict
from ortrim.core.model_cost import ModelCost
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.charts import load_chart, memory_chart
from ortrim.report.device_content import agreements, failure_lines, findings, timings
from ortrim.report.latency import latency_pictures
from ortrim.report.lines import device_lines
from ortrim.report.model_charts import PART_STYLES, arithmetic_chart, memory_timeline, share_bar, time_chart
from ortrim.report.model_content import (
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
    share_lines,
    step_lines,
    tensors,
    tiles,
)
from ortrim.report.model_share import SizeShare
from ortrim.report.model_subject import LintGroup, ModelSubject, report_of_model
from ortrim.report.names import name_text
from ortrim.report.pages import rendered
from ortrim.report.parity import PARITY_ROWS, parity_chart
from ortrim.report.summary import parity_text, verdict_text

UNMEASURED = "Not verified yet: the page has what the model's file tells, and no measurement."


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
        "reference": group.reference,
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
    return [_device(report, device, number) for number, device in enumerate(report.devices, 1)]


def _device(report: VerifyReport, device: DeviceReport, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "name": name_text(device.device),
        "verdict": device.verdict,
        "failure": failure_lines(device.failure) if device.failure else (),
        "lines": device_lines(device),
        "findings": findings(device, report.baseline),
        "memory": memory_lines(device),
        "memory_chart": memory_chart(device),
        "load_chart": load_chart(device),
        "latency_pictures": latency_pictures(device),
        "timings": timings(device),
        "parity_text": parity_text(device),
        "parity": agreements(device),
        "parity_left_out": max(0, len(device.parity) - PARITY_ROWS),
        "parity_chart": parity_chart(device),
    }
