"""Cases that ortrim finds by itself, tried in the real full runtime."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value
from ortrim.base.files import sha256_of
from ortrim.base.json import from_json, to_json
from ortrim.buildspec.buildspec import CaseSpec, InputSpec
from ortrim.errors import OperatorsError, VerifyError
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.cases import found as found_module
from ortrim.parity.cases.found import FoundCases, case_toml, found_cases
from refusing import refused

pytestmark = pytest.mark.usefixtures("cache")

OPSETS = '<ir_version: 8, opset_import: ["": 17]>'


def prepared(model: onnx.ModelProto | str, folder: Path) -> PreparedModel:
    """Write a model, or one in onnx's text format, and return it as ortrim holds it."""
    made = onnx.parser.parse_model(OPSETS + model) if isinstance(model, str) else model
    path = folder / "model.onnx"
    onnx.save_model(made, path)
    facts = facts_of(made, sha256_of(path), path.stat().st_size, "here")
    return PreparedModel(name="m", path=path, facts=facts)


def found(model: onnx.ModelProto | str, folder: Path) -> FoundCases:
    return found_cases(prepared(model, folder), full_runtime(onnxruntime.__version__, None), lambda _: None)


def sizes_of(cases: FoundCases, name: str) -> list[int]:
    return [case.dimensions[name] for case in cases.cases]


def weights(name: str, *shape: int) -> onnx.TensorProto:
    random = np.random.default_rng(0).standard_normal(shape)
    return numpy_helper.from_array(np.asarray(random, np.float32), name)


