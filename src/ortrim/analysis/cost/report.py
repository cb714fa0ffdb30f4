"""What a model costs, as compact tables for the terminal and plain logs."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from ortrim.analysis.cost.memory import ModelCost, NodeCost, OperatorCost, Peak
from ortrim.analysis.cost.run import Blamed, Expectation
from ortrim.base.console import counted, printable
from ortrim.report.figures import NONE, bytes_text, ms_text, name_text, share_text, shortened
from ortrim.report.table import Table, columns, facts_table, ranking

TOP: Final = 8
NAME_CELLS: Final = 34
MOST_NOTES: Final = 5
LARGEST_TENSORS: Final = 3


def cost_tables(cost: ModelCost, top: int | None) -> RenderableType:
    """Return the totals, the `top` operators, the `top` nodes and what is not known; it fits 80 columns."""
    most = top or TOP
    nodes = sorted(cost.nodes, key=lambda each: (-each.macs, -each.operations))
    operators, single = (
        ranking(
            noun, ("MACs", "share", "operations", "parameters"), found, most, lambda found, **_: _cells(cost, found)
        )
        for noun, found in (("operator", cost.operators), ("node", nodes))
    )
    case = f", case {cost.case}" if cost.case else ""
    inputs = "; ".join(f"{name} {sizes_text(shape)}" for name, shape in cost.inputs)
    head = Text(printable(f"{cost.model}{case}: {inputs or 'no inputs'}"), "bold")
    return Group(head, *_notes(cost), Text(), _totals(cost), Text(), operators, Text(), single)


def sizes_text(shape: tuple[int | None, ...] | None) -> str:
    """Write a shape: `1x512`, `1x?`, `scalar`."""
    if shape is None:
        return "of any shape"
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def _totals(cost: ModelCost) -> RichTable:
    least = "at least " if cost.at_least else ""
    macs, operations, parameters = (
        least + (amount_text(number) if number else "0") for number in (cost.macs, cost.operations, cost.parameters)
    )
    peak, memory = (f"{least}{bytes_text(each.size_bytes)}{_peak_words(each)}" for each in (cost.peak, cost.memory))
    constant = f", {counted(cost.constant_nodes, 'other')} when the model is loaded" if cost.constant_nodes else ""
    totals = facts_table(
        (
            ("multiply-accumulates", macs),
            ("other operations", operations),
            ("parameters", f"{parameters}, {bytes_text(cost.parameter_bytes)}"),
            ("activations' peak", peak),
            ("memory of a run", memory),
            ("nodes that run", f"{len(cost.nodes):,}{constant}"),
        )
    )
    return totals.terminal(rule=False, head=False, padding=2)


def _peak_words(peak: Peak) -> str:
    if not peak.node:
        return ""
    largest = peak.tensors[:LARGEST_TENSORS]
    held = ", ".join(f"{shortened(each.name, NAME_CELLS)} {bytes_text(each.size_bytes)}" for each in largest)
    return printable(f" in {shortened(peak.node, NAME_CELLS)} ({held})")


def _cells(cost: ModelCost, found: Sequence[NodeCost | OperatorCost]) -> tuple[str, ...]:
    macs = sum(each.macs for each in found)
    share = share_text(macs / cost.macs) if macs and cost.macs else NONE
    operations, parameters = sum(each.operations for each in found), sum(each.parameters for each in found)
    return amount_text(macs), share, amount_text(operations), amount_text(parameters)


def _notes(cost: ModelCost) -> Iterator[Text]:
    notes = [*cost.unknown, *(f"{node.name}: {'; '.join(node.unknown)}" for node in cost.nodes if node.unknown)]
    for note in notes[:MOST_NOTES]:
        yield Text(f"note: {printable(note)}", "yellow")
    if len(notes) > MOST_NOTES:
        yield Text(f"note: and {counted(len(notes) - MOST_NOTES, 'other')} (all with --json)", "yellow")


def amount_text(number: int) -> str:
    """Write a large number with three significant digits: `945`, `1.24 M`, `19.6 G`; zero as a dash."""
    if not number:
        return NONE
    for exponent, unit in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number * 10_000 >= 9_995 * 10**exponent:
            return f"{_three(number, exponent)} {unit}"
    return str(number)


def _three(number: int, exponent: int) -> str:
    """Round to three significant digits in whole numbers: a damaged model's sizes are larger than any float."""
    scaled = 0
    for decimals in (2, 1, 0):
        scaled = (2 * number * 10**decimals + 10**exponent) // (2 * 10**exponent)
        if scaled < 1000 and decimals:
            return f"{scaled // 10**decimals}.{scaled % 10**decimals:0{decimals}}"
    return f"{scaled:,}"


STYLES: Final = {"not measured": "dim", "much arithmetic": "", "poor execution efficiency": "yellow"}


def proportion_tables(expectations: Sequence[Expectation]) -> RenderableType:
    """Return a table for each device, and below it what each finding is put down to; it fits 80 columns."""
    blocks: list[RenderableType] = []
    numbers = columns("number", "MACs", "expected", "measured", "times")
    headings = (*columns("text", "model, case"), *numbers, *columns("text", "finding"))
    for pace in dict.fromkeys(each.pace for each in expectations):
        own = [each for each in expectations if each.pace == pace]
        rows = [
            (
                *(_place(each), amount_text(each.macs), ms_text(each.expected_ms), ms_text(each.measured_ms)),
                NONE if each.ratio is None else f"{each.ratio:.3g}",
                Text(each.finding, STYLES[each.finding]),
            )
            for each in own
        ]
        known = f"{amount_text(pace.macs)} MACs in {ms_text(pace.milliseconds)}"
        head = Text(name_text(f"{pace.device}, by {pace.model}: {known}"), "bold")
        blocks += [head, Table(columns=headings, rows=rows).terminal(), *map(_blame, own), Text()]
    return Group(*blocks[:-1])


def _blame(each: Expectation) -> Text:
    words = ", ".join(map(_blamed, each.blamed)) or "no operator stands out"
    return Text(
        f"{_place(each)}: {words if each.blame_known else 'for the operators, make a profile, with verify --trace'}",
        "dim",
    )


def _blamed(blamed: Blamed) -> str:
    time = "" if blamed.time is None else f" and {share_text(blamed.time)} of the time"
    return f"{name_text(blamed.operator)} has {share_text(blamed.arithmetic)} of the arithmetic{time}"


def _place(each: Expectation) -> str:
    return name_text(f"{each.model}, {each.case}" if each.case else each.model)
