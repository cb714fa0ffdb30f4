"""Which of a graph's nodes depend on no input: ONNX Runtime works them out when it loads the model."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import onnx

from ortrim.models.onnx_reading import graphs_of

BY_CHANCE: Final = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
ROUNDED: Final = ("DequantizeLinear",)
"""Constants that stay as they are in the model: their kernels read the quantized form."""


def constant_nodes(graph: onnx.GraphProto, constants: Collection[str]) -> dict[str, onnx.NodeProto]:
    """Return the nodes that work on `constants` alone, by the name of each of their outputs."""
    known = set(constants)
    found: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        if _is_constant(node) and all(name in known for name in node.input if name):
            known |= {name for name in node.output if name}
            found |= {name: node for name in node.output if name}
    return found


def sources_of(name: str, made_by: Mapping[str, onnx.NodeProto | None]) -> Iterator[str]:
    """Yield the constants that are in memory for one: itself, or the quantized one that it stands for."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        node = made_by.get(current)
        if current in seen:
            continue
        seen.add(current)
        if node is not None and node.op_type in ROUNDED:
            waiting += [each for each in node.input if each]
        else:
            yield current


def _is_constant(node: onnx.NodeProto) -> bool:
    """Whether a node gives the same for the same inputs; one without inputs is a constant only if ONNX says so."""
    if node.op_type in BY_CHANCE or any(True for _ in graphs_of(node)):
        return False
    return node.op_type == "Constant" or any(node.input)
