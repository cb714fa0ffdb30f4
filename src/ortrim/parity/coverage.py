"""How much of a model's graph its cases execute: which bodies of If, Loop, Scan and functions are ever entered.

Nodes of the graph itself run in every inference. In each body a node without effect is put in a copy of the model;
the full runtime's profile then tells which of them ran.
"""

import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.base.files import storage_errors
from ortrim.errors import VerifyError
from ortrim.parity.measurements import Coverage

if TYPE_CHECKING:
    import onnx

MARKER: Final = "ortrim_marker_"
"""How the nodes are named that mark bodies; a number follows."""
QUANTIZED_OPERATOR: Final = re.compile(r"Quantize|QLinear|Integer|QGemm|QAttention|QOrdered")
TO_BYTES: Final = ("MatMulNBits", "accuracy_level", 4)
"""The level that lets a kernel round to 8 bits; others compute with floats (core/mlas/inc/mlas_qnbit.h)."""
CONVOLUTIONS: Final = frozenset({"Conv", "FusedConv"})


@dataclass(frozen=True, kw_only=True)
class Marked:
    """How many nodes `always` run, the bodies, and, when there are any, the copy at `path` in which each is marked.

    A body is a graph that runs only when something enters it: its name, and its nodes without those of inner bodies.
    `quantized` is whether any of them computes with quantized numbers, `convolves` whether any is a convolution,
    `float32_weights` whether more of their weights are float32 than float64. `probabilities` are the outputs that are
    0 or 1 only where they are saturated.
    """

    quantized: bool
    convolves: bool
    float32_weights: bool
    probabilities: tuple[str, ...]
    always: int
    bodies: tuple[tuple[str, int], ...]
    path: Path | None


def marked_copy(model: Path, folder: Path) -> Marked:
    """Count a model's nodes and, if it has bodies, write a copy with a marker in each into `folder`, which is made.

    Constants, which are no computation, and calls of the model's own functions, which stand for what is inside, are no
    nodes. Marker number i is in body number i.
    """
    import onnx  # noqa: PLC0415 - heavy, and only needed when references are made anew
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - likewise

    with storage_errors(folder):
        try:
            read = onnx.load_model(model, load_external_data=False)
        except DecodeError as error:
            what, hint = "the model changed since it was prepared", "run the same command again"
            raise VerifyError("reference-failed", what, where=str(model), why=str(error), hint=hint) from error
        functions = {(function.domain, function.name) for function in read.functions}
        found: list[tuple[str, onnx.GraphProto | onnx.FunctionProto]] = [
            *_bodies(read.graph, ""),
            *((f"function {function.name}", function) for function in read.functions),
            *(body for function in read.functions for body in _bodies(function, f"function {function.name}")),
        ]
        bodies = tuple((name, _count(body.node, functions)) for name, body in found)
        always = _count(read.graph.node, functions)
        graphs = (read.graph, *(body for _, body in found))
        marked = Marked(
            quantized=any(_is_quantized(node) for graph in graphs for node in graph.node),
            convolves=any(node.op_type in CONVOLUTIONS for graph in graphs for node in graph.node),
            float32_weights=_has_float32_weights(graphs),
            probabilities=tuple(_probabilities(read.graph)),
            always=always,
            bodies=bodies,
            path=None,
        )
        if not bodies:
            return marked
        # Inner bodies first: marking one puts copies in the place of its nodes, and so of the bodies in them.
        for number, (_, body) in reversed(list(enumerate(found))):
            _mark(body, number)
        import_default_domain(read)
        return replace(marked, path=written_copy(read, model, folder))


def is_rounding(operator: str, attribute: str, value: int) -> bool:
    """Whether an attribute lets its node's kernel round the numbers that it multiplies to 8 bits, in every run anew."""
    return (operator, attribute, value) == TO_BYTES


def _is_quantized(node: "onnx.NodeProto") -> bool:
    rounds = any(is_rounding(node.op_type, each.name, each.i) for each in node.attribute)
    return rounds or bool(QUANTIZED_OPERATOR.search(node.op_type))


SQUASHING: Final = frozenset({"Sigmoid", "Softmax"})
SQUASHED: Final = (b"LOGISTIC", b"SOFTMAX", b"PROBIT")
"""What `post_transform` of a classic model may be that ends in a probability."""
PASSING: Final = frozenset({
    "ArrayFeatureExtractor", "Cast", "Concat", "Flatten", "Gather", "Identity", "Normalizer", "Reshape", "Slice",
    "Squeeze", "Sub", "Transpose", "Unsqueeze", "ZipMap",
})  # fmt: skip
"""Operators that a probability may pass: `Sub` takes it from 1, `Normalizer` divides those of one class against all."""


