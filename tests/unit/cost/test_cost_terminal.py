"""A model's cost as it is shown in a terminal."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from ortrim.analysis.cost.memory import LiveTensor, ModelCost, NodeCost, Peak, by_operator
from ortrim.analysis.cost.report import amount_text, cost_tables
from ortrim.report.figures import NONE


def node(name: str, operator: str, macs: int, *, operations: int = 0, unknown: tuple[str, ...] = ()) -> NodeCost:
    return NodeCost(
        name=name, operator=operator, macs=macs, operations=operations, parameters=1000, parameter_bytes=4000,
        output_bytes=400, unknown=unknown,
    )  # fmt: skip


def cost_of_nodes(*nodes: NodeCost) -> ModelCost:
    return ModelCost(
        model="net.onnx",
        sha256="0" * 64,
        case="",
        inputs=(("x", (1, None, 8)), ("s", ()), ("q", None)),
        macs=sum(each.macs for each in nodes),
        operations=sum(each.operations for each in nodes),
        parameters=1000 * len(nodes),
        parameter_bytes=4000 * len(nodes),
        peak=Peak(size_bytes=1500, node="conv1", tensors=(LiveTensor(name="x", size_bytes=1500),)),
        constant_nodes=1,
        at_least=any(each.unknown for each in nodes),
        unknown=(),
        operators=by_operator(nodes),
        nodes=nodes,
    )


NET = cost_of_nodes(node("relu", "Relu", 0, operations=70), node("conv1", "Conv", 3000), node("conv2", "Conv", 1000))


def shown(cost: ModelCost, top: int | None = None) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=80).print(cost_tables(cost, top))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_totals_operators_and_nodes_are_shown() -> None:
    lines = [" ".join(line.split()) for line in shown(NET)]
    assert lines[0] == "net.onnx: x 1x?x8; s scalar; q of any shape"
    assert "multiply-accumulates 4.00 k" in lines
    assert "parameters 3.00 k, 12.0 kB" in lines
    assert "activations' peak 1.50 kB in conv1 (x 1.50 kB)" in lines
    assert "nodes that run 3, 1 other when the model is loaded" in lines
    assert f"Conv 4.00 k 100 % {NONE} 2.00 k 2" in lines
    first = lines.index(f"conv1 3.00 k 75.0 % {NONE} 1.00 k Conv")
    assert lines[first + 1] == f"conv2 1.00 k 25.0 % {NONE} 1.00 k Conv"
    assert not any("at least" in line for line in lines)


def test_what_does_not_fit_is_summed_up() -> None:
    lines = [" ".join(line.split()) for line in shown(NET, 1)]
    assert f"1 other operator {NONE} {NONE} 70 1.00 k" in lines
    assert "2 other nodes 1.00 k 25.0 % 70 2.00 k" in lines


def test_what_is_not_known_comes_first() -> None:
    unknown = [node(f"n{number}", "Mine", 0, unknown=("no rule",)) for number in range(7)]
    lines = shown(replace(cost_of_nodes(*unknown), unknown=("the inputs are open",)))
    assert lines[1:3] == ["note: the inputs are open", "note: n0: no rule"]
    assert lines[6] == "note: and 3 others (all with --json)"
    assert sum("at least" in line for line in lines) == 5


def test_names_do_not_steer_the_terminal() -> None:
    evil = node("\x1b[2J[red]" + "a" * 500, "com.\x07:" + "b" * 500, 10, unknown=("\x1b]0;", "x"))
    lines = shown(cost_of_nodes(evil))
    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert any("[red]" in line for line in lines)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, NONE), (7, "7"), (999, "999"), (1000, "1.00 k"), (1234, "1.23 k"), (9994, "9.99 k"), (9995, "10.0 k"),
        (99_949, "99.9 k"), (99_950, "100 k"), (999_499, "999 k"), (999_500, "1.00 M"), (19_632_062_464, "19.6 G"),
        (1_500_000_000_000, "1.50 T"), (10**400, f"{10**388:,} T"),
    ],
)  # fmt: skip
def test_amounts_have_three_digits(number: int, text: str) -> None:
    """However large they are: a damaged model's are larger than any float."""
    assert amount_text(number) == text


def test_the_memory_of_a_run_stands_below_the_peak() -> None:
    memory = Peak(size_bytes=2_500_000, node="conv2", tensors=(LiveTensor(name="a", size_bytes=2_500_000),))
    lines = shown(replace(NET, memory=memory))
    (number,) = (number for number, line in enumerate(lines) if line.startswith("memory of a run"))
    assert lines[number - 1].startswith("activations' peak")
    assert lines[number].split(maxsplit=4)[4] == "2.50 MB in conv2 (a 2.50 MB)"
