"""Cases that are found for models with states: a prompt, then runs that go on from it."""

from dataclasses import replace
from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest

from decoders import LENGTHS, Attention, counting_decoder, decoder
from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.errors import VerifyError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.cases import found as found_module
from ortrim.parity.cases.found import FoundCases, found_cases
from ortrim.parity.compare import compare
from ortrim.parity.inputs import Case, input_shapes, load_array
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import References, cases_made, reference_outputs

Shapes = tuple[tuple[int, ...], ...]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found in the cache that another test put there."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def runtime() -> FullRuntime:
    return full_runtime(onnxruntime.__version__, None)


def prepared(model: onnx.ModelProto, path: Path) -> PreparedModel:
    onnx.checker.check_model(model)
    onnx.save_model(model, path)
    return PreparedModel(name="m", path=path, facts=facts_of(model, sha256_of(path), path.stat().st_size, "here"))


def shapes_of(model: PreparedModel, found: FoundCases, runtime: FullRuntime) -> dict[str, Shapes]:
    spec = ModelSpec(name="m", path=model.path, cases=found.cases)
    made = cases_made(model, spec, model.path.parent, lambda: runtime)
    return {case.name: input_shapes(model.facts, case) for case in made}


def told_apart(
    model: PreparedModel, mutant: PreparedModel, cases: tuple[CaseSpec, ...], runtime: FullRuntime
) -> set[str]:
    folder = model.path.parent
    made = cases_made(model, ModelSpec(name="m", path=model.path, cases=cases), folder, lambda: runtime)
    outputs = [reference_outputs(each, made, runtime, folder / "references") for each in (model, mutant)]
    return {each.case for each in compare("m", outputs[0], outputs[1], {}) if each.verdict is Verdict.FAIL}


Names = tuple[str | None, str | None, str | None]
MEANINGLESS: Names = ("s1", "s2", "s3")
UNNAMED: Names = (None, None, None)
KINDS: list[tuple[Attention, int, Names]] = [
    ("plain", 17, LENGTHS),
    ("plain", 21, MEANINGLESS),
    ("GroupQueryAttention", 17, LENGTHS),
    ("GroupQueryAttention", 19, UNNAMED),
    ("MultiHeadAttention", 18, LENGTHS),
]


@pytest.mark.parametrize(("attention", "opset", "names"), KINDS)
def test_a_decoder_reads_a_prompt_and_single_tokens(
    tmp_path: Path, runtime: FullRuntime, attention: Attention, opset: int, names: Names
) -> None:
    """The mask is as long as the cache and the new tokens; each step has the cache that the one before left."""
    model = prepared(decoder(attention, opset=opset, lengths=names), tmp_path / "m.onnx")
    found = found_cases(model, runtime, lambda _: None)
    shapes = shapes_of(model, found, runtime)
    assert list(shapes)[:4] == ["small", "larger", "step-2", "step-3"]
    lengths = [(ids[1], mask[1], places[1], key[2]) for ids, mask, places, key, _ in shapes.values()]
    assert lengths[0] == (16, 16, 16, 0)
    assert lengths[2:4] == [(1, 17, 1, 16), (1, 18, 1, 17)]
    assert all(mask == past + new for new, mask, _, past in lengths)
    assert lengths[1][3] > 0
    assert found.warnings == ("78 of 128 entries of 'places' (Gather 'place') were never looked up: not proved",)
    spec = ModelSpec(name="m", path=model.path, cases=found.cases)
    made = {case.name: case.folder for case in cases_made(model, spec, tmp_path, lambda: runtime)}
    at = [info.name for info in model.facts.inputs].index("position_ids")
    first, second, third = (load_array(made[name] / f"input_{at:03}.npy") for name in ("small", "step-2", "step-3"))
    assert (first.tolist(), second.tolist(), third.tolist()) == ([[*range(16)]], [[16]], [[17]])
    fed = "step-2 and step-3: fed what the case before gave, past_key_values.0.key by present.0.key and 1 more"
    assert fed in found.reasons


