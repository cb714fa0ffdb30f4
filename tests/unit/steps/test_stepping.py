"""One step of a preparation: what it is compared with, and what becomes of it when it fails."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnx_samples import model_of, value, write
from ortrim.base.files import sha256_of
from ortrim.buildspec.step_specs import Extract, FixDimensions, Merge, RemoveDead, Rename, StepChoices, Strip
from ortrim.buildspec.tolerances import Tolerance
from ortrim.errors import ExitCode, ModelError, ParityError, StorageError, VerifyError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import check_model
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput
from ortrim.steps import inputs_outputs, table
from ortrim.steps.parity import Feeds, State, StepRuns, StepStage, require_parity
from ortrim.steps.preparation import first_state, take
from ortrim.steps.step import Feeding, Stepped, Workplace
from refusing import refused
from stepped_models import SHAPE, feeds_for, layered

STRIP = Strip(use="strip")
Take = Callable[..., tuple[State, Any]]


@dataclass(frozen=True, kw_only=True)
class EvaluatedRuns(StepRuns):
    def outputs(self, model: PreparedModel, cases: Mapping[str, Feeds], name: str) -> SavedOutputs:
        folder = self.folder / name
        evaluator = ReferenceEvaluator(str(model.path))
        return SavedOutputs(folder=folder, cases=tuple(self._case(evaluator, folder, *each) for each in cases.items()))

    def _case(self, evaluator: ReferenceEvaluator, folder: Path, case: str, feeds: Feeds) -> CaseOutputs:
        (folder / case).mkdir(parents=True)
        arrays = zip(evaluator.output_names, evaluator.run(None, dict(feeds)), strict=True)
        saved = []
        for index, (name, array) in enumerate(arrays):
            file = save_array(folder / case, f"output_{index:03}", np.asarray(array)).name
            saved.append(SavedOutput(name=name, element_type=array.dtype.name, shape=array.shape, file=file))
        return CaseOutputs(name=case, outputs=tuple(saved))


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., State]:
    """Return a model's state before its steps, with a case of batch 2 and one of batch 4."""

    def made(model: onnx.ModelProto, **tolerances: Tolerance) -> State:
        path = write(tmp_path / "given.onnx", model)
        digest, size = sha256_of(path), path.stat().st_size
        facts, _ = check_model(path, sha256=digest, size_bytes=size, ort_version="1.21.0", where="m")
        original = PreparedModel(name="m", path=path, facts=facts)
        cases = {name: feeds_for(model, batch) for name, batch in (("two", 2), ("four", 4))}
        return first_state(original, cases, tolerances, runs_below(tmp_path), "m")

    return made


def runs_below(folder: Path) -> StepRuns:
    nowhere = Path("/nonexistent")
    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=nowhere, library=nowhere)
    return EvaluatedRuns(runtime=runtime, folder=folder)


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Take:

    def done(
        state: State, choices: StepChoices, function: Callable[..., Stepped] | None = None, number: int = 1
    ) -> tuple[State, Any]:
        if function is not None:
            monkeypatch.setattr(table, "take_step", lambda model, *_: function(model))
        return take(state, StepStage(number=number, choices=choices, base=tmp_path, runs=runs_below(tmp_path)))

    return done


def scaled(by: float) -> Callable[[onnx.ModelProto], Stepped]:

    def done(model: onnx.ModelProto) -> Stepped:
        weights = model.graph.initializer[0]
        numbers = onnx.numpy_helper.to_array(weights) * np.float32(by)
        weights.CopyFrom(onnx.numpy_helper.from_array(numbers, weights.name))
        return Stepped(model=model, notes=("scaled",))

    return done


def test_a_step_is_reported_with_what_it_changed(start: Callable[..., State], step: Take) -> None:
    """Counts before and after, notes and parity of every output of every case are in the report."""
    model = layered()
    model.graph.doc_string = "d" * 1000
    after, report = step(start(model), STRIP)
    assert (report.number, report.use, report.options, report.outcome) == (1, "strip", "", "changed")
    assert report.before.size_bytes - report.after.size_bytes > 1000
    assert report.after.nodes == 4
    assert report.after.parameters == 9
    assert report.after.operators == (("ai.onnx:Add", 1), ("ai.onnx:Mul", 2), ("ai.onnx:Relu", 1))
    assert [(each.case, each.output, each.verdict) for each in report.parity] == [
        ("two", "y", Verdict.PASS),
        ("four", "y", Verdict.PASS),
    ]
    assert report.largest_difference == 0.0
    assert after.model.facts.sha256 == sha256_of(after.model.path)


def test_a_step_that_changes_nothing_says_so(start: Callable[..., State], step: Take) -> None:
    before = start(layered())
    after, report = step(before, STRIP)
    assert report.outcome == "unchanged"
    assert after.model.facts.sha256 == before.model.facts.sha256


