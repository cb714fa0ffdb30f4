"""Cases that come after another: what that gave becomes the inputs that it feeds."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.errors import ExitCode, SpecError
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel, TensorInfo
from ortrim.models.onnx_files import facts_of
from ortrim.parity.inputs import Case, load_array, make_cases, save_array
from ortrim.parity.reference import CaseOutputs, SavedOutputs, cases_made, reference_outputs
from ortrim.parity.runner import SavedOutput
from refusing import refused

MakeModel = Callable[..., PreparedModel]
Fed = Callable[..., dict[str, Any]]
PAST = ("past.0", "float32", ("batch", "past", 2))
PRESENT = TensorInfo(name="present.0", element_type="float32", shape=("batch", "total", 2))


@pytest.fixture
def fed(make_model: MakeModel, tmp_path: Path) -> Fed:
    """Return a function that makes case `next`, after `first`, which gives `given`, and reads its inputs."""

    def make(infos: tuple[Any, ...], output: TensorInfo, given: Any, **choices: Any) -> dict[str, Any]:
        model = make_model(*infos)
        model = replace(model, facts=replace(model.facts, outputs=(output,)))
        kind = "bfloat16" if output.element_type == "bfloat16" else given.dtype.name

        def run(case: Case) -> SavedOutputs:
            place = tmp_path / "ran" / case.name
            place.mkdir(parents=True, exist_ok=True)
            file = save_array(place, "output_000", given).name
            saved = SavedOutput(name=output.name, element_type=kind, shape=given.shape, file=file)
            return SavedOutputs(folder=tmp_path / "ran", cases=(CaseOutputs(name=case.name, outputs=(saved,)),))

        cases = (CaseSpec(name="next", after="first", **choices), CaseSpec(name="first"))
        spec = ModelSpec(name="tiny", path=Path("tiny.onnx"), cases=cases)
        after, _ = make_cases(model, spec, tmp_path, tmp_path / "cases", run)
        files = sorted(after.folder.glob("input_*"))
        return dict(zip([name for name, _, _ in infos], map(load_array, files), strict=True))

    return make


def test_a_state_is_what_the_case_before_gave(fed: Fed) -> None:
    """Also of a case that stands further down; its sizes are those of the dimensions that have the same name."""
    given = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    found = fed((("new", "float32", ("batch", "seq")), PAST), PRESENT, given, dimensions={"seq": 4})
    assert np.array_equal(found["past.0"], given)
    assert found["new"].shape == (3, 4)


@pytest.mark.parametrize(
    ("name", "output", "kind", "given"),
    [
        ("past.0", "present.0", "bfloat16", np.arange(4, dtype=np.uint16)),
        ("cached_len", "new_cached_len", "int64", np.array([7])),
    ],
)
def test_bits_of_bfloat16_and_integers_are_states_too(fed: Fed, name: str, output: str, kind: str, given: Any) -> None:
    """A cache in bfloat16, and how many tokens are in it."""
    found = fed(((name, kind, given.shape),), TensorInfo(name=output, element_type=kind, shape=given.shape), given)
    assert np.array_equal(found[name], given)


def test_what_the_case_itself_gives_is_not_fed(fed: Fed) -> None:
    """So that a pair that is none can be undone."""
    inputs = (PAST, ("past.1", "float32", (1,)))
    given = np.ones((1, 2, 2), np.float32)
    found = fed(inputs, PRESENT, given, inputs={"past.1": InputSpec(value=3.0)})
    assert (found["past.0"].tolist(), found["past.1"].tolist()) == (given.tolist(), [3.0])


HALF = np.ones((1, 2, 2), np.float16)
WRONG: dict[str, tuple[Any, TensorInfo, dict[str, Any], str]] = {
    "a size that the case gives": (
        np.ones((1, 2, 2), np.float32),
        PRESENT,
        {"dimensions": {"past": 5}},
        "it is float32 [1, 2, 2]; the input takes float32 [batch, 5, 2]",
    ),
    "a fixed size": (
        np.ones((1, 2, 3), np.float32),
        PRESENT,
        {},
        "it is float32 [1, 2, 3]; the input takes float32 [batch, past, 2]",
    ),
    "a rank": (np.ones((2, 2), np.float32), PRESENT, {}, "it is float32 [2, 2]; the input takes"),
    "a type": (HALF, replace(PRESENT, element_type="float16"), {}, "it is float16 [1, 2, 2]; the input takes float32"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_output_that_does_not_fit_is_refused(fed: Fed, tmp_path: Path, kind: str) -> None:
    """With both shapes and types, before anything is compiled; nothing is left of the case."""
    given, output, choices, words = WRONG[kind]
    with pytest.raises(SpecError) as caught:
        fed((PAST,), output, given, **choices)
    error = caught.value
    assert (error.code, error.exit_code, error.where) == (
        "state-mismatch",
        ExitCode.SPEC,
        "model 'tiny', case 'next'",
    )
    assert error.what == "output 'present.0' of case 'first' does not fit the input 'past.0' that it feeds"
    assert error.why.startswith(words)
    assert not list((tmp_path / "cases").glob("next-*"))


@pytest.mark.parametrize(
    ("output", "choices", "words"),
    [
        (replace(PRESENT, name="logits"), {}, "such as past_key_values.0.key and present.0.key"),
        (PRESENT, {"inputs": {"past.0": InputSpec(value=0.0)}}, "; the case itself gives past.0"),
    ],
    ids=["no pair", "undone"],
)
def test_a_case_that_nothing_feeds_is_refused(
    fed: Fed, output: TensorInfo, choices: dict[str, Any], words: str
) -> None:
    """It would prove what it proves without `after`."""
    error = refused(SpecError, fed, (PAST,), output, np.ones((1, 2, 2), np.float32), **choices)
    assert error.code == "nothing-fed"
    assert error.what == "no output of case 'first' feeds an input of this one"
    assert error.why.endswith(words)


COUNTER = """<ir_version: 8, opset_import: ["": 17]>
m (float[1] x, float[1] state) => (float[1] y, float[1] state_out) {
    state_out = Add (state, x) y = Mul (state_out, x) }"""


def test_three_steps_in_the_full_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each adds to what the ones before left; another first case makes other digests of all that come after."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    made = onnx.parser.parse_model(COUNTER)
    path = tmp_path / "m.onnx"
    onnx.save_model(made, path)
    model = PreparedModel(name="m", path=path, facts=facts_of(made, sha256_of(path), 1, "here"))
    runtime = full_runtime(onnxruntime.__version__, None)

    def chain(first: float) -> tuple[Case, ...]:
        x = {"x": InputSpec(value=first)}
        cases = (
            CaseSpec(name="one", inputs={**x, "state": InputSpec(value=0.0)}),
            CaseSpec(name="two", after="one", inputs=x),
            CaseSpec(name="three", after="two", inputs=x),
        )
        return cases_made(model, ModelSpec(name="m", path=path, cases=cases), tmp_path, lambda: runtime)

    cases = chain(2.0)
    found = reference_outputs(model, cases, runtime, tmp_path / "references")
    files = [found.folder / case.name / (case.outputs[1].file or "") for case in found.cases]
    states = map(load_array, files)
    assert [state.tolist() for state in states] == [[2.0], [4.0], [6.0]]
    assert all(one.digest != other.digest for one, other in zip(cases, chain(3.0), strict=True))


def test_pairs_that_no_name_tells_are_given_by_the_case(fed: Fed) -> None:
    """Numbers count up from as many tokens as the state holds."""
    inputs = (PAST, ("places", "int64", ("batch", "seq")))
    given = np.ones((2, 5, 2), np.float32)
    output = TensorInfo(name="kept", element_type="float32", shape=("batch", "total", 2))
    choices = {
        "states": {"past.0": "kept"},
        "inputs": {"places": InputSpec(count_from="past")},
        "dimensions": {"seq": 3},
    }
    found = fed(inputs, output, given, **choices)
    assert np.array_equal(found["past.0"], given)
    assert found["places"].tolist() == [[5, 6, 7]] * 2


@pytest.mark.parametrize(
    ("choices", "code", "words"),
    [
        ({"states": {"past.1": "present.0"}}, "unknown-input", "did you mean 'past.0'?"),
        ({"states": {"past.0": "present"}}, "unknown-output", "did you mean 'present.0'?"),
        ({"inputs": {"past.0": InputSpec(count_from="pasts")}}, "unknown-dimension", "did you mean 'past'?"),
    ],
)
def test_a_name_that_the_model_lacks_is_refused(fed: Fed, choices: Any, code: str, words: str) -> None:
    """Of either side of a pair, and of what numbers count from."""
    error = refused(SpecError, fed, (PAST,), PRESENT, np.ones((1, 1, 2), np.float32), **choices)
    assert (error.code, error.hint) == (code, words)