def _probabilities(graph: "onnx.GraphProto") -> Iterator[str]:
    """Yield the outputs that a Softmax, a Sigmoid or a classifier's own makes, and only selects and shapes follow."""
    made_by = {name: (node, position) for node in graph.node for position, name in enumerate(node.output)}

    def is_squashed(name: str) -> bool:
        waiting, seen = [name], set[str]()
        while waiting:
            node, position = made_by.get(waiting.pop(), (None, 0))
            if node is None or node.output[0] in seen:
                continue
            seen.add(node.output[0])
            classifier = node.op_type.endswith("Classifier")
            posts = {each.s for each in node.attribute if each.name == "post_transform"}
            proved = classifier and any(each.name == "prob_a" for each in node.attribute)
            if node.op_type in SQUASHING or (position == int(classifier) and (posts & {*SQUASHED} or proved)):
                return True
            waiting += node.input if node.op_type in PASSING else ()
        return False

    yield from (output.name for output in graph.output if is_squashed(output.name))


def _has_float32_weights(graphs: "Iterable[onnx.GraphProto | onnx.FunctionProto]") -> bool:
    from onnx import TensorProto  # noqa: PLC0415 - as above

    sizes: Counter[int] = Counter()
    for graph in graphs:
        for node in graph.node:
            for attribute in node.attribute if node.op_type == "Constant" else ():
                sizes[attribute.t.data_type] += math.prod(attribute.t.dims)
        for tensor in getattr(graph, "initializer", ()):  # functions have none
            sizes[tensor.data_type] += math.prod(tensor.dims)
    return sizes[TensorProto.FLOAT] > sizes[TensorProto.DOUBLE]


def coverage_of(marked: Marked, entered: Iterable[int]) -> Coverage:
    """Return what ran, given the numbers of the bodies that were entered."""
    ran = set(entered)
    idle = [body for number, body in enumerate(marked.bodies) if number not in ran]
    nodes = marked.always + sum(count for _, count in marked.bodies)
    executed = nodes - sum(count for _, count in idle)
    return Coverage(nodes=nodes, executed=executed, idle=tuple(name for name, _ in idle))


def _bodies(graph: "onnx.GraphProto | onnx.FunctionProto", where: str) -> Iterator[tuple[str, "onnx.GraphProto"]]:
    for position, node in enumerate(graph.node):
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                name = f"{where}/{node.name or f'{node.op_type}_{position}'}.{attribute.name}".removeprefix("/")
                yield name, body
                yield from _bodies(body, name)


def _count(nodes: "Iterable[onnx.NodeProto]", functions: set[tuple[str, str]]) -> int:
    return sum(node.op_type != "Constant" and (node.domain, node.op_type) not in functions for node in nodes)


def _mark(body: "onnx.GraphProto | onnx.FunctionProto", number: int) -> None:
    """Put a node without effect in front of a body's nodes; the runtime runs it, since nothing is optimized away."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - as above

    name = f"{MARKER}{number}"
    nodes = list(body.node)
    del body.node[:]
    value = helper.make_tensor("", TensorProto.FLOAT, [], [1.0])
    constant = helper.make_node("Constant", [], [f"{name}_in"], value=value)
    identity = helper.make_node("Identity", [f"{name}_in"], [f"{name}_out"], name=name)
    body.node.extend([constant, identity, *nodes])


def import_default_domain(model: "onnx.ModelProto") -> None:
    """Let functions, and a model, of other domains alone know the operators that are put in."""
    version = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), 13)
    for holder in (model, *model.functions):
        if not any(entry.domain in {"", "ai.onnx"} for entry in holder.opset_import):
            holder.opset_import.add(domain="", version=version)


def written_copy(marked: "onnx.ModelProto", model: Path, folder: Path) -> Path:
    """Write a changed copy of a model where it finds the original's external data, which is linked if possible."""
    graphs = (marked.graph, *marked.functions, *(body for _, body in _bodies(marked.graph, "")))
    tensors = [tensor for graph in graphs for tensor in getattr(graph, "initializer", ())]  # functions have none
    tensors += [each.t for graph in graphs for node in graph.node for each in node.attribute]
    for name in {each.value for tensor in tensors for each in tensor.external_data if each.key == "location"}:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(model.parent / name, place)
        except OSError:
            shutil.copyfile(model.parent / name, place)
    path = folder / model.name
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(marked.SerializeToString())
    return path
