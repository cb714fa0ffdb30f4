"""Which entries of a model's tables its cases look up, by the indices that the full runtime computes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper

from lookup_models import built, ml, table, tree
from onnx_samples import value
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.inputs import Case, save_array
from ortrim.parity.reference import reference_outputs

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
KEYS: dict[str, Any] = {"keys_strings": ["a", "b", "c"], "values_int64s": [1, 2, 3]}
DOUBLES: dict[str, Any] = {
    "keys_tensor": table("k", [0.5, 1.5, 2.5], np.float64),
    "values_tensor": table("v", [1, 2, 3], np.float64),
    "default_tensor": table("d", [0], np.float64),
}
GRAMS: dict[str, Any] = {
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 2],
    "ngram_indexes": [0, 1, 2], "pool_strings": ["new", "york", "new", "york"],
}  # fmt: skip
WIDE: dict[str, Any] = {
    name: given
    for name, given in tree("target").items()
    if name not in {"nodes_values", "target_weights"}
} | {
    "nodes_values_as_tensor": table("n", tree("target")["nodes_values"], np.float64),
    "target_weights_as_tensor": table("w", tree("target")["target_weights"], np.float64),
}  # fmt: skip


def unread(model: onnx.ModelProto, folder: Path, *inputs: Any) -> list[str]:
    """Run a model of one input on the arrays given; return what is said of its tables."""
    path = folder / "model.onnx"
    onnx.save_model(model, path)
    cases = []
    for number, array in enumerate(inputs):
        place = folder / f"case-{number}"
        place.mkdir()
        save_array(place, "input_000", array)
        cases.append(Case(name=f"case-{number}", folder=place, digest=str(number)))
    prepared = PreparedModel(name="m", path=path, facts=facts_of(model, "a" * 64, 1, "here"))
    runtime = full_runtime(onnxruntime.__version__, None)
    return [*map(str, reference_outputs(prepared, tuple(cases), runtime, folder / "reference").coverage.tables)]


def words(*texts: str) -> Any:
    return np.array(texts, object)


def of(operator: str, kind: int, shape: Any, *others: str, opset: int = 3, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node that makes floats, of ai.onnx.ml unless it has a table."""
    names = ["table", "x"] if others else ["x"]
    make = helper.make_node if others or operator == "TfIdfVectorizer" else ml
    tables = [table("table", np.arange(12).reshape(3, 4))] if others else []
    return built(make(operator, names, ["y"], **attributes), [value("x", kind, shape)], tables=tables, opset=opset)