def numbers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def segmenter() -> onnx.ModelProto:
    """Return a network that makes an image 32 times smaller, then larger again, and concatenates both: sides of 32n."""
    strided: Mapping[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    nodes = [helper.make_node("Conv", ["image", "first"], ["x0"], **strided)]
    nodes += [helper.make_node("Conv", [f"x{at}", "other"], [f"x{at + 1}"], **strided) for at in range(4)]
    nodes += [
        helper.make_node("Resize", ["x4", "", "scales"], ["y0"], mode="nearest"),
        helper.make_node("Concat", ["image", "y0"], ["both"], axis=1),
        helper.make_node("Sigmoid", ["both"], ["mask"]),
    ]
    scales = numpy_helper.from_array(np.array([1, 1, 32, 32], np.float32), "scales")
    return model_of(
        nodes,
        [value("image", shape=("batch", 3, "height", "width"))],
        [value("mask", shape=("batch", 7, None, None))],
        initializers=[weights("first", 4, 3, 3, 3), weights("other", 4, 4, 3, 3), scales],
    )


def test_an_image_gets_sides_that_its_strides_allow(tmp_path: Path) -> None:
    cases = found(segmenter(), tmp_path)
    assert [case.name for case in cases.cases] == ["small", "larger", "typical"]
    assert sizes_of(cases, "batch") == [1, 2, 1]
    assert all(len(set(sizes_of(cases, side))) == 3 for side in ("height", "width"))
    assert cases.cases[-1].dimensions == {"batch": 1, "height": 640, "width": 640}
    assert {size % 32 for case in cases.cases for size in (case.dimensions["height"], case.dimensions["width"])} == {0}
    assert any(case.dimensions["height"] != case.dimensions["width"] for case in cases.cases)
    assert cases.cases[0].inputs["image"] == InputSpec(low=0.0, high=1.0)
    assert cases.warnings == ()


def of_any_size(work: int) -> onnx.ModelProto:
    """Return a network that gives classes of an image, with so many convolutions of no use."""
    same: Mapping[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [helper.make_node("Conv", ["image", "w"], ["x0"], **same)]
    nodes += [helper.make_node("Conv", [f"x{at}", "v"], [f"x{at + 1}"], **same) for at in range(work)]
    nodes += [
        helper.make_node("GlobalAveragePool", [f"x{work}"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["classes"]),
    ]
    return model_of(
        nodes,
        [value("image", shape=("batch", 3, "height", "width"))],
        [value("classes", shape=("batch", 32))],
        initializers=[weights("w", 32, 3, 3, 3), weights("v", 32, 32, 3, 3)],
    )


def test_a_classifier_has_a_case_of_the_usual_size_unless_it_takes_long(tmp_path: Path) -> None:
    """So that its latency means something; by its metadata where it says more."""
    assert found(of_any_size(0), tmp_path).cases[-1].dimensions == {"batch": 1, "height": 224, "width": 224}
    told = of_any_size(0)
    told.metadata_props.add(key="input_size", value="[3, 96, 160]")
    assert found(told, tmp_path).cases[-1].dimensions == {"batch": 1, "height": 160, "width": 160}
    # Of that many convolutions a run is stopped after its second on any machine.
    assert "typical" not in {case.name for case in found(of_any_size(300), tmp_path).cases}


def test_a_size_that_the_runtime_names_in_its_refusal_is_tried(tmp_path: Path) -> None:
    """Lines of 147 numbers, which no name and no weight tells."""
    text = """m (float[batch, n] x) => (float[a, b] y) {
        shape = Constant <value = int64[2] {-1, 147}> () lines = Reshape (x, shape) y = Softmax (lines) }"""
    cases = found(text, tmp_path)
    assert {case.dimensions["batch"] * case.dimensions["n"] % 147 for case in cases.cases} == {0}
    assert cases.cases[0].dimensions != cases.cases[1].dimensions
    assert any("found by trying" in reason for reason in cases.reasons)


def classifier() -> onnx.ModelProto:
    """Return a network whose last weights are made for 224 x 224, of an image in gray of which it names no size."""
    strided: Mapping[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["small"], **strided),
        helper.make_node("Conv", ["small", "second"], ["smaller"], **strided),
        helper.make_node("Flatten", ["smaller"], ["flat"]),
        helper.make_node("Gemm", ["flat", "last"], ["y"]),
    ]
    given = [weights("first", 2, 1, 3, 3), weights("second", 2, 2, 3, 3), weights("last", 56 * 56 * 2, 3)]
    return model_of(nodes, [value("x", shape=(None,) * 4)], [value("y", shape=None)], initializers=given)


def transformer() -> onnx.ModelProto:
    """Return the beginning of a vision transformer: 37 x 37 patches of 14 x 14, each with its place."""
    nodes = [
        helper.make_node("Conv", ["x", "patch"], ["patches"], kernel_shape=[14, 14], strides=[14, 14]),
        helper.make_node("Reshape", ["patches", "rows"], ["row"]),
        helper.make_node("Add", ["row", "places"], ["y"]),
    ]
    given = [weights("patch", 2, 3, 14, 14), weights("places", 1, 2, 37 * 37), numbers("rows", 0, 2, -1)]
    inputs = [value("x", shape=("batch", "channels", "height", "width"))]
    return model_of(nodes, inputs, [value("y", shape=None)], initializers=given)


@pytest.mark.parametrize(
    ("model", "side"), [(classifier(), 224), (transformer(), 518)], ids=["classifier", "transformer"]
)
def test_sides_are_scaled_to_what_weights_behind_want(tmp_path: Path, model: onnx.ModelProto, side: int) -> None:
    """The refusal tells two numbers of elements, whose ratio is that of the areas."""
    cases = found(model, tmp_path)
    shapes = [case.inputs["x"].shape or tuple(case.dimensions.values()) for case in cases.cases]
    channels = 1 if side == 224 else 3
    assert shapes == [(1, channels, side, side), (2, channels, side, side)]
    assert sum("others were refused" in reason for reason in cases.reasons) == 2


def test_two_inputs_of_related_lengths_find_each_other(tmp_path: Path) -> None:
    """A vocoder adds a sample of noise to each sample that it makes, 256 from a frame."""
    nodes = [
        helper.make_node("ConvTranspose", ["mel", "w"], ["quiet"], kernel_shape=[256], strides=[256]),
        helper.make_node("Add", ["quiet", "noise"], ["y"]),
    ]
    inputs = [value("mel", shape=(1, None, "frames")), value("noise", shape=(1, 1, "noise_length"))]
    cases = found(model_of(nodes, inputs, [value("y", shape=None)], initializers=[weights("w", 80, 1, 256)]), tmp_path)
    for case in cases.cases:
        _, channels, frames = case.inputs["mel"].shape or ()
        assert (channels, frames * 256) == (80, case.dimensions["noise_length"])


def test_a_size_that_weights_fix_is_not_tried_otherwise(tmp_path: Path) -> None:
    """The rows of a product's weights; the first run is one that goes well."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = model_of(
        [node], [value("x", shape=(None, None))], [value("y", shape=None)], initializers=[weights("w", 37, 5)]
    )
    cases = found(model, tmp_path)
    assert [case.inputs["x"].shape for case in cases.cases] == [(1, 37), (2, 37)]
    assert "x[1] = 37 (weights of MatMul)" in cases.reasons


def test_tokens_stay_in_the_table_that_they_index(tmp_path: Path) -> None:
    """Also behind other operators; masks are ones, segments both, lengths those of the sequence."""
    inputs = [
        value(name, kind, shape)
        for name, kind, shape in (
            ("input_ids", TensorProto.INT32, ("batch", "sequence")),
            ("attention_mask", TensorProto.INT64, ("batch", "sequence")),
            ("token_type_ids", TensorProto.INT64, ("batch", "sequence")),
            ("lengths", TensorProto.INT64, ("batch",)),
        )
    ]
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["wide", "axis"], ["taller"]),
        helper.make_node("Squeeze", ["taller", "axis"], ["rows"]),
        helper.make_node("Gather", ["table", "rows"], ["embedded"]),
        helper.make_node("Gather", ["segments", "token_type_ids"], ["segment"]),
        helper.make_node("Add", ["embedded", "segment"], ["y"]),
        helper.make_node("Identity", ["attention_mask"], ["mask"]),
        helper.make_node("Identity", ["lengths"], ["counted"]),
    ]
    outputs = [
        value("y", shape=None),
        value("mask", TensorProto.INT64, None),
        value("counted", TensorProto.INT64, None),
    ]
    given = [weights("table", 50, 4), weights("segments", 2, 4), numbers("axis", 2)]
    cases = found(model_of(nodes, inputs, outputs, initializers=given), tmp_path)
    first, second = cases.cases
    assert first.inputs == {
        "input_ids": InputSpec(high=49.0),
        "attention_mask": first.inputs["attention_mask"],
        "token_type_ids": InputSpec(choices=(0, 1)),
        "lengths": InputSpec(value=first.dimensions["sequence"]),
    }
    assert second.inputs["lengths"].value == second.dimensions["sequence"] != first.dimensions["sequence"]
    assert "input_ids: 0 to 49 (rows of the table of 50 that it indexes)" in cases.reasons


BY_RATE = """m (float[batch, samples] sound, int64 sr) => (float[batch, samples] y) {
    rate = Constant <value = int64 {16000}> () fast = Equal (sr, rate)
    y = If (fast) < then_branch = a () => (float[batch, samples] b) { b = Sin (sound) },
                    else_branch = c () => (float[batch, samples] d) { d = Cos (sound) } > }"""


def test_both_ways_of_a_branch_are_taken(tmp_path: Path) -> None:
    """By the value that the condition compares with, and another one: here the other usual sample rate."""
    cases = found(BY_RATE, tmp_path)
    assert [case.inputs["sr"].value for case in cases.cases] == [16000, 16000, 8000]
    assert cases.cases[2].name == "sr-8000"
    assert cases.coverage.executed == cases.coverage.nodes
    assert cases.warnings == ()


def test_a_branch_is_taken_that_the_size_decides(tmp_path: Path) -> None:
    """A single row goes another way than several."""
    text = """m (float[rows, 4] x) => (float[rows, 4] y) {
        s = Shape <start = 0, end = 1> (x) axis = Constant <value = int64[1] {0}> () rows = Squeeze (s, axis)
        few = Constant <value = int64 {40}> () many = Greater (rows, few)
        y = If (many) < then_branch = a () => (float[rows, 4] b) { b = Sin (x) },
                        else_branch = c () => (float[rows, 4] d) { d = Cos (x) } > }"""
    cases = found(text, tmp_path)
    assert cases.coverage.executed == cases.coverage.nodes
    assert cases.warnings == ()
    assert cases.cases[-1].name.startswith("rows-")


def test_a_branch_that_nothing_enters_is_named(tmp_path: Path) -> None:
    text = """m (float[n] x) => (float[n] y) {
        limit = Constant <value = float {1000000.0}> () most = ReduceMax <keepdims = 0> (x) far = Greater (most, limit)
        y = If (far) < then_branch = a () => (float[n] b) { b = Sin (x) },
                       else_branch = c () => (float[n] d) { d = Cos (x) } > }"""
    cases = found(text, tmp_path)
    (warning,) = cases.warnings
    assert warning.startswith("no case enters If_")
    assert warning.endswith(".then_branch: 1 of 5 nodes")


def test_a_state_is_zero_first_and_then_like_what_the_model_gives(tmp_path: Path) -> None:
    """Its size is that of the output which becomes the next run's input."""
    node = helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["y", "hn"], hidden_size=5)
    model = model_of(
        [node],
        [value("x", shape=("frames", None, 3)), value("h", shape=(1, None, None))],
        [value("y", shape=None), value("hn", shape=(1, None, 5))],
        initializers=[weights("w", 1, 15, 3), weights("r", 1, 15, 5)],
    )
    first, second, *steps = found(model, tmp_path).cases
    assert [case.inputs["h"].shape for case in (first, second)] == [(1, 1, 5), (1, 2, 5)]
    assert first.inputs["h"].value == 0.0
    low, high = second.inputs["h"].low, second.inputs["h"].high
    assert low is not None
    assert high is not None
    assert -1 <= low < high <= 1
    assert [case.inputs["x"].shape for case in (first, second)] == [(32, 1, 3), (64, 2, 3)]
    assert [(case.name, case.after, case.inputs) for case in steps] == [
        ("step-2", first.name, {"x": InputSpec(shape=(32, 1, 3))}),
        ("step-3", "step-2", {"x": InputSpec(shape=(32, 1, 3))}),
    ]


def test_a_dimension_that_is_a_sum_follows_its_terms(tmp_path: Path) -> None:
    """As the mask of a decoder with a cache is as long as the cache and the new tokens."""
    text = """m (float[batch, past_length] past, float[batch, new_length] new, float[batch, total] mask)
        => (float[a, b] y) { both = Concat <axis = 1> (past, new) y = Mul (both, mask) }"""
    model = onnx.parser.parse_model(OPSETS + text)
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past_length + new_length"
    for case in found(model, tmp_path).cases:
        sizes = case.dimensions
        assert sizes["past_length + new_length"] == sizes["past_length"] + sizes["new_length"]


def test_words_that_a_model_knows_are_drawn(tmp_path: Path) -> None:
    """Not words of ours alone, for which a table of names gives nothing but its default; and the same in the end."""
    keys: Mapping[str, Any] = {"keys_strings": ["berlin", "lyon", "porto"], "values_strings": ["de", "fr", "pt"]}
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", default_string="unknown", **keys)
    opsets = (("", 17), ("ai.onnx.ml", 3))
    texts = [value(name, TensorProto.STRING, ("n", 1)) for name in "xy"]
    cases = found(model_of([node], texts[:1], texts[1:], opsets=opsets), tmp_path)
    known = InputSpec(choices=("berlin", "lyon", "porto", "Elsewhere"))
    assert [case.inputs["x"] for case in cases.cases] == [known] * 2
    assert cases.cases[1].dimensions["n"] >= 4
    assert cases.warnings == ()
    assert cases.reasons[-1] == ('x: "berlin", "lyon", "porto", "Elsewhere" (values that LabelEncoder tells apart)')


def test_a_word_that_is_looked_for_is_drawn_also_where_others_pass(tmp_path: Path) -> None:
    """That two runs drew the same of two words is no reason to take words of which the model knows none."""
    nodes = [
        helper.make_node("Concat", ["x", "more"], ["all"], axis=0),
        helper.make_node("Equal", ["all", "wanted"], ["is_wanted"]),
        helper.make_node("Where", ["is_wanted", "other", "all"], ["y"]),
    ]
    words = {"more": ["k1", "k2"], "wanted": ["needle"], "other": ["found!"]}
    given = [numpy_helper.from_array(np.array(each, object), name) for name, each in words.items()]
    texts = [value("x", TensorProto.STRING, ("n",)), value("y", TensorProto.STRING, ("m",))]
    cases = found(model_of(nodes, texts[:1], texts[1:], opsets=(("", 19),), initializers=given), tmp_path)
    assert cases.cases[0].inputs["x"] == InputSpec(choices=("needle", "Elsewhere"))
    assert cases.warnings == ()


def test_whole_numbers_are_shown_with_all_digits(tmp_path: Path) -> None:
    """Keys that differ in the last one are not the same."""
    keys: Mapping[str, Any] = {"keys_int64s": [-77, 9999999999], "values_int64s": [1, 2]}
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **keys)
    given = [value("x", TensorProto.INT64, ("n",))], [value("y", TensorProto.INT64, ("n",))]
    cases = found(model_of([node], *given, opsets=(("", 17), ("ai.onnx.ml", 3))), tmp_path)
    assert cases.reasons[-1] == "x: -77, 9999999999, 10000000000 (values that LabelEncoder tells apart)"