def test_tokens_in_the_cache_are_read(tmp_path: Path, runtime: FullRuntime) -> None:
    model, mutant = (
        prepared(decoder("GroupQueryAttention", rolled=rolled), tmp_path / f"{rolled}.onnx") for rolled in (False, True)
    )
    found = found_cases(model, runtime, lambda _: None)
    assert told_apart(model, mutant, found.cases, runtime) >= {"larger", "step-2", "step-3"}
    sizes = {"sequence_length": 16, "total_sequence_length": 16, "past_sequence_length": 16}
    blind = CaseSpec(name="blind", dimensions=sizes, inputs={"attention_mask": InputSpec(value=1)})
    assert told_apart(model, mutant, (blind, replace(blind, name="blinder", seed=1)), runtime) == set()


def test_a_cache_that_is_written_at_the_wrong_place_is_told_by_what_comes_after(
    tmp_path: Path, runtime: FullRuntime
) -> None:
    """By no other case: in each the counter of what is in the cache begins at 0, as for a first run."""
    model, mutant = (
        prepared(counting_decoder(misplaced=misplaced), tmp_path / f"{misplaced}.onnx") for misplaced in (False, True)
    )
    found = found_cases(model, runtime, lambda _: None)
    assert told_apart(model, mutant, found.cases, runtime) == {"step-2", "step-3"}
    assert {case.name for case in found.cases if case.after} == {"step-2", "step-3"}
    spec = ModelSpec(name="m", path=model.path, cases=found.cases)
    made = {case.name: case.folder for case in cases_made(model, spec, tmp_path, lambda: runtime)}
    counts = [load_array(made[name] / "input_001.npy").tolist() for name in ("small", "step-2", "step-3")]
    assert counts == [[0], [16], [17]]


OPSETS = '<ir_version: 8, opset_import: ["": 17]>'
NOISY = """m (float[1, past, 4] past_kv, float[1, s2, 4] x, float[1, s3, 4] noise)
    => (float[1, t, 4] y, float[1, t, 4] present_kv)
    { present_kv = Concat <axis = 1> (past_kv, x) y = Mul (present_kv, noise) }"""


def test_a_sum_that_no_name_tells_is_found_by_trying(tmp_path: Path, runtime: FullRuntime) -> None:
    """The runtime's refusal names a size that runs; that others run which are sums, and no others, shows the rule."""
    model = prepared(onnx.parser.parse_model(OPSETS + NOISY), tmp_path / "m.onnx")
    found = found_cases(model, runtime, lambda _: None)
    shapes = shapes_of(model, found, runtime)
    assert all(noise[1] == past[1] + new[1] for past, new, noise in shapes.values())
    assert {"step-2", "step-3"} <= set(shapes)
    assert "s3: the sum of past and s2" in found.reasons


def test_what_cannot_be_fed_is_said(tmp_path: Path, runtime: FullRuntime) -> None:
    text = "m (float[2] state) => (float16[2] state_out, float[2] y) { y = Sin (state) state_out = Cast <to = 10> (y) }"
    found = found_cases(prepared(onnx.parser.parse_model(OPSETS + text), tmp_path / "m.onnx"), runtime, lambda _: None)
    assert [case.after for case in found.cases] == [None, None]
    (warning,) = (each for each in found.warnings if "fed" in each)
    assert warning.startswith("no case is fed what another gave, since the model did not run on it: ")
    assert "float16" in warning


@pytest.mark.parametrize(("refused", "kept"), [("step", ["first", "second"]), ("second", ["first"])])
def test_steps_that_lead_where_the_model_cannot_go_are_left_out_first(
    tmp_path: Path, runtime: FullRuntime, monkeypatch: pytest.MonkeyPatch, refused: str, kept: list[str]
) -> None:
    """Their random values are not those of the search."""
    real = reference_outputs

    def outputs(model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, folder: Path) -> References:
        if any(case.name.startswith(refused) for case in cases):
            raise VerifyError("reference-failed", "does not run")
        return real(model, cases, runtime, folder)

    monkeypatch.setattr(found_module, "reference_outputs", outputs)
    text = "m (float[2] x, float[2] state) => (float[2] state_out) { state_out = Add (x, state) }"
    found = found_cases(prepared(onnx.parser.parse_model(OPSETS + text), tmp_path / "m.onnx"), runtime, lambda _: None)
    assert [case.name for case in found.cases] == kept
