"""Products whose factors kernels round to 8 bits: judged by their distance from floats, and by the same with floats."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from ortrim.buildspec.buildspec import ModelSpec, SessionSpec, settings_of
from ortrim.buildspec.tolerances import SAME_GRAPH
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.compare import IN_FLOATS, with_float_products
from ortrim.parity.float_products import with_float_products as float_copies
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import Coverage, OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, References, SavedOutputs
from ortrim.parity.runner import SavedOutput
from ortrim.verify.target import ModelUnderTest, judged_outputs
from small_decoders import CACHES, GROUPS, HEAD, WORDS, small_decoder

Feeds = Mapping[str, NDArray[Any]]
Damage = Callable[[onnx.ModelProto], None]
PROMPTS: Final = (1, 7, 16)
STEPS: Final = 3


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def cases_of(model: onnx.ModelProto) -> dict[str, Feeds]:
    """Return prompts, and single tokens after each with the cache that the model gave."""
    session, draw = session_of(model), np.random.default_rng(1)
    found: dict[str, Feeds] = {}
    for prompt in PROMPTS:
        past = [np.zeros((1, GROUPS, 0, HEAD), np.float32)] * len(CACHES)
        for step in range(1 + STEPS):
            words = draw.integers(0, WORDS, (1, prompt if step == 0 else 1))
            mask = np.ones((1, past[0].shape[2] + words.shape[1]), np.int64)
            caches = {f"past_key_values.{name}": values for name, values in zip(CACHES, past, strict=True)}
            found[f"{prompt}-{step}"] = {"input_ids": words, "attention_mask": mask, **caches}
            _, *past = session.run(None, found[f"{prompt}-{step}"])
    return found


def saved(model: onnx.ModelProto, cases: Mapping[str, Feeds], folder: Path, **facts: Any) -> References:
    session, made = session_of(model), []
    for case, feeds in cases.items():
        (folder / case).mkdir(parents=True)
        outputs = []
        for info, values in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            file = save_array(folder / case, info.name, values).name
            outputs.append(SavedOutput(name=info.name, element_type="float32", shape=values.shape, file=file))
        made.append(CaseOutputs(name=case, outputs=tuple(outputs)))
    return References(folder=folder, cases=tuple(made), coverage=Coverage(nodes=1, executed=1), **facts)


def weights_of(model: onnx.ModelProto, ending: str) -> list[onnx.TensorProto]:
    return [each for each in model.graph.initializer if each.name.endswith(ending)]


def change(tensor: onnx.TensorProto, changed: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(changed(array.copy()).astype(array.dtype), tensor.name))


def rounds_otherwise(model: onnx.ModelProto) -> None:
    """Stand for other kernels: what is given to products differs in its last bits, and so in the levels it takes."""
    (words,) = weights_of(model, "words")
    change(words, lambda values: values * (1 + 2.0**-20 * np.random.default_rng(2).choice([-1, 1], values.shape)))


def scale_of_one_block(number: int) -> Damage:
    def damage(model: onnx.ModelProto) -> None:
        def changed(scales: NDArray[Any]) -> NDArray[Any]:
            scales.reshape(-1)[scales.size // 2] *= 1.05
            return scales

        change(weights_of(model, "_scales")[number], changed)

    return damage


def zero_point_of_one_block(number: int) -> Damage:
    def damage(model: onnx.ModelProto) -> None:
        def changed(points: NDArray[Any]) -> NDArray[Any]:
            points.reshape(-1)[points.size // 2] ^= 1
            return points

        change(weights_of(model, "_zero_points")[number], changed)

    return damage


def places_off_by_one(model: onnx.ModelProto) -> None:
    # What is in the cache stays turned as it was: were that turned on, too, nothing would change.
    for name in ("cosines", "sines"):
        change(weights_of(model, name)[0], lambda rows: np.roll(rows, -1, axis=0))


def cache_off_by_one(model: onnx.ModelProto) -> None:
    bounds = {"one": [1], "none": [0], "end": [2**31], "place": [2]}
    for name, values in bounds.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), f"rolled_{name}"))
    for cache in CACHES:
        name = f"past_key_values.{cache}"
        for node in model.graph.node:
            node.input[:] = [f"rolled.{cache}" if each == name else each for each in node.input]
        make = helper.make_node
        rolled = [
            make("Slice", [name, "rolled_one", "rolled_end", "rolled_place"], [f"last.{cache}"]),
            make("Slice", [name, "rolled_none", "rolled_one", "rolled_place"], [f"first.{cache}"]),
            make("Concat", [f"last.{cache}", f"first.{cache}"], [f"rolled.{cache}"], axis=2),
        ]
        nodes = [*rolled, *model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)


PRODUCTS: Final = 15
DAMAGES: Final[Mapping[str, Damage]] = {
    **{f"a scale of product {number}": scale_of_one_block(number) for number in range(PRODUCTS)},
    **{f"a zero point of product {number}": zero_point_of_one_block(number) for number in range(PRODUCTS)},
    "places": places_off_by_one,
    "cache": cache_off_by_one,
}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The decoder as it is given and with products of floats, its cases, and what the full runtime gives of both."""

    models: tuple[onnx.ModelProto, onnx.ModelProto]
    cases: Mapping[str, Feeds]
    subject: ModelUnderTest

    def judged(self, damage: Damage, folder: Path) -> tuple[OutputParity, ...]:
        """Judge a library that rounds otherwise than the full runtime, and is damaged besides."""
        parities: list[tuple[OutputParity, ...]] = []
        for model, subject in zip(self.models, (self.subject, self.subject.float_products), strict=True):
            assert subject
            damaged = deepcopy(model)
            rounds_otherwise(damaged)
            damage(damaged)
            ours = saved(damaged, self.cases, folder / f"{len(parities)}")
            parities.append(judged_outputs(subject, ours, SAME_GRAPH))
        return with_float_products(*parities)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("bench")
    models = small_decoder(), small_decoder(accuracy_level=0)
    cases = cases_of(models[0])
    spec = ModelSpec(name="decoder", path=Path("decoder.onnx"))

    def subject(number: int, **more: Any) -> ModelUnderTest:
        outputs = saved(models[number], cases, folder / f"{number}", quantized=number == 0)
        settings = settings_of(SessionSpec(), style="fixed", reads_in_place=True)
        prepared = prepared_in(models[number], folder / f"{number}.onnx")
        converted: Any = None
        return ModelUnderTest(
            prepared=prepared, converted=converted, spec=spec, cases=(), reference=outputs, same_graph=outputs,
            session=settings, **more,
        )  # fmt: skip

    return Bench(models=models, cases=cases, subject=subject(0, float_products=subject(1)))


