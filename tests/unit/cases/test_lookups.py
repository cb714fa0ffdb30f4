"""What is drawn for inputs in which a model tells certain values apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lookup_models import STRING, built, ml, table
from onnx_samples import value
from ortrim.models.onnx_files import facts_of
from ortrim.parity.cases.guess import Filling, guess

FLOAT, INT64, INT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8


def first(model: onnx.ModelProto, at: int = 0) -> Filling:
    return next(guess(model, facts_of(model, "a" * 64, 1, "here"))).inputs[at].fillings[0]


def after(nodes: Sequence[onnx.NodeProto], kind: int, keys: Mapping[str, Sequence[Any]]) -> Filling:
    keys = keys or {"keys_strings": ["lyon", "porto"]}
    encoder = ml("LabelEncoder", ["a"], ["y"], values_int64s=[*range(len(*keys.values()))], **keys)
    return first(built([*nodes, encoder], [value("x", kind, ("n", 1))]))


def node(operator: str, **attributes: Any) -> onnx.NodeProto:
    domain = "com.microsoft" if operator == "Tokenizer" else ""
    return helper.make_node(operator, ["x"], ["a"], domain=domain, **attributes)


LOWER = node("StringNormalizer", case_change_action="LOWER")


@pytest.mark.parametrize(
    ("nodes", "kind", "keys", "choices"),
    [
        ([node("Identity")], STRING, {}, ("lyon", "porto", "Elsewhere")),
        ([node("Flatten")], STRING, {}, ("lyon", "porto", "Elsewhere")),
        ([LOWER], STRING, {}, ("Word", "word", "lyon", "porto", "LYON", "Elsewhere")),
        ([node("Cast", to=STRING)], INT64, {"keys_strings": ["7", "-3"]}, (-3, 7, 8)),
        ([node("Cast", to=INT64)], STRING, {"keys_int64s": [7, -3]}, ("7", "-3", "8")),
        ([node("Cast", to=INT64)], INT8, {"keys_int64s": [7, 1000]}, (7, 8)),
        ([node("Cast", to=FLOAT)], INT64, {"keys_floats": [7.0, 0.5]}, (0, 1, 7, 8)),
        ([node("Identity")], FLOAT, {"keys_floats": [float("nan"), 0.1]}, ("nan", 0.1, 1.0)),
        ([node("Identity")], STRING, {"keys_strings": [b"\xff", "Elsewhere"]}, ("Elsewhere", "Nowhere")),
    ],
    ids=["known", "moved", "normalized", "to-text", "from-text", "small", "wider", "missing", "no-text"],
)  # fmt: skip
def test_keys_are_drawn_as_the_input_has_them(nodes: Any, kind: int, keys: Any, choices: Any) -> None:
    """The known ones, and one that is unknown, through operators that move or convert them."""
    filling = after(nodes, kind, keys)
    assert filling.choices == choices
    assert filling.needed == len(choices)
    assert filling.why.endswith("LabelEncoder tells apart") or "StringNormalizer and LabelEncoder" in filling.why


def test_what_is_computed_is_no_key() -> None:
    """Behind other operators nobody knows which numbers of the input are keys."""
    keys = {"keys_floats": [7.0]}
    assert after([node("Sin")], FLOAT, keys).choices is None
    assert after([node("Reciprocal")], FLOAT, keys).choices is None


def test_an_encoder_that_refuses_the_unknown_gets_none() -> None:
    closed = ml("OneHotEncoder", ["x"], ["y"], zeros=0, cats_strings=["cat", "dog"])
    assert first(built(closed, [value("x", STRING, ("n", 1))])).choices == ("cat", "dog")


def test_large_vocabularies_are_thinned_evenly() -> None:
    choices = after([node("Identity")], INT64, {"keys_int64s": [*range(0, 50_000, 5)]}).choices
    assert choices is not None
    assert (len(choices), choices[0], choices[-2:]) == (4097, 0, (49_995, 49_996))


def test_words_of_a_tokenizer_are_joined_to_its_grams() -> None:
    nodes = [
        node("Tokenizer", mark=0, mincharnum=1, pad_value="#", separators=["_"]),
        helper.make_node("TfIdfVectorizer", ["a"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2,
                         max_skip_count=0, ngram_counts=[0, 1], ngram_indexes=[0, 1],
                         pool_strings=["new", "new", "york"]),
    ]  # fmt: skip
    assert first(built(nodes, [value("x", STRING, (1,))])).choices == (
        "new",
        "york",
        "new_new",
        "new_york",
        "Elsewhere",
    )


def linear(**attributes: Any) -> onnx.NodeProto:
    return ml("LinearRegressor", ["a"], ["y"], **attributes)


def test_features_of_a_linear_model_lie_where_its_scores_differ() -> None:
    """Whatever the scale of each is: thousands, and thousandths, would saturate a probability."""
    weights = [2e-5, 40.0, 0.05]
    filling = first(built(linear(coefficients=weights, intercepts=[-3.0]), [value("a", shape=("n", 3))]))
    found = np.array(filling.choices).T @ np.array(weights) - 3.0
    assert np.abs(found).max() < 8
    assert np.ptp(found) > 2
    assert filling.needed >= 3 * 64


@pytest.mark.parametrize("scaled", ["Scaler", "Sub and Div"])
def test_scales_in_front_of_a_model_are_undone(scaled: str) -> None:
    """A Scaler's, and those that are written as arithmetic with constants."""
    offset, factor = [40.0, 52_000.0], [0.1, 2e-5]
    nodes = (
        [ml("Scaler", ["x"], ["a"], offset=offset, scale=factor)]
        if scaled == "Scaler"
        else [
            helper.make_node("Sub", ["x", "offset"], ["b"]),
            helper.make_node("Div", ["b", "factor"], ["a"]),
        ]
    )
    tables = [table("offset", offset), table("factor", 1 / np.array(factor))]
    model = built([*nodes, linear(coefficients=[1.0, -1.0])], [value("x", shape=("n", 2))], tables=tables)
    choices = first(model).choices
    assert choices is not None
    for own, middle, step in zip(choices, offset, factor, strict=True):
        assert isinstance(own, tuple)
        around = (np.array(own, float) - middle) * step
        assert 0.3 < np.abs(around).max() < 5


