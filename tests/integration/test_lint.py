"""`lint` with the real full runtime: what it says of models that show each of the rules that need it."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, relu, value, write
from ortrim.analysis.lint.rules import ModelFindings
from ortrim.analysis.lint.run import LintRequest, lint_models
from ortrim.base.console import Console
from ortrim.cli.options import request_from
from ortrim.pins.runtime import default_version

ASKED: Final = request_from(None)


def lint(path: Path, model: onnx.ModelProto, *, run: bool = True) -> ModelFindings:
    file = str(write(path / "model.onnx", model))
    asked = LintRequest(models=(file,), request=ASKED, run=run, ort_version=default_version())
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    (found,) = lint_models(asked, console)
    return found


def words_of(found: ModelFindings, reference: str) -> list[str]:
    return [finding.words for finding in found.findings if finding.code == reference]


def _one(operator: str, kind: int = TensorProto.FLOAT, domain: str = "", **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(operator, ["x"], ["y"], name="only", domain=domain, **attributes)
    domains = [("", 17), *([(domain, 1)] if domain else [])]
    return model_of([node], [value("x", kind, (2, 3))], [value("y", kind, None)], opsets=domains)


def _reshaped(shape: tuple[int, ...], length: int) -> onnx.ModelProto:
    sizes = numpy_helper.from_array(np.array(shape, np.int64), "sizes")
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    ends = [value("x", shape=("length", length))], [value("y", shape=None)]
    return model_of([node], *ends, initializers=[sizes])


def _windowed(length: int) -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.ones((1, 1, length), np.float32), "w")
    ends = [value("x", shape=("batch", 1, "samples"))], [value("y", shape=None)]
    return model_of([helper.make_node("Conv", ["x", "w"], ["y"])], *ends, initializers=[weights])


def _never() -> onnx.ModelProto:
    """Return a model that no length suits: it brings its input into two shapes of different sizes."""
    shapes = [numpy_helper.from_array(np.array([size, 4], np.int64), f"s{size}") for size in (5, 7)]
    nodes = [helper.make_node("Reshape", ["x", each.name], [f"y{each.name}"]) for each in shapes]
    ends = [value("x", shape=("length", 4))], [value("ys5", shape=None), value("ys7", shape=None)]
    return model_of(nodes, *ends, initializers=shapes)


def _added() -> onnx.ModelProto:
    """Return a model whose two inputs have to be equally long, and say so by no name."""
    ends = [value("x", shape=("a", 4)), value("z", shape=("b", 4))], [value("y", shape=None)]
    return model_of([helper.make_node("Add", ["x", "z"], ["y"])], *ends)


def _refused() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y", TensorProto.INT64)])


def _fails() -> onnx.ModelProto:
    """Return a model of fixed sizes that cannot run: its input says the shape, and is 0 or 1."""
    ends = [value("x", shape=(6,)), value("s", TensorProto.INT64, (2,))], [value("y", shape=None)]
    return model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], *ends)


@dataclass(frozen=True, kw_only=True)
class Shows:
    """A model, the rule that it shows, and part of its words."""

    reference: str
    model: Callable[[], onnx.ModelProto]
    words: str


SHOWN: Final = (
    Shows(reference="no-kernel", model=lambda: _one("Relu", TensorProto.BFLOAT16), words="Relu for bfloat16"),
    Shows(
        reference="other-provider-only",
        model=lambda: _one("GroupNorm", domain="com.microsoft", epsilon=0.1, groups=1, activation=0, channels_last=1),
        words="com.microsoft GroupNorm has no CPU kernel",
    ),
    Shows(
        reference="unknown-operator", model=lambda: _one("Foo", domain="com.acme"), words="com.acme Foo is not known"
    ),
    Shows(reference="does-not-load", model=_refused, words="Type Error"),
    Shows(reference="does-not-run", model=_fails, words="Reshape"),
    Shows(reference="dynamic-size-baked-in", model=lambda: _reshaped((3, 4), 4), words="'length' runs at 3 alone"),
    Shows(reference="dynamic-size-limited", model=lambda: _reshaped((2, -1), 1), words="not at 1, 3, 17"),
    Shows(reference="dynamic-size-baked-in", model=lambda: _reshaped((7, 11), 1), words="'length' runs at 77 alone"),
    Shows(reference="dynamic-size-limited", model=lambda: _windowed(600), words="runs at 600, 1024, 4096, not at"),
    Shows(reference="no-size-runs", model=_never, words="none of"),
    Shows(reference="mobile-partitions", model=lambda: _one("Erf"), words="XNNPACK takes 0 of 1 nodes"),
)


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.reference)
def test_the_runtime_finds_it(case: Shows, tmp_path: Path) -> None:
    """In words that name it, and without the folder of this machine."""
    found = lint(tmp_path, case.model())
    assert any(case.words in words for words in words_of(found, case.reference)), found.findings
    assert str(tmp_path) not in str(found.findings)


def _constant() -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.ones(1, np.float32), "w")
    nodes = [helper.make_node("Constant", [], ["k"], value=weights), helper.make_node("PRelu", ["x", "k"], ["y"])]
    return model_of(nodes)


@pytest.mark.parametrize("model", [relu, _added, _constant, lambda: _reshaped((0, 2, -1), 4)])
def test_a_model_that_runs_has_no_errors(model: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    """Nor advice about its sizes: those that have to be equal are, and work at all."""
    found = lint(tmp_path, model())
    assert {finding.code for finding in found.findings} <= {"mobile-partitions"}


def test_without_running_operators_are_judged_all_the_same(tmp_path: Path) -> None:
    assert lint(tmp_path, _constant(), run=False).errors == ()
    found = lint(tmp_path, _one("Foo", domain="com.acme"), run=False)
    assert [error.code for error in found.errors] == ["unknown-operator"]
    assert any("--no-run" in words for words in found.not_checked)


def test_a_model_that_asks_for_too_much_memory_is_a_finding(tmp_path: Path) -> None:
    """The process that runs it may not take all that the machine has."""
    sizes = numpy_helper.from_array(np.array([2**40], np.int64), "sizes")
    node = helper.make_node("ConstantOfShape", ["sizes"], ["y"])
    model = model_of([node], outputs=[value("y", shape=None)], initializers=[sizes])
    found = lint(tmp_path, model)
    assert {error.code for error in found.errors} & {"values-exceed-memory"}
