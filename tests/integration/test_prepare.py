"""Steps on real models from wheels, with the real tools, each compared with the original by the full runtime."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import onnx
import pytest
from onnx import helper

from mutated_models import mutated
from number_samples import operators
from onnx_samples import model_of, value
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.base.scripts import SCRIPTS, Python, ScriptCrash, run_script
from ortrim.buildspec.step_specs import InferShapes, Simplify
from ortrim.errors import Diagnostic, ModelError
from ortrim.models.full_runtime import full_runtime
from ortrim.parity.measurements import Verdict
from ortrim.planning.models import prepare_models, write_prepared
from ortrim.planning.request import Request, load
from ortrim.steps import preparation as stepping
from ortrim.steps.preparation import Preparation
from ortrim.steps.step import Workplace
from ortrim.steps.table import take_step
from refusing import refused
from stepped_models import constant, feeds_for, layered, same_outputs, with_branch

CLASSIFIER = """\
[[models]]
name = "text-direction"
wheel = "rapidocr-onnxruntime==1.4.4"
member = "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
sha256 = "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
cases = [
    { name = "line", seed = 1, inputs = { x = { shape = [1, 3, 48, 192] } } },
    { name = "batch", seed = 3, inputs = { x = { shape = [6, 3, 48, 192] } } },
]
"""
STEPS = """\
[[models.steps]]
use = "remove-dead"
[[models.steps]]
use = "simplify"
[[models.steps]]
use = "opset"
version = 15
[[models.steps]]
use = "batch"
size = 1
[[models.steps]]
use = "infer-shapes"
symbolic = true
optional = true
[[models.steps]]
use = "rename"
inputs = { x = "picture" }
number_nodes = true
[[models.steps]]
use = "strip"
"""


@pytest.fixture
def prepare(tmp_path: Path) -> Callable[[str], tuple[Preparation, ...]]:
    """Return what prepares the classifier by steps, given as TOML."""

    def done(steps: str) -> tuple[Preparation, ...]:
        spec = tmp_path / "steps.toml"
        spec.write_text(CLASSIFIER + steps)
        return prepare_models(load(Request(spec=spec)), (), Console(quiet=True))

    return done


@pytest.mark.network
def test_a_real_model_goes_through_many_steps(prepare: Callable[..., tuple[Preparation, ...]], tmp_path: Path) -> None:
    """Each step says what it changed, and the last one's model is the original's equal under its new names."""
    (done,) = prepare(STEPS)
    report = done.report
    assert [step.use for step in report.steps] == [
        "remove-dead", "simplify", "opset", "batch", "infer-shapes", "rename", "strip",
    ]  # fmt: skip
    # Upstream's symbolic inference asserts what this model's Concat of shapes does not meet unless it is folded.
    assert [step.outcome for step in report.steps] == ["unchanged", *["changed"] * 6]
    assert all(each.verdict is Verdict.PASS for step in report.steps for each in step.parity)
    assert report.prepared.nodes < report.original.nodes
    assert dict(report.prepared.opsets)["ai.onnx"] == 15
    assert [left.case for step in report.steps for left in step.cases_left] == ["batch"]
    assert [case.name for case in done.cases] == ["line"]
    assert [info.name for info in done.model.facts.inputs] == ["picture"]
    write_prepared((done,), tmp_path, Console(quiet=True))
    assert sha256_of(tmp_path / "text-direction.onnx") == report.sha256
    assert (tmp_path / "text-direction.steps.json").is_file()


@pytest.mark.network
def test_a_second_run_does_nothing_again(
    prepare: Callable[..., tuple[Preparation, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the steps made is found by all that it depends on."""
    steps = '[[models.steps]]\nuse = "strip"\n'
    (first,) = prepare(steps)
    monkeypatch.setattr(stepping, "take", None)
    (second,) = prepare(steps)
    assert second == first


