"""Which outputs depend on random numbers, and the model with the numbers as inputs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.errors import ModelError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.compare import compare
from ortrim.parity.inputs import Case, load_array, save_array
from ortrim.parity.measurements import Verdict
from ortrim.parity.random_numbers import drawn_outputs, without_draws
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import SavedOutput
from ortrim.planning import conversions

DRAWING = {
    "RandomNormal": "noise = RandomNormal <seed = 3.0, shape = [2, 3]> ()",
    "RandomUniform": "noise = RandomUniform <seed = 3.0, shape = [2, 3]> ()",
    "RandomNormalLike": "noise = RandomNormalLike <seed = 3.0> (x)",
    "RandomUniformLike": "noise = RandomUniformLike <seed = 3.0> (x)",
    "Bernoulli": "p = Sigmoid (x) noise = Bernoulli <seed = 3.0> (p)",
    "Multinomial": "drawn = Multinomial <seed = 3.0, sample_size = 3> (x) noise = Cast <to = 1> (drawn)",
    "Dropout": "ratio = Constant <value = float {0.5}> () on = Constant <value = bool {1}> ()"
    " noise = Dropout <seed = 3> (x, ratio, on)",
}
"""Every operator that draws, by a seed of its own, with the value that it makes."""
FOLLOWED = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z) {{
    {draw}
    ten = Constant <value = float {{10.0}}> ()
    y = Mul (noise, ten)
    z = Neg (x)
}}
"""
CHOSEN = """c = Constant <value = bool {1}> ()
y = If (c) <
    then_branch = first () => (float[2,3] t) { t = %s },
    else_branch = second () => (float[2,3] e) { e = %s }
>"""


@pytest.fixture(scope="module")
def runtime() -> FullRuntime:
    return full_runtime(onnxruntime.__version__, None)


def written(text: str, folder: Path) -> PreparedModel:
    model = onnx.parser.parse_model(text)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return PreparedModel(name="m", path=folder / "model.onnx", facts=facts_of(model, "a" * 64, 1, "m"))


def cases_in(folder: Path) -> tuple[Case, ...]:
    for number, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        save_array(folder / name, "input_000", np.linspace(-1, 1 + number, 6, dtype=np.float32).reshape(2, 3))
    return tuple(Case(name=name, folder=folder / name, digest=name) for name in ("one", "two"))


def draws(text: str) -> tuple[str, ...]:
    return drawn_outputs(onnx.parser.parse_model(text))


@pytest.mark.parametrize("operator", DRAWING)
def test_what_follows_a_draw_depends_on_it(operator: str) -> None:
    """By the seed of an attribute, too; what does not follow it does not."""
    drawn, other = draws(FOLLOWED.format(draw=DRAWING[operator]))
    assert drawn.startswith(f"{operator} '")
    assert other == ""


@pytest.mark.parametrize(
    ("nodes", "drawn"),
    [
        ("n = RandomNormalLike (x) i = Identity (n) y = Add (i, x)", True),
        ("y = Add (i, x) i = Identity (n) n = RandomNormalLike (x)", True),
        ("c = Constant <value = bool {0}> () r = Constant <value = float {0.5}> () y = Dropout (x, r, c)", False),
        ("r = Constant <value = float {0.5}> () y = Dropout (x, r)", False),
        ("r = Constant <value = float {0.5}> () s = ReduceSum (x) c = Cast <to = 9> (s) y = Dropout (x, r, c)", True),
        ("y = own.RandomNormalLike (x)", False),
        ("y = own.noisy (x)", True),
        ("y = own.clean (x)", False),
        (CHOSEN % ("Neg (x)", "RandomNormalLike (x)"), True),
        ("n = RandomNormalLike (x) " + CHOSEN % ("Neg (n)", "Neg (x)"), True),
        (CHOSEN % ("Neg (x)", "Abs (x)"), False),
    ],
)  # fmt: skip
def test_draws_are_found_wherever_they_are(nodes: str, drawn: bool) -> None:  # noqa: FBT001
    """In bodies, in functions, behind other nodes, in any order; Dropout draws in training mode alone."""
    head = '<ir_version: 8, opset_import: ["": 17, "own": 1]>'
    functions = (
        '<domain: "own", opset_import: ["": 17]> noisy (a) => (b) { b = RandomNormalLike (a) }'
        '<domain: "own", opset_import: ["": 17]> clean (a) => (b) { b = Neg (a) }'
    )
    assert bool(draws(f"{head} g (float[2,3] x) => (float[2,3] y) {{ {nodes} }} {functions}")[0]) is drawn


def test_an_initializer_switches_dropout_off() -> None:
    """As exporters write it that keep the third input."""
    node = helper.make_node("Dropout", ["x", "ratio", "mode"], ["y"])
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    for mode, drawn in ((False, False), (True, True)):
        constants = [
            numpy_helper.from_array(np.array(0.5, np.float32), "ratio"),
            numpy_helper.from_array(np.array(mode), "mode"),
        ]
        graph = helper.make_graph([node], "g", tensors[:1], tensors[1:], constants)
        assert bool(drawn_outputs(helper.make_model(graph))[0]) is drawn


