"""What a model in ORT format asks of a runtime, read from files that ONNX Runtime 1.21.0 wrote."""

import math
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from platform import machine
from typing import Any, cast

import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from onnx_samples import model_of, value
from ort_samples import nested_twice, ort_file, shared
from ortrim.analysis.inspect import inspect_ort
from ortrim.errors import ModelError
from ortrim.models.operators import OperatorId
from ortrim.models.ort_format import Damaged, Table, _uses, graphs_of, read_uses, root_of
from refusing import refused
from small_decoders import small_decoder

RECORDED = Path(__file__).parent / "data" / "branching_first.ort"
INT64 = TensorProto.INT64


def converted(model: ModelProto, folder: Path, **entries: str) -> Path:
    """Write a model in ORT format, not optimized unless the entries of the session's configuration say so."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(folder / "m.ort")
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if entries else level.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    for key, entry in entries.items():
        options.add_session_config_entry(key.replace("__", "."), entry)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return folder / "m.ort"


def test_operators_of_inner_graphs_are_among_them() -> None:
    """A value that a branch takes from outside has its type there too."""
    found = read_uses(RECORDED)
    uses = {use.operator.name: use for use in found.uses}
    assert found.format_version == "6"
    assert (uses["If"].operator.opset, uses["If"].inputs, uses["If"].outputs) == (16, ("bool",), ("float",))
    assert uses["Relu"].inputs == uses["Neg"].inputs == ("float",)
    assert (found.saved, found.sparse) == ((), False)


def test_types_and_left_out_inputs_are_reported(tmp_path: Path) -> None:
    """In the names of upstream's configurations, by position; one node of those that are alike is named."""
    nodes = [
        helper.make_node("Clip", ["x", "", "most"], ["a"], name="first"),
        helper.make_node("Clip", ["a", "", "most"], ["b"], name="second"),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.STRING),
    ]
    model = model_of(nodes, [value("x"), value("most", shape=())], [value("y", TensorProto.STRING)])
    cast, clip = read_uses(converted(model, tmp_path)).uses
    assert clip.operator == OperatorId(domain="ai.onnx", opset=13, name="Clip")
    assert (clip.inputs, clip.outputs, clip.node) == (("float", "", "float"), ("float",), "first")
    assert (cast.inputs, cast.outputs) == (("float",), ("std::string",))


@pytest.mark.parametrize(
    ("shape", "attributes", "tiled"),
    [
        ((32, 32, 3, 3), {}, True),
        ((32, 32, 5, 1), {}, True),
        ((32, 32, 3, 3), {"strides": [2, 1]}, True),
        ((32, 32, 3, 3), {"strides": [2, 2]}, False),
        ((32, 32, 3, 3), {"dilations": [2, 2]}, False),
        ((32, 32, 1, 1), {}, False),
        ((32, 32, 7, 7), {}, False),
        ((32, 1, 3, 3), {"group": 32}, False),
        ((32, 3, 3, 3), {}, False),
    ],
)
@pytest.mark.skipif(machine() not in {"x86_64", "AMD64"}, reason="the official library has NCHWc layout on x64 alone")
def test_convolutions_for_fewer_products_are_known(
    tmp_path: Path, shape: tuple[int, ...], attributes: dict[str, Any], *, tiled: bool
) -> None:
    weights = helper.make_tensor("w", TensorProto.FLOAT, shape, [0.5] * math.prod(shape))
    picture = value("x", shape=(1, shape[1] * attributes.get("group", 1), 16, 16))
    model = model_of(
        [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)],
        [picture],
        [value("y", shape=(None,) * 4)],
        initializers=[weights],
    )
    found = read_uses(converted(model, tmp_path, session__disable_prepacking="0"))
    assert {each.operator.domain for each in found.uses if each.operator.name == "Conv"} == {"com.microsoft.nchwc"}
    assert found.tiled is tiled


