"""What the answers of the full runtime come to, without starting it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from linted_models import facts
from onnx_samples import model_of, relu, value
from ortrim.analysis.lint import run as lint_run
from ortrim.analysis.lint.rules import KernelFacts, ProviderFacts
from ortrim.analysis.lint.run import look, own_sizes
from ortrim.errors import ModelError, ToolError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.graph_facts import GraphFacts
from ortrim.models.refusals import plain_words

RUNTIME = FullRuntime(version="1.21.0", words=(), environment={}, packages=Path(), library=Path())
COUNTS = {"nodes": 3, "supported": 2, "partitions": 1, "fixed_supported": 2, "fixed_partitions": 1}
OPERATORS = {
    "without": [["com.acme", "Foo"]],
    "unheard": [["com.acme", "Foo"]],
    "providers": [{"name": "NNAPI", "unsupported": ["Sin"], **COUNTS}],
    "unusable": "",
}
RUNS = {"load": "", "trials": [{"sizes": {"n": 2}, "failure": ""}], "skipped": ""}


class Script:
    """Stands in for the scripts, and keeps what they were asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"lint_operators.py": OPERATORS, "lint_runs.py": RUNS, **answers}
        self.asked: dict[str, Any] = {}

    def __call__(self, _runtime: FullRuntime, script: str, request: Any, **_: object) -> dict[str, Any]:
        self.asked[script] = request
        answer = self.answers[script]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def asked(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> Script:
    """Put the stand-in in place; `runs` and `operators` are its answers."""
    script = Script(**{f"lint_{name}.py": answer for name, answer in answers.items()})
    monkeypatch.setattr(lint_run, "run_script", script)
    return script


def graph(*shape: int | str | None) -> GraphFacts:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=shape)], [value("y", shape=None)])
    return facts(model if shape else relu()).graph


def test_the_answers_become_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs and counts; a model that loads has all kernels, whatever the tables say."""
    script = asked(monkeypatch)
    looked = look(tmp_path / "m.onnx", graph("n", None, 4), RUNTIME, run=True)
    assert looked.kernels == KernelFacts()
    assert looked.providers == (ProviderFacts(name="NNAPI", unsupported=("Sin",), **COUNTS),)
    assert looked.run is not None
    assert looked.run.trials == (((("n", 2),), ""),)
    assert looked.not_checked == ()
    request = script.asked["lint_runs.py"]
    assert request["inputs"] == [{"name": "x", "type": "float32", "shape": ["n", "x[1]", 4]}]
    assert (tuple(request["dimensions"]), request["run"]) == (("n", "x[1]"), True)


def test_words_about_a_kernel_name_it_and_not_this_machines_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = f"{tmp_path}/m.onnx: Could not find an implementation for Relu(14) node with name 'r'"
    asked(monkeypatch, runs={**RUNS, "load": words, "trials": []})
    looked = look(tmp_path / "m.onnx", graph(), RUNTIME, run=True)
    assert looked.kernels is not None
    assert looked.kernels.missing == (("ai.onnx", "Relu"), "r")
    assert looked.run is not None
    assert looked.run.load_failure.startswith("m.onnx: ")


FAILED = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running "
PLACE = "/onnxruntime_src/onnxruntime/core/tensor/reshape_helper.h:45 onnxruntime::Helper(const Shape&, bool) "
PLAIN = (
    (
        f"{FAILED}Reshape node. Name:'r1' Status Message: {PLACE}size == 3 was false",
        "Reshape 'r1': size == 3 was false",
    ),
    (f"{FAILED}Add node. Name:'' Status Message: concat.cc:154 Axis 2 differs", "Add: Axis 2 differs"),
    (f"Load model from /a/b/m.onnx failed:{PLACE}Unknown opset", "Load model from m.onnx failed: Unknown opset"),
    ("filesystem error: cannot get file size [/a/b/w.bin]", "filesystem error: cannot get file size [w.bin]"),
    ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : ", "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED :"),
    ("", ""),
)


@pytest.mark.parametrize(("words", "plain"), PLAIN)
def test_failures_are_reported_in_words_about_the_model(words: str, plain: str) -> None:
    """Without codes, places in the runtime's sources, and folders: recorded of 1.21.0 and 1.23.2, shortened."""
    assert plain_words(words, Path("/a/b/m.onnx")) == plain


def test_sizes_that_a_model_fixes_are_tried_too() -> None:
    """It may run at the length alone that it was exported with: of a position's weights, or of a Reshape."""
    shape = numpy_helper.from_array(np.array([10, 100, -1], np.int64), "s")
    whole = numpy_helper.from_array(np.array([7, 11], np.int64), "t")
    weights = numpy_helper.from_array(np.ones((1, 50, 8), np.float32), "w")
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], initializers=[shape, whole, weights])
    assert own_sizes(facts(model).graph) == (2, 3, 7, 8, 10, 11, 50, 77, 100)


def test_dimensions_called_by_a_question_mark_are_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = asked(monkeypatch)
    look(tmp_path / "m.onnx", graph("?", "?"), RUNTIME, run=True)
    request = script.asked["lint_runs.py"]
    assert (request["inputs"][0]["shape"], tuple(request["dimensions"])) == (["x[0]", "x[1]"], ("x[0]", "x[1]"))


@pytest.mark.parametrize("error", [ModelError("crashes-runtime", "crashed"), ToolError("tool-timeout", "too long")])
def test_a_crash_or_an_endless_run_is_a_finding(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked(monkeypatch, runs=error, operators=error)
    looked = look(tmp_path / "m.onnx", graph(), RUNTIME, run=True)
    assert looked.run is not None
    assert looked.run.crash
    assert (looked.kernels, looked.providers, len(looked.not_checked)) == (None, None, 1)


def test_a_runtime_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked(monkeypatch, operators=ToolError("tool-missing", "is not there"))
    with pytest.raises(ToolError):
        look(tmp_path / "m.onnx", graph(), RUNTIME, run=True)


@pytest.mark.parametrize(
    ("shape", "words"), [(("n", "past + 1"), "depends on others"), (("2*n",), "depends on others")]
)
def test_sizes_that_hang_together_are_not_tried(
    shape: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = asked(monkeypatch)
    looked = look(tmp_path / "m.onnx", graph(*shape), RUNTIME, run=True)
    assert script.asked["lint_runs.py"]["run"] is False
    assert words in looked.not_checked[0]


def test_without_running_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = asked(monkeypatch)
    looked = look(tmp_path / "m.onnx", graph(), RUNTIME, run=False)
    assert list(script.asked) == ["lint_operators.py"]
    assert looked.kernels is not None
    assert looked.kernels.unheard == (("com.acme", "Foo"),)
    assert looked.not_checked == ("loading and running: --no-run was given",)


def test_an_unusable_checker_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked(monkeypatch, operators={**OPERATORS, "unusable": "ModuleNotFoundError: No module named 'onnx'"})
    looked = look(tmp_path / "m.onnx", graph(), RUNTIME, run=True)
    assert (looked.providers, looked.kernels is None) == (None, False)
    assert "No module named 'onnx'" in looked.not_checked[0]