def test_all_words_are_drawn_in_a_column_that_alone_is_read(tmp_path: Path) -> None:
    """As many rows as that takes, whichever column it is."""
    nodes = [
        helper.make_node("Slice", ["x", "first", "after", "axis"], ["column"]),
        helper.make_node(
            "LabelEncoder", ["column"], ["y"], domain="ai.onnx.ml", keys_strings=[*"mfd"], values_int64s=[*range(3)]
        ),
    ]
    bounds = [numbers(name, at) for name, at in (("first", 1), ("after", 2), ("axis", 1))]
    given = [value("x", TensorProto.STRING, ("n", 8))], [value("y", TensorProto.INT64, ("n", 1))]
    model = model_of(nodes, *given, opsets=(("", 17), ("ai.onnx.ml", 3)), initializers=bounds)
    cases = found(model, tmp_path).cases
    assert max(case.dimensions["n"] for case in cases) >= 4 * (4 + 1)


def test_words_that_a_function_knows_are_drawn(tmp_path: Path) -> None:
    keys: Mapping[str, Any] = {"keys_strings": ["berlin", "lyon"], "values_int64s": [1, 2]}
    node = helper.make_node("LabelEncoder", ["a"], ["b"], domain="ai.onnx.ml", **keys)
    function = helper.make_function("own", "Encode", ["a"], ["b"], [node], [helper.make_opsetid("ai.onnx.ml", 3)])
    call = helper.make_node("Encode", ["x"], ["y"], domain="own")
    given = [value("x", TensorProto.STRING, ("n",))], [value("y", TensorProto.INT64, ("n",))]
    model = model_of([call], *given, opsets=(("", 17), ("ai.onnx.ml", 3), ("own", 1)))
    model.functions.append(function)
    assert found(model, tmp_path).cases[0].inputs["x"] == InputSpec(choices=("berlin", "lyon", "Elsewhere"))


