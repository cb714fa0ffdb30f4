"""Tables that a model looks values up in: a small model that gives the numbers of the entries that its inputs lead to.

The full runtime runs it with the cases, so that what none of them looks up is known, and is said.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ortrim.base.files import storage_errors
from ortrim.models.onnx_files import graphs_below, read_names
from ortrim.models.shapes import constant_nodes
from ortrim.parity.cases.graph import INDEXED, Graph
from ortrim.parity.cases.lookups import attribute
from ortrim.parity.coverage import import_default_domain, written_copy

ML: Final = "ai.onnx.ml"
TREES: Final = frozenset({"TreeEnsembleClassifier", "TreeEnsembleRegressor"})
BRANCHES: Final = tuple(f"nodes_{name}" for name in (
    "falsenodeids", "featureids", "hitrates", "hitrates_as_tensor", "missing_value_tracks_true", "modes", "nodeids",
    "treeids", "truenodeids", "values", "values_as_tensor",
))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: where it is, how many entries it has, and how an index names one of them.

    It counts along `axis` of the `dimensions`; for None, its own last axis holds a number for each of them.
    """

    place: str
    entries: int
    dimensions: tuple[int, ...]
    axis: int | None = 0
    bounded: bool = True
    """Whether the runtime refuses an index beyond the dimensions."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A model's tables: what looks those `read` up is an output of the model at `path`; of `hidden` ones, of none.

    `inputs` are those that lead to indices.
    """

    path: Path | None = None
    inputs: tuple[str, ...] = ()
    read: tuple[Table, ...] = ()
    hidden: tuple[Table, ...] = ()


Way = tuple[str, tuple[onnx.NodeProto, ...]]
"""The value that holds the indices into a table, and the nodes that make it of what the model has."""


def tables_of(model: onnx.ModelProto, original: Path, folder: Path) -> Tables:
    """Find the tables of a model without functions, and write into `folder` what tells which entries are looked up.

    Those in bodies are hidden: no output can tell what happens there. Raises `StorageError`.
    """
    graph, main = Graph(model), model.graph
    constants = {tensor.name for tensor in main.initializer} - {value.name for value in main.input}
    constants |= constant_nodes(main, constants).keys()
    versions = {entry.domain: entry.version for entry in model.opset_import}
    found = [each for node in main.node for each in _tables(node, graph, constants, versions)]
    inner = (node for body in list(graphs_below(main))[1:] for node in body.node)
    hidden = tuple(table for node in inner for table, _ in _tables(node, graph, {*graph.fixed}, versions))
    if not found:
        return Tables(hidden=hidden)
    changed = deepcopy(model)
    import_default_domain(changed)
    del changed.graph.output[:], changed.graph.value_info[:]
    for number, (_, (source, nodes)) in enumerate(found):
        name = f"ortrim_entries_{number}"
        changed.graph.node.extend([*nodes, helper.make_node("Identity", [source], [name])])
        changed.graph.output.append(onnx.ValueInfoProto(name=name))
    needed = _prune(changed.graph)
    with storage_errors(folder):
        path = written_copy(changed, original, folder)
    inputs = tuple(value.name for value in main.input if value.name in needed)
    return Tables(path=path, inputs=inputs, read=tuple(table for table, _ in found), hidden=hidden)


def _prune(graph: onnx.GraphProto) -> set[str]:
    """Leave in a graph what its outputs need, and all of its inputs; return the values that are needed."""
    needed, kept = {output.name for output in graph.output}, []
    for node in reversed(graph.node):
        if needed & {*node.output}:
            needed |= {*read_names([node])}
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    for tensors in (graph.initializer, graph.sparse_initializer):
        for tensor in [each for each in tensors if getattr(each, "name", "") not in needed]:
            if not isinstance(tensor, onnx.SparseTensorProto) or tensor.values.name not in needed:
                tensors.remove(tensor)
    return needed


def _tables(
    node: onnx.NodeProto, graph: Graph, constants: set[str], versions: Mapping[str, int]
) -> Iterator[tuple[Table, Way]]:
    """Yield the tables that a node looks indices up in which are no constants."""
    kind, own = node.op_type, f"{node.op_type} '{node.name or node.output[0]}'"
    if kind in INDEXED:
        table, index = (node.input[at] for at in INDEXED[kind])
        dimensions = graph.dimensions(table) if table in constants and index not in constants else None
        if shape := _shape(node, graph, dimensions or (), index):
            count = int(np.prod(shape[0]))
            named = Table(place=f"'{table}' ({own})", entries=count, dimensions=shape[0], axis=shape[1])
            yield from [(named, (index, ()))] if count > 1 else ()
    elif node.input and node.input[0] not in constants:
        for count, size, way in _numbered(node, graph, versions):
            table_of = Table(place=own, entries=count, dimensions=(size,), bounded=False)
            yield from [(table_of, way)] if count > 1 else ()