def test_the_step_that_breaks_parity_is_named(start: Callable[..., State], step: Take) -> None:
    """The diagnostic has the step, the worst case, the numbers, and what to write."""
    error = refused(ParityError, step, start(layered()), STRIP, scaled(1.5), 3)
    assert (error.code, error.exit_code) == ("step-breaks-parity", ExitCode.PARITY)
    assert error.where == "model 'm', step 3 (strip)"
    assert error.what == "output 'y' of case 'two' is no longer that of the original"
    assert "largest difference" in error.why
    assert "2 of 2 outputs differ" in error.why
    assert "optional = true" in error.hint
    assert "tolerances = { float32 = { absolute = " in error.hint


def test_an_optional_step_that_breaks_parity_is_left_out(start: Callable[..., State], step: Take) -> None:
    """The model stays as it was before it, and the report says why."""
    before = start(layered())
    after, report = step(before, replace(STRIP, optional=True), scaled(1.5))
    assert after is before
    assert report.outcome == "left out"
    assert report.reason.startswith("output 'y' of case 'two' is no longer that of the original: ")
    assert report.after == report.before


def test_a_tolerance_holds_for_the_steps_behind_it(start: Callable[..., State], step: Take) -> None:
    allowing = replace(STRIP, tolerances={"float32": Tolerance(absolute=10.0, rms=1.0, cosine=0.9)})
    after, report = step(start(layered()), allowing, scaled(1.1))
    assert report.largest_difference > 0.1
    again, report = step(after, STRIP, lambda model: Stepped(model=model), 2)
    assert report.largest_difference > 0.1
    assert again.tolerances == allowing.tolerances


def test_a_case_that_a_fixed_size_excludes_is_named(
    start: Callable[..., State], step: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are still checked; without any left the step is refused."""
    monkeypatch.setattr(inputs_outputs, "inferred", lambda model, _: onnx.shape_inference.infer_shapes(model))
    state = start(layered())
    after, report = step(state, FixDimensions(use="fix-dimensions", sizes={"batch": 2}))
    (left,) = report.cases_left
    assert (left.case, left.reason) == ("four", "the input 'x' is [4, 3], and the model takes [2, 3]")
    assert set(after.cases) == {"two"}
    with pytest.raises(ModelError, match="no longer accepts any of its cases") as caught:
        step(state, FixDimensions(use="fix-dimensions", sizes={"batch": 9}), number=2)
    assert caught.value.code == "no-case-left"
    assert caught.value.why.count("\n") == 1


def test_renamed_values_are_found_again(start: Callable[..., State], step: Take) -> None:
    """Inputs have their new names in the cases, and outputs are compared under the original's, in later steps too."""
    options = Rename(use="rename", inputs={"x": "sound"}, outputs={"y": "voice"})
    after, report = step(start(layered()), options)
    assert report.options == 'inputs = {"x": "sound"}, outputs = {"y": "voice"}'
    assert set(after.cases["two"]) == {"sound"}
    _, report = step(after, Rename(use="rename", outputs={"voice": "word"}), number=2)
    assert [each.output for each in report.parity] == ["y", "y"]


def test_a_renamed_input_cannot_be_lost(start: Callable[..., State], step: Take) -> None:

    def renamed(model: onnx.ModelProto) -> Stepped:
        model.graph.input[0].name = model.graph.node[0].input[0] = "other"
        return Stepped(model=model)

    with pytest.raises(ModelError, match="no longer accepts any of its cases") as caught:
        step(start(layered()), STRIP, renamed)
    assert "there is nothing for the input 'other'" in caught.value.why


def test_a_dropped_output_is_not_looked_at_and_a_new_one_must_be_known(start: Callable[..., State], step: Take) -> None:
    """Outputs that are gone do not break parity; one that the original does not have does."""

    def another(model: onnx.ModelProto) -> Stepped:
        model.graph.output[0].name = "r"
        return Stepped(model=model)

    with pytest.raises(ParityError) as caught:
        step(start(layered()), STRIP, another)
    assert "missing from the reference" in caught.value.why


def test_a_part_is_held_against_the_whole(
    start: Callable[..., State], step: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs_outputs, "inferred", lambda model, _: onnx.shape_inference.infer_shapes(model))
    monkeypatch.setattr(inputs_outputs, "by_onnx", extracted)
    after, report = step(start(layered()), Extract(use="extract", inputs=("m",), outputs=("r",)))
    assert [each.output for each in report.parity] == ["r", "r"]
    assert set(after.cases["two"]) == {"m"}
    refused(ParityError, step, after, STRIP, scaled(2.0), 2)


def extracted(
    model: onnx.ModelProto, what: str, place: Workplace, *, inputs: list[str], outputs: list[str]
) -> onnx.ModelProto:
    assert what == "extract"
    path, made = place.folder / "a.onnx", place.folder / "b.onnx"
    onnx.save(model, path)
    onnx.utils.extract_model(str(path), str(made), inputs, outputs)
    return onnx.load(made)


def test_an_appended_model_is_fed_with_the_original(start: Callable[..., State], step: Take, tmp_path: Path) -> None:
    other = model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape=SHAPE)], [value("y", shape=SHAPE)])
    write(tmp_path / "other.onnx", other)
    options = Merge(use="merge", path=Path("other.onnx"), connect={"y": "x"}, prefix="after_")
    after, report = step(start(layered()), options)
    assert [(each.case, each.output, each.verdict) for each in report.parity] == [
        ("two", "after_y", Verdict.PASS),
        ("four", "after_y", Verdict.PASS),
    ]
    assert [each.name for each in after.model.facts.outputs] == ["after_y"]


