"""Makes `buildspecs/transformer/encoder.onnx`: a small text encoder with the operators of any transformer.

usage: transformer_model.py [FILE]

The graph is what exporters write for BERT-like sentence encoders: token and position embeddings, two layers of
four-headed attention and a GELU feed-forward (written with Erf), then the mean over the tokens of the mask, scaled
to length 1. No wheel of the package registry was found that ships a small one in float. The weights are noise,
the same bytes everywhere; they have eight significant bits, so that they compress well in git and in the wheel.
"""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

VOCABULARY: Final = 1000
POSITIONS: Final = 128
HIDDEN: Final = 64
HEADS: Final = 4
HEAD: Final = HIDDEN // HEADS
INNER: Final = 128
LAYERS: Final = 2
OPSET: Final = 17
IR_VERSION: Final = 8
DEFAULT_FILE: Final = Path(__file__).parents[1] / "buildspecs" / "transformer" / "encoder.onnx"


class Graph:
    """A graph in the making: nodes in order, and the tensors that they use."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: dict[str, TensorProto] = {}

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{operator.lower()}-{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, values: float | Iterable[int]) -> str:
        array = np.float32(values) if isinstance(values, float) else np.array(tuple(values), dtype=np.int64)
        return self._tensor(f"constant-{values}", np.asarray(array))

    def weights(self, name: str, *shape: int, shift: float = 0.0, spread: float = 0.125) -> str:
        noise = hashlib.shake_256(name.encode()).digest(int(np.prod(shape)))
        values = (np.frombuffer(noise, dtype=np.int8).astype(np.float32) / 128 * spread + shift).reshape(shape)
        return self._tensor(name, values.astype(np.float32))

    def _tensor(self, name: str, values: NDArray[Any]) -> str:
        self.tensors[name] = numpy_helper.from_array(values, name)
        return name


def encoder() -> onnx.ModelProto:
    """Return the model: `input_ids` and `attention_mask` (batch x sequence, int64) to `embedding` (batch x 64)."""
    graph = Graph()
    states = embedded(graph)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    penalty = attention_penalty(graph, mask)
    for layer in range(LAYERS):
        states = encoder_layer(graph, states, penalty, f"layer-{layer}")
    pooled(graph, states, mask)
    inputs = [tensor(name, TensorProto.INT64, "sequence") for name in ("input_ids", "attention_mask")]
    outputs = [tensor("embedding", TensorProto.FLOAT, HIDDEN)]
    body = helper.make_graph(graph.nodes, "encoder", inputs, outputs, list(graph.tensors.values()))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def tensor(name: str, element_type: int, width: str | int) -> onnx.ValueInfoProto:
    """Describe an input or output: a batch of rows."""
    return helper.make_tensor_value_info(name, element_type, ("batch", width))


def embedded(graph: Graph) -> str:
    """Add the embeddings of tokens and positions; batch x sequence x hidden."""
    tokens = graph.node("Gather", graph.weights("tokens", VOCABULARY, HIDDEN, spread=1.0), "input_ids")
    length = graph.node("Gather", graph.node("Shape", "input_ids"), graph.constant((1,)))
    table = graph.weights("positions", POSITIONS, HIDDEN, spread=0.25)
    positions = graph.node("Slice", table, graph.constant((0,)), length)
    return normalized(graph, graph.node("Add", tokens, positions), "embedding")


def attention_penalty(graph: Graph, mask: str) -> str:
    """Add what keeps attention from tokens outside the mask; batch x 1 x 1 x sequence."""
    outside = graph.node("Sub", graph.constant(1.0), mask)
    row = graph.node("Unsqueeze", outside, graph.constant((1, 2)))
    return graph.node("Mul", row, graph.constant(-10000.0))


def encoder_layer(graph: Graph, states: str, penalty: str, name: str) -> str:
    """Add a layer: attention, then feed-forward, each around a residual connection."""
    attended = attention(graph, states, penalty, name)
    states = normalized(graph, graph.node("Add", attended, states), f"{name}-attention")
    inner = gelu(graph, linear(graph, states, f"{name}-inner", HIDDEN, INNER))
    outer = linear(graph, inner, f"{name}-outer", INNER, HIDDEN)
    return normalized(graph, graph.node("Add", outer, states), f"{name}-output")


def attention(graph: Graph, states: str, penalty: str, name: str) -> str:
    query = heads(graph, linear(graph, states, f"{name}-query", HIDDEN, HIDDEN), (0, 2, 1, 3))
    key = heads(graph, linear(graph, states, f"{name}-key", HIDDEN, HIDDEN), (0, 2, 3, 1))
    value = heads(graph, linear(graph, states, f"{name}-value", HIDDEN, HIDDEN), (0, 2, 1, 3))
    scores = graph.node("Div", graph.node("MatMul", query, key), graph.constant(float(HEAD) ** 0.5))
    shares = graph.node("Softmax", graph.node("Add", scores, penalty), axis=-1)
    joined = graph.node("Transpose", graph.node("MatMul", shares, value), perm=(0, 2, 1, 3))
    flat = graph.node("Reshape", joined, graph.constant((0, 0, HIDDEN)))
    return linear(graph, flat, f"{name}-joined", HIDDEN, HIDDEN)


def heads(graph: Graph, states: str, order: tuple[int, ...]) -> str:
    """Split the last axis into heads and reorder the axes."""
    return graph.node("Transpose", graph.node("Reshape", states, graph.constant((0, 0, HEADS, HEAD))), perm=order)


def linear(graph: Graph, states: str, name: str, inputs: int, outputs: int) -> str:
    product = graph.node("MatMul", states, graph.weights(f"{name}-weight", inputs, outputs, spread=0.25))
    return graph.node("Add", graph.weights(f"{name}-bias", outputs), product)


def gelu(graph: Graph, states: str) -> str:
    """Add GELU as exporters write it: x * (1 + erf(x / sqrt(2))) / 2."""
    error = graph.node("Erf", graph.node("Div", states, graph.constant(2.0**0.5)))
    raised = graph.node("Mul", states, graph.node("Add", error, graph.constant(1.0)))
    return graph.node("Mul", raised, graph.constant(0.5))


def normalized(graph: Graph, states: str, name: str) -> str:
    """Add a layer normalization over the last axis."""
    scale, bias = graph.weights(f"{name}-scale", HIDDEN, shift=1.0), graph.weights(f"{name}-shift", HIDDEN)
    return graph.node("LayerNormalization", states, scale, bias, axis=-1, epsilon=1e-5)


def pooled(graph: Graph, states: str, mask: str) -> None:
    """Add the output: the mean of the tokens within the mask, of length 1."""
    weighted = graph.node("Mul", states, graph.node("Unsqueeze", mask, graph.constant((2,))))
    total = graph.node("ReduceSum", weighted, graph.constant((1,)), keepdims=0)
    count = graph.node("Clip", graph.node("ReduceSum", mask, graph.constant((1,))), graph.constant(1.0))
    mean = graph.node("Div", total, count)
    length = graph.node("Sqrt", graph.node("ReduceSum", graph.node("Mul", mean, mean), graph.constant((1,))))
    graph.node("Div", mean, length, output="embedding")


def main(words: list[str]) -> None:
    path = Path(words[0]) if words else DEFAULT_FILE
    model = encoder()
    onnx.checker.check_model(model, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(sys.argv[1:])
