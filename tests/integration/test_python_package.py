"""The wheel for Python, installed in an environment of its own, and its module with each kind of value."""

import gc
import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.files import shipped_folder
from ortrim.buildspec.buildspec import Load, SessionSettings, session_json
from ortrim.compiling.upstream_arguments import optional_sources
from ortrim.models.full_runtime import full_runtime
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.building import build
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request
from ortrim.sources.sources import fetch_sources

DEMO: Final = Path(__file__).parents[2] / "buildspecs" / "silero-vad.toml"
PROGRAM: Final = """
import json, sys
import numpy as np
import ortrim_silero_vad as onnxruntime

session = onnxruntime.InferenceSession("models/silero-vad.onnx", providers=["CPUExecutionProvider"])
given = dict(np.load(sys.argv[1]))
np.savez(sys.argv[2], *session.run(None, given))
print(json.dumps([(each.name, each.type, each.shape) for each in session.get_inputs()]))
"""


def frame(batch: int) -> dict[str, Any]:
    random = np.random.default_rng(batch)
    return {
        "input": random.normal(0, 0.1, (batch, 576)).astype(np.float32),
        "state": random.normal(0, 0.1, (2, batch, 128)).astype(np.float32),
        "sr": np.array(16000, np.int64),
    }


@pytest.mark.build
@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux", reason="the wheel is for Linux")
def test_a_program_changes_one_import(tmp_path: Path) -> None:
    """With the demo built for this machine; pip takes the wheel and brings NumPy, nothing else is there."""
    console = Console(stdout=sys.stderr)
    request = Request(spec=DEMO, output=tmp_path / "output", packages=("wheel",))
    (report,) = build(request, console)
    (wheel,) = (tmp_path / "output").rglob("*.whl")
    assert wheel.name in {each.name for each in report.artifacts}
    assert run((sys.executable, "-m", "venv", tmp_path / "venv")).returncode == 0
    python = tmp_path / "venv" / "bin" / "python"
    installed = run((python, "-m", "pip", "install", "--quiet", wheel))
    assert installed.returncode == 0, installed.stderr
    (prepared,) = planned_for(request, console).models.prepared
    official = onnxruntime.InferenceSession(str(prepared.path), providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        given, made = tmp_path / f"{batch}.npz", tmp_path / f"{batch}-made.npz"
        np.savez(given, **frame(batch))
        done = run((python, "-c", PROGRAM, given, made), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        expected = official.run(None, frame(batch))
        for ours, theirs in zip(np.load(made).values(), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5)
        assert json.loads(done.stdout) == [[each.name, each.type, each.shape] for each in official.get_inputs()]


Given = tuple[str, int, list[int | str]]
FLOAT, TEXT = TensorProto.FLOAT, TensorProto.STRING
CASTS: Final = (TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8)


def model(nodes: list[Any], inputs: list[Given], outputs: list[Any]) -> ModelProto:
    values = [helper.make_tensor_value_info(*each) for each in inputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph(nodes, "g", values, outputs), opset_imports=opsets, ir_version=8)


def tensors(*outputs: Given) -> list[Any]:
    return [helper.make_tensor_value_info(*each) for each in outputs]


def classifier() -> ModelProto:
    """Return a model that gives a sequence of maps."""
    nodes = [
        helper.make_node(
            "LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", coefficients=[1.0, -1.0, -1.0, 1.0],
            intercepts=[0.0, 0.0], classlabels_strings=["cat", "dog"], post_transform="SOFTMAX",
        ),
        helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"]),
    ]  # fmt: skip
    maps = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, []))
    zipped = helper.make_value_info("z", helper.make_sequence_type_proto(maps))
    return model(nodes, [("x", FLOAT, ["n", 2])], [*tensors(("label", TEXT, ["n"])), zipped])


MODELS: Final[dict[str, Callable[[], ModelProto]]] = {
    "add": lambda: model(
        [helper.make_node("Add", ["x", "y"], ["z"])],
        [("x", FLOAT, ["n", 2]), ("y", FLOAT, ["n", 2])], tensors(("z", FLOAT, ["n", 2])),
    ),
    "text": lambda: model(
        [helper.make_node("Identity", ["x"], ["y"])], [("x", TEXT, ["n", 2])], tensors(("y", TEXT, ["n", 2]))
    ),
    "cast": lambda: model(
        [helper.make_node("Cast", ["x"], [f"to-{kind}"], to=kind) for kind in CASTS],
        [("x", FLOAT, ["n"])], [each for kind in CASTS for each in tensors((f"to-{kind}", kind, ["n"]))],
    ),
    "bfloat16": lambda: model(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
        [("x", FLOAT, ["n"])], tensors(("y", TensorProto.BFLOAT16, ["n"])),
    ),
    "split": lambda: model(
        [helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)],
        [("x", FLOAT, ["n", 2])],
        [helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [])))],
    ),
    "classifier": classifier,
}  # fmt: skip


def write_ort(made: ModelProto, path: Path) -> None:
    """Write a model in ORT format, as packages have it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Import the module as a wheel would have it, with these models and the official library."""
    folder = tmp_path_factory.mktemp("wheel") / "package"
    shutil.copytree(shipped_folder("package") / "python", folder)
    (folder / "models").mkdir()
    loads: list[Load] = ["map", "bytes", "file"]
    settings = {name: SessionSettings(load=load) for name, load in zip(MODELS, loads * 2, strict=True)}
    for name, made in MODELS.items():
        write_ort(made(), folder / "models" / f"{name}.ort")
    (folder / "models" / "session.json").write_text(session_json(onnxruntime.__version__, settings))
    (folder / "libonnxruntime.so").symlink_to(full_runtime(onnxruntime.__version__, None).library)
    spec = importlib.util.spec_from_file_location("package", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    made_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made_module)
    return made_module


