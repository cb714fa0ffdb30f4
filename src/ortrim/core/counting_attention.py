"""Multiply-accumulates of attention: queries with keys, and weights with values; masks leave nothing out."""

import math

from ortrim.core.counting_shapes import Counting, Uncountable, optional, required
from ortrim.models.value_sizes import Shape


def attention_macs(node: Counting) -> int:
    """Count ONNX's own Attention, of 3 or 4 dimensions; with more queries' heads, keys' heads are shared."""
    query = required(node.inputs, 0, "the query")
    if len(query) not in {3, 4}:
        raise Uncountable("the query has neither 3 nor 4 dimensions")
    value = required(node.inputs, 2, "the value", rank=len(query))
    keys = required(node.inputs, 1, "the key", rank=len(query))[-2] + _past(node, 4)
    if len(query) == 4:
        return math.prod(query[:-1]) * keys * (query[-1] + value[-1])
    own, shared = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    if own <= 0 or shared <= 0:
        raise Uncountable("the numbers of heads are not known")
    return query[0] * query[1] * keys * (query[2] + value[2] // shared * own)


def contrib_attention_macs(node: Counting) -> int:
    """Count ONNX Runtime's Attention, which makes queries, keys and values from its input with one matrix."""
    batch, length, width = required(node.inputs, 0, "the input", rank=3)
    made = required(node.inputs, 1, "the weights", rank=2)[1]
    sizes = node.integers("qkv_hidden_sizes")
    value = sizes[2] if len(sizes) == 3 else made // 3
    query = sizes[0] if len(sizes) == 3 else made // 3
    keys = length + _past(node, 8 if node.operator.endswith("QAttention") else 4)
    return batch * length * (width * made + keys * (query + value))


def multi_head_macs(node: Counting) -> int:
    """Count ONNX Runtime's MultiHeadAttention with queries, keys and values apart."""
    query = required(node.inputs, 0, "the query", rank=3)
    key: Shape = required(node.inputs, 1, "the key")
    made = required(node.outputs, 0, "the output", rank=3)
    if len(key) not in {3, 4}:
        raise Uncountable("the keys are packed with others")
    return query[0] * query[1] * (key[-2] + _past(node, 6)) * (query[2] + made[2])


def _past(node: Counting, index: int) -> int:
    """Return how many keys are left of earlier runs."""
    past = optional(node.inputs, index)
    return past[-2] if past is not None and len(past) >= 4 else 0
