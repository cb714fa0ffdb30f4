"""Cases that are found for models with states: a prompt, then runs that go on from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

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

pytestmark = pytest.mark.usefixtures("cache")

HEADS: Final = 2
HEAD: Final = 8
WIDTH: Final = HEADS * HEAD
VOCABULARY: Final = 50
PLACES: Final = 128
INT64: Final = TensorProto.INT64
LENGTHS: Final = ("past_sequence_length", "sequence_length", "total_sequence_length")
Attention = Literal["plain", "GroupQueryAttention", "MultiHeadAttention"]


def constant(name: str, values: Any, kind: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, kind), name)


def _weights() -> list[onnx.TensorProto]:
    random = np.random.default_rng(0)
    shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), (WIDTH, WIDTH))
    shapes |= {"words": (VOCABULARY, WIDTH), "places": (PLACES, WIDTH), "head": (WIDTH, VOCABULARY)}
    return [constant(name, random.standard_normal(shape) / WIDTH**0.5, np.float32) for name, shape in shapes.items()]


def built(text: str, *initializers: onnx.TensorProto, opset: int = 17) -> onnx.ModelProto:
    """Return a model in onnx's text format, with weights that it names."""
    head = f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]>'
    model = onnx.parser.parse_model(f"{head} graph {text}")
    model.graph.initializer.extend([*_weights(), constant("low", -10000.0, np.float32), *initializers])
    return model


def decoder(
    attention: Attention = "plain",
    *,
    opset: int = 17,
    lengths: tuple[str | None, str | None, str | None] = LENGTHS,
    rolled: bool = False,
) -> onnx.ModelProto:
    """Return a decoder of one layer whose cache grows; a `rolled` one takes the tokens in it one place too late."""
    past, new, total = (length or "?" for length in lengths)
    cache, grown = (f"float[batch_size, {HEADS}, {length}, {HEAD}]" for length in (past, total))
    text = f"""(
        int64[batch_size, {new}] input_ids, int64[batch_size, {total}] attention_mask,
        int64[batch_size, {new}] position_ids, {cache} "past_key_values.0.key", {cache} "past_key_values.0.value"
    ) => (
        float[batch_size, {new}, {VOCABULARY}] logits, {grown} "present.0.key", {grown} "present.0.value"
    ) <
        int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] most = {{{2**31}}},
        int64[4] to_heads = {{0, 0, {HEADS}, {HEAD}}}, int64[3] from_heads = {{0, 0, {WIDTH}}}, int64 index = {{1}}
    > {{
        word = Gather (words, input_ids)
        place = Gather (places, position_ids)
        x = Add (word, place)
        q = MatMul (x, wq) k = MatMul (x, wk) v = MatMul (x, wv)
        {ROLLED if rolled else ""}
        {ATTENTIONS[attention]}
        y = MatMul (z, wo)
        logits = MatMul (y, head)
    }}"""
    for name in ("key", "value"):
        text = text.replace(name.upper(), f"rolled_{name}" if rolled else f'"past_key_values.0.{name}"')
    return built(text, constant("scale", HEAD**-0.5, np.float32), opset=opset)


ROLLED: Final = """
    key_end = Slice ("past_key_values.0.key", one, most, two)
    key_start = Slice ("past_key_values.0.key", zero, one, two)
    rolled_key = Concat <axis = 2> (key_end, key_start)
    value_end = Slice ("past_key_values.0.value", one, most, two)
    value_start = Slice ("past_key_values.0.value", zero, one, two)
    rolled_value = Concat <axis = 2> (value_end, value_start)"""