def prepared_in(model: onnx.ModelProto, path: Path) -> PreparedModel:
    onnx.save(model, path)
    return PreparedModel(name="decoder", path=path, facts=facts_of(model, "a" * 64, path.stat().st_size, "here"))


def failing(parity: tuple[OutputParity, ...]) -> list[OutputParity]:
    return [each for each in parity if each.verdict is Verdict.FAIL]


def test_a_library_that_rounds_otherwise_is_as_near_to_floats(bench: Bench, tmp_path: Path) -> None:
    """By the bounds of the same graph alone it would fail, as it did."""
    assert len(weights_of(bench.models[0], "_scales")) == PRODUCTS
    found = bench.judged(lambda _: None, tmp_path)
    assert failing(found) == []
    ours = SavedOutputs(folder=tmp_path / "0", cases=bench.subject.reference.cases)
    strict = judged_outputs(replace(bench.subject, float_products=None), ours, SAME_GRAPH)
    assert {each.output for each in failing(strict)} >= {"logits"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_that_rounding_would_hide_is_caught(bench: Bench, tmp_path: Path, damage: str) -> None:
    """One scale of one block by 5 %, one zero point by one, turned by the place before, a cache off by one."""
    found = failing(bench.judged(DAMAGES[damage], tmp_path))
    assert found
    assert damage in {"places", "cache"} or any(IN_FLOATS in each.reason for each in found)


def test_a_coarser_rounding_is_caught(bench: Bench, tmp_path: Path) -> None:
    """By the distance alone: half of the levels double it, and the model with floats has nothing of it."""
    ours = bench.subject.float_products
    assert ours
    exact = ours.reference
    for case in exact.cases:
        (tmp_path / case.name).mkdir()
        for output in case.outputs:
            one, other = (
                np.load(each.folder / case.name / str(output.file)) for each in (exact, bench.subject.same_graph)
            )
            save_array(tmp_path / case.name, output.name, one + 2 * (other - one))
    coarse = SavedOutputs(folder=tmp_path, cases=exact.cases)
    found = failing(judged_outputs(bench.subject, coarse, SAME_GRAPH))
    assert {each.output for each in found} >= {"logits", "present.1.key", "present.1.value"}


def test_the_model_that_ships_is_copied_with_products_of_floats(bench: Bench, tmp_path: Path) -> None:
    """Both copies give what the model gives that never asked for rounding, and damage of the shipped one is in its."""
    runtime = full_runtime(onnxruntime.__version__, None)
    prepared = prepared_in(bench.models[0], tmp_path / "decoder.onnx")
    conversion = Conversion(style="fixed", level="extended", layout="plain")
    converted: OrtModel = convert(prepared, conversion, runtime=runtime, root=tmp_path / "conversions")
    made = float_copies(prepared, converted, tmp_path / "copies")
    assert made is not None
    assert float_copies(prepared_in(bench.models[1], tmp_path / "floats.onnx"), converted, tmp_path) is None
    for feeds in bench.cases.values():
        expected = session_of(bench.models[1]).run(None, feeds)
        for path in (made[0].path, made[1].path):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            found = onnxruntime.InferenceSession(path, options).run(None, feeds)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
