"""What models cost, against published figures and by hand."""

from pathlib import Path
from typing import Final

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import branching, model_of, value, weighted, write
from ortrim.analysis.cost.graph import cost_of, open_dimensions
from ortrim.analysis.cost.memory import ModelCost, NodeCost
from ortrim.errors import ExitCode, ModelError
from ortrim.models.shapes import open_kinds
from refusing import refused

LIGHT: Final = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""The onnx package's own networks; ConstantOfShape stands for each of their weights."""

PUBLISHED: Final = [
    ("light_vgg19.onnx", 19.632e9, 143_667_240),
    ("light_resnet50.onnx", 4.089e9, 25_557_032 + 2 * 26_560),
    ("light_densenet121.onnx", 2.834e9, None),
    ("light_squeezenet.onnx", 0.349e9, 1_235_496),
]
"""`_ops` and `num_params` of the weights VGG19, ResNet50, DenseNet121 and SqueezeNet1_1 (IMAGENET1K_V1, 224 x 224) in
torchvision's `torchvision/models/{vgg,resnet,densenet,squeezenet}.py`, read before anything was measured.

Its counting rule (`conv_flop_count` and `addmm_flop` in its `test/common_extended_utils.py`): multiplications of
convolutions and of matrices; no additions, no biases, nothing for all other operators. It counts no running mean and
variance as parameters, of which ResNet-50's normalisations have 26,560 each. onnx's ResNet-50 strides in the
convolutions of 3 x 3, as torchvision's does. onnx's DenseNet-121 has scales of its own, so that only arithmetic is
compared.
"""


def cost(path: Path, **dimensions: int) -> ModelCost:
    return cost_of(path, dimensions=dimensions, name=path.name, where=str(path))


def nodes(found: ModelCost) -> dict[str, NodeCost]:
    assert len(found.nodes) == len({node.operator for node in found.nodes})
    return {node.operator: node for node in found.nodes}


@pytest.mark.parametrize(("name", "macs", "parameters"), PUBLISHED)
def test_known_networks_have_the_published_figures(name: str, macs: float, parameters: int | None) -> None:
    """Arithmetic within 1 %, parameters to the last one."""
    found = cost(LIGHT / name)
    assert found.macs == pytest.approx(macs, rel=0.01)
    assert parameters in {None, found.parameters}
    assert (found.at_least, found.unknown) == (False, ())
    assert found.macs == sum(each.macs for each in found.operators) == sum(node.macs for node in found.nodes)


def test_the_peak_of_a_known_network_is_where_it_is_widest() -> None:
    """VGG19's second convolution reads and writes 64 channels of 224 x 224 floats, and the image is still there."""
    peak = cost(LIGHT / "light_vgg19.onnx").peak
    assert peak.size_bytes == 4 * 224 * 224 * (64 + 64 + 3)
    assert [each.size_bytes for each in peak.tensors] == [4 * 224 * 224 * 64] * 2 + [4 * 224 * 224 * 3]


def product(left: tuple[int | str, ...] = ("n", 8), *, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    weights = helper.make_tensor("w", kind, (8, 4), bytes(32 * (4 if kind == TensorProto.FLOAT else 1)), raw=True)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return model_of([node], [value("x", shape=left)], [value("y", shape=(left[0], 4))], initializers=[weights])


def test_open_dimensions_take_their_sizes_by_name(tmp_path: Path) -> None:
    """And without a size, what can be counted is a lower bound that says so."""
    path = write(tmp_path / "m.onnx", product())
    assert open_dimensions(path, "m") == ("n",)
    assert (cost(path, n=5).macs, cost(path, n=5).at_least) == (5 * 8 * 4, False)
    open_one = cost(path)
    assert (open_one.macs, open_one.parameters, open_one.at_least) == (0, 32, True)
    assert open_one.unknown == ("the inputs have dynamic dimensions: give --dim n=...",)
    assert open_one.nodes[0].unknown == ("the shape of the first matrix is not known", "the size of 'y' is not known")


def test_dimensions_without_a_name_are_named_by_their_place(tmp_path: Path) -> None:
    model = product((1, 8))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    model.graph.output[0].type.tensor_type.shape.dim[0].Clear()
    path = write(tmp_path / "m.onnx", model)
    assert open_dimensions(path, "m") == ("x:0",)
    assert cost_of(path, dimensions={"x:0": 3}, name="m", where="m").macs == 3 * 8 * 4
    assert cost_of(path, shapes={"x": (3, 8)}, name="m", where="m").inputs == (("x", (3, 8)),)


def test_what_depends_on_no_input_is_no_arithmetic(tmp_path: Path) -> None:
    """It is worked out once, when the model is loaded; its result is a parameter, and its own inputs are none."""
    model = product((2, 4))
    model.graph.node[0].input[:] = ["w", "v"]
    model.graph.node[0].output[:] = ["c"]
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 3), np.float32), "v"))
    model.graph.node.append(helper.make_node("Gemm", ["x", "c"], ["y"], transB=0))
    model.graph.input[0].CopyFrom(value("x", shape=(2, 8)))
    model.graph.output[0].CopyFrom(value("y", shape=(2, 3)))
    found = cost(write(tmp_path / "m.onnx", model))
    assert (found.macs, found.parameters, found.constant_nodes) == (2 * 8 * 3, 24, 1)
    assert [node.operator for node in found.nodes] == ["Gemm"]