def test_inputs_that_lose_something_are_taken_back_to_the_original(start: Callable[..., State], step: Take) -> None:
    """A new model that takes whole numbers is compared with the old one on these whole numbers."""

    def rounded(model: onnx.ModelProto) -> Stepped:
        cast = helper.make_node("Cast", ["bytes"], ["x"], to=1)
        nodes = [cast, *model.graph.node]
        made = model_of(
            nodes,
            [value("bytes", onnx.TensorProto.INT8, SHAPE)],
            list(model.graph.output),
            initializers=model.graph.initializer,
        )
        feeding = Feeding(
            forward=lambda feeds: {"bytes": np.round(feeds["x"]).astype(np.int8)},
            back=lambda feeds: {"x": feeds["bytes"].astype(np.float32)},
        )
        return Stepped(model=made, feeding=feeding)

    after, report = step(start(layered()), STRIP, rounded)
    assert report.largest_difference == 0.0
    assert after.cases["two"]["bytes"].dtype == np.int8


def test_a_float_output_of_another_width_is_compared_in_the_old_one(start: Callable[..., State], step: Take) -> None:
    """The difference of rounding is judged by the bounds of the original's type."""

    def halved(model: onnx.ModelProto) -> Stepped:
        model.graph.node.append(helper.make_node("Cast", ["y"], ["half"], to=10))
        model.graph.output[0].CopyFrom(value("half", onnx.TensorProto.FLOAT16, SHAPE))
        return Stepped(model=model, outputs={"half": "y"})

    allowing = replace(STRIP, tolerances={"float32": Tolerance(absolute=0.01, rms=1e-3)})
    _, report = step(start(layered()), allowing, halved)
    assert {(each.output, each.element_type) for each in report.parity} == {("y", "float32")}


def test_an_invalid_result_is_the_steps_fault(start: Callable[..., State], step: Take) -> None:
    """What onnx's checker refuses ends with the step's name; an optional step is left out."""

    def broken(model: onnx.ModelProto) -> Stepped:
        model.graph.node[1].output[0] = "m"
        return Stepped(model=model)

    state = start(layered())
    with pytest.raises(ModelError) as caught:
        step(state, STRIP, broken, 2)
    assert (caught.value.code, caught.value.where) == ("model-invalid", "model 'm', step 2 (strip)")
    _, report = step(state, replace(STRIP, optional=True), broken, 4)
    assert report.outcome == "left out"


def test_a_result_that_does_not_run_is_the_steps_fault(start: Callable[..., State], tmp_path: Path) -> None:
    """The runtime's refusal names the step, not the original."""

    class Refusing(EvaluatedRuns):
        def outputs(self, model: PreparedModel, cases: Mapping[str, Feeds], name: str) -> SavedOutputs:
            raise VerifyError("reference-failed", "refused", why=f"{name}: no kernel for {len(cases)} of {model.name}")

    state = start(layered())
    runs = Refusing(runtime=runs_below(tmp_path).runtime, folder=tmp_path)
    with pytest.raises(ModelError) as caught:
        take(state, StepStage(number=1, choices=STRIP, base=tmp_path, runs=runs))
    assert (caught.value.code, caught.value.why) == ("step-breaks-model", "1-after: no kernel for 2 of m")


def test_a_full_disk_is_not_the_steps_fault(start: Callable[..., State], step: Take) -> None:

    def full(_: onnx.ModelProto) -> Stepped:
        raise StorageError("disk-full", "there is no space left")

    with pytest.raises(StorageError):
        step(start(layered()), replace(STRIP, optional=True), full)


def test_an_input_that_nothing_reads_goes(start: Callable[..., State], step: Take) -> None:
    model = layered()
    model.graph.input.append(value("c", onnx.TensorProto.BOOL, ()))
    after, report = step(start(model), RemoveDead(use="remove-dead", inputs=True))
    assert report.options == "inputs = true"
    assert set(after.cases["four"]) == {"x"}


@pytest.mark.parametrize(
    ("kind", "difference", "offered"),
    [
        ("float32", 0.1, True),
        ("int64", 2.0, True),
        ("string", 1.0, False),
        ("bool", 1.0, False),
        ("float32", 0.0, False),
    ],
)
def test_a_tolerance_is_offered_only_where_it_bounds_something(kind: str, difference: float, *, offered: bool) -> None:
    """One for texts would allow any; no number lets a shape be another one."""
    output = OutputParity(
        model="m", case="c", output="y", element_type=kind, shape=(1,), max_absolute=difference,
        verdict=Verdict.FAIL, reason="it differs",
    )  # fmt: skip
    error = refused(ParityError, require_parity, (output,), "step 1")
    assert error.hint.startswith("leave the step out, or give it optional = true")
    assert (f"tolerances = {{ {kind} = " in error.hint) is offered
