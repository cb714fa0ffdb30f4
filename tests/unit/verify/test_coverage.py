"""Which nodes the cases of a model execute, as the full runtime's own profile tells it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import ModelFacts, PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.coverage import marked_copy
from ortrim.parity.inputs import Case, save_array
from ortrim.parity.measurements import Coverage
from ortrim.parity.reference import reference_outputs

BRANCHES = """
<ir_version: 8, opset_import: ["": 17, "own": 1]>
g (float[n] x) => (float[n] y) {
    limit = Constant <value = float {0.5}> ()
    largest = ReduceMax <keepdims = 0> (x)
    is_large = Greater (largest, limit)
    y = If (is_large) <
        then_branch = large () => (float[n] doubled) { doubled = Add (x, x) },
        else_branch = small () => (float[n] changed) { opposite = Neg (x) changed = own.half (opposite) }
    >
}
<domain: "own", opset_import: ["": 17]>
half (a) => (b) { two = Constant <value = float {2.0}> () b = Div (a, two) }
"""


def model_from(text: str, folder: Path) -> PreparedModel:
    model = onnx.parser.parse_model(text)
    return written(model, folder)


def written(model: onnx.ModelProto, folder: Path) -> PreparedModel:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    facts: ModelFacts = facts_of(model, "a" * 64, 1, "here")
    return PreparedModel(name="m", path=path, facts=facts)


def coverage(model: PreparedModel, folder: Path, *inputs: Any) -> Coverage:
    cases = []
    for number, array in enumerate(inputs):
        place = folder / f"case-{number}"
        place.mkdir()
        save_array(place, "input_000", array)
        cases.append(Case(name=f"case-{number}", folder=place, digest=str(number)))
    runtime = full_runtime(onnxruntime.__version__, None)
    return reference_outputs(model, tuple(cases), runtime, folder / "reference").coverage


LOW, HIGH = np.array([0.1, 0.2], np.float32), np.array([0.9, 0.2], np.float32)
THEN, ELSE = "If_3.then_branch", "If_3.else_branch"


@pytest.mark.parametrize(
    ("inputs", "executed", "idle"),
    [((LOW,), 5, (THEN,)), ((HIGH,), 4, (ELSE, "function half")), ((LOW, HIGH), 6, ())],
    ids=["else", "then", "both"],
)
def test_a_branch_that_no_case_enters_is_named(tmp_path: Path, inputs: Any, executed: int, idle: Any) -> None:
    """Of 6 nodes, constants and the call of a function aside, those of the other branch do not run."""
    assert coverage(model_from(BRANCHES, tmp_path), tmp_path, *inputs) == Coverage(
        nodes=6, executed=executed, idle=idle
    )


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 22])
def test_a_model_of_any_opset_is_marked(tmp_path: Path, opset: int) -> None:
    """A `Constant` has had `value_float` since opset 12 alone, and models of before have branches, too."""
    model = model_from(BRANCH_OF_ANY_OPSET.format(opset=opset), tmp_path)
    found = coverage(model, tmp_path, *np.array([True, False]))
    assert found == Coverage(nodes=3, executed=3, idle=())


BRANCH_OF_ANY_OPSET = """
<ir_version: 3, opset_import: ["": {opset}]>
g (bool x) => (float[1] y) {{
    y = If (x) <
        then_branch = yes () => (float[1] one) {{ a = Constant <value = float[1] {{1.0}}> () one = Neg (a) }},
        else_branch = no () => (float[1] two) {{ b = Constant <value = float[1] {{2.0}}> () two = Abs (b) }}
    >
}}
"""

NESTED = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n] x) => (float[n] y) {
    limit = Constant <value = float {0.5}> ()
    first, second = Split <axis = 0> (x)
    is_large = Greater (first, limit)
    is_larger = Greater (second, limit)
    y = If (is_large) <
        then_branch = large () => (float[n] chosen) {
            chosen = If (is_larger) <
                then_branch = both () => (float[n] doubled) { doubled = Add (x, x) },
                else_branch = one () => (float[n] opposite) { opposite = Neg (x) }
            >
        },
        else_branch = small () => (float[n] changed) { changed = Abs (x) }
    >
}
"""


def test_a_branch_in_a_branch_is_entered_too(tmp_path: Path) -> None:
    """Bodies within bodies are marked as outer ones are."""
    model = model_from(NESTED, tmp_path)
    found = coverage(model, tmp_path, HIGH, np.array([0.9, 0.9], np.float32))
    assert found == Coverage(nodes=8, executed=7, idle=("If_4.else_branch",))


