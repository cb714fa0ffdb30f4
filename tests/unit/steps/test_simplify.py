"""Simplify: a guard against models that folded constants swell, and what the programs do."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ortrim.base.scripts import Interpreter, Python
from ortrim.buildspec.step_specs import Simplify
from ortrim.errors import ModelError
from ortrim.models.full_runtime import FullRuntime
from ortrim.steps import runtime_tools as module
from ortrim.steps import step
from ortrim.steps.runtime_tools import simplify
from ortrim.steps.step import Workplace, packaged_python
from refusing import refused
from stepped_models import layered


def swollen(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fold a constant of a megabyte into a model, as a simplifier does for ConstantOfShape."""
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1 << 18, np.float32), "large"))
    return model


def failing(_: onnx.ModelProto) -> onnx.ModelProto:
    """Fail as a program does that does not know an operator."""
    raise AssertionError("no such operator")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return what stands for onnxslim; nothing is installed."""
    made = SimpleNamespace(slim=lambda model: model)
    monkeypatch.setitem(sys.modules, "onnxslim", made)
    monkeypatch.setattr(module, "packaged_python", lambda *_: Python(words=(), environment={}))
    return made


def test_a_model_that_is_simple_already_stays(program: SimpleNamespace, place: Workplace) -> None:
    assert program.slim(layered()) == layered()
    assert simplify(layered(), Simplify(use="simplify"), place).model == layered()


def test_the_program_finds_the_runtime_behind_its_own_packages(
    program: SimpleNamespace, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one onnxslim folds no constants and says nothing; what both have is taken from the program's own."""
    given: list[FullRuntime] = []

    def python_for(_name: str, _requirements: str, runtime: FullRuntime) -> Python:
        given.append(runtime)
        return Python(words=(), environment={})

    monkeypatch.setattr(module, "packaged_python", python_for)
    assert simplify(layered(), Simplify(use="simplify"), place).model == program.slim(layered())
    assert given == [place.runtime]
    installed: list[Interpreter] = []

    def folder(*_: object, python: Interpreter) -> Path:
        installed.append(python)
        return Path("/own")

    monkeypatch.setattr(step, "packages_folder", folder)
    other = Interpreter(program="/opt/python3.12", version=(3, 12))
    python = packaged_python("onnxslim", "", replace(place.runtime, python=other))
    assert (installed, python.words) == ([other], other.isolated)
    assert python.environment["PYTHONPATH"] == f"/own:{place.runtime.packages}"


def test_a_swollen_model_is_refused(program: SimpleNamespace, place: Workplace) -> None:
    """The sizes and the key that allows more are in the diagnostic, and nothing is written."""
    program.slim = swollen
    error = refused(ModelError, simplify, layered(), Simplify(use="simplify"), place)
    assert error.code == "model-swollen"
    assert "onnxslim made 1,0" in error.what
    assert "most_growth = " in error.hint
    assert not (place.folder / "after.onnx").exists()


def test_no_growth_is_allowed_beyond_what_one_file_can_have(
    program: SimpleNamespace, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of protobuf's has 2 GB at most, here less, whatever the buildspec says."""
    program.slim = swollen
    options = Simplify(use="simplify", most_growth=100.0)
    monkeypatch.setattr(module, "SMALL_BYTES", 2 << 20)
    assert simplify(layered(), options, place).model.graph.initializer[-1].name == "large"
    monkeypatch.setattr(module, "LARGEST_BYTES", 1 << 19)
    assert refused(ModelError, simplify, layered(), options, place).code == "model-swollen"


def test_what_the_program_says_is_the_why(program: SimpleNamespace, place: Workplace) -> None:
    """A failure inside it is a diagnostic with its words."""
    program.slim = failing
    error = refused(ModelError, simplify, layered(), Simplify(use="simplify"), place)
    assert (error.code, error.where) == ("step-failed", place.where)
    assert error.why == "AssertionError: no such operator"