def test_inputs_without_room_get_further_cases(tmp_path: Path) -> None:
    """A model of one word has as many cases as it knows words, and one more."""
    keys: Mapping[str, Any] = {"keys_strings": [f"word {at}" for at in range(9)], "values_int64s": [*range(9)]}
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **keys)
    given = [value("x", TensorProto.STRING, (1,))], [value("y", TensorProto.INT64, None)]
    cases = found(model_of([node], *given, opsets=(("", 17), ("ai.onnx.ml", 3))), tmp_path)
    names = [case.name for case in cases.cases]
    assert (len(names), len(set(names))) == (10, 10)


@pytest.mark.parametrize(("size", "keys", "cases", "left"), [("n", 300, 2, 0), ("n", 5000, 2, 904), (2, 300, 16, 268)])
def test_keys_beyond_what_cases_hold_are_told(
    tmp_path: Path, size: int | str, keys: int, cases: int, left: int
) -> None:
    """As many are drawn as there is room for, and a case names those alone that it draws."""
    names = [f"key {at}" for at in range(keys)]
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=names,
                            values_int64s=[*range(keys)])  # fmt: skip
    model = model_of(
        [node], [value("x", TensorProto.STRING, (size,))], [value("y", TensorProto.INT64, None)],
        opsets=(("", 17), ("ai.onnx.ml", 3)),
    )  # fmt: skip
    made = found(model, tmp_path)
    assert len(made.cases) == cases
    words = f"{left:,} of {keys:,} entries of LabelEncoder 'y' were never looked up: not proved"
    assert [each for each in made.warnings if "entries" in each] == ([words] if left else [])
    assert sum(len(case.inputs["x"].choices or ()) for case in made.cases) <= keys + 2