def test_quantized_weights_are_counted_as_they_lie_in_the_model(tmp_path: Path) -> None:
    """One byte each, with a scale; the floats that DequantizeLinear would make of them are not."""
    model = product((2, 8), kind=TensorProto.INT8)
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.FLOAT, (), [0.5]))
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["w", "s"], ["f"]))
    model.graph.node[1].input[1] = "f"
    found = cost(write(tmp_path / "m.onnx", model))
    assert (found.macs, found.parameters, found.parameter_bytes) == (2 * 8 * 4, 33, 32 + 4)


def test_shapes_that_the_model_computes_are_followed(tmp_path: Path) -> None:
    """As exporters write a reshape: by a size of the input, times two, and the rest."""
    model = model_of(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["first"]),
            helper.make_node("Div", ["first", "two"], ["half"]),
            helper.make_node("Concat", ["half", "rest"], ["wanted"], axis=0),
            helper.make_node("Reshape", ["x", "wanted"], ["r"]),
            helper.make_node("MatMul", ["r", "w"], ["y"]),
        ],
        [value("x", shape=("n", 8))],
        [value("y", shape=(None, 4))],
        initializers=[
            helper.make_tensor("zero", TensorProto.INT64, (1,), [0]),
            helper.make_tensor("two", TensorProto.INT64, (1,), [2]),
            helper.make_tensor("rest", TensorProto.INT64, (1,), [-1]),
            helper.make_tensor("w", TensorProto.FLOAT, (16, 4), [0.0] * 64),
        ],
    )
    found = cost(write(tmp_path / "m.onnx", model), n=6)
    assert (found.macs, found.parameters, found.at_least) == (3 * 16 * 4, 64, False)
    assert found.constant_nodes == 4


def branches(condition: onnx.NodeProto | None = None) -> onnx.ModelProto:
    made = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("MatMul", ["x", f"w{width}"], [f"o{width}"], name=f"product{width}")],
            name,
            [],
            [value(f"o{width}", shape=None)],
            initializer=[helper.make_tensor(f"w{width}", TensorProto.FLOAT, (4, width), [0.0] * 4 * width)],
        )
        for name, width in (("then", 2), ("else", 3))
    }
    choice = helper.make_node("If", ["c"], ["y"], name="choice", **made)
    inputs = [value("x", shape=(5, 4)), *([] if condition else [value("c", TensorProto.BOOL, ())])]
    return model_of([*([condition] if condition else []), choice], inputs, [value("y", shape=None)])


def test_of_branches_the_larger_one_is_counted(tmp_path: Path) -> None:
    found = cost(write(tmp_path / "m.onnx", branches()))
    assert (found.macs, found.parameters) == (5 * 4 * 3, 8 + 12)
    assert [node.name for node in found.nodes] == ["choice", "choice/product3"]


def test_a_branch_that_is_always_taken_is_counted(tmp_path: Path) -> None:
    truth = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("", TensorProto.BOOL, (), [True]))
    found = cost(write(tmp_path / "m.onnx", branches(truth)))
    assert (found.macs, found.parameters, found.at_least) == (5 * 4 * 2, 8, False)


