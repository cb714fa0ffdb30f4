"""Cases that are found for models with states: a prompt, then runs that go on from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value
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


def decoder(
    attention: Attention = "plain",
    *,
    opset: int = 17,
    lengths: tuple[str | None, str | None, str | None] = LENGTHS,
    rolled: bool = False,
) -> onnx.ModelProto:
    """Return a decoder of one layer whose cache grows; a `rolled` one takes the tokens in it one place too late."""
    past, new, total = lengths
    make = helper.make_node
    nodes = [
        make("Gather", ["words", "input_ids"], ["word"]),
        make("Gather", ["places", "position_ids"], ["place"]),
        make("Add", ["word", "place"], ["x"]),
        *(make("MatMul", ["x", f"w{each}"], [each]) for each in "qkv"),
    ]
    taken = {"key": "past_key_values.0.key", "value": "past_key_values.0.value"}
    if rolled:
        for each, name in taken.items():
            nodes += [
                make("Slice", [name, "one", "most", "two"], [f"{each}_end"]),
                make("Slice", [name, "zero", "one", "two"], [f"{each}_start"]),
                make("Concat", [f"{each}_end", f"{each}_start"], [f"rolled_{each}"], axis=2),
            ]
        taken = {each: f"rolled_{each}" for each in taken}
    own = {"plain": _plain, "GroupQueryAttention": _group_query, "MultiHeadAttention": _multi_head}[attention]
    nodes += [
        *own(taken["key"], taken["value"]),
        make("MatMul", ["z", "wo"], ["y"]),
        make("MatMul", ["y", "head"], ["logits"]),
    ]
    numbers = {
        "zero": [0],
        "one": [1],
        "two": [2],
        "most": [2**31],
        "to_heads": [0, 0, HEADS, HEAD],
        "from_heads": [0, 0, WIDTH],
    }
    cache, grown = ("batch_size", HEADS, past, HEAD), ("batch_size", HEADS, total, HEAD)
    return model_of(
        nodes,
        [
            value("input_ids", INT64, ("batch_size", new)),
            value("attention_mask", INT64, ("batch_size", total)),
            value("position_ids", INT64, ("batch_size", new)),
            *(value(f"past_key_values.0.{each}", shape=cache) for each in ("key", "value")),
        ],
        [
            value("logits", shape=("batch_size", new, VOCABULARY)),
            *(value(f"present.0.{each}", shape=grown) for each in ("key", "value")),
        ],
        opsets=(("", opset), ("com.microsoft", 1)),
        initializers=[
            *_weights(),
            *(constant(name, values) for name, values in numbers.items()),
            constant("index", 1),
            constant("scale", HEAD**-0.5, np.float32),
            constant("low", -10000.0, np.float32),
        ],
    )


def _plain(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    nodes = []
    for each in "qkv":
        nodes += [
            make("Reshape", [each, "to_heads"], [f"{each}_rows"]),
            make("Transpose", [f"{each}_rows"], [f"{each}_heads"], perm=[0, 2, 1, 3]),
        ]
    return [
        *nodes,
        make("Concat", [key, "k_heads"], ["present.0.key"], axis=2),
        make("Concat", [values, "v_heads"], ["present.0.value"], axis=2),
        make("Transpose", ["present.0.key"], ["turned"], perm=[0, 1, 3, 2]),
        make("MatMul", ["q_heads", "turned"], ["products"]),
        make("Mul", ["products", "scale"], ["scores"]),
        # Each token sees those before it: the last rows of a triangle as large as the mask.
        make("Shape", ["attention_mask"], ["total"], start=1, end=2),
        make("Shape", [key], ["past"], start=2, end=3),
        make("Concat", ["total", "total"], ["square"], axis=0),
        make("ConstantOfShape", ["square"], ["whole"], value=constant("", [1])),
        make("Trilu", ["whole"], ["triangle"], upper=0),
        make("Slice", ["triangle", "past", "total", "zero"], ["causal"]),
        make("Unsqueeze", ["attention_mask", "one"], ["row"]),
        make("Mul", ["row", "causal"], ["seen"]),
        make("Unsqueeze", ["seen", "one"], ["of_heads"]),
        make("Cast", ["of_heads"], ["is_seen"], to=TensorProto.BOOL),
        make("Where", ["is_seen", "scores", "low"], ["masked"]),
        make("Softmax", ["masked"], ["shares"], axis=-1),
        make("MatMul", ["shares", "present.0.value"], ["z_heads"]),
        make("Transpose", ["z_heads"], ["z_rows"], perm=[0, 2, 1, 3]),
        make("Reshape", ["z_rows", "from_heads"], ["z"]),
    ]


PRESENT: Final = ["z", "present.0.key", "present.0.value"]


def _group_query(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    attention: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": HEADS, "domain": "com.microsoft"}
    return [
        make("ReduceSum", ["attention_mask", "one"], ["lengths"], keepdims=0),
        make("Sub", ["lengths", "one"], ["before"]),
        make("Cast", ["before"], ["seqlens_k"], to=TensorProto.INT32),
        make("Shape", ["attention_mask"], ["shape"]),
        make("Gather", ["shape", "index"], ["length"]),
        make("Cast", ["length"], ["total"], to=TensorProto.INT32),
        make("GroupQueryAttention", ["q", "k", "v", key, values, "seqlens_k", "total"], PRESENT, **attention),
    ]


def _multi_head(key: str, values: str) -> list[onnx.NodeProto]:
    make = helper.make_node
    attention: dict[str, Any] = {"num_heads": HEADS, "unidirectional": 1, "domain": "com.microsoft"}
    return [
        make("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32),
        make("MultiHeadAttention", ["q", "k", "v", "", "mask", "", key, values], PRESENT, **attention),
    ]


def counting_decoder(*, misplaced: bool = False) -> onnx.ModelProto:
    """Return a decoder with a cache of fixed size, and a counter of what is in it."""
    make = helper.make_node
    start = "none" if misplaced else "cache_len"
    nodes = [
        make("Gather", ["words", "input_ids"], ["x"]),
        *(make("MatMul", ["x", f"w{each}"], [each]) for each in "qkv"),
        make("Shape", ["input_ids"], ["count"]),
        make("Squeeze", ["count"], ["how_many"]),
        make("Range", ["first", "how_many", "step"], ["numbers"]),
        make("Add", ["numbers", "cache_len"], ["positions"]),
        make("Add", ["numbers", start], ["written"]),
        make("Unsqueeze", ["written", "one"], ["rows"]),
        make("Unsqueeze", ["positions", "one"], ["column"]),
        make("ScatterND", ["cache_k", "rows", "k"], ["new_cache_k"]),
        make("ScatterND", ["cache_v", "rows", "v"], ["new_cache_v"]),
        make("Transpose", ["new_cache_k"], ["turned"], perm=[1, 0]),
        make("MatMul", ["q", "turned"], ["scores"]),
        make("LessOrEqual", ["all_places", "column"], ["seen"]),
        make("Where", ["seen", "scores", "low"], ["masked"]),
        make("Softmax", ["masked"], ["shares"], axis=-1),
        make("MatMul", ["shares", "new_cache_v"], ["z"]),
        make("MatMul", ["z", "head"], ["logits"]),
        make("Add", ["cache_len", "count"], ["new_cache_len"]),
    ]
    cache = (PLACES, WIDTH)
    return model_of(
        nodes,
        [
            value("input_ids", INT64, ("tokens",)),
            value("cache_len", INT64, (1,)),
            *(value(f"cache_{each}", shape=cache) for each in "kv"),
        ],
        [
            value("logits", shape=("tokens", VOCABULARY)),
            value("new_cache_len", INT64, (1,)),
            *(value(f"new_cache_{each}", shape=cache) for each in "kv"),
        ],
        initializers=[
            *_weights(),
            *(constant(name, values) for name, values in {"none": [0], "one": [1], "first": 0, "step": 1}.items()),
            constant("all_places", [range(PLACES)]),
            constant("low", -10000.0, np.float32),
        ],
    )


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