def test_saturated_probabilities_are_told(tmp_path: Path) -> None:
    """Where no values are found for which they are not, every case proves nothing."""
    text = """m (float[n, 3] x) => (float[n, 3] y) {
        big = Constant <value = float {1e20}> () z = Mul (x, big) y = Softmax (z) }"""
    (warning,) = found(text, tmp_path).warnings
    assert "saturated: every probability is exactly 0 or 1 in all 2 cases" in warning


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("zero = Constant <value = float {0.0}> () y = Mul (x, zero)", "every element is 0"),
        (
            "one = Constant <value = float[2] {1.0, 2.0}> () s = Shape (x) z = ConstantOfShape (s) y = Exp (z)",
            "in all 2",
        ),
    ],
    ids=["zeros", "constant"],
)
def test_outputs_that_prove_nothing_are_told(tmp_path: Path, body: str, words: str) -> None:
    """Cases are found all the same: perhaps that is what the model does."""
    text = f"m (float[2] x) => (float[n] y) {{ {body} }}"
    cases = found(text, tmp_path)
    assert len(cases.cases) == 2
    (warning,) = cases.warnings
    assert warning.startswith("no case proves anything about output 'y': ")
    assert words in warning


def test_what_depends_on_chance_is_not_said_to_be_unproven(tmp_path: Path) -> None:
    """It is judged with the random numbers as inputs; without those, no case would show more than another."""
    text = "m (float[2] x) => (float[2] y, float[2] z) { r = RandomNormalLike (x) y = Add (x, r) z = Abs (x) }"
    assert found(text, tmp_path).warnings == ()


