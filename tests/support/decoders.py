"""Decoders with a cache, as exporters write them."""

from typing import Any, Final, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value

HEADS: Final = 2
HEAD: Final = 8
WIDTH: Final = HEADS * HEAD
VOCABULARY: Final = 50
PLACES: Final = 128
INT64: Final = TensorProto.INT64
LENGTHS: Final = ("past_sequence_length", "sequence_length", "total_sequence_length")
Attention = Literal["plain", "GroupQueryAttention", "MultiHeadAttention"]


def constant(name: str, values: Any, kind: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, kind), name)


def _weights() -> list[onnx.TensorProto]:
    random = np.random.default_rng(0)
    shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), (WIDTH, WIDTH))
    shapes |= {"words": (VOCABULARY, WIDTH), "places": (PLACES, WIDTH), "head": (WIDTH, VOCABULARY)}
    return [constant(name, random.standard_normal(shape) / WIDTH**0.5, np.float32) for name, shape in shapes.items()]


def decoder(
    attention: Attention = "plain",
    *,
    opset: int = 17,
    lengths: tuple[str | None, str | None, str | None] = LENGTHS,
    rolled: bool = False,
) -> onnx.ModelProto:
    """Return a decoder of one layer whose cache grows; a `rolled` one takes the tokens in it one place too late."""
    past, new, total = lengths
    make = helper.make_node
    nodes = [
        make("Gather", ["words", "input_ids"], ["word"]),
        make("Gather", ["places", "position_ids"], ["place"]),
        make("Add", ["word", "place"], ["x"]),
        *(make("MatMul", ["x", f"w{each}"], [each]) for each in "qkv"),
    ]
    taken = {"key": "past_key_values.0.key", "value": "past_key_values.0.value"}
    if rolled:
        for each, name in taken.items():
            nodes += [
                make("Slice", [name, "one", "most", "two"], [f"{each}_end"]),
                make("Slice", [name, "zero", "one", "two"], [f"{each}_start"]),
                make("Concat", [f"{each}_end", f"{each}_start"], [f"rolled_{each}"], axis=2),
            ]
        taken = {each: f"rolled_{each}" for each in taken}
    own = {"plain": _plain, "GroupQueryAttention": _group_query, "MultiHeadAttention": _multi_head}[attention]
    nodes += [
        *own(taken["key"], taken["value"]),
        make("MatMul", ["z", "wo"], ["y"]),
        make("MatMul", ["y", "head"], ["logits"]),
    ]
    numbers = {
        "zero": [0],
        "one": [1],
        "two": [2],
        "most": [2**31],
        "to_heads": [0, 0, HEADS, HEAD],
        "from_heads": [0, 0, WIDTH],
    }
    cache, grown = ("batch_size", HEADS, past, HEAD), ("batch_size", HEADS, total, HEAD)
    return model_of(
        nodes,
        [
            value("input_ids", INT64, ("batch_size", new)),
            value("attention_mask", INT64, ("batch_size", total)),
            value("position_ids", INT64, ("batch_size", new)),
            *(value(f"past_key_values.0.{each}", shape=cache) for each in ("key", "value")),
        ],
        [
            value("logits", shape=("batch_size", new, VOCABULARY)),
            *(value(f"present.0.{each}", shape=grown) for each in ("key", "value")),
        ],
        opsets=(("", opset), ("com.microsoft", 1)),
        initializers=[
            *_weights(),
            *(constant(name, values) for name, values in numbers.items()),
            constant("index", 1),
            constant("scale", HEAD**-0.5, np.float32),
            constant("low", -10000.0, np.float32),
        ],
    )


