"""The steps by ONNX Runtime's own tools, done for real to small models."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final, Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from mutated_models import mutated
from number_samples import operators, picture, ran, random_feeds, recurrent, weights
from onnx_samples import model_of, relu, value
from ortrim.buildspec.step_specs import Float16, Optimize, Quantize
from ortrim.errors import ModelError
from ortrim.models.full_runtime import full_runtime
from ortrim.models.operators import NCHWC
from ortrim.pins.runtime import runtime_pins
from ortrim.steps.runtime_tools import float16, optimize, quantize
from ortrim.steps.step import Stepped, Workplace
from ortrim.steps.table import take_step
from refusing import refused

INSTALLED: Final = onnxruntime.__version__
STATIC: Final = Quantize(use="quantize", mode="static")


def place_for(model: onnx.ModelProto, folder: Path, version: str = INSTALLED) -> Workplace:
    runtime = full_runtime(version, runtime_pins(version).converter_requirements)
    working = folder / "folder"
    working.mkdir()
    cases = {"only": random_feeds(model)}
    return Workplace(runtime=runtime, folder=working, base=folder, where="small: step 1", cases=cases)


def layers() -> onnx.ModelProto:
    """Return two convolutions and a product, large enough to be quantized."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["c"], name="second"),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "m"], ["y"], name="product"),
    ]
    tensors = [weights("w", 8, 3, 3, 3), weights("v", 16, 8, 3, 3), weights("m", 16, 10)]
    return model_of(nodes, [value("x", shape=[1, 3, 12, 12])], [value("y", shape=[1, 10])], initializers=tensors)


def decibels(stepped: Stepped) -> float:
    (note,) = [each for each in stepped.notes if "dB over the noise" in each]
    return float(note.split(": ")[1].split(" ")[0])


def test_float16_halves_the_weights_and_keeps_inputs_and_outputs(tmp_path: Path) -> None:
    """The model still takes and gives floats of 32 bits, and the loss is reported."""
    model = layers()
    stepped = float16(deepcopy(model), Float16(use="float16"), place_for(model, tmp_path))
    assert stepped.model.ByteSize() < model.ByteSize() * 0.65
    (before,), (after,) = ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model))
    assert after.dtype == np.float32
    np.testing.assert_allclose(after, before, atol=0.02)
    assert (decibels(stepped) > 50, stepped.feeding) == (True, None)


def test_float16_changes_inputs_when_asked_and_leaves_what_is_blocked(tmp_path: Path) -> None:
    """Feeds follow the inputs; a blocked operator stays at 32 bits between casts."""
    model = layers()
    asked = Float16(use="float16", keep_io_types=False, blocked_operators=("MatMul",))
    stepped = float16(deepcopy(model), asked, place_for(model, tmp_path))
    assert stepped.feeding is not None
    assert stepped.feeding.back is not None
    feeds = stepped.feeding.forward(random_feeds(model))
    assert [array.dtype for array in feeds.values()] == [np.float16]
    assert [array.dtype for array in stepped.feeding.back(feeds).values()] == [np.float32]
    assert ran(stepped.model, dict(feeds))[0].dtype == np.float16
    assert stepped.notes[0] == "at 32 bits stayed: MatMul"
    assert "Cast" in operators(stepped.model.graph)


def test_float16_leaves_a_model_of_integers_alone(tmp_path: Path) -> None:
    shape = [1]
    model = model_of(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [value("x", onnx.TensorProto.INT64, shape)],
        [value("y", onnx.TensorProto.INT64, shape)],
    )
    place = place_for(relu(), tmp_path)
    place = Workplace(**{**vars(place), "cases": {"only": {"x": np.ones(1, np.int64)}}})
    stepped = float16(deepcopy(model), Float16(use="float16"), place)
    assert operators(stepped.model.graph) == ["Add"]
    assert stepped.notes == ()


@pytest.mark.parametrize("version", [INSTALLED, pytest.param("1.23.2", marks=pytest.mark.network)])
def test_static_quantization_is_calibrated_with_the_cases(tmp_path: Path, version: str) -> None:
    """Pairs of QuantizeLinear and DequantizeLinear, except around what is excluded, and the loss is reported."""
    model = layers()
    asked = Quantize(use="quantize", mode="static", per_channel=True, exclude=("product",))
    stepped = quantize(deepcopy(model), asked, place_for(model, tmp_path, version))
    found = operators(stepped.model.graph)
    assert {"QuantizeLinear", "DequantizeLinear"} <= set(found)
    assert [each.name for each in stepped.model.graph.initializer if each.name == "m"] == ["m"]
    assert stepped.notes[0] == "calibrated with 1 set of inputs"
    assert "7 bits" in stepped.notes[2]
    assert decibels(stepped) > 20


def test_calibration_data_may_be_files(tmp_path: Path) -> None:
    """`.npz` files beside the buildspec; histograms want one shape, and say so."""
    model = layers()
    place = place_for(model, tmp_path)
    for number, rows in enumerate((1, 1, 2)):
        np.savez(tmp_path / f"{number}.npz", x=np.random.default_rng(number).random((rows, 3, 12, 12), np.float32))
    data = tuple(Path(f"{number}.npz") for number in range(3))
    asked = Quantize(use="quantize", mode="static", data=data[:2], method="percentile", activations="int8")
    assert decibels(quantize(deepcopy(model), asked, place)) > 3
    with pytest.raises(ModelError) as caught:
        quantize(deepcopy(model), Quantize(use="quantize", mode="static", data=data, method="entropy"), place)
    assert caught.value.code == "step-failed"
    assert "same shapes" in caught.value.why