@pytest.mark.parametrize(
    ("shape", "attributes", "depthwise"),
    [
        ((6, 1, 3, 3), {"group": 6}, True),
        ((6, 1, 5, 5), {"group": 6, "strides": [2, 2]}, True),
        ((6, 1, 9), {"group": 6, "dilations": [4]}, True),
        ((6, 1, 1, 7), {"group": 6, "strides": [3, 2]}, True),
        ((1, 1, 3, 3), {}, True),
        ((6, 1, 1, 1), {"group": 6, "strides": [2, 1]}, True),
        ((6, 1, 1, 1), {"group": 6, "pads": [0, 1, 0, 0]}, True),
        ((6, 1, 1, 1), {"group": 6}, False),
        ((6, 1, 1), {"group": 6}, False),
        ((6, 1, 3, 3), {}, False),
        ((6, 1, 3, 3), {"group": 3}, False),
        ((6, 2, 3, 3), {"group": 3}, False),
        ((6, 1, 3, 3), {"group": 6, "strides": [1, 2]}, False),
        ((6, 1, 3, 3), {"group": 6, "dilations": [2, 2]}, False),
        ((6, 1, 7, 7), {"group": 6}, False),
        ((6, 1, 9), {"group": 6, "strides": [3]}, False),
    ],
)
def test_convolutions_with_one_filter_a_channel_are_known(
    tmp_path: Path, shape: tuple[int, ...], attributes: dict[str, Any], *, depthwise: bool
) -> None:
    weights = helper.make_tensor("w", TensorProto.FLOAT, shape, [0.5] * math.prod(shape))
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)]
    x = value("x", shape=(1, shape[1] * attributes.get("group", 1), *(33 for _ in shape[2:])))
    model = model_of(nodes, [x], [value("y", shape=(None,) * len(shape))], initializers=[weights])
    path = converted(model, tmp_path)
    assert read_uses(path).depthwise is depthwise
    data = bytearray(path.read_bytes())
    graph = cast("Table", cast("Table", root_of(bytes(data), "").table(1)).table(7))
    of_type = next(graph.tables(0)).place_of(3)
    struct.pack_into("<i", data, of_type, TensorProto.FLOAT16)
    path.write_bytes(data)
    assert not read_uses(path).depthwise


@pytest.mark.parametrize("level", [1, 4])
def test_bits_and_accuracy_levels_of_products_are_known(tmp_path: Path, level: int) -> None:
    assert read_uses(converted(small_decoder(accuracy_level=level), tmp_path)).few_bits == ((4, level),)


def test_what_is_no_tensor_has_no_type(tmp_path: Path) -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["s"]), helper.make_node("SequenceLength", ["s"], ["y"])]
    model = model_of(nodes, outputs=[value("y", INT64, ())])
    uses = {use.operator.name: use for use in read_uses(converted(model, tmp_path)).uses}
    assert uses["SequenceLength"].inputs == ("",)


def test_saved_optimizations_are_reported(tmp_path: Path) -> None:
    """A quantized addition that an extended build makes when it loads the model."""
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [0.1])
    zero = helper.make_tensor("zero", TensorProto.UINT8, [], [3])
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["z", "scale", "zero"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["y"]),
    ]
    ends = [value(name, TensorProto.UINT8, (4,)) for name in "xzy"]
    model = model_of(nodes, ends[:2], ends[2:], initializers=[scale, zero])
    found = read_uses(converted(model, tmp_path, optimization__minimal_build_optimizations="save"))
    assert found.saved == (OperatorId(domain="com.microsoft", opset=1, name="QLinearAdd"),)
    assert "Add" in {use.operator.name for use in found.uses}