def trees(features: Sequence[int], thresholds: Sequence[float]) -> onnx.NodeProto:
    modes = ["BRANCH_LEQ"] * len(features)
    return ml(
        "TreeEnsembleRegressor", ["a"], ["y"], nodes_featureids=features, nodes_values=thresholds, nodes_modes=modes
    )


def test_features_that_are_joined_keep_their_thresholds() -> None:
    """Each input gets those of its own columns, as far as the widths of those before it are known."""
    inputs = [value("x", shape=("n", 2)), value("z", shape=("n", 1))]
    nodes = [helper.make_node("Concat", ["x", "z"], ["a"], axis=1), trees([1, 2], [5.0, 700.0])]
    model = built(nodes, inputs)
    assert first(model).choices == ((0.0, 1.0), (4.995, 5.0, 5.005))
    assert first(model, 1).choices == (699.3, 700.0, 700.7)


def test_columns_that_are_picked_have_words_of_their_own() -> None:
    """As a pipeline of categories reads a table of texts."""
    nodes = [
        ml("ArrayFeatureExtractor", ["x", "second"], ["b"]),
        ml("OneHotEncoder", ["b"], ["y"], cats_strings=["cat"]),
        ml("ArrayFeatureExtractor", ["x", "first"], ["a"]),
        ml("LabelEncoder", ["a"], ["z"], keys_strings=["red"], values_int64s=[1]),
    ]
    tables = [table("first", [0], np.int64), table("second", [1], np.int64)]
    model = built(nodes, [value("x", STRING, ("n", 2))], tables=tables)
    assert first(model).choices == (("red", "Elsewhere"), ("cat", "Elsewhere"))


def test_many_features_share_their_values() -> None:
    """Lists of hundreds of features would make a case that nobody reads."""
    model = built(trees(range(500), range(500)), [value("a", shape=("n", 500))])
    choices = first(model).choices
    assert choices is not None
    assert len(choices) <= 1025
    assert not any(isinstance(each, tuple) for each in choices)


def test_behind_a_scale_no_value_lies_on_a_threshold() -> None:
    """There rounding could take either side, on another processor too."""
    nodes = [ml("Scaler", ["x"], ["a"], offset=[0.0], scale=[0.1]), trees([0], [5.0])]
    choices = first(built(nodes, [value("x", shape=("n", 1))])).choices
    assert choices is not None
    assert 50.0 not in choices
    assert min(abs(each - 50) for each in choices if isinstance(each, float)) == pytest.approx(0.05)


