"""Graphs as facts: what is read, and that no bytes make the reader fall."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from linted_models import VERSION
from mutated_models import mutated
from onnx_samples import branching, model_of, relu, value, weighted, write
from ortrim.analysis.cost.graph import cost_of
from ortrim.analysis.lint.rules import LintFacts, judge
from ortrim.errors import Diagnostic, ExitCode, ModelError
from ortrim.models.graph_facts import dynamic_dimensions, elements, inlined_operators, read_graph
from ortrim.models.models import TensorInfo
from refusing import refused


def test_nodes_have_inferred_types_and_scopes(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path / "m.onnx", branching()))
    by_operator = {node.operator: node for node in graph.nodes}
    assert by_operator["Relu"].scope == "If -> a"
    assert by_operator["Relu"].place == "If -> a/Relu -> then"
    assert by_operator["Tanh"].outputs[0] == TensorInfo(name="e", element_type="float32", shape=(1,))


@pytest.mark.parametrize(
    ("kind", "words", "size"),
    [("INT4", "int4", 5), ("UINT2", "uint2", 3), ("FLOAT4E2M1", "float4e2m1", 5), ("FLOAT8E8M0", "float8e8m0", 9)],
)
def test_weights_of_small_types_have_the_size_of_their_elements(
    tmp_path: Path, kind: str, words: str, size: int
) -> None:
    """Several lie in a byte, also where the file has them otherwise."""
    weights = helper.make_tensor("w", getattr(TensorProto, kind), [9], [1.0] * 9)
    path = write(tmp_path / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], initializers=[weights]))
    (weight,) = read_graph(path).weights
    assert (weight.element_type, weight.size_bytes) == (words, size)


def test_weights_have_sizes_and_digests(tmp_path: Path) -> None:
    """Equal ones share a digest whatever they are called; few integers are kept as values."""
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "a": np.ones(300, np.float32),
        "b": np.ones(300, np.float32),
        "c": np.array([2, 3], np.int64),
    }
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones((), bool), "t"))
    model = model_of([constant, helper.make_node("Relu", ["x"], ["y"])], initializers=tensors)
    a, b, c, k = read_graph(write(tmp_path / "m.onnx", model)).weights
    assert (a.size_bytes, a.digest == b.digest, c.values, k.name, k.values) == (1200, True, (2, 3), "k", (1,))


def test_data_beside_the_model_is_measured_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", weighted("w.bin"))
    assert read_graph(path).external_bytes == 0
    (tmp_path / "w.bin").write_bytes(bytes(16))
    graph = read_graph(path)
    assert (graph.external_bytes, graph.weights[0].external, graph.weights[0].digest) == (16, "w.bin", "")


def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    """Lint loads the model, and the full runtime would read what the link leads to."""
    path = write(tmp_path / "m.onnx", weighted("w.bin"))
    (tmp_path / "w.bin").symlink_to("/etc/passwd")
    with pytest.raises(ModelError, match="/etc/passwd") as caught:
        read_graph(path)
    assert caught.value.code == "linked-external-data"


def test_texts_are_gathered_wherever_they_are(tmp_path: Path) -> None:
    """Of the model, its graph, its metadata and its nodes."""
    model = relu()
    model.doc_string, model.graph.doc_string, model.graph.node[0].doc_string = "one", "two", "three"
    model.metadata_props.add(key="from", value="four")
    texts = read_graph(write(tmp_path / "m.onnx", model)).texts
    assert [text for _, text in texts] == ["one", "two", "four", "three"]


def test_dimensions_have_names() -> None:
    """One without a name is called by its place; the number of elements is known when all are fixed."""
    value_info = TensorInfo(name="x", element_type="float32", shape=("n", None, 3))
    assert dynamic_dimensions((value_info, value_info)) == ("n", "x[1]")
    assert elements(value_info) is None
    assert elements(TensorInfo(name="x", element_type="float32", shape=(2, 3))) == 6


def test_operators_that_are_functions_need_no_kernel() -> None:
    """As ONNX defines them; what it does not know is none."""
    names = [("ai.onnx", "Relu"), ("ai.onnx", "GroupNormalization"), ("com.acme", "Relu"), ("ai.onnx", "Nonsense")]
    assert ("ai.onnx", "GroupNormalization") in inlined_operators(names, {"ai.onnx": 21})
    assert ("com.acme", "Relu") not in inlined_operators(names, {"ai.onnx": 21})
    assert inlined_operators(names, {"ai.onnx": -5, "com.acme": 2**40}) == frozenset()


@pytest.mark.parametrize(
    "content", [b"", b"ORTM", b"\0\0\0\0ORTM", b"<html>", b"PK\x03\x04", b"\x08\x08", b"\xff" * 40]
)
def test_what_is_no_model_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert refused(ModelError, read_graph, path).code == "not-onnx"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Protobuf would hand it over as bytes, which fall on whoever takes it for text."""
    path = tmp_path / "m.onnx"
    path.write_bytes(write(path, relu()).read_bytes().replace(b"Relu", b"Re\xfflu"[:4]))
    error = refused(ModelError, read_graph, path)
    assert error.code == "not-onnx"
    assert "UTF-8" in error.what