def test_element_types_of_all_values_are_reported(tmp_path: Path) -> None:
    """Of sequences and weights too, in a graph inside a node as well."""
    nodes = [
        helper.make_node("Cast", ["x"], ["small"], to=TensorProto.FLOAT16),
        helper.make_node("SequenceConstruct", ["small"], ["s"]),
        helper.make_node("SequenceLength", ["s"], ["length"]),
        helper.make_node("Add", ["length", "one"], ["y"]),
    ]
    one = helper.make_tensor("one", INT64, [], [1])
    found = read_uses(converted(model_of(nodes, outputs=[value("y", INT64, ())], initializers=[one]), tmp_path))
    assert found.element_types == ("MLFloat16", "float", "int64_t")
    assert read_uses(RECORDED).element_types == ("bool", "float")


def test_an_output_that_no_node_makes_has_its_type_among_them(tmp_path: Path) -> None:
    """A weight that is given out as it is: nothing but its type tells that a library needs 8-bit floats."""
    weight = helper.make_tensor("e", TensorProto.FLOAT8E5M2, [2], [1.0, 2.0])
    ends = [value("y"), value("e", TensorProto.FLOAT8E5M2, (2,))]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = model_of(nodes, outputs=ends, opsets=[("", 18)], ir_version=9, initializers=[weight])
    found = read_uses(converted(model, tmp_path))
    assert found.element_types == ("Float8E5M2", "float")
    assert {kind for use in found.uses for kind in (*use.inputs, *use.outputs)} == {"float"}


def test_weights_that_are_stored_sparse_are_reported(tmp_path: Path) -> None:
    """Of which ONNX Runtime makes dense ones when it loads the model: no value has a sparse type."""
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    places = helper.make_tensor("w_places", INT64, [2], [0, 3])
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    found = read_uses(converted(model, tmp_path))
    assert (found.sparse, found.element_types) == (True, ("float",))


@pytest.mark.parametrize(
    ("content", "reference"),
    [(None, "model-missing"), (b"", "not-ort"), (b"onnx", "not-ort"), (b"\x18\0\0\0ORTM", "not-ort")],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes | None, reference: str) -> None:
    """None at all, an empty one, a model in another format, a head without a body."""
    path = tmp_path / "m.ort"
    if content is not None:
        path.write_bytes(content)
    assert refused(ModelError, read_uses, path).code == reference


@given(st.integers(8, RECORDED.stat().st_size - 1), st.binary(max_size=8), st.booleans())
def test_a_damaged_model_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    place: int,
    noise: bytes,
    cut: bool,  # noqa: FBT001 - hypothesis draws it
) -> None:
    """Cut off or overwritten anywhere: a value or a diagnostic, never another error."""
    content = RECORDED.read_bytes()
    path = tmp_path_factory.getbasetemp() / "damaged-uses.ort"
    path.write_bytes(content[:place] + noise + (b"" if cut else content[place + len(noise) :]))
    try:
        read_uses(path)
    except ModelError as error:
        assert error.code == "not-ort"  # noqa: PT017 - both outcomes are right


def test_a_model_whose_nodes_are_gone_is_damaged() -> None:
    """Without operators it would fit whatever runtime: the length of the vector of nodes is one of its bytes."""
    data = RECORDED.read_bytes()
    nodes = next(graphs_of(cast(Table, cast(Table, root_of(data, "").table(1)).table(7))))
    start = nodes._target(nodes.place_of(2))
    changed = data[:start] + bytes(4) + data[start + 4 :]
    with pytest.raises(Damaged):
        _uses(root_of(changed, ""))


@pytest.mark.parametrize(
    "graph",
    [nested_twice(60), shared(5_000), shared(2_000, "x" * 500_000)],
    ids=["graphs in each other", "nodes with inputs", "long texts"],
)
def test_a_file_that_says_the_same_again_and_again_is_refused(tmp_path: Path, graph: Callable[[Any], int]) -> None:
    """Places in such a file may lead to one place: a few bytes would be read for years."""
    (tmp_path / "m.ort").write_bytes(ort_file(graph))
    started = time.process_time()
    assert refused(ModelError, read_uses, tmp_path / "m.ort").code == "not-ort"
    with suppress(ModelError):  # which looks at less
        inspect_ort(tmp_path / "m.ort")
    assert time.process_time() - started < 5