def test_constants_may_be_attributes_and_have_other_shapes() -> None:
    """As exporters write the words that a model compares with."""
    nodes = [
        helper.make_node("Constant", [], ["c"], value_strings=["yes", "no"]),
        helper.make_node("Unsqueeze", ["c", "axis"], ["words"]),
        helper.make_node("Equal", ["x", "words"], ["y"]),
    ]
    axis = numpy_helper.from_array(np.array([0], np.int64), "axis")
    model = built(nodes, [value("x", STRING, ("n", 1))], tables=[axis], onnx_opset=19)
    assert first(model).choices == ("yes", "no", "Elsewhere")


@pytest.mark.parametrize(
    ("rows", "choices", "high"), [(5, (0, 1, 2, 3, 4), None), (90, None, 89), (50_000, None, 49_999)]
)
def test_rows_of_small_tables_are_all_drawn(rows: int, choices: Any, high: int | None) -> None:
    """Of others as many as there is room for; of a language model's, no more than before."""
    gather = helper.make_node("Gather", ["table", "x"], ["y"])
    filling = first(built(gather, [value("x", INT64, ("n",))], tables=[table("table", np.ones((rows, 1)))]))
    assert (filling.choices, filling.high) == (choices, high)
    assert (filling.needed > rows) == (rows == 90)


@pytest.mark.parametrize(
    ("operator", "kind", "constant", "around"),
    [
        ("Less", FLOAT, 123_456.0, 123_456.0),
        ("GreaterOrEqual", INT64, -70, -70),
        ("Less", FLOAT, 0.5, None),
        ("Greater", INT64, 5, None),
        ("Equal", FLOAT, 0.5, 0.5),
    ],
)
def test_values_lie_about_numbers_that_are_compared(operator: str, kind: int, constant: Any, around: Any) -> None:
    """Of those that the usual random values hardly lie on both sides of."""
    tables = [table("c", [constant], np.int64 if kind == INT64 else np.float32)]
    truth = [value("y", TensorProto.BOOL, None)]
    node = helper.make_node(operator, ["x", "c"], ["y"])
    choices = first(built(node, [value("x", kind, ("n",))], truth, tables=tables)).choices
    assert (choices is None) == (around is None)
    if choices:
        numbers = [float(each) for each in choices if not isinstance(each, tuple)]
        assert min(numbers) < around < max(numbers)
        assert around in numbers


def test_each_number_of_a_tuple_has_its_own_range() -> None:
    """Also where the tuples are joined of two inputs."""
    tables = [table("table", np.ones((4, 5)))]
    node = helper.make_node("GatherND", ["table", "x"], ["y"])
    assert first(built(node, [value("x", INT64, ("n", 2))], tables=tables)).choices == ((*range(4),), (*range(5),))
    nodes = [
        helper.make_node("Concat", ["a", "x"], ["i"], axis=-1),
        helper.make_node("GatherND", ["table", "i"], ["y"]),
    ]
    model = built(nodes, [value("x", INT64, ("n", 1)), value("a", INT64, ("n", 1))], tables=tables)
    assert first(model).choices == (*range(5),)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("[a-f]{2}-\\d+|none", {"aa-7", "none"}),
        ("(?:Mr|Ms)\\. \\w*", {"Mr. a", "Mr. ", "Ms. a", "Ms. "}),
        ("colou?r", {"colour", "color"}),
        ("(unclosed", set()),
    ],
)
def test_texts_that_a_pattern_matches_are_drawn(pattern: str, texts: set[str]) -> None:
    """With one that does not; none where that takes more than letters, classes and repetitions."""
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    model = built(node, [value("x", STRING, ("n",))], [value("y", TensorProto.BOOL, None)], onnx_opset=20)
    assert {*(first(model).choices or ())} == texts | ({"Elsewhere"} if texts else set())


def test_texts_are_those_before_they_are_joined_to_others() -> None:
    """What is put in front and behind is taken from the keys."""
    nodes = [
        helper.make_node("StringConcat", ["front", "x"], ["a"]),
        ml("LabelEncoder", ["a"], ["y"], keys_strings=["in lyon", "porto"], values_int64s=[1, 2]),
    ]
    front = numpy_helper.from_array(np.array(["in "], object), "front")
    model = built(nodes, [value("x", STRING, ("n",))], [value("y", INT64, None)], tables=[front], onnx_opset=20)
    assert first(model).choices == ("lyon", "Elsewhere")