def test_without_control_flow_every_node_runs(tmp_path: Path) -> None:
    """And a model that passes its input on has none."""
    plain = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] z) { y = Relu(x) z = Exp(y) }'
    assert coverage(model_from(plain, tmp_path), tmp_path, LOW) == Coverage(nodes=2, executed=2)


@pytest.mark.parametrize(
    ("weights", "float32"),
    [("<float[2] w = {1, 2}>", True), ("<double[2] w = {1, 2}>", False), ("", False)],
    ids=["float32", "float64", "none"],
)
def test_float32_weights_are_known_where_they_are_most(tmp_path: Path, weights: str, float32: bool) -> None:  # noqa: FBT001
    """A float64 output of such a model is no more exact."""
    text = f'<ir_version: 8, opset_import: ["": 17]> g (double[2] x) => (double[2] y) {weights} {{ y = Neg (x) }}'
    assert marked_copy(model_from(text, tmp_path).path, tmp_path / "marked").float32_weights is float32


@pytest.mark.parametrize(("operator", "convolves"), [("Conv (x, x)", True), ("MatMul (x, x)", False)])
def test_convolutions_are_known(tmp_path: Path, operator: str, convolves: bool) -> None:  # noqa: FBT001
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 1, 1] x) => (float[n, m, k] y) {{ y = {operator} }}'
    assert marked_copy(model_from(text, tmp_path).path, tmp_path / "marked").convolves is convolves


LEVELS = "q, s, z = DynamicQuantizeLinear (a) b = DequantizeLinear (q, s, z)"


@pytest.mark.parametrize("body", ["b = Neg (a)", LEVELS])
def test_a_quantized_model_is_known_by_its_operators(tmp_path: Path, body: str) -> None:
    """Wherever in it they are: here in a function."""
    text = '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[n] x) => (float[n] y) { y = own.levels (x) }'
    text += f'<domain: "own", opset_import: ["": 17]> levels (a) => (b) {{ {body} }}'
    model = model_from(text, tmp_path)
    assert marked_copy(model.path, tmp_path / "marked").quantized is (body == LEVELS)


ML = '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>'
LINEAR = "label, p = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0], intercepts = [0.0, 0.0], {}> (x)"
TWO = 'classlabels_ints = [0, 1], post_transform = "{}"'


@pytest.mark.parametrize(
    ("body", "probabilities"),
    [
        ("p = Softmax (x) label = ArgMax (p)", ("p",)),
        ("s = Sigmoid (x) one = Constant <value = float {1.0}> () p = Sub (one, s) label = Shape (x)", ("p",)),
        (LINEAR.format(TWO.format("SOFTMAX")), ("p",)),
        (LINEAR.format(TWO.format("NONE")), ()),
        ("s = Softmax (x) p = Mul (s, s) label = Shape (x)", ()),
        ("p = Cast <to = 1> (x) label = Shape (x)", ()),
    ],
    ids=["softmax", "rest-of-one", "classifier", "scores", "product", "input"],
)
def test_probabilities_are_known_by_what_makes_them(tmp_path: Path, body: str, probabilities: tuple[str, ...]) -> None:
    """An output that is 0 or 1 otherwise, as one-hot encoding, is no saturated one."""
    text = f"{ML} g (float[n, 1] x) => (int64[m] label, float[n, k] p) {{ {body} }}"
    assert marked_copy(model_from(text, tmp_path).path, tmp_path / "marked").probabilities == probabilities


def test_a_loop_without_iterations_is_not_entered(tmp_path: Path) -> None:
    """A body that runs no time shows nothing."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Mul", ["a", "a"], ["b"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("a", TensorProto.FLOAT, ["n"]),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, ["n"]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["times", "", "x"], ["y"], name="loop", body=body)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [numpy_helper.from_array(np.array(0, np.int64), "times")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = coverage(written(model, tmp_path), tmp_path, LOW)
    assert found == Coverage(nodes=3, executed=1, idle=("loop.body",))


def test_external_data_is_found_by_the_marked_copy(tmp_path: Path) -> None:
    """Weights in a file beside the model, in a folder of their own, are those of the copy too."""
    model = onnx.parser.parse_model(BRANCHES)
    weights = numpy_helper.from_array(np.arange(2, dtype=np.float32), "x0")
    model.graph.initializer.append(weights)
    model.graph.node.insert(0, helper.make_node("Add", ["x", "x0"], ["x1"]))
    model.graph.node[2].input[0] = "x1"
    onnx.save_model(
        model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    read = onnx.load_model(tmp_path / "model.onnx", load_external_data=False)
    assert coverage(written(read, tmp_path), tmp_path, LOW) == Coverage(
        nodes=7, executed=5, idle=("If_4.else_branch", "function half")
    )
