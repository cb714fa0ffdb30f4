"""What the steps of a model's preparation did, as a table for the terminal and plain logs."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.base.console import printable
from ortrim.report.figures import NONE, bytes_text, difference_text
from ortrim.steps.report import ModelCounts, PreparationReport, StepReport

MOST_NOTES = 4


def steps_table(report: PreparationReport) -> RenderableType:
    """Return a line for the original and for each step, and below it what they have to say."""
    table = Table(box=SIMPLE_HEAD, title=printable(f"steps of {report.model}"), title_justify="left", pad_edge=False)
    for heading in ("step", "size", "nodes", "parameters", "opset", "difference"):
        table.add_column(heading, justify="left" if heading == "step" else "right", overflow="fold")
    table.add_row("original", *_numbers(report.original), NONE)
    for step in report.steps:
        table.add_row(printable(_name(step)), *_numbers(step.after), _difference(step))
    return Group(table, *(Text(printable(line)) for step in report.steps for line in _lines(step)))


def _name(step: StepReport) -> str:
    ending = "" if step.outcome == "changed" else f" ({step.outcome})"
    return f"{step.number} {step.use}{ending}"


def _numbers(counts: ModelCounts) -> tuple[str, ...]:
    opset = next((str(version) for domain, version in counts.opsets if domain == "ai.onnx"), NONE)
    return bytes_text(counts.size_bytes), f"{counts.nodes:,}", f"{counts.parameters:,}", opset


def _difference(step: StepReport) -> str:
    largest = step.largest_difference
    return NONE if largest is None else difference_text(largest)


def _lines(step: StepReport) -> Iterator[str]:
    """Yield what a step has to say beyond its numbers."""
    start = f"step {step.number}"
    if step.reason:
        yield f"{start} was left out: {' '.join(step.reason.split())}"
    for left in step.cases_left:
        yield f"{start} leaves out case '{left.case}': {left.reason}"
    for note in step.notes[:MOST_NOTES]:
        yield f"{start}: {note}"
    if len(step.notes) > MOST_NOTES:
        yield f"{start}: and {len(step.notes) - MOST_NOTES:,} more, in the report"