def test_fixed_sizes_get_two_cases_of_other_values(tmp_path: Path) -> None:
    """With one case nobody would know an output that depends on no input."""
    cases = found("m (float[2, 3] x) => (float[2, 3] y) { y = Sin (x) }", tmp_path)
    assert cases.cases == (CaseSpec(name="first"), CaseSpec(name="second", seed=1))


def test_an_input_of_unknown_rank_is_tried_with_several(tmp_path: Path) -> None:
    transposed = helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1])
    model = model_of([transposed], [value("x", shape=None)], [value("y", shape=None)])
    cases = found(model, tmp_path)
    assert all(len(case.inputs["x"].shape or ()) == 3 for case in cases.cases)


def test_values_that_crash_the_runtime_are_left(tmp_path: Path) -> None:
    """Integers are divided by zero, which ends the process; others show what the model does."""
    text = """m (int64[length] x) => (int64[length] y) { many = Constant <value = int64 {60}> () y = Div (many, x) }"""
    cases = found(text, tmp_path)
    assert [case.inputs["x"] for case in cases.cases] == [InputSpec(low=1)] * 2
    assert cases.warnings == ()


def test_nothing_that_runs_ends_with_the_runtimes_words(tmp_path: Path) -> None:
    """The last that was tried, and what to write into the buildspec."""
    text = """m (float[batch, length] x) => (float[2, 3] y, float[7] z) {
        six = Constant <value = int64[2] {2, 3}> () seven = Constant <value = int64[1] {7}> ()
        y = Reshape (x, six) z = Reshape (x, seven) }"""
    error = refused(VerifyError, found, text, tmp_path)
    assert error.code == "no-case-found"
    assert "batch = " in error.why
    assert "cannot be reshaped" in error.why
    assert "cases = [{ name = " in error.hint


