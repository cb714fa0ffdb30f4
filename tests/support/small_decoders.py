"""A small language model as onnxruntime-genai exports them: 4-bit products, grouped queries, rotary places, a cache."""

import logging
from collections.abc import Iterator
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer

LAYERS: Final = 2
WIDTH: Final = 128
HEADS: Final = 4
GROUPS: Final = 2
HEAD: Final = WIDTH // HEADS
INNER: Final = 256
WORDS: Final = 200
PLACES: Final = 256
MICROSOFT: Final = "com.microsoft"
CACHES: Final = tuple(f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value"))


def small_decoder(*, symmetric: bool = False, accuracy_level: int | None = 4) -> onnx.ModelProto:
    """Return the decoder; its weights have 4 bits in blocks of 32, or none of them without an `accuracy_level`."""
    nodes = list(_nodes())
    weights = list(_weights(nodes))
    cache: list[int | str | None] = ["batch_size", GROUPS, "past_sequence_length", HEAD]
    grown: list[int | str | None] = ["batch_size", GROUPS, "total_sequence_length", HEAD]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", grown[2]]),
            *(helper.make_tensor_value_info(f"past_key_values.{name}", TensorProto.FLOAT, cache) for name in CACHES),
        ],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", WORDS]),
            *(helper.make_tensor_value_info(f"present.{name}", TensorProto.FLOAT, grown) for name in CACHES),
        ],
        weights,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    if accuracy_level is None:
        return model
    logging.disable(logging.INFO)
    quantizer = MatMul4BitsQuantizer(model, block_size=32, is_symmetric=symmetric, accuracy_level=accuracy_level)
    quantizer.process()
    logging.disable(logging.NOTSET)
    made: onnx.ModelProto = quantizer.model.model
    return made


def _nodes() -> Iterator[onnx.NodeProto]:
    make = helper.make_node
    yield make("ReduceSum", ["attention_mask", "one"], ["lengths"], keepdims=0)
    yield make("Sub", ["lengths", "one"], ["before"])
    yield make("Cast", ["before"], ["seqlens_k"], to=TensorProto.INT32)
    yield make("Shape", ["attention_mask"], ["mask_shape"])
    yield make("Gather", ["mask_shape", "second"], ["length"])
    yield make("Cast", ["length"], ["total"], to=TensorProto.INT32)
    yield make("Gather", ["words", "input_ids"], ["stream.0"])
    yield make("SimplifiedLayerNormalization", ["stream.0", "norm.0"], ["normal.0"], epsilon=1e-5, axis=-1)
    for layer in range(LAYERS):
        for part in ("q", "k", "v"):
            yield make("MatMul", [f"normal.{layer}", f"w{part}.{layer}"], [f"{part}.{layer}"])
        yield make(
            "GroupQueryAttention",
            [
                *(f"{part}.{layer}" for part in ("q", "k", "v")),
                *(f"past_key_values.{layer}.{part}" for part in ("key", "value")),
                *("seqlens_k", "total", "cosines", "sines"),
            ],
            [f"seen.{layer}", f"present.{layer}.key", f"present.{layer}.value"],
            domain=MICROSOFT, num_heads=HEADS, kv_num_heads=GROUPS, do_rotary=1,
        )  # fmt: skip
        yield make("MatMul", [f"seen.{layer}", f"wo.{layer}"], [f"attended.{layer}"])
        yield from _skipped(f"stream.{layer}", f"attended.{layer}", f"inner_norm.{layer}", f"middle.{layer}")
        for part in ("gate", "up"):
            yield make("MatMul", [f"middle.{layer}", f"w{part}.{layer}"], [f"{part}.{layer}"])
        yield make("Sigmoid", [f"gate.{layer}"], [f"opened.{layer}"])
        yield make("Mul", [f"gate.{layer}", f"opened.{layer}"], [f"swish.{layer}"])
        yield make("Mul", [f"swish.{layer}", f"up.{layer}"], [f"inner.{layer}"])
        yield make("MatMul", [f"inner.{layer}", f"wdown.{layer}"], [f"down.{layer}"])
        after = f"normal.{layer + 1}"
        yield from _skipped(f"middle.{layer}_sum", f"down.{layer}", f"norm.{layer + 1}", after, f"stream.{layer + 1}")
    yield make("MatMul", [f"normal.{LAYERS}", "head"], ["logits"])


def _skipped(stream: str, added: str, norm: str, output: str, total: str = "") -> Iterator[onnx.NodeProto]:
    outputs = [output, "", "", total or f"{output}_sum"]
    inputs = [stream, added, norm]
    yield helper.make_node("SkipSimplifiedLayerNormalization", inputs, outputs, domain=MICROSOFT, epsilon=1e-5)


def _weights(nodes: list[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    generator = np.random.default_rng(20261129)

    def random(name: str, *shape: int, size: float) -> onnx.TensorProto:
        return numpy_helper.from_array((generator.normal(size=shape) * size).astype(np.float32), name)

    sizes = {"wq": (WIDTH, WIDTH), "wo": (WIDTH, WIDTH), "head": (WIDTH, WORDS), "wdown": (INNER, WIDTH)}
    sizes |= dict.fromkeys(("wk", "wv"), (WIDTH, GROUPS * HEAD)) | dict.fromkeys(("wgate", "wup"), (WIDTH, INNER))
    for node in nodes:
        if node.op_type == "MatMul":
            rows, columns = sizes[node.input[1].partition(".")[0]]
            yield random(node.input[1], rows, columns, size=rows**-0.5)
        elif "Normalization" in node.op_type:
            scale = 1 + generator.normal(size=WIDTH) / 8
            yield numpy_helper.from_array(scale.astype(np.float32), node.input[-1])
    yield random("words", WORDS, WIDTH, size=1.0)
    yield numpy_helper.from_array(np.array([1], np.int64), "one")
    yield numpy_helper.from_array(np.array(1, np.int64), "second")
    for name, of in (("cosines", np.cos), ("sines", np.sin)):
        yield numpy_helper.from_array(of(_angles()).astype(np.float32), name)


def _angles() -> NDArray[np.float64]:
    """Return by how much each pair of a head's numbers is turned at each place."""
    return np.outer(np.arange(PLACES), 10_000.0 ** (-np.arange(HEAD // 2) / (HEAD // 2)))
