"""What the steps bring, one row a model: for a terminal, and as Markdown. Pure."""

from collections.abc import Sequence
from typing import Final

from footprint.record import Round, Sample
from footprint.report import figure_text
from footprint.summary import Figure, mean_p50, ratio_between
from rich.table import Table

from ortrim.base.console import printable
from ortrim.report.figures import NONE, difference_text, escaped
from ortrim.report.figures import table as markdown_table
from preparation.record import Change, PreparationRecord
from preparation.subject import GIVEN, PREPARED

HEADINGS: Final = (
    "model", "ONNX, bytes", "nodes", "operator types", ".ort, bytes", "library, bytes", "load", "p50", "peak RSS",
    "outputs", "difference", "rounds",
)  # fmt: skip
TITLE: Final = "What the steps of the models bring"
FOREWORD: Final = """\
Before → after the steps, each by its own library of profile `balanced`. Load, p50 and peak RSS are after divided by
before: the median of the ratios within each round, and beside it the half-width of its 90 % interval; p50 is the
geometric mean over all cases. A spec's models share their library. `outputs`: how many of the prepared model's
outputs agree with the full runtime's. `difference`: the largest one from the original model's outputs after any step,
in the full runtime. `*`: something else was running.
"""


def rows(record: PreparationRecord) -> tuple[tuple[str, ...], ...]:
    """Return the cells of each model, in the order of the record; what was not measured yet is a dash."""
    return tuple(_row(record, change) for change in record.changes)


def table(record: PreparationRecord) -> Table:
    shown = Table(title=TITLE, title_justify="left", box=None, collapse_padding=True, pad_edge=False)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading == "model" else "right", overflow="fold")
    for row in rows(record):
        shown.add_row(*map(printable, row))
    return shown


def markdown(record: PreparationRecord) -> str:
    """Return the table as Markdown, with how it is to be read and the machine that it is of."""
    machine = f"{record.machine.cpu}, {record.machine.cores} cores, {record.machine.system}."
    cells = [[escaped(cell) for cell in row] for row in rows(record)]
    parts = (f"# {TITLE}", FOREWORD.strip(), machine, markdown_table(HEADINGS, cells, right=range(1, len(HEADINGS))))
    return "\n\n".join(parts) + "\n"


def _row(record: PreparationRecord, change: Change) -> tuple[str, ...]:
    rounds = record.of(change.spec, change.model, change.key)
    before, after = change.given, change.prepared
    libraries = (record.library_bytes(change.spec, name) for name in (GIVEN, PREPARED))
    return (
        _name(change, rounds),
        _both(before.onnx_bytes, after.onnx_bytes),
        _both(before.nodes, after.nodes),
        _both(before.operator_types, after.operator_types),
        _both(before.ort_bytes, after.ort_bytes),
        _both(*libraries),
        *(figure_text(ratio_between(rounds, PREPARED, GIVEN, figure)) for figure in FIGURES),
        f"{change.outputs_agree} of {change.outputs}",
        NONE if change.largest_difference is None else difference_text(change.largest_difference),
        str(len(rounds)),
    )


def _load(sample: Sample) -> float:
    return sample.load_ms


def _peak_rss(sample: Sample) -> float:
    return sample.peak_rss_bytes


FIGURES: Final[tuple[Figure, ...]] = (_load, mean_p50, _peak_rss)


def _name(change: Change, rounds: Sequence[Round]) -> str:
    name = change.model if change.model == change.spec else f"{change.spec}: {change.model}"
    return f"{name}*" if any(each.disturbed for each in rounds) else name


def _both(before: int | None, after: int | None) -> str:
    return " → ".join(NONE if each is None else f"{each:,}" for each in (before, after))
