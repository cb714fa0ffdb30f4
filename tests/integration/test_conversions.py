"""Models whose outputs conversion changes, and sessions that a converted model does not stand."""

import io
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from onnx_samples import model_of, relu, value, write
from ortrim.analysis.compat import check_compatibility
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import IN_PLACE, BuildSpec, CaseSpec, InputSpec, ModelSpec, SessionSpec, settings_of
from ortrim.buildspec.tolerances import Tolerance
from ortrim.errors import VerifyError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import prepare
from ortrim.parity.reference import cases_made
from ortrim.planning.conversions import changed_outputs, lower_level, subject_of
from ortrim.planning.first_spec import FirstChoices, first_spec
from ortrim.verify.target import ModelUnderTest

pytestmark = pytest.mark.usefixtures("cache")

RUNTIME: Final = full_runtime(onnxruntime.__version__, None)
IMAGE: Final = (1, 3, 8, 8)


def quantized(inner: list[onnx.NodeProto], scale: float, extra: dict[str, Any]) -> onnx.ModelProto:
    numbers = {"s": np.float32(scale), "z": np.uint8(128), **extra}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        *inner,
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "s", "z"], ["y"]),
    ]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in numbers.items()]
    outputs = [value("y", shape=(1, 3, None, None))]
    return model_of(nodes, [value("x", shape=IMAGE)], outputs, initializers=tensors)


def resize(mode: str, scale: float) -> onnx.ModelProto:
    node = helper.make_node("Resize", ["xd", "", "factors"], ["r"], mode=mode)
    return quantized([node], scale, {"factors": np.array([1, 1, 2, 2], np.float32)})


def convolution() -> onnx.ModelProto:
    """Return a Conv whose int32 bias has another scale than the products."""
    random = np.random.default_rng(1)
    numbers = {
        "w": random.integers(-127, 127, (3, 3, 1, 1)).astype(np.int8), "ws": np.float32(0.02), "wz": np.int8(0),
        "b": random.integers(-3000, 3000, 3).astype(np.int32), "bs": np.float32(0.1), "bz": np.int32(0),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["r"]),
    ]
    return quantized(nodes, 0.5, numbers)


def sparse(*, constant: bool) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    places = np.sort(random.choice(64 * 32, 120, replace=False)).astype(np.int64)
    values = numpy_helper.from_array(random.standard_normal(120).astype(np.float32), "" if constant else "w")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(places, ""), [64, 32])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
    model = model_of(nodes, [value("x", shape=(4, 64))], [value("y", shape=(4, 32))])
    if not constant:
        model.graph.sparse_initializer.append(tensor)
    return model


MODELS: Final = {
    "coarse": lambda: resize("linear", 30),
    "cubic": lambda: resize("cubic", 0.01),
    "bias": convolution,
    "sparse": lambda: sparse(constant=False),
    "sparse constant": lambda: sparse(constant=True),
    "relu": relu,
}
CHANGED: Final = {
    "coarse": "changes output 'y' of case 'first': the root mean square",
    "bias": "changes output 'y' of case 'first': the root mean square",
    "cubic": "fails: RuntimeException",
}


def given(model: onnx.ModelProto, folder: Path) -> tuple[PreparedModel, ModelSpec]:
    case = CaseSpec(name="first", inputs={"x": InputSpec(low=-30, high=30)})
    spec = ModelSpec(name="m", path=write(folder / "m.onnx", model), layout="plain", cases=(case,))
    return prepare(spec, base=folder, root=folder / "copies", ort_version=RUNTIME.version, where="m"), spec


def under_test(prepared: PreparedModel, spec: ModelSpec, session: SessionSpec | None = None) -> ModelUnderTest:
    """Return a model with its outputs, converted as the buildspec says."""
    conversion = Conversion(style=spec.style, level=spec.level)
    converted = convert(prepared, conversion, runtime=RUNTIME, root=cache_folder("conversions"))
    settings = settings_of(session or SessionSpec(), style=spec.style, reads_in_place=converted.reads_in_place)
    cases = cases_made(prepared, spec, Path(), lambda: RUNTIME)
    return subject_of(prepared, converted, spec, settings, cases, runtime=RUNTIME)


@pytest.mark.parametrize("name", ["coarse", "cubic", "bias", "relu"])
def test_the_highest_level_that_keeps_the_outputs_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the usual level changes them, or makes a model that does not even run; elsewhere none is looked for.

    On any processor: where int8 saturates, none is looked for because of outputs alone.
    """
    monkeypatch.setattr("ortrim.planning.conversions.saturates_here", lambda: False)
    prepared, spec = given(MODELS[name](), tmp_path)
    cases = cases_made(prepared, spec, Path(), lambda: RUNTIME)
    found = lower_level(prepared, spec, cases, RUNTIME, profile=None)
    if name in CHANGED:
        assert found is not None
        assert found[0] == "basic"
        assert found[1].startswith(CHANGED[name])
    else:
        assert found is None


def test_a_conversion_that_changes_outputs_is_refused_with_the_level_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bounds of the final comparison, which a buildspec may widen."""
    prepared, spec = given(MODELS["bias"](), tmp_path)
    whole = BuildSpec(name="b", models=(spec,))
    subject = under_test(prepared, spec)
    (error,) = changed_outputs([subject], whole, RUNTIME, here=True)
    assert (error.code, error.where) == ("conversion-changes-outputs", "model 'm'")
    assert 'level = "basic"' in error.hint
    wide = replace(spec, tolerances={"float32": Tolerance(absolute=1e9, rms=1e9, cosine=-1)})
    for fine in (wide, replace(spec, level="basic")):
        assert changed_outputs([under_test(prepared, fine)], whole, RUNTIME, here=True) == ()
    for saturates in (True, False):
        monkeypatch.setattr("ortrim.planning.conversions.saturates_here", lambda it=saturates: it)
        assert bool(changed_outputs([subject], whole, RUNTIME, here=False)) is not saturates