# Each token sees those before it: the last rows of a triangle as large as the mask.
ATTENTIONS: Final[dict[Attention, str]] = {
    "plain": """
        q_rows = Reshape (q, to_heads)
        q_heads = Transpose <perm = [0, 2, 1, 3]> (q_rows)
        k_rows = Reshape (k, to_heads)
        k_heads = Transpose <perm = [0, 2, 1, 3]> (k_rows)
        v_rows = Reshape (v, to_heads)
        v_heads = Transpose <perm = [0, 2, 1, 3]> (v_rows)
        "present.0.key" = Concat <axis = 2> (KEY, k_heads)
        "present.0.value" = Concat <axis = 2> (VALUE, v_heads)
        turned = Transpose <perm = [0, 1, 3, 2]> ("present.0.key")
        products = MatMul (q_heads, turned)
        scores = Mul (products, scale)
        total = Shape <start = 1, end = 2> (attention_mask)
        past = Shape <start = 2, end = 3> (KEY)
        square = Concat <axis = 0> (total, total)
        whole = ConstantOfShape <value = int64[1] {1}> (square)
        triangle = Trilu <upper = 0> (whole)
        causal = Slice (triangle, past, total, zero)
        row = Unsqueeze (attention_mask, one)
        seen = Mul (row, causal)
        of_heads = Unsqueeze (seen, one)
        is_seen = Cast <to = 9> (of_heads)
        masked = Where (is_seen, scores, low)
        shares = Softmax <axis = -1> (masked)
        z_heads = MatMul (shares, "present.0.value")
        z_rows = Transpose <perm = [0, 2, 1, 3]> (z_heads)
        z = Reshape (z_rows, from_heads)""",
    "GroupQueryAttention": f"""
        lengths = ReduceSum <keepdims = 0> (attention_mask, one)
        before = Sub (lengths, one)
        seqlens_k = Cast <to = 6> (before)
        shape = Shape (attention_mask)
        length = Gather (shape, index)
        total = Cast <to = 6> (length)
        z, "present.0.key", "present.0.value" = com.microsoft.GroupQueryAttention
            <num_heads = {HEADS}, kv_num_heads = {HEADS}> (q, k, v, KEY, VALUE, seqlens_k, total)""",
    "MultiHeadAttention": f"""
        mask = Cast <to = 6> (attention_mask)
        z, "present.0.key", "present.0.value" = com.microsoft.MultiHeadAttention
            <num_heads = {HEADS}, unidirectional = 1> (q, k, v, "", mask, "", KEY, VALUE)""",
}


def counting_decoder(*, misplaced: bool = False) -> onnx.ModelProto:
    """Return a decoder with a cache of fixed size, and a counter of what is in it."""
    cache = f"float[{PLACES}, {WIDTH}]"
    text = f"""(
        int64[tokens] input_ids, int64[1] cache_len, {cache} cache_k, {cache} cache_v
    ) => (
        float[tokens, {VOCABULARY}] logits, int64[1] new_cache_len, {cache} new_cache_k, {cache} new_cache_v
    ) <int64[1] none = {{0}}, int64[1] one = {{1}}, int64 first = {{0}}, int64 step = {{1}}> {{
        x = Gather (words, input_ids)
        q = MatMul (x, wq) k = MatMul (x, wk) v = MatMul (x, wv)
        count = Shape (input_ids)
        how_many = Squeeze (count)
        numbers = Range (first, how_many, step)
        positions = Add (numbers, cache_len)
        written = Add (numbers, {"none" if misplaced else "cache_len"})
        rows = Unsqueeze (written, one)
        column = Unsqueeze (positions, one)
        new_cache_k = ScatterND (cache_k, rows, k)
        new_cache_v = ScatterND (cache_v, rows, v)
        turned = Transpose <perm = [1, 0]> (new_cache_k)
        scores = MatMul (q, turned)
        seen = LessOrEqual (all_places, column)
        masked = Where (seen, scores, low)
        shares = Softmax <axis = -1> (masked)
        z = MatMul (shares, new_cache_v)
        logits = MatMul (z, head)
        new_cache_len = Add (cache_len, count)
    }}"""
    return built(text, constant("all_places", [range(PLACES)]))


Shapes = tuple[tuple[int, ...], ...]


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
    assert list(shapes)[:5] == ["small", "larger", "step-2", "step-3", "step-4"]
    lengths = [(ids[1], mask[1], places[1], key[2]) for ids, mask, places, key, _ in shapes.values()]
    assert lengths[0] == (16, 16, 16, 0)
    assert lengths[2:7] == [(1, 17, 1, 16), (1, 18, 1, 17), (1, 19, 1, 18), (1, 1, 1, 0), (7, 7, 7, 0)]
    assert all(mask == past + new for new, mask, _, past in lengths)
    assert lengths[1][3] > 0
    assert found.warnings == ("77 of 128 entries of 'places' (Gather 'place') were never looked up: not proved",)
    spec = ModelSpec(name="m", path=model.path, cases=found.cases)
    made = {case.name: case.folder for case in cases_made(model, spec, tmp_path, lambda: runtime)}
    at = [info.name for info in model.facts.inputs].index("position_ids")
    first, second, third = (load_array(made[name] / f"input_{at:03}.npy") for name in ("small", "step-2", "step-3"))
    assert (first.tolist(), second.tolist(), third.tolist()) == ([[*range(16)]], [[16]], [[17]])
    fed = (
        "step-2 and step-3 and step-4: fed what the case before gave, past_key_values.0.key by present.0.key and 1 more"
    )
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