def test_the_body_of_a_loop_is_counted_once(tmp_path: Path) -> None:
    """How often it runs is not known, so that all is a lower bound."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["h2"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("i", TensorProto.INT64, ()), value("go", TensorProto.BOOL, ()), value("h", shape=None)],
        [value("on", TensorProto.BOOL, ()), value("h2", shape=None)],
    )
    loop = helper.make_node("Loop", ["times", "", "x"], ["y"], body=body)
    inputs = [value("x", shape=(5, 4)), value("times", TensorProto.INT64, ())]
    weights = helper.make_tensor("w", TensorProto.FLOAT, (4, 4), [0.0] * 16)
    found = cost(write(tmp_path / "m.onnx", model_of([loop], inputs, [value("y", shape=None)], initializers=[weights])))
    assert (found.macs, found.parameters, found.at_least) == (5 * 4 * 4, 16, True)
    assert "its body is counted once" in nodes(found)["Loop"].unknown


def test_functions_are_counted_where_they_are_called(tmp_path: Path) -> None:
    inner = helper.make_node("MatMul", ["a", "b"], ["c"])
    function = helper.make_function("own", "Twice", ["a", "b"], ["c"], [inner], [helper.make_opsetid("", 17)])
    calls = [helper.make_node("Twice", [name, "x"], [made], domain="own") for name, made in (("x", "m"), ("m", "y"))]
    square = [value("x", shape=(3, 3))]
    model = model_of(calls, square, [value("y", shape=(3, 3))], opsets=(("", 17), ("own", 1)))
    model.functions.append(function)
    assert cost(write(tmp_path / "m.onnx", model)).macs == 2 * 27


@pytest.mark.parametrize(("depth", "code"), [(1, "model-invalid"), (25, "functions-too-deep")])
def test_functions_without_an_end_are_refused(depth: int, code: str, tmp_path: Path) -> None:
    """One that calls itself, and a chain in which each calls the next one ten times."""
    model = model_of([helper.make_node("f0", ["x"], ["y"], domain="own")], opsets=(("", 17), ("own", 1)))
    for number in range(depth):
        names = [f"t{turn}" for turn in range(10)]
        called = "f0" if depth == 1 else f"f{number + 1}"
        calls = [helper.make_node(called, ["a"], [name], domain="own") for name in names]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        model.functions.append(helper.make_function("own", f"f{number}", ["a"], names[-1:], calls, imports))
    error = refused(ModelError, cost, write(tmp_path / "m.onnx", model))
    assert (error.code, error.exit_code) == (code, ExitCode.MODEL)


def test_operators_of_others_are_said_to_be_uncounted(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Mine", ["x"], ["y"], name="n", domain="com.example")], opsets=(("", 17), ("com.example", 1))
    )
    found = cost(write(tmp_path / "m.onnx", model))
    assert found.at_least
    assert nodes(found)["com.example:Mine"].unknown == ("no rule for this operator",)


def test_weights_beside_the_model_are_not_needed(tmp_path: Path) -> None:
    """Shapes are in the model; nothing is read from a file that it names, wherever that lies."""
    found = cost(write(tmp_path / "m.onnx", weighted("../elsewhere.bin")))
    assert (found.parameters, found.parameter_bytes, found.operations) == (4, 16, 4)


@pytest.mark.parametrize(
    ("content", "reference"),
    [
        (b"", "not-onnx"),
        (b"{}", "not-onnx"),
        (b"\x08\x08", "not-onnx"),
        (branching().SerializeToString().replace(b"Relu", b"\xff\xfe\xfd\xfc"), "not-onnx"),
        (model_of([], [value("x", TensorProto.FLOAT8E4M3FN)]).SerializeToString(), "unsupported-input-type"),
    ],
)
def test_what_is_no_model_is_refused(content: bytes, reference: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    error = refused(ModelError, cost, path)
    assert (error.code, error.exit_code) == (reference, ExitCode.MODEL)


SHAPES: Final = st.lists(st.integers(-2, 2**63 - 1) | st.integers(0, 5), max_size=5)
OPERATORS: Final = (
    "Attention", "Conv", "ConvTranspose", "Einsum", "Expand", "Gemm", "LSTM", "MatMul", "MaxPool", "Range", "Reshape",
    "Tile",
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(OPERATORS),
    st.lists(SHAPES, min_size=1, max_size=4),
    st.lists(st.integers(-2, 2**63 - 1), min_size=1, max_size=3),
    st.sampled_from(("ij,jk->ik", "...", "a,,", "")),
)
@example("Conv", [[0, 0, 0], [0]], [1], "...")  # filters of one dimension
def test_absurd_shapes_have_a_cost_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, operator: str, shapes: list[list[int]], kernel: list[int], equation: str
) -> None:
    inputs = [
        helper.make_tensor_value_info(f"x{number}", TensorProto.FLOAT, shape) for number, shape in enumerate(shapes)
    ]
    node = helper.make_node(operator, [each.name for each in inputs], ["y"], kernel_shape=kernel, equation=equation)
    model = model_of([node], inputs, [value("y", shape=None)], opsets=(("", 23),))
    path = write(tmp_path_factory.getbasetemp() / "absurd.onnx", model)
    try:
        found = cost(path, n=3)
    except ModelError as error:
        assert error.code  # noqa: PT017 - both outcomes are right
    else:
        assert min(found.macs, found.operations, found.parameters, found.peak.size_bytes, found.memory.size_bytes) >= 0


def chain(rows: int | str) -> onnx.ModelProto:
    """Return a model in which `a` is free while `c`, the largest, is made, and `d` is like `a`."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "to_1"], ["b"]),
        helper.make_node("MatMul", ["b", "to_50"], ["c"]),
        helper.make_node("MatMul", ["c", "to_10"], ["d"]),
        helper.make_node("MatMul", ["d", "to_1"], ["y"]),
    ]
    widths = {"to_1": (10, 1), "to_50": (1, 50), "to_10": (50, 10)}
    weights = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in widths.items()]
    return model_of(nodes, [value("x", shape=(rows, 10))], [value("y", shape=(rows, 1))], initializers=weights)