@pytest.mark.parametrize("operator", DRAWING)
def test_the_model_is_given_what_it_drew(operator: str, runtime: FullRuntime, tmp_path: Path) -> None:
    """What follows is then the same in every library, and another computation of it is told apart."""
    model, cases = written(FOLLOWED.format(draw=DRAWING[operator]), tmp_path), cases_in(tmp_path)
    reference = reference_outputs(model, cases, runtime, tmp_path / "references")
    made = without_draws(model, cases, runtime, tmp_path / "draws")
    assert made is not None
    given, given_cases = made
    assert given.facts.inputs[0].name == "x"
    assert operator not in [node.op_type for node in onnx.load(given.path).graph.node]
    again = reference_outputs(given, given_cases, runtime, tmp_path / "references")
    for case, inputs in zip(again.cases, given_cases, strict=True):
        drawn = load_array(inputs.folder / "input_001.npy")
        found = load_array(again.folder / case.name / "output_000.npy")
        np.testing.assert_array_equal(found, drawn.astype(np.float32) * np.float32(10))
    # In one library, seeds of the model's own draw the same; in another one, they prove nothing.
    first, second = (
        {each.output: each.verdict for each in compare("m", reference, reference, {}, same_library=same)}
        for same in (True, False)
    )
    assert (first["y"], second["y"]) == (Verdict.PASS, Verdict.NOT_JUDGED)
    assert {each.verdict for each in compare("m", again, again, {}) if each.output == "y"} == {Verdict.PASS}


def test_numbers_of_a_global_seed_are_given_too(runtime: FullRuntime, tmp_path: Path) -> None:
    """Those that no two runs draw alike."""
    model = written(FOLLOWED.format(draw="noise = RandomNormalLike (x)"), tmp_path)
    reference = reference_outputs(model, cases_in(tmp_path), runtime, tmp_path / "references")
    assert [(each.random, bool(each.draws)) for each in reference.cases[0].outputs] == [(True, True), (False, False)]
    assert without_draws(model, tuple(Case(name=c, folder=tmp_path / c, digest=c) for c in ("one",)), runtime, tmp_path)


@pytest.mark.parametrize(
    "nodes",
    [
        "y = RandomNormalLike <seed = 1.0> (x)",
        CHOSEN % ("RandomNormalLike (x)", "Neg (x)"),
        "y = Neg (x)",
    ],
)  # fmt: skip
def test_nothing_can_be_given(nodes: str, runtime: FullRuntime, tmp_path: Path) -> None:
    """Of what nothing follows, what is drawn in a body, and what is not drawn at all."""
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y)'
    model = written(f"{head} {{ {nodes} }}", tmp_path)
    assert without_draws(model, cases_in(tmp_path), runtime, tmp_path / "draws") is None


def test_the_line_says_why(runtime: FullRuntime, tmp_path: Path) -> None:
    """It names the node; the outputs that do not depend on it are judged as ever."""
    text = FOLLOWED.format(draw=DRAWING["RandomNormalLike"])
    model, cases = written(text, tmp_path), cases_in(tmp_path)
    reference = reference_outputs(model, cases, runtime, tmp_path / "references")
    ours = SavedOutputs(folder=tmp_path / "ours", cases=reference.cases)
    for case in reference.cases:
        (ours.folder / case.name).mkdir(parents=True)
        for at, output in enumerate(case.outputs):
            array = load_array(reference.folder / case.name / str(output.file))
            save_array(ours.folder / case.name, f"output_{at:03}", array if output.name == "z" else array + 1)
    found = {(each.case, each.output): each for each in compare("m", reference, ours, {})}
    assert found["one", "z"].verdict is Verdict.PASS
    assert found["one", "y"].verdict is Verdict.NOT_JUDGED
    said = "it depends on the random numbers of RandomNormalLike 'noise', which every C++ library draws in its own way"
    assert found["one", "y"].reason == said


def test_a_model_that_cannot_be_given_numbers_is_verified_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the full runtime says of the model that ortrim makes of it is no fault of the user's model."""

    def refused(*_: object) -> None:
        raise ModelError("does-not-load", "the full runtime does not load the model")

    monkeypatch.setattr(conversions, "without_draws", refused)
    drawn = SavedOutput(name="y", element_type="float32", shape=(1,), file="output_000.npy", draws="RandomNormal 'r'")
    reference = SavedOutputs(folder=Path(), cases=(CaseOutputs(name="one", outputs=(drawn,)),))
    subject: Any = SimpleNamespace(prepared=None, cases=(), reference=reference)
    runtime: Any = None
    assert conversions.with_draws_given(subject, runtime) is subject
