"""A profile as tables."""

import io

from ortrim.base.console import Console
from ortrim.bench.profile import microseconds_text, profile_tables
from ortrim.verify.operator_times import NodeTime, OperatorProfile, operators_of


def profile() -> OperatorProfile:
    nodes = (
        NodeTime(name="conv_1", operator="Conv", calls=1.0, microseconds=2400.0, share=0.6),
        NodeTime(name="x\x1b[2J" + "y" * 100, operator="Conv", calls=3.0, microseconds=1500.0, share=0.375),
        NodeTime(name="relu", operator="Relu", calls=2.5, microseconds=100.0, share=0.025),
    )
    return OperatorProfile(
        model="net", case="one", measured_with="a wheel", inferences=21, run_microseconds=5000.0,
        operators=operators_of(nodes), nodes=nodes,
    )  # fmt: skip


def shown(top: int | None) -> str:
    stdout = io.StringIO()
    Console(stdout=stdout, width=80, environment={}).render(profile_tables(profile(), top))
    return stdout.getvalue()


def test_operators_and_nodes_with_time_share_and_calls() -> None:
    """In 80 columns, whatever the names are."""
    text = shown(None)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "a wheel; median of 21 inferences: 4.00 ms in nodes of 5.00 ms for an inference" in text.replace("\n", " ")
    words = [[word for word in line.split() if not set(word) & set("━╸")] for line in text.splitlines()]
    assert ["Conv", "3.90", "ms", "97.5", "%", "4", "2"] in words
    assert ["relu", "100", "µs", "2.5", "%", "2.5", "Relu"] in words


def test_what_is_left_out_is_summed_up() -> None:
    text = shown(1)
    assert "1 other operator" in text
    assert "2 other nodes" in text


def test_microseconds_as_text() -> None:
    assert [microseconds_text(value) for value in (0.5, 12.5, 999.0, 1000.0)] == [
        "0.500 µs",
        "12.5 µs",
        "999 µs",
        "1.00 ms",
    ]