def test_execution_providers_of_the_library_are_told(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names that `onnxruntime` has for them."""
    assert module.get_available_providers() == ["CPUExecutionProvider"]
    text = session_json(module.__version__, {"add": SessionSettings(providers=("XNNPACK",))})
    monkeypatch.setattr(module, "SETTINGS", json.loads(text))
    assert module.get_available_providers() == ["XnnpackExecutionProvider", "CPUExecutionProvider"]


X: Final = np.array([[0.5, 2], [3, -1], [0, 0]], np.float32)


@pytest.mark.parametrize(
    ("name", "feeds"),
    [
        ("add", {"x": X, "y": X[::-1]}),
        ("add", {"x": X.T.copy().T, "y": X}),
        ("add", {"x": X.tolist(), "y": X}),
        ("add", {"x": X[:0], "y": X[:0]}),
        ("text", {"x": np.array([["a", "Zürich"], ["", "ß" * 300]])}),
        ("text", {"x": np.array([["a", "b"]], dtype=object)}),
        ("text", {"x": np.empty((0, 2), dtype=object)}),
        ("cast", {"x": np.array([0, 1.5, 200], np.float32)}),
        ("split", {"x": X}),
        ("classifier", {"x": X}),
    ],
)
def test_values_are_those_of_the_official_binding(module: ModuleType, name: str, feeds: dict[str, Any]) -> None:
    """Arrays of numbers and texts, of any order and none at all, sequences and maps."""
    session = module.InferenceSession(name)
    official = onnxruntime.InferenceSession(MODELS[name]().SerializeToString(), providers=["CPUExecutionProvider"])
    given = {key: np.asarray(value, X.dtype) if isinstance(value, list) else value for key, value in feeds.items()}
    for ours, theirs in zip(session.run(None, feeds), official.run(None, given), strict=True):
        if isinstance(theirs, list):
            assert str(ours) == str(theirs)
        else:
            assert (ours.dtype, ours.shape, ours.tolist()) == (theirs.dtype, theirs.shape, theirs.tolist())
    for ask in ("get_inputs", "get_outputs"):
        ours, theirs = getattr(session, ask)(), getattr(official, ask)()
        assert [(each.name, each.shape) for each in ours] == [(each.name, each.shape or []) for each in theirs]


@pytest.mark.parametrize(
    ("name", "feeds", "kind", "words"),
    [
        ("add", {"x": X.astype(np.float64), "y": X}, "OrtError", "Unexpected input data type"),
        ("add", {"x": X, "y": X, "w": X}, "OrtError", "Invalid input name: w"),
        ("add", {"x": X}, "ValueError", "inputs are missing: y; given: x"),
        ("add", {"x": X.astype(np.complex64), "y": X}, "TypeError", "no tensor has elements of complex64"),
        ("bfloat16", {"x": X[0]}, "TypeError", "NumPy has no element type"),
        ("absent", {}, "FileNotFoundError", "there is no model 'absent' in this package: it has add, text"),
        (None, {}, "FileNotFoundError", "it has add, text"),
    ],
)
def test_what_is_wrong_is_said(
    module: ModuleType, name: str | None, feeds: dict[str, Any], kind: str, words: str
) -> None:
    with pytest.raises(Exception, match=words) as caught:
        module.InferenceSession(name).run(None, feeds)
    assert caught.type.__name__ == kind


def test_outputs_outlive_their_session_and_later_runs(module: ModuleType) -> None:
    session = module.InferenceSession("add")
    (first,) = session.run(["z"], {"x": X, "y": X})
    (second,) = session.run(["z"], {"x": X, "y": X + 1})
    del session
    gc.collect()
    assert first.tolist() == (X + X).tolist()
    assert second.tolist() == (X + X + 1).tolist()
    first += 1
    assert second.tolist() == (X + X + 1).tolist()


def test_a_session_has_the_settings_that_a_program_asks_for(module: ModuleType, tmp_path: Path) -> None:
    """What a program does not set is as the package says; other files and bytes are models, too."""
    options = module.SessionOptions()
    settings = module.SETTINGS["models"]["add"]
    assert options.over(settings) == settings
    options.intra_op_num_threads, options.enable_mem_pattern = 2, False
    options.execution_mode = module.ExecutionMode.ORT_PARALLEL
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    changed = options.over(settings)
    assert (changed["intra_op_num_threads"], changed["enable_mem_pattern"]) == (2, False)
    assert changed["session_configuration"]["session.intra_op.allow_spinning"] == "1"
    with pytest.raises(AttributeError):
        options.enable_profiling = True
    file = tmp_path / "other.ort"
    write_ort(MODELS["add"](), file)
    for model_or_file in ("add", "somewhere/add.onnx", file, file.read_bytes()):
        (total,) = module.InferenceSession(model_or_file, options).run(None, {"x": X, "y": X})
        assert total.tolist() == (X + X).tolist()


@pytest.mark.network
def test_functions_have_the_places_that_upstreams_header_gives_them(module: ModuleType) -> None:
    """A wrong one would be called all the same."""
    wanted = optional_sources(())
    tree = fetch_sources(runtime_pins(onnxruntime.__version__), "auto", optional=wanted)
    source = tree.folder / "onnxruntime" / "onnxruntime" / "core" / "session" / "onnxruntime_c_api.cc"
    table = source.read_text(encoding="utf-8").partition("static constexpr OrtApi ort_api_1_to")[2].partition("\n};")[0]
    names = re.findall(r"^ *&OrtApis::(\w+)", table, re.MULTILINE)
    assert {name: names.index(name) for name in module.PLACES} == module.PLACES