def _network() -> onnx.ModelProto:
    """Return a small network whose kernels take memory of their own, with an open dimension."""
    nodes = [
        helper.make_node("Conv", ["x", "filters"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("ConvTranspose", ["b", "filters"], ["c"], strides=[2, 2]),
        helper.make_node("Softmax", ["c"], ["d"], axis=1),
        helper.make_node("Einsum", ["d", "d"], ["y"], equation="nchw,nchw->nc"),
    ]
    filters = numpy_helper.from_array(np.ones((2, 2, 3, 3), np.float32), "filters")
    return model_of(nodes, [value("x", shape=("n", 2, 4, 4))], [value("y", shape=None)], initializers=[filters])


def _seeds() -> tuple[bytes, ...]:
    training = helper.make_node("Dropout", ["x", "", "t"], ["y"])
    flag = numpy_helper.from_array(np.ones((), bool), "t")
    shaped = helper.make_node("Reshape", ["x", "s"], ["y"])
    sizes = numpy_helper.from_array(np.array([2, 2], np.int64), "s")
    turned = [helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]), helper.make_node("MatMul", ["a", "a"], ["y"])]
    models: tuple[onnx.ModelProto, ...] = (
        relu(), branching(), _network(), weighted("w.bin"), model_of([training], initializers=[flag]),
        model_of([shaped], [value("x", shape=("n", 4))], initializers=[sizes]),
        model_of(turned, [value("x", TensorProto.DOUBLE, (2, 2))], [value("y", TensorProto.DOUBLE, None)]),
    )  # fmt: skip
    return tuple(model.SerializeToString() for model in models)


SEEDS = _seeds()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(content) - 1))
        kept = draw(st.integers(0, 4))
        content[place : place + kept] = draw(st.binary(max_size=4))
        if not content:
            break
    return bytes(content)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=damaged())
def test_damaged_bytes_are_judged_and_counted_or_refused(content: bytes, tmp_path: Path) -> None:
    check_judged_or_refused(content, tmp_path)
    check_counted_or_refused(content, tmp_path)


@settings(max_examples=1800, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=True))
def test_mutated_models_are_judged_and_counted_or_refused(random: Random, tmp_path: Path) -> None:
    """Most of these can still be read as protobuf, and say something that no exporter would."""
    content = mutated(random.choice(SEEDS), random, random.randint(1, 6))
    check_judged_or_refused(content, tmp_path)
    check_counted_or_refused(content, tmp_path)


def check_judged_or_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    try:
        graph = read_graph(path)
    except Diagnostic as refusal:
        code = refusal.exit_code
    else:
        judge(LintFacts(graph=graph, version=VERSION))
        code = ExitCode.OK
    assert code in {ExitCode.OK, ExitCode.MODEL}


def check_counted_or_refused(content: bytes, tmp_path: Path) -> None:
    """Work out a model's cost; no sum and no peak is below nothing."""
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    try:
        cost = cost_of(path, dimensions={"n": 3}, name="m", where="m.onnx")
    except Diagnostic as refusal:
        assert refusal.exit_code == ExitCode.MODEL  # noqa: PT017 - both outcomes are right
    else:
        assert min(cost.macs, cost.operations, cost.parameters, cost.peak.size_bytes, cost.memory.size_bytes) >= 0