def test_calibration_data_without_an_input_are_refused(tmp_path: Path) -> None:
    model = layers()
    np.savez(tmp_path / "data.npz", z=np.zeros(1))
    with pytest.raises(ModelError) as caught:
        quantize(
            deepcopy(model),
            Quantize(use="quantize", mode="static", data=(Path("data.npz"),)),
            place_for(model, tmp_path),
        )
    assert "data.npz lacks the inputs x" in caught.value.why


def test_dynamic_quantization_takes_products_and_recurrences(tmp_path: Path) -> None:
    """An LSTM's weights need no calibration."""
    model = recurrent(direction="bidirectional")
    stepped = quantize(deepcopy(model), Quantize(use="quantize"), place_for(model, tmp_path))
    assert operators(stepped.model.graph) == ["DynamicQuantizeLSTM"]
    assert "1 DynamicQuantizeLSTM" in stepped.notes[0]


def chained(names: Sequence[str]) -> onnx.ModelProto:
    """Return two products with a chain of nodes between them that change nothing, they and their values so named."""
    between = [helper.make_node("Identity", [one], [other], name=other) for one, other in pairwise(["a", *names])]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        *between,
        helper.make_node("MatMul", [names[-1], "v"], ["y"], name="other"),
    ]
    tensors = [weights("w", 16, 16), weights("v", 16, 16)]
    return model_of(nodes, [value("x", shape=[1, 16])], [value("y", shape=[1, 16])], initializers=tensors)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_names_that_the_quantizer_invents_are_free_in_every_model(
    mode: Literal["static", "dynamic"], tmp_path: Path
) -> None:
    """It takes a value that is called so for its own, or makes another of the same name."""
    asked, plain = Quantize(use="quantize", mode=mode), chained([f"inner{number}" for number in range(40)])
    (tmp_path / "plain").mkdir()
    made = quantize(deepcopy(plain), asked, place_for(plain, tmp_path / "plain")).model
    invented = sorted(names_in(made) - names_in(plain))
    assert {"w_quantized", "w_scale"} <= set(invented)
    hostile = chained([*invented, *(f"inner{number}" for number in range(40 - len(invented)))])
    (tmp_path / "hostile").mkdir()
    stepped = quantize(deepcopy(hostile), asked, place_for(hostile, tmp_path / "hostile"))
    assert set(invented) <= names_in(stepped.model)
    np.testing.assert_array_equal(ran(stepped.model, random_feeds(plain))[0], ran(made, random_feeds(plain))[0])


def names_in(model: onnx.ModelProto) -> set[str]:
    tensors = {tensor.name for tensor in model.graph.initializer}
    return tensors | {name for node in model.graph.node for name in (node.name, *node.output)}


def test_a_model_with_nothing_to_quantize_is_refused(tmp_path: Path) -> None:
    """Convolutions have no kernel for signed weights when they are quantized dynamically: nothing would change."""
    model = picture()
    error = refused(ModelError, quantize, deepcopy(model), Quantize(use="quantize"), place_for(model, tmp_path))
    assert error.code == "nothing-quantized"


def test_optimisation_fuses_at_its_level_and_says_for_whom(tmp_path: Path) -> None:
    """`basic` keeps ONNX's own operators; `extended` fuses into ones that only ONNX Runtime has."""
    model = layers()
    place = place_for(model, tmp_path)
    basic = optimize(deepcopy(model), Optimize(use="optimize"), place)
    extended = optimize(deepcopy(model), Optimize(use="optimize", level="extended"), place)
    assert basic.notes == ()
    assert {node.domain for node in basic.model.graph.node} <= {"", "ai.onnx"}
    assert "1 FusedConv (com.microsoft)" in extended.notes[0]
    for stepped in (basic, extended):
        (before,), (after,) = ran(model, random_feeds(model)), list(_run(stepped.model, random_feeds(model)))
        np.testing.assert_allclose(after, before, atol=1e-4)


def _run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def test_optimisation_leaves_alone_what_is_optimal(tmp_path: Path) -> None:
    stepped = optimize(relu(), Optimize(use="optimize", level="extended"), place_for(relu(), tmp_path))
    assert operators(stepped.model.graph) == ["Relu"]
    assert stepped.notes == ()


@pytest.mark.parametrize(
    ("level", "version"), [("all", INSTALLED), pytest.param("layout", "1.23.2", marks=pytest.mark.network)]
)
def test_a_layout_is_for_processors_like_this_one(
    tmp_path: Path, level: Literal["layout", "all"], version: str
) -> None:
    """Convolutions with their channels in blocks are named, with what they are bound to; elsewhere there are none."""
    model = layers()
    stepped = optimize(deepcopy(model), Optimize(use="optimize", level=level), place_for(model, tmp_path, version))
    blocked = any(node.domain == NCHWC for node in stepped.model.graph.node)
    assert blocked == (platform.machine() == "x86_64")
    assert any("processors like this machine's" in note for note in stepped.notes) == blocked
    assert any(NCHWC in note and "CPUExecutionProvider" in note for note in stepped.notes) == blocked


def test_a_provider_that_the_wheel_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        optimize(relu(), Optimize(use="optimize", provider="QNNExecutionProvider"), place_for(relu(), tmp_path))
    assert "CPUExecutionProvider" in caught.value.why
    assert "QNNExecutionProvider" in caught.value.why


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("choices", [Float16(use="float16"), STATIC, Optimize(use="optimize", level="all")])
def test_a_changed_model_gives_a_result_or_a_diagnostic(
    tmp_path: Path, seed: int, choices: Float16 | Quantize | Optimize
) -> None:
    model = onnx.ModelProto.FromString(mutated(layers().SerializeToString(), Random(seed), 3))  # noqa: S311 - no secrets
    with suppress(ModelError):
        assert take_step(model, choices, place_for(layers(), tmp_path)).model.HasField("graph")