def _shape(
    node: onnx.NodeProto, graph: Graph, dimensions: tuple[int, ...], index: str
) -> tuple[tuple[int, ...], int | None] | None:
    """Return the dimensions that indices name entries by, and along which of them they count."""
    axis = -1 if node.op_type == "ArrayFeatureExtractor" else attribute(node, "axis") or 0
    if not -len(dimensions) <= axis < len(dimensions):
        return None
    if node.op_type == "GatherElements":
        return dimensions, axis % len(dimensions)
    if node.op_type == "GatherND":
        first = attribute(node, "batch_dims") or 0
        return dimensions[first:][: graph.width(index)], None
    return dimensions[axis:][:1], 0


def _numbered(node: onnx.NodeProto, graph: Graph, versions: Mapping[str, int]) -> Iterator[tuple[int, int, Way]]:
    """Yield how many entries the table of a node of its own has, what their numbers are below, and what gives these."""
    kind, made = node.op_type, f"{node.output[0]}_ortrim_entry"
    if kind == "LabelEncoder" and versions.get(ML, 1) > 1:
        name = next(each.name for each in node.attribute if each.name.startswith("keys_"))
        yield _encoded(node.input[0], name, attribute(node, name), made)
    elif kind == "CategoryMapper" and versions.get(ML, 1) > 1:
        name = "strings" if graph.element_type(node.input[0]) in {0, onnx.TensorProto.STRING} else "int64s"
        yield _encoded(node.input[0], f"keys_{name}", attribute(node, f"cats_{name}"), made)
    elif kind in {"OneHotEncoder", "TfIdfVectorizer"}:
        categories = attribute(node, "cats_strings") or attribute(node, "cats_int64s") or ()
        places = {*(attribute(node, "ngram_indexes") or range(len(categories)))}
        last = numpy_helper.from_array(np.array(-1))
        nodes = (
            helper.make_node("NonZero", [node.output[0]], [f"{made}_places"]),
            helper.make_node("Constant", [], [f"{made}_last"], value=last),
            helper.make_node("Gather", [f"{made}_places", f"{made}_last"], [made]),
        )
        yield len(places), max(places, default=0) + 1, (made, nodes)
    elif kind in TREES and (modes := attribute(node, "nodes_modes")):
        yield _leaves(node, modes, made)


def _encoded(source: str, name: str, keys: Any, made: str) -> tuple[int, int, Way]:
    """Return what numbers the keys that a value has; of those that are no key, the number is one more."""
    if isinstance(keys, onnx.TensorProto):
        kind = np.float64 if keys.data_type == onnx.TensorProto.DOUBLE else np.int64
        count = int(np.prod(keys.dims))
        arrays = {"values_tensor": np.arange(count, dtype=kind), "default_tensor": np.array([count], kind)}
        values: dict[str, Any] = {key: numpy_helper.from_array(array, key) for key, array in arrays.items()}
    else:
        keys = list(dict.fromkeys(keys or ()))
        count = len(keys)
        values = {"values_int64s": [*range(count)], "default_int64": count}
    return (
        count,
        count,
        (made, (helper.make_node("LabelEncoder", [source], [made], domain=ML, **{name: keys}, **values),)),
    )


def _leaves(node: onnx.NodeProto, modes: Sequence[bytes], made: str) -> tuple[int, int, Way]:
    """Return what numbers the leaves in which trees end: the same trees, each with a target of its own."""
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute if each.name in BRANCHES}
    trees = list(dict.fromkeys(given["nodes_treeids"]))
    leaves = [at for at, mode in enumerate(modes) if mode == b"LEAF"]
    wide = "nodes_values_as_tensor" in given
    numbers = np.arange(len(leaves), dtype=np.float64 if wide else np.float32)
    weights: dict[str, Any] = (
        {"target_weights_as_tensor": numpy_helper.from_array(numbers, "w")} if wide else {"target_weights": numbers}
    )
    of_leaves: dict[str, Any] = {
        "target_treeids": [given["nodes_treeids"][at] for at in leaves],
        "target_nodeids": [given["nodes_nodeids"][at] for at in leaves],
        "target_ids": [trees.index(given["nodes_treeids"][at]) for at in leaves],
        "n_targets": len(trees),
    }
    kind = onnx.TensorProto.DOUBLE if wide else onnx.TensorProto.FLOAT
    return len(leaves), len(leaves), (made, (
        helper.make_node("Cast", [node.input[0]], [f"{made}_features"], to=kind),
        helper.make_node(
            "TreeEnsembleRegressor", [f"{made}_features"], [made], domain=ML, **given, **of_leaves, **weights
        ),
    ))  # fmt: skip
