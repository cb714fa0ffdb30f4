"""Small ONNX models for tests."""

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT
CHAIN = (("Abs", "a", "b"), ("Sqrt", "b", "d"), ("Tanh", "d", "e"), ("Exp", "e", "f"), ("Floor", "f", "y"))


def value(name: str, element_type: int = FLOAT, shape: Sequence[int | str | None] | None = (1,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    *,
    opsets: Sequence[tuple[str, int]] = (("", 17),),
    ir_version: int = 8,
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "graph", list(inputs) or [value("x")], list(outputs) or [value("y")], initializer=initializers
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def relu() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])])


def branching() -> onnx.ModelProto:
    """Return a model with graphs inside a node, If with Relu or Neg, and a chain of other operators behind it."""
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [value(name)])
        for name, operator in (("then", "Relu"), ("else", "Neg"))
    }
    node = helper.make_node("If", ["c"], ["a"], **branches)
    chain = [helper.make_node(name, [source], [result]) for name, source, result in CHAIN]
    return model_of([node, *chain], [value("x"), value("c", TensorProto.BOOL, ())])


def weighted(location: str) -> onnx.ModelProto:
    weights = TensorProto(name="w", data_type=FLOAT, dims=[1, 4], data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", location), ("offset", "0"), ("length", "16")):
        weights.external_data.add(key=key, value=entry)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return model_of([node], [value("x", shape=(1, 4))], [value("y", shape=(1, 4))], initializers=[weights])


def write(path: Path, model: onnx.ModelProto) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
