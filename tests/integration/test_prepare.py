"""Steps on real models from wheels, with the real tools, each held against the original by the full runtime."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from random import Random

import pytest

from mutated_models import mutated
from ortrim.console import Console
from ortrim.core.measurements import Verdict
from ortrim.core.step_specs import InferShapes
from ortrim.errors import Diagnostic
from ortrim.pipeline import preparation as stepping
from ortrim.pipeline.converted import Request
from ortrim.pipeline.preparation import Preparation
from ortrim.pipeline.prepared import prepare_models, write_prepared
from ortrim.steps.stepped import Workplace
from ortrim.steps.table import take_step
from ortrim.storage.files import sha256_of
from ortrim.tools.full_runtime import full_runtime
from ortrim.tools.scripts import SCRIPTS, Python, ScriptCrash, run_script
from stepped_models import layered, with_branch

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
        return prepare_models(Request(spec=spec), None, Console(quiet=True))

    return done


@pytest.mark.network
def test_a_real_model_goes_through_many_steps(prepare: Callable[..., tuple[Preparation, ...]], tmp_path: Path) -> None:
    """Each step says what it changed, and the last one's model is the original's equal under its new names."""
    (done,) = prepare(STEPS)
    report = done.report
    assert [step.use for step in report.steps] == [
        "remove-dead", "simplify", "opset", "batch", "infer-shapes", "rename", "strip",
    ]  # fmt: skip
    # Upstream's symbolic inference has an assertion that this model's Concat of shapes does not meet.
    assert [step.use for step in report.steps if step.outcome == "left out"] == ["infer-shapes"]
    assert "AssertionError: assert" in report.steps[4].reason
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
            assert set(run_script(python, SCRIPTS / "step_onnx.py", request, folder=tmp_path)) <= {"failure"}


@pytest.mark.network
def test_the_step_that_breaks_a_real_model_is_named(prepare: Callable[..., tuple[Preparation, ...]]) -> None:
    """A step that cannot be done ends with its name; an optional one is left out, and the next is done."""
    wrong = '[[models.steps]]\nuse = "opset"\nversion = 7\n'
    with pytest.raises(Diagnostic) as caught:
        prepare(wrong)
    assert "step 1 (opset)" in caught.value.where
    (done,) = prepare(f'{wrong}optional = true\n[[models.steps]]\nuse = "strip"\n')
    assert [step.outcome for step in done.report.steps] == ["left out", "changed"]
    assert done.steps_done == ("strip",)


@pytest.mark.network
def test_named_dimensions_are_followed_by_the_runtimes_inference(tmp_path: Path) -> None:
    """The shapes inside have the names of the input's dimensions."""
    runtime = full_runtime(version("onnxruntime"), None)
    place = Workplace(runtime=runtime, folder=tmp_path, base=tmp_path, where="step 1", cases={})
    done = take_step(layered(), InferShapes(use="infer-shapes", symbolic=True), place)
    dimensions = [value.type.tensor_type.shape.dim[0].dim_param for value in done.model.graph.value_info]
    assert set(dimensions) == {"batch"}