@pytest.mark.parametrize("shape", [None, (None, "n")], ids=["rank", "sizes"])
def test_no_time_is_told_with_what_would_have_been_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: Sequence[str | None] | None
) -> None:
    """A model whose runs take long may end so; the hint is a case of likely sizes."""
    monkeypatch.setattr(found_module, "SECONDS", 0.0)
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=shape)], [value("y", shape=None)])
    error = refused(VerifyError, found, model, tmp_path)
    assert error.code == "no-case-found"
    assert "0 runs tried" in error.why
    assert "x = { shape = [1, " in error.hint


def test_what_was_found_is_found_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, runtime and code need no second search; the reasons are said again."""
    lines: list[Sequence[str]] = []
    for _ in range(2):
        said: list[str] = []
        model = prepared(BY_RATE, tmp_path)
        found_cases(model, full_runtime(onnxruntime.__version__, None), said.append)
        lines.append(said)
        monkeypatch.setattr(found_module, "run_script", None)
    assert lines[0] == lines[1]
    assert any(line.startswith("samples = ") for line in lines[0])


def test_cases_are_written_as_a_buildspec_reads_them() -> None:
    """Names that are no bare keys, whole shapes, truth and numbers."""
    case = CaseSpec(
        name="small",
        seed=3,
        after="first",
        dimensions={"a b": 2, "n": 1},
        inputs={
            "x.1": InputSpec(shape=(1, 2), low=-0.5, high=1.0),
            "on": InputSpec(value=True),
            "h": InputSpec(value=0.0),
            "sr": InputSpec(value=16000),
            "city": InputSpec(choices=("Zürich 😀", 'a"\\b', "")),
            "features": InputSpec(choices=((0.5, "nan"), (1e-05, 3e20, -2))),
        },
    )
    read = tomllib.loads(f"case = {case_toml(case)}")["case"]
    assert from_json(CaseSpec, to_json(read)) == case


def test_an_operator_of_a_custom_library_is_named(tmp_path: Path) -> None:
    """Not as a fault to report to ONNX Runtime."""
    opsets = '<ir_version: 8, opset_import: ["": 17, "com.example": 1]>'
    model = f"{opsets} g (float[n] x) => (float[n] y) {{ y = com.example.Own(x) }}"
    error = refused(OperatorsError, found, onnx.parser.parse_model(model), tmp_path)
    assert error.code == "unknown-operator"
    assert "the domain com.example come from a custom library" in error.hint
    assert error.why.startswith("Load model from m failed")