def test_the_real_steps_end_well_with_odd_models(tmp_path: Path) -> None:
    """Models in which something is changed are a result or a failure in words of the tools that are not Python."""
    python = Python(words=(sys.executable,), environment=dict(os.environ))
    requests = (
        {"do": "convert-version", "version": 20},
        {"do": "infer-shapes", "strict": False},
        {"do": "extract", "inputs": ["m"], "outputs": ["r"]},
    )
    random = Random(9)  # noqa: S311 - models, no secrets
    for number in range(6):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(mutated(with_branch().SerializeToString(), random, 4))
        request = {**requests[number % 3], "model": str(path), "output": str(tmp_path / "made.onnx")}
        with suppress(ScriptCrash):
            assert set(run_script(python, SCRIPTS / "steps.py", request, folder=tmp_path)) <= {"failure"}


@pytest.mark.network
def test_the_step_that_breaks_a_real_model_is_named(prepare: Callable[..., tuple[Preparation, ...]]) -> None:
    wrong = '[[models.steps]]\nuse = "opset"\nversion = 7\n'
    assert "step 1 (opset)" in refused(Diagnostic, prepare, wrong).where
    (done,) = prepare(f'{wrong}optional = true\n[[models.steps]]\nuse = "strip"\n')
    assert [step.outcome for step in done.report.steps] == ["left out", "changed"]
    assert done.steps_done == ("strip",)


@pytest.mark.network
def test_named_dimensions_are_followed_by_the_runtimes_inference(tmp_path: Path) -> None:
    runtime = full_runtime(version("onnxruntime"), None)
    place = Workplace(runtime=runtime, folder=tmp_path, base=tmp_path, where="step 1", cases={})
    done = take_step(layered(), InferShapes(use="infer-shapes", symbolic=True), place)
    dimensions = [value.type.tensor_type.shape.dim[0].dim_param for value in done.model.graph.value_info]
    assert set(dimensions) == {"batch"}


def foldable() -> onnx.ModelProto:
    """Return `y = relu(x * (w + w2))`, whose sum is a constant, with an Identity in between."""
    model = layered()
    nodes = [
        helper.make_node("Add", ["w", "w2"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["m"]),
        helper.make_node("Identity", ["m"], ["i"]),
        helper.make_node("Relu", ["i"], ["y"]),
    ]
    initializers = list(model.graph.initializer)[:2]
    return model_of(nodes, list(model.graph.input), list(model.graph.output), initializers=initializers)


@pytest.mark.network
@pytest.mark.parametrize("program", ["onnxslim", "onnxsim"])
def test_the_real_programs_fold_what_is_constant_and_leave_what_is_simple(
    tmp_path: Path, program: Literal["onnxslim", "onnxsim"]
) -> None:
    """A sum of constants is worked out and an Identity goes; a model without such keeps its nodes and its numbers."""
    for model, expected in ((foldable(), ["Mul", "Relu"]), (layered(), ["Mul", "Add", "Relu", "Mul"])):
        runtime = full_runtime(version("onnxruntime"), None)
        folder = tmp_path / str(len(expected))
        folder.mkdir()
        place = Workplace(runtime=runtime, folder=folder, base=tmp_path, where="step 1", cases={})
        made = take_step(model, Simplify(use="simplify", by=program), place).model
        assert operators(made.graph) == expected
        assert same_outputs(model, made, feeds_for(model))


@pytest.mark.network
@pytest.mark.parametrize("program", ["onnxslim", "onnxsim"])
def test_the_real_programs_do_not_swell_a_model(tmp_path: Path, program: Literal["onnxslim", "onnxsim"]) -> None:
    """Four megabytes of zeros, which the model has as an operator and a shape, stay out of it."""
    shape = (1024, 1024)
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["zeros"]), helper.make_node("Add", ["x", "zeros"], ["y"])]
    sizes = [constant("shape", np.array(shape, np.int64))]
    model = model_of(nodes, [value("x", shape=shape)], [value("y", shape=shape)], initializers=sizes)
    runtime = full_runtime(version("onnxruntime"), None)
    place = Workplace(runtime=runtime, folder=tmp_path, base=tmp_path, where="step 1", cases={})
    error = refused(ModelError, take_step, model, Simplify(use="simplify", by=program), place)
    assert (error.code, error.what.startswith(f"{program} made 4,")) == ("model-swollen", True)