def _plain(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    nodes = []
    for each in "qkv":
        nodes += [
            make("Reshape", [each, "to_heads"], [f"{each}_rows"]),
            make("Transpose", [f"{each}_rows"], [f"{each}_heads"], perm=[0, 2, 1, 3]),
        ]
    return [
        *nodes,
        make("Concat", [key, "k_heads"], ["present.0.key"], axis=2),
        make("Concat", [values, "v_heads"], ["present.0.value"], axis=2),
        make("Transpose", ["present.0.key"], ["turned"], perm=[0, 1, 3, 2]),
        make("MatMul", ["q_heads", "turned"], ["products"]),
        make("Mul", ["products", "scale"], ["scores"]),
        # Each token sees those before it: the last rows of a triangle as large as the mask.
        make("Shape", ["attention_mask"], ["total"], start=1, end=2),
        make("Shape", [key], ["past"], start=2, end=3),
        make("Concat", ["total", "total"], ["square"], axis=0),
        make("ConstantOfShape", ["square"], ["whole"], value=constant("", [1])),
        make("Trilu", ["whole"], ["triangle"], upper=0),
        make("Slice", ["triangle", "past", "total", "zero"], ["causal"]),
        make("Unsqueeze", ["attention_mask", "one"], ["row"]),
        make("Mul", ["row", "causal"], ["seen"]),
        make("Unsqueeze", ["seen", "one"], ["of_heads"]),
        make("Cast", ["of_heads"], ["is_seen"], to=TensorProto.BOOL),
        make("Where", ["is_seen", "scores", "low"], ["masked"]),
        make("Softmax", ["masked"], ["shares"], axis=-1),
        make("MatMul", ["shares", "present.0.value"], ["z_heads"]),
        make("Transpose", ["z_heads"], ["z_rows"], perm=[0, 2, 1, 3]),
        make("Reshape", ["z_rows", "from_heads"], ["z"]),
    ]


PRESENT: Final = ["z", "present.0.key", "present.0.value"]


def _group_query(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    attention: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": HEADS, "domain": "com.microsoft"}
    return [
        make("ReduceSum", ["attention_mask", "one"], ["lengths"], keepdims=0),
        make("Sub", ["lengths", "one"], ["before"]),
        make("Cast", ["before"], ["seqlens_k"], to=TensorProto.INT32),
        make("Shape", ["attention_mask"], ["shape"]),
        make("Gather", ["shape", "index"], ["length"]),
        make("Cast", ["length"], ["total"], to=TensorProto.INT32),
        make("GroupQueryAttention", ["q", "k", "v", key, values, "seqlens_k", "total"], PRESENT, **attention),
    ]


def _multi_head(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    attention: dict[str, Any] = {"num_heads": HEADS, "unidirectional": 1, "domain": "com.microsoft"}
    return [
        make("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32),
        make("MultiHeadAttention", ["q", "k", "v", "", "mask", "", key, values], PRESENT, **attention),
    ]


def counting_decoder(*, misplaced: bool = False) -> onnx.ModelProto:
    """Return a decoder with a cache of fixed size, and a counter of what is in it."""
    make = helper.make_node
    start = "none" if misplaced else "cache_len"
    nodes = [
        make("Gather", ["words", "input_ids"], ["x"]),
        *(make("MatMul", ["x", f"w{each}"], [each]) for each in "qkv"),
        make("Shape", ["input_ids"], ["count"]),
        make("Squeeze", ["count"], ["how_many"]),
        make("Range", ["first", "how_many", "step"], ["numbers"]),
        make("Add", ["numbers", "cache_len"], ["positions"]),
        make("Add", ["numbers", start], ["written"]),
        make("Unsqueeze", ["written", "one"], ["rows"]),
        make("Unsqueeze", ["positions", "one"], ["column"]),
        make("ScatterND", ["cache_k", "rows", "k"], ["new_cache_k"]),
        make("ScatterND", ["cache_v", "rows", "v"], ["new_cache_v"]),
        make("Transpose", ["new_cache_k"], ["turned"], perm=[1, 0]),
        make("MatMul", ["q", "turned"], ["scores"]),
        make("LessOrEqual", ["all_places", "column"], ["seen"]),
        make("Where", ["seen", "scores", "low"], ["masked"]),
        make("Softmax", ["masked"], ["shares"], axis=-1),
        make("MatMul", ["shares", "new_cache_v"], ["z"]),
        make("MatMul", ["z", "head"], ["logits"]),
        make("Add", ["cache_len", "count"], ["new_cache_len"]),
    ]
    cache = (PLACES, WIDTH)
    return model_of(
        nodes,
        [
            value("input_ids", INT64, ("tokens",)),
            value("cache_len", INT64, (1,)),
            *(value(f"cache_{each}", shape=cache) for each in "kv"),
        ],
        [
            value("logits", shape=("tokens", VOCABULARY)),
            value("new_cache_len", INT64, (1,)),
            *(value(f"new_cache_{each}", shape=cache) for each in "kv"),
        ],
        initializers=[
            *_weights(),
            *(constant(name, values) for name, values in {"none": [0], "one": [1], "first": 0, "step": 1}.items()),
            constant("all_places", [range(PLACES)]),
            constant("low", -10000.0, np.float32),
        ],
    )