def test_the_memory_of_a_run_is_that_of_the_plan(tmp_path: Path) -> None:
    """`a` is kept for `d`, which has its shape: also when the rows have no number, but a name."""
    fixed = cost(write(tmp_path / "fixed.onnx", chain(4)))
    named = cost(write(tmp_path / "named.onnx", chain("rows")), rows=4)
    assert fixed.peak.size_bytes == named.peak.size_bytes == 4 * 4 * (10 + 50 + 10)
    assert fixed.memory.size_bytes == named.memory.size_bytes == 4 * 4 * (10 + 10 + 50 + 1)


def test_dimensions_that_the_model_names_inside_are_alike() -> None:
    """A softmax writes over its input when the file says of both that they are as long as each other, else not."""
    nodes = [helper.make_node("Compress", ["x", "which"], ["a"]), helper.make_node("Softmax", ["a"], ["b"], axis=0)]
    nodes.append(helper.make_node("ReduceSum", ["b"], ["y"], keepdims=0))
    ends = [value("x", shape=("n",)), value("which", TensorProto.BOOL, (8,))], [value("y", shape=())]
    model = model_of(nodes, *ends)
    inferred = open_kinds(model, "m")
    assert not {"a", "b"} & inferred.keys()
    model.graph.value_info.append(value("a", shape=("kept",)))
    assert open_kinds(model, "m")["a"] == open_kinds(model, "m")["b"] == (32, ("kept",))


def test_a_sum_is_not_written_over_what_it_reads(tmp_path: Path) -> None:
    """ONNX Runtime's Add and Mul take a buffer of their own; Relu writes over its input."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Add", ["b", "b"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["y"], keepdims=0),
    ]
    model = model_of(nodes, [value("x", shape=(100,))], [value("y", shape=())])
    found = cost(write(tmp_path / "m.onnx", model))
    assert found.peak.size_bytes == found.memory.size_bytes == 3 * 400
    assert (found.peak.node, found.memory.node) == ("Add 2", "Add 2")


def test_kernels_count_with_their_own_memory(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 5, 2, 2), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    ends = [value("x", shape=(1, 4, 3, 3))], [value("y", shape=(1, 5, 6, 6))]
    found = cost(write(tmp_path / "m.onnx", model_of([node], *ends, initializers=[weights])))
    assert found.memory.size_bytes - found.peak.size_bytes == 9 * 5 * 4 * 4


def test_a_name_of_two_sizes_says_nothing(tmp_path: Path) -> None:
    """Paddle's exporter calls every size that it does not know `?`."""
    model = model_of(
        [helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=("?", "?"))], [value("y", shape=("?", 8))]
    )
    path = write(tmp_path / "m.onnx", model)
    found = cost_of(path, shapes={"x": (4, 8)}, name="m", where="m")
    assert (found.operations, found.at_least) == (32, False)