INTEGERS = [value("y", INT64, None)]
SUBJECTS: dict[str, tuple[onnx.ModelProto, list[Any], list[str]]] = {
    "rows, also from the end": (
        of("Gather", INT64, ("n",), "table"), [np.array([0, 0]), np.array([-1])],
        ["1 of 3 entries of 'table' (Gather 'y') was"],
    ),
    "all rows": (of("Gather", INT64, ("n",), "table"), [np.array([0, 1]), np.array([2])], []),
    "columns": (
        of("Gather", INT64, (), "table", axis=1), [np.array(2)], ["3 of 4 entries of 'table' (Gather 'y') were"],
    ),
    "cells": (
        of("GatherElements", INT64, ("n", 4), "table"), [np.array([[0, 0, 0, -1]])],
        ["8 of 12 entries of 'table' (GatherElements 'y') were"],
    ),
    "tuples": (
        of("GatherND", INT64, ("n", 2), "table"), [np.array([[0, 3], [-1, -1]])],
        ["10 of 12 entries of 'table' (GatherND 'y') were"],
    ),
    "parts of tuples": (
        of("GatherND", INT64, ("n", 1), "table"), [np.array([[0], [2]])],
        ["1 of 3 entries of 'table' (GatherND 'y') was"],
    ),
    "keys": (
        built(ml("LabelEncoder", ["x"], ["y"], **KEYS), [value("x", STRING, ("n",))], INTEGERS), [words("b", "else")],
        ["2 of 3 entries of LabelEncoder 'y' were"],
    ),
    "keys that are doubles": (
        built(ml("LabelEncoder", ["x"], ["y"], **DOUBLES), [value("x", DOUBLE, ("n",))],
              [value("y", DOUBLE, None)], opset=4),
        [np.array([0.5, 7.0])], ["2 of 3 entries of LabelEncoder 'y' were"],
    ),
    "categories": (
        built(ml("CategoryMapper", ["x"], ["y"], cats_strings=["a", "b"], cats_int64s=[7, 8]),
              [value("x", INT64, ("n",))], [value("y", STRING, None)]),
        [np.array([8, 9])], ["1 of 2 entries of CategoryMapper 'y' was"],
    ),
    "hot places": (
        of("OneHotEncoder", STRING, ("n",), cats_strings=["a", "b", "c"]), [words("c", "c")],
        ["2 of 3 entries of OneHotEncoder 'y' were"],
    ),
    "n-grams": (
        of("TfIdfVectorizer", STRING, ("n",), **GRAMS), [words("york", "new")],
        ["1 of 3 entries of TfIdfVectorizer 'y' was"],
    ),
    "leaves": (
        of("TreeEnsembleRegressor", FLOAT, ("n", 3), n_targets=2, **tree("target")),
        [np.array([[0, 0, 0], [50, 0, 0]], np.float32)], ["2 of 4 entries of TreeEnsembleRegressor 'y' were"],
    ),
    "leaves of doubles": (
        of("TreeEnsembleRegressor", DOUBLE, ("n", 3), n_targets=2, **WIDE),
        [np.array([[50, 0, 0], [50, 0, 9e9]])], ["2 of 4 entries of TreeEnsembleRegressor 'y' were"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("subject", SUBJECTS)
def test_entries_that_no_case_looks_up_are_counted(subject: str, tmp_path: Path) -> None:
    model, inputs, told = SUBJECTS[subject]
    assert unread(model, tmp_path, *inputs) == [f"{each} never looked up: not proved" for each in told]


COMPUTED = """<ir_version: 8, opset_import: ["": 17, "own": 1]> m (float[n, 3] x) => (float[a] y)
    <float[3] rows = {1.0, 2.0, 3.0}, int64[1] first = {0}> { best = ArgMax <axis = 1, keepdims = 0> (x) y = LOOK_UP }
    <domain: "own", opset_import: ["": 17]> row (t, i) => (o) { o = Gather (t, i) }"""


@pytest.mark.parametrize(
    ("look_up", "said"),
    [
        ("Gather (rows, best)", ["2 of 3 entries of 'rows' (Gather 'y') were never looked up: not proved"]),
        ("own.row (rows, best)", ["2 of 3 entries of 'rows' (Gather 'y') were never looked up: not proved"]),
        ("Gather (rows, first)", []),
        ("Gather (best, first)", []),
    ],
    ids=["graph", "function", "constant", "no-table"],
)
def test_computed_indices_are_observed(look_up: str, said: list[str], tmp_path: Path) -> None:
    """Where a graph computes them, and where a function reads them; what is constant is always read alike."""
    text = COMPUTED.replace("LOOK_UP", look_up)
    if "best, first" in look_up:
        text = text.replace("(float[a] y)", "(int64[a] y)")
    assert unread(onnx.parser.parse_model(text), tmp_path, np.eye(3, dtype=np.float32)[[1, 1]]) == said


def test_what_bodies_look_up_is_not_known(tmp_path: Path) -> None:
    """No output of the model tells it."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (int64[n] x) => (float[a] y)
        <float[3] rows = {1.0, 2.0, 3.0}> { most = ReduceMax <keepdims = 0> (x) go = Cast <to = 9> (most) y = If (go) <
            then_branch = a () => (float[b] c) { c = Gather (rows, x) },
            else_branch = d () => (float[e] f) { f = Cast <to = 1> (x) } > }"""
    assert unread(onnx.parser.parse_model(text), tmp_path, np.array([0, 1])) == [
        "which of 3 entries of 'rows' (Gather 'c') are looked up cannot be observed: not proved"
    ]