CONTRARY: Final = SessionSpec(
    load="bytes", prepacking=False, arena=False, memory_pattern=False, threads=2, inter_op_threads=2, spinning=True
)


@pytest.mark.parametrize("name", ["sparse", "sparse constant"])
def test_a_model_runs_in_the_full_runtime_as_its_package_has_it(name: str, tmp_path: Path) -> None:
    """Whatever the session switches on, by default or by the buildspec; what the model does not stand is refused."""
    prepared, spec = given(MODELS[name](), tmp_path)
    subjects = [under_test(prepared, spec, session) for session in (SessionSpec(), CONTRARY)]
    assert [subject.converted.reads_in_place for subject in subjects] == [False, False]
    assert changed_outputs(subjects, BuildSpec(name="b", models=(spec,)), RUNTIME, here=True) == ()
    for refused in (spec, replace(spec, layout="nchwc8")):
        with pytest.raises(VerifyError) as caught:
            under_test(prepared, refused, SessionSpec(in_place=True))
        assert caught.value.code == "shipped-session-fails"
        assert caught.value.hint == "leave in_place = true out of its session"


@pytest.mark.parametrize("width", [4, 64, 1024])
def test_weights_that_are_read_in_place_are_there_in_each_run(width: int, tmp_path: Path) -> None:
    """The bytes that Python's binding is given do not outlive its constructor, whatever their size."""
    random = np.random.default_rng(0)
    names = [f"w{number}" for number in range(8)]
    weights = [numpy_helper.from_array(random.standard_normal((4, width)).astype(np.float32), name) for name in names]
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"]) for name in names]
    outputs = [value(f"y_{name}", shape=(2, width)) for name in names]
    model = model_of(nodes, [value("x", shape=(2, 4))], outputs, initializers=weights)
    prepared, spec = given(model, tmp_path)
    spec = replace(spec, cases=tuple(CaseSpec(name=f"c{number}", seed=number) for number in range(4)))
    subject = under_test(prepared, spec, SessionSpec(prepacking=False))
    assert subject.converted.reads_in_place
    assert IN_PLACE in subject.session.configuration
    assert changed_outputs([subject], BuildSpec(name="b", models=(spec,)), RUNTIME, here=True) == ()


def test_a_buildspec_made_for_models_has_the_level_that_keeps_their_outputs(tmp_path: Path) -> None:
    """With the reason beside it, in one line of the console, too."""
    for name in ("cubic", "relu"):
        write(tmp_path / f"{name}.onnx", MODELS[name]())
    stdout = io.StringIO()
    console = Console(stdout=stdout, stderr=io.StringIO(), environment={})
    text = first_spec([str(tmp_path)], FirstChoices(), console).with_cases(console).text(tmp_path, console)
    levels = {model["name"]: model.get("level") for model in tomllib.loads(text)["models"]}
    assert levels == {"cubic": "basic", "relu": None}
    reason = "level = 'basic' keeps its outputs; 'extended' fails"
    assert text.count(reason) == 1
    assert stdout.getvalue().count(reason) == 1


def test_check_compat_says_what_a_model_stands(tmp_path: Path) -> None:
    """One in ORT format is loaded, too: that all its operators are there is not enough to fit."""
    prepared, _ = given(sparse(constant=False), tmp_path)
    converted = convert(prepared, Conversion(), runtime=RUNTIME, root=cache_folder("conversions"))
    config, broken = tmp_path / "theirs.config", tmp_path / "broken.ort"
    config.write_text(converted.config)
    # Of 64 x 32 weights the file has only 8 x 32 places.
    broken.write_bytes(converted.path.read_bytes().replace((64).to_bytes(8, "little"), (8).to_bytes(8, "little")))
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    models = check_compatibility(config, (tmp_path / "m.onnx", converted.path, broken), console).models
    assert [model.fits for model in models] == [True, True, False]
    for model in models[:2]:
        (condition,) = model.conditions
        assert "session.use_ort_model_bytes_for_initializers" in condition
    assert models[2].obstacles[0].startswith("the full runtime does not load it")


def test_dense_weights_of_every_type_stay_in_place(tmp_path: Path) -> None:
    kinds = (np.float32, np.float16, np.uint8, np.int8, np.int32, np.bool_)
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in kinds]
    weights = [numpy_helper.from_array(np.ones((64, 32), kind), f"w{at}") for at, kind in enumerate(kinds)]
    nodes = [helper.make_node("Concat", [f"x{at}", f"w{at}"], [f"y{at}"], axis=0) for at in range(len(kinds))]
    inputs = [value(f"x{at}", kind, (1, 32)) for at, kind in enumerate(types)]
    outputs = [value(f"y{at}", kind, (65, 32)) for at, kind in enumerate(types)]
    path = write(tmp_path / "m.onnx", model_of(nodes, inputs, outputs, initializers=weights))
    spec = ModelSpec(name="m", path=path)
    prepared = prepare(spec, base=tmp_path, root=tmp_path / "copies", ort_version=RUNTIME.version, where="m")
    assert convert(prepared, Conversion(), runtime=RUNTIME, root=cache_folder("conversions")).reads_in_place
