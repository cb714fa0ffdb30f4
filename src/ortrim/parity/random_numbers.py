"""Random numbers that a model draws: which outputs depend on them, and the same model with them as inputs.

By one seed, two C++ libraries draw different numbers (`std::normal_distribution` of libstdc++ and of libc++), so that
such outputs are not comparable. With the numbers as inputs, what follows them is.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import helper

from ortrim.base.cache import cached_folder
from ortrim.base.files import storage_errors
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import array_of, facts_of, graphs_of, nodes_of, read_onnx
from ortrim.models.shapes import BY_CHANCE
from ortrim.parity.coverage import written_copy
from ortrim.parity.inputs import BFLOAT16, STRING, Case
from ortrim.parity.reference import reference_outputs
from ortrim.parity.runner import SavedOutput

DEFAULT_DOMAINS: Final = frozenset({"", "ai.onnx"})
TRAINING_MODE: Final = 2
"""Which input of Dropout says that it is to draw."""

Functions = Mapping[tuple[str, str], onnx.FunctionProto]


def drawn_outputs(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return for each output the node that draws the random numbers on which it depends, empty where none does."""
    functions = {(function.domain, function.name): function for function in model.functions}
    off = frozenset(_switched_off(model))
    found: dict[str, str] = {}
    known = -1
    while known < len(found):  # once more where nodes are not in order
        known = len(found)
        for node in model.graph.node:
            own = next(_draws((node,), functions, off), None)
            shown = f"{own.op_type} '{own.name or own.output[0]}'" if own else ""
            drawing = shown or next((found[name] for name in _reads(node) if name in found), "")
            if drawing:
                found |= {name: drawing for name in node.output if name and name not in found}
    return tuple(found.get(output.name, "") for output in model.graph.output)


def without_draws(
    model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, folder: Path
) -> tuple[PreparedModel, tuple[Case, ...]] | None:
    """Return the model without the nodes that draw, whose values are inputs, and cases with those that they drew here.

    None for a model that draws in bodies and functions alone, or from which nothing follows. All of it is kept below
    `folder`. Raises what `reference_outputs` raises.
    """
    original = read_onnx(model.path, model.name)
    off = frozenset(_switched_off(original))
    drawing = [node for node in original.graph.node if _draws_itself(node, off)]
    names = [name for node in drawing for name in node.output if name]
    shown = {output.name for output in original.graph.output}
    exposed = deepcopy(original)
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in shown)
    if not names or shown <= set(names):
        return None
    reference = reference_outputs(_kept(exposed, model, folder), cases, runtime, folder)
    values = [{output.name: output for output in case.outputs if output.name in names} for case in reference.cases]
    drawn_values = [output for outputs in values for output in outputs.values()]
    if any(output.file is None or output.element_type in {STRING, BFLOAT16} for output in drawn_values):
        return None
    given = _kept(_without(original, drawing, values[0]), model, folder)
    made = zip(cases, reference.cases, values, strict=True)
    return given, tuple(
        _with_inputs(case, [reference.folder / drawn.name / str(outputs[name].file) for name in names], model, folder)
        for case, drawn, outputs in made
    )


def _without(
    original: onnx.ModelProto, drawing: Collection[onnx.NodeProto], values: Mapping[str, SavedOutput]
) -> onnx.ModelProto:
    """Return a model whose inputs are its own, then the values of nodes that are no longer there."""
    model = deepcopy(original)
    graph = model.graph
    for node in drawing:
        graph.node.remove(node)
        for name in filter(None, node.output):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(values[name].element_type))
            graph.input.append(helper.make_tensor_value_info(name, kind, [None] * len(values[name].shape)))
    for output in [each for each in graph.output if each.name in values]:
        graph.output.remove(output)
    return model


def _kept(changed: onnx.ModelProto, model: PreparedModel, folder: Path) -> PreparedModel:
    content = changed.SerializeToString(deterministic=True)
    digest = hashlib.sha256(model.facts.sha256.encode() + content).hexdigest()
    destination = folder / f"{model.name}-draws-{digest[:16]}"

    def fill(temporary: Path) -> None:
        with storage_errors(temporary):
            written_copy(changed, model.path, temporary)

    cached_folder(destination, fill)
    facts = facts_of(changed, digest, len(content), model.name)
    return PreparedModel(name=model.name, path=destination / model.path.name, facts=facts)


def _with_inputs(case: Case, drawn: list[Path], model: PreparedModel, folder: Path) -> Case:
    """Return a case with these files as further inputs, behind the model's own."""
    digest = hashlib.sha256(case.digest.encode())
    for path in drawn:
        digest.update(path.read_bytes())
    destination = folder / f"{case.name}-draws-{digest.hexdigest()[:16]}"

    def fill(temporary: Path) -> None:
        with storage_errors(temporary):
            shutil.copytree(case.folder, temporary, dirs_exist_ok=True, copy_function=shutil.copyfile)
            for number, path in enumerate(drawn, len(model.facts.inputs)):
                shutil.copyfile(path, temporary / f"input_{number:03}.npy")

    cached_folder(destination, fill)
    return Case(name=case.name, folder=destination, digest=digest.hexdigest())


def _draws(nodes: Iterable[onnx.NodeProto], functions: Functions, off: frozenset[str]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that draw among some nodes, in their bodies and in the functions that they call."""
    for node in nodes:
        if _draws_itself(node, off):
            yield node
        for graph in graphs_of(node):
            yield from _draws(graph.node, functions, off)
        if function := functions.get((node.domain, node.op_type)):
            others = {key: other for key, other in functions.items() if other is not function}
            yield from _draws(function.node, others, off)


def _draws_itself(node: onnx.NodeProto, off: Collection[str]) -> bool:
    """Whether a node draws random numbers; Dropout does in training mode alone."""
    if node.domain not in DEFAULT_DOMAINS:
        return False
    mode = node.input[TRAINING_MODE] if node.op_type == "Dropout" and len(node.input) > TRAINING_MODE else ""
    return node.op_type in BY_CHANCE or bool(mode and mode not in off)


def _switched_off(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the names of constants that are false, or zero."""
    constants = (node for node in nodes_of(model) if node.op_type == "Constant" and node.output)
    named = ((node.output[0], each.t) for node in constants for each in node.attribute if each.HasField("t"))
    for name, tensor in chain(named, ((tensor.name, tensor) for tensor in model.graph.initializer)):
        array = array_of(tensor) if np.prod(tensor.dims) == 1 else None
        if array is not None and not array.any():
            yield name


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for graph in graphs_of(node):
        yield from (output.name for output in graph.output)
        for inner in graph.node:
            yield from _reads(inner)
