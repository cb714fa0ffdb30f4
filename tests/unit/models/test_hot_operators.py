"""Hot operators: which are hot, and the text that names them."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.models import hot_operators
from ortrim.models.operators import EMPTY, OperatorId, required_operators

OPERATORS = required_operators([
    OperatorId(domain="ai.onnx", opset=13, name="Gelu"),
    OperatorId(domain="ai.onnx", opset=20, name="Gelu"),
    OperatorId(domain="com.microsoft", opset=1, name="Gelu"),
    OperatorId(domain="ai.onnx", opset=13, name="Conv"),
])  # fmt: skip


def test_every_case_counts_alike() -> None:
    """A batch of eight takes long, and is not what an application waits for."""
    assert hot_operators.shares_of([{"a": 1.0, "b": 3.0}, {"a": 600.0, "b": 200.0}]) == {"a": 0.5, "b": 0.5}


def test_a_case_without_time_says_nothing() -> None:
    """Neither a division by nothing nor a share of it."""
    assert hot_operators.shares_of([{}, {"a": 0.0}, {"a": 2.0}]) == {"a": 1.0}
    assert hot_operators.shares_of([{"a": 0.0}]) == hot_operators.shares_of([]) == {}


def test_the_fewest_that_make_enough_of_the_time_are_hot() -> None:
    rows = hot_operators.ranked({"m": {"a": 0.90, "b": 0.05, "c": 0.04, "d": 0.01}})
    assert [row.operator for row in rows] == ["a", "b", "c", "d"]
    assert [row.operator for row in rows if row.hot] == ["a", "b"]


def test_what_is_hot_in_one_model_is_hot() -> None:
    rows = {
        row.operator: row for row in hot_operators.ranked({"m": {"a": 0.96, "b": 0.04}, "n": {"b": 0.99, "a": 0.01}})
    }
    assert rows["b"] == hot_operators.RankedOperator(operator="b", share=0.99, model="n", hot=True)
    assert rows["a"] == hot_operators.RankedOperator(operator="a", share=0.96, model="m", hot=True)


SHARES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.001, 1e6), min_size=1)


@given(times=st.dictionaries(st.sampled_from("mno"), SHARES, min_size=1))
def test_hot_operators_make_enough_of_every_models_time(times: dict[str, dict[str, float]]) -> None:
    models = {model: hot_operators.shares_of([each]) for model, each in times.items()}
    rows = hot_operators.ranked(models)
    hot = {row.operator for row in rows if row.hot}
    for shares in models.values():
        assert sum(share for operator, share in shares.items() if operator in hot) >= hot_operators.HOT_SHARE - 1e-9
    assert rows == tuple(sorted(rows, key=lambda row: (-row.share, row.operator)))


def test_a_profile_tells_no_domain() -> None:
    """Each domain that the model has an operator of that name in, once."""
    assert hot_operators.named_in("Gelu", OPERATORS) == ("ai.onnx:Gelu", "com.microsoft:Gelu")
    assert hot_operators.named_in("MemcpyToHost", OPERATORS) == ()


def test_operators_that_no_model_has_are_told_apart() -> None:
    hot = ("com.microsoft:Gelu", "ai.onnx:LSTM", "ai.onnx:Conv", "ai.onnx:Conv", "a:B")
    assert hot_operators.required_of(hot, OPERATORS) == (
        ("ai.onnx:Conv", "com.microsoft:Gelu"),
        ("a:B", "ai.onnx:LSTM"),
    )
    assert hot_operators.required_of(hot, EMPTY)[0] == ()


def test_with_all_operators_every_one_is_required() -> None:
    everything = required_operators([], no_operators_means_all=True)
    assert hot_operators.required_of(["ai.onnx:LSTM"], everything) == (("ai.onnx:LSTM",), ())


def test_the_file_names_the_hot_ones_in_their_order() -> None:
    """With their shares beside them; the same measurement gives the same bytes."""
    rows = hot_operators.ranked({"vad": {"ai.onnx:Conv": 0.412, "ai.onnx:LSTM": 0.55, "ai.onnx:Pad": 0.038}})
    assert hot_operators.render_hot(rows, ("About this.",)) == (
        '# About this.\noperators = [\n    "ai.onnx:LSTM",  # 55.0 % of vad\n    "ai.onnx:Conv",  # 41.2 % of vad\n]\n'
    )


@given(about=st.lists(st.text()), model=st.text())
def test_whatever_a_machine_calls_itself_the_file_is_toml(about: list[str], model: str) -> None:
    """A line end in a comment would begin a line of its own."""
    text = hot_operators.render_hot(hot_operators.ranked({model: {"ai.onnx:Conv": 1.0}}), about)
    assert tomllib.loads(text) == {"operators": ["ai.onnx:Conv"]}


@pytest.mark.parametrize("name", ["ai.onnx:Conv", "com.microsoft.nchwc:Conv", "my_domain-1:Op_2"])
def test_operators_have_names_of_this_form(name: str) -> None:
    assert hot_operators.OPERATOR.fullmatch(name)
