"""The stages prepare, convert and reduce with the installed full ONNX Runtime as the converter."""

import hashlib
import shutil
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from platform import machine
from typing import Final, Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.analysis.inspect import inspect_ort
from ortrim.base import command
from ortrim.base.scripts import SCRIPTS
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.errors import ConvertError, Diagnostic, OperatorsError
from ortrim.models import convert as convert_module
from ortrim.models.convert import CPUINFO, Conversion, convert, converter_for
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.operators import parse_config, reduce_operators, render_config
from ortrim.models.ort_format import tensor_places
from ortrim.models.prepare import prepare
from refusing import refused

FLOAT = TensorProto.FLOAT
ORT_VERSION = version("onnxruntime")
CHANNELS = 32
"""A multiple of the block size of NCHWc on every CPU."""


@pytest.fixture(scope="module")
def runtime() -> FullRuntime:
    return full_runtime(ORT_VERSION, None)


CONVERTS: Final = """
import sys
from importlib.metadata import version
from pathlib import Path
from ortrim.errors import Diagnostic
from ortrim.models.full_runtime import run_script
from ortrim.models.full_runtime import full_runtime
model, folder = sys.argv[1:]
runtime = full_runtime(version("onnxruntime"), None)
request = {"version": runtime.version, "model": model, "output": f"{folder}/m.ort", "config": f"{folder}/m.config"}
request |= {"do": "convert", "style": "fixed", "level": "basic", "layout": None}
try:
    run_script(runtime, "models.py", request, folder=Path(folder), where="m")
except Diagnostic as error:
    print(error.code, int(error.exit_code), error.where)
"""


@pytest.mark.needs("unshare")
def test_a_disk_that_fills_up_while_onnx_runtime_writes_is_reported(tmp_path: Path) -> None:
    weights = helper.make_tensor("w", FLOAT, [2, 50_000], np.ones(100_000, np.float32).tobytes(), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [tensor("x")],
        [tensor("y", shape=(2, 50_000))],
        [weights],
    )
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    small = tmp_path / "small"
    small.mkdir()
    shell = 'mount -t tmpfs -o size=200k none "$1" && shift && exec "$@"'
    inner = ("sh", "-c", shell, "sh", small, sys.executable, "-c", CONVERTS, path, small)
    done = command.run(("unshare", "--user", "--map-root-user", "--mount", *inner), timeout_seconds=120)
    assert done.stdout == f"disk-full 22 {small}\n", done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    return folder


def tensor(name: str, element_type: int = FLOAT, shape: tuple[int | str, ...] = (2, 2)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def model_of(nodes: list[onnx.NodeProto], opset: int = 17, domains: tuple[str, ...] = ()) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    graph = helper.make_graph(nodes, "graph", [tensor("x")], [tensor("y")])
    return helper.make_model(graph, opset_imports=imports, ir_version=7 if opset < 15 else 8)


def chain(operators: tuple[str, ...], opset: int) -> onnx.ModelProto:
    names = ["x", *(f"v{n}" for n in range(len(operators) - 1)), "y"]
    pairs = zip(operators, pairwise(names), strict=True)
    return model_of([helper.make_node(operator, [source], [result]) for operator, (source, result) in pairs], opset)


def convolution(operator: str = "Conv", domain: str = "", channels: int = CHANNELS) -> onnx.ModelProto:
    values = np.linspace(-1, 1, channels * channels, dtype=np.float32)
    weights = helper.make_tensor("w", FLOAT, [channels, channels, 1, 1], values)
    nodes = [helper.make_node(operator, ["x", "w"], ["a"], domain=domain), helper.make_node("Relu", ["a"], ["y"])]
    image = (1, channels, 4, "width")
    graph = helper.make_graph(nodes, "graph", [tensor("x", shape=image)], [tensor("y", shape=image)], [weights])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def prepared(model: onnx.ModelProto, root: Path, name: str = "m") -> PreparedModel:
    path = root.parent / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    spec = ModelSpec(name=name, path=path)
    return prepare(spec, base=root.parent, root=root / "models", ort_version=ORT_VERSION, where="x.toml: models[0]")


def converted(
    model: onnx.ModelProto, root: Path, runtime: FullRuntime, conversion: Conversion | None = None, name: str = "m"
) -> OrtModel:
    return convert(prepared(model, root, name), conversion or Conversion(), runtime=runtime, root=root / "conversions")


def left_behind(root: Path) -> list[str]:
    return [entry.name for entry in (root / "conversions").iterdir() if not entry.name.endswith(".lock")]


def run(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model in the full runtime without further optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, feeds)
    return results


def test_a_model_is_converted_and_computes_the_same(
    root: Path, runtime: FullRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    converted_model = converted(convolution(), root, runtime)
    assert capfd.readouterr() == ("", "")
    feeds = {"x": np.random.default_rng(1).standard_normal((1, CHANNELS, 4, 5), dtype=np.float32)}
    original = run(prepared(convolution(), root).path, feeds)[0]
    np.testing.assert_allclose(run(converted_model.path, feeds)[0], original, rtol=1e-4, atol=1e-5)
    assert hashlib.sha256(converted_model.path.read_bytes()).hexdigest() == converted_model.sha256


def test_the_configuration_comes_from_the_converted_model(root: Path, runtime: FullRuntime) -> None:
    """Fusing makes operators that the original does not show; comments with paths are gone."""
    model = converted(convolution(), root, runtime)
    assert model.config == "com.microsoft;1;FusedConv\n"
    counted = inspect_ort(model.path)["operators"]
    assert {operator for operator, _ in counted} == set(parse_config(model.config).operators)


def test_two_conversions_give_the_same_bytes(root: Path, runtime: FullRuntime) -> None:
    """Another folder, another process: the same model."""
    operators = ("Relu", "Neg", "Abs", "Sqrt", "Tanh", "Exp", "Floor", "Ceil", "Sigmoid", "Erf")
    for conversion in (Conversion(style="fixed"), Conversion(style="runtime")):
        folders = [root / conversion.style / str(n) for n in range(3)]
        for folder in folders:
            folder.mkdir(parents=True)
        digests = {converted(chain(operators, 17), folder, runtime, conversion).sha256 for folder in folders}
        assert len(digests) == 1


def test_a_second_run_converts_nothing(root: Path, runtime: FullRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is taken as it is, under whatever name the model now has."""
    first = converted(convolution(), root, runtime)
    monkeypatch.setattr(convert_module, "run_script", None)
    second = converted(convolution(), root, runtime, name="n")
    assert (second.path, second.sha256, second.name) == (first.path, first.sha256, "n")


def test_the_runtime_style_requires_the_operators_of_both_ways(root: Path, runtime: FullRuntime) -> None:
    model = converted(convolution(), root, runtime, Conversion(style="runtime"))
    names = {operator.name for operator in parse_config(model.config).operators}
    assert {"Conv", "Relu", "FusedConv"} <= names
    assert inspect_ort(model.path)["runtime_optimizations"]
    assert sorted(path.name for path in model.path.parent.iterdir()) == ["facts.json", "model.ort"]


def test_nothing_of_the_converting_cpu_is_baked_in_unless_asked(root: Path, runtime: FullRuntime) -> None:
    """At level `all` the NCHWc layout is left out (upstream's issue 26174)."""
    plain = converted(convolution(), root, runtime, Conversion(level="all"))
    assert "com.microsoft.nchwc" not in plain.config


@pytest.mark.needs("qemu-x86_64-static")
@pytest.mark.skipif(machine() != "x86_64", reason="the wheel for other processors has no NCHWc layout")
def test_a_layout_of_8_is_8_whatever_converts(root: Path, runtime: FullRuntime) -> None:
    """On a processor with AVX-512 the converter would pad the 8 x 8 weights to 16, which no minimal build runs."""
    layout = converted(convolution(channels=8), root, runtime, Conversion(level="all", layout="nchwc8"))
    assert "com.microsoft.nchwc" in layout.config
    (weights,) = tensor_places(layout.path.read_bytes(), "model")
    assert weights.size_bytes == 8 * 8 * np.dtype(np.float32).itemsize


RUNS: Final = """
import sys
import numpy as np
import onnxruntime
x = np.random.default_rng(5).uniform(-6, 6, (2, 8, 9, 7)).astype(np.float32)
sessions = [onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in sys.argv[1:]]
made = [session.run(None, {"x": x}) for session in sessions]
for before, after in zip(*made):
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)
"""


@pytest.mark.needs("qemu-x86_64-static")
@pytest.mark.skipif(machine() != "x86_64", reason="the wheel for other processors has no NCHWc layout")
def test_values_stay_in_blocks_between_convolutions(root: Path, runtime: FullRuntime) -> None:
    """Behind hard-swish, LeakyRelu and Max, with a gate of one value a channel, and where planes are wanted, too.

    Products and sums with one constant are the convolutions' own.
    """
    random = np.random.default_rng(1)
    shapes = {"a": (16, 8, 3, 3), "b": (16, 1, 3, 3), "c": (16, 16, 1, 1), "d": (12, 16, 3, 3)}
    arrays = {name: random.standard_normal(shape) / 4 for name, shape in shapes.items()}
    arrays |= {"three": np.array([3]), "zero": np.array(0), "six": np.array(6), "least": np.array([[[[-0.4]]]])}
    weights = [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in arrays.items()]

    def hard_swish(x: str, y: str) -> list[onnx.NodeProto]:
        parts = [
            ("Add", [x, "three"]),
            ("Clip", [f"{y}0", "zero", "six"]),
            ("Mul", [x, f"{y}1"]),
            ("Div", [f"{y}2", "six"]),
        ]
        return [helper.make_node(name, inputs, [f"{y}{i}" if i < 3 else y]) for i, (name, inputs) in enumerate(parts)]

    nodes = [
        helper.make_node("Conv", ["x", "a"], ["x1"], pads=[1, 1, 1, 1]),
        *hard_swish("x1", "x2"),
        helper.make_node("Mul", ["x2", "three"], ["x2a"]),
        helper.make_node("Sub", ["x2a", "six"], ["x2b"]),
        helper.make_node("Conv", ["x2b", "b"], ["x2c"], group=16),
        helper.make_node("Div", ["x2c", "six"], ["x2d"]),
        helper.make_node("Add", ["three", "x2d"], ["x3"]),
        helper.make_node("LeakyRelu", ["x3"], ["x4"], alpha=0.2),
        helper.make_node("Max", ["x4", "least"], ["x5"]),
        helper.make_node("Mul", ["x5", "six"], ["x5a"]),
        helper.make_node("Add", ["x5a", "three"], ["x5b"]),
        helper.make_node("Conv", ["x5b", "c"], ["x6"]),
        *hard_swish("x6", "x7"),
        helper.make_node("GlobalAveragePool", ["x7"], ["x8"]),
        helper.make_node("Conv", ["x8", "c"], ["x9"]),
        helper.make_node("HardSigmoid", ["x9"], ["gate"]),
        helper.make_node("Mul", ["x7", "gate"], ["x10"]),
        helper.make_node("Conv", ["x10", "d"], ["x11"]),
        helper.make_node("Elu", ["x11"], ["y"]),
    ]
    inputs, outputs = (
        [tensor("x", shape=("n", 8, 9, 7))],
        [tensor("y", shape=("n", 12, 5, 3)), tensor("x5", shape=("n", 16, 7, 5))],
    )
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    model = prepared(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), root)
    done = convert(model, Conversion(level="all", layout="nchwc8"), runtime=runtime, root=root / "conversions")
    counts = {use.name: count for use, count in inspect_ort(done.path)["operators"]}
    assert (counts["ReorderInput"], counts["HardSigmoid"], counts["Mul"]) == (3, 2, 3)
    assert counts.keys().isdisjoint({"Add", "Sub", "Div", "Clip"})
    words = converter_for("nchwc8", runtime, "").words
    ran = command.run((*words, "-c", RUNS, model.path, done.path), environment=runtime.environment, timeout_seconds=300)
    assert ran.returncode == 0, ran.stderr[-2000:]


@pytest.mark.needs("qemu-x86_64-static")
@pytest.mark.skipif(machine() != "x86_64", reason="the wheel for other processors has no NCHWc layout")
def test_convolutions_along_one_axis_lie_in_blocks(root: Path, runtime: FullRuntime) -> None:
    """Those that are named, of any length; causal padding is the convolutions' own, and the third stays as it is."""
    random = np.random.default_rng(1)
    shapes = {"a": (16, 8, 3), "b": (16, 16, 3), "c": (4, 16, 1)}
    weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32) / 4, n) for n, s in shapes.items()]
    weights.append(numpy_helper.from_array(np.array([0, 0, 4, 0, 0, 0]), "causal"))
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["x1"], pads=[1, 1]),
        helper.make_node("Relu", ["x1"], ["x2"]),
        helper.make_node("Pad", ["x2", "causal"], ["x3"]),
        helper.make_node("Conv", ["x3", "b"], ["x4"], dilations=[2]),
        helper.make_node("LeakyRelu", ["x4"], ["x5"], alpha=0.2),
        helper.make_node("Add", ["x5", "x2"], ["x6"]),
        helper.make_node("Conv", ["x6", "c"], ["y"]),
    ]
    inputs, outputs = [tensor("x", shape=("n", 8, "length"))], [tensor("y", shape=("n", 4, "length"))]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    model = prepared(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), root)
    wanted = Conversion(level="all", layout="nchwc8", two_axes=("x1", "x4"))
    done = convert(model, wanted, runtime=runtime, root=root / "conversions")
    assert done.two_axes == wanted.two_axes
    counts = {(use.domain, use.name): count for use, count in inspect_ort(done.path)["operators"]}
    assert [counts["com.microsoft.nchwc", "Conv"], counts["ai.onnx", "Conv"], counts["ai.onnx", "Squeeze"]] == [2, 1, 1]
    assert ("ai.onnx", "Pad") not in counts
    words = converter_for("nchwc8", runtime, "").words
    script = RUNS.replace("(2, 8, 9, 7)", "(2, 8, 19)")
    files = (model.path, done.path)
    ran = command.run((*words, "-c", script, *files), environment=runtime.environment, timeout_seconds=300)
    assert ran.returncode == 0, ran.stderr[-2000:]


@pytest.mark.parametrize("style", ["fixed", "runtime"])
def test_a_transposed_convolution_has_two_axes_in_plain_layout(
    style: Literal["fixed", "runtime"], root: Path, runtime: FullRuntime
) -> None:
    weights = numpy_helper.from_array(np.ones((8, 4, 4), np.float32), "w")
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["a"], strides=[2]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    inputs, outputs = [tensor("x", shape=("n", 8, "length"))], [tensor("y", shape=("n", 4, "longer"))]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [weights])
    model = prepared(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), root)
    plain, made = (
        convert(model, Conversion(style=style, two_axes=two_axes), runtime=runtime, root=root / "conversions")
        for two_axes in ((), ("a",))
    )
    assert "Unsqueeze" not in plain.config
    assert "Unsqueeze" in made.config


@pytest.mark.skipif(machine() != "x86_64", reason="the wheel for other processors has no NCHWc layout")
def test_a_layout_of_16_is_16_or_refused(root: Path, runtime: FullRuntime) -> None:
    """The 8 x 8 weights are padded; without AVX-512 the converter would quietly make blocks of 8."""
    wanted = Conversion(level="all", layout="nchwc16")
    if "avx512f" not in CPUINFO.read_text().split():
        with pytest.raises(ConvertError, match="layout-not-here"):
            converted(convolution(channels=8), root, runtime, wanted)
        return
    (weights,) = tensor_places(converted(convolution(channels=8), root, runtime, wanted).path.read_bytes(), "model")
    assert weights.size_bytes == 16 * 8 * np.dtype(np.float32).itemsize


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 15, 18, 21])
def test_ten_operators_of_any_opset_are_converted(opset: int, root: Path, runtime: FullRuntime) -> None:
    operators = ("Relu", "Neg", "Abs", "Sqrt", "Tanh", "Exp", "Floor", "Ceil", "Sigmoid", "Softplus")
    model = converted(chain(operators, opset), root, runtime)
    assert {operator.name for operator in parse_config(model.config).operators} == set(operators)


def test_types_that_upstream_cannot_list_lift_the_limits(root: Path, runtime: FullRuntime) -> None:
    """A model with 4-bit weights goes through, without types."""
    weights = helper.make_tensor("w", TensorProto.INT4, [4], [1, 2, 3, -1])
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    inputs = [tensor("x", shape=(4,)), tensor("s", shape=())]
    graph = helper.make_graph(nodes, "graph", inputs, [tensor("y", shape=(4,))], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    required = parse_config(converted(model, root, runtime).config)
    assert {operator.name for operator in required.operators} == {"Add", "DequantizeLinear"}
    assert required.types == ()


def forest() -> onnx.ModelProto:
    """Return what scikit-learn exports: a tree ensemble whose scores ZipMap turns into one map for each row."""
    tree = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", post_transform="NONE",
        classlabels_strings=["no", "yes"], nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0], nodes_values=[0.0, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], nodes_hitrates=[1.0, 1.0, 1.0],
        nodes_missing_value_tracks_true=[0, 0, 0], class_treeids=[0, 0, 0, 0], class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1], class_weights=[0.75, 0.25, 0.125, 0.875],
    )  # fmt: skip
    zipped = helper.make_node("ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    scores = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(FLOAT, ()))
    outputs = [
        tensor("label", TensorProto.STRING, ("n",)),
        helper.make_value_info("y", helper.make_sequence_type_proto(scores)),
    ]
    graph = helper.make_graph([tree, zipped], "graph", [tensor("x", shape=("n", 2))], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_classical_models_are_converted(root: Path, runtime: FullRuntime) -> None:
    """Operators of ai.onnx.ml and outputs that are maps go through, and the configuration asks for those operators."""
    model = converted(forest(), root, runtime)
    operators = reduce_operators([model]).operators
    assert {(operator.domain, operator.name) for operator in operators} == {
        ("ai.onnx.ml", "TreeEnsembleClassifier"),
        ("ai.onnx.ml", "ZipMap"),
    }
    assert run(model.path, {"x": np.array([[-1, 0], [1, 0]], np.float32)})[1] == [
        {"no": 0.75, "yes": 0.25},
        {"no": 0.125, "yes": 0.875},
    ]


def test_a_change_of_our_own_code_converts_again(
    root: Path, runtime: FullRuntime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = converted(convolution(), root, runtime)
    scripts = Path(shutil.copytree(SCRIPTS, tmp_path / "scripts"))
    monkeypatch.setattr(convert_module, "SCRIPTS", scripts)
    script = scripts / "models.py"
    script.write_text(f"# about nothing\n{script.read_text()}")
    commented = converted(convolution(), root, runtime)
    script.write_text(f"{script.read_text()}\nMORE = 1\n")
    changed = converted(convolution(), root, runtime)
    assert (commented.path == first.path, changed.path != first.path) == (True, True)
    assert changed.sha256 == first.sha256


def test_models_are_reduced_together(root: Path, runtime: FullRuntime) -> None:
    models = (converted(convolution(), root, runtime), converted(chain(("Relu", "Exp"), 17), root, runtime))
    assert render_config(reduce_operators(models)) == (
        'ai.onnx;13;Exp{"inputs": {"0": ["float"]}}\n'
        'ai.onnx;14;Relu{"inputs": {"0": ["float"]}}\n'
        "com.microsoft;1;FusedConv\n"
    )


TRAINING: Final = model_of(
    [helper.make_node("BatchNormalization", ["x", "x", "x", "x", "x"], ["y", "m", "v"], training_mode=1)]
)


def bfloat16_sum() -> onnx.ModelProto:
    """Return a model with an Add that no CPU kernel implements."""
    return model_of([
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.BFLOAT16),
        helper.make_node("Add", ["a", "a"], ["b"], name="sum"),
        helper.make_node("Cast", ["b"], ["y"], to=FLOAT),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        (
            bfloat16_sum(),
            "no-kernel",
            ("ai.onnx Add", "opset 14", "bfloat16, bfloat16", "node 'sum'", "T = double | float"),
        ),
        (
            convolution("NhwcConv", "com.microsoft"),
            "other-provider-only",
            ("com.microsoft NhwcConv", "opset 1", "float32, float32", "optimizing for a GPU"),
        ),
        (
            model_of([helper.make_node("Foo", ["x"], ["y"], domain="my.ops")], 17, ("my.ops",)),
            "unknown-operator",
            ("my.ops Foo", "opset 1", "float32", "custom library"),
        ),
        (model_of([helper.make_node("Foo", ["x"], ["y"])]), "unknown-operator", ("ai.onnx Foo", "opset 17", "float32")),
        (TRAINING, "not-in-minimal-builds", ("BatchNormalization that trains", "model.eval()")),
    ],
    ids=["type", "operator for GPUs", "custom domain", "unknown operator", "training"],
)
def test_nodes_without_a_kernel_are_refused(
    model: onnx.ModelProto, code: str, words: tuple[str, ...], root: Path, runtime: FullRuntime
) -> None:
    """The diagnostic names domain, operator, opset and types, and nothing is left behind."""
    error = refused(OperatorsError, converted, model, root, runtime)
    assert error.code == code
    for word in words:
        assert word in str(error)
    assert left_behind(root) == []


def test_another_version_does_not_convert(root: Path, runtime: FullRuntime) -> None:
    """A runtime that is not what it claims to be is found out before anything is written."""
    claimed = FullRuntime(
        version="1.0.99", words=runtime.words, environment=runtime.environment,
        packages=runtime.packages, library=runtime.library,
    )  # fmt: skip
    error = refused(ConvertError, converted, convolution(), root, claimed)
    assert error.code == "wrong-version"
    assert ORT_VERSION in error.why
    assert left_behind(root) == []


def test_a_model_that_vanished_is_a_diagnostic(root: Path, runtime: FullRuntime) -> None:
    """Somebody emptied the cache between the stages."""
    model = prepared(convolution(), root)
    model.path.unlink()
    refused(Diagnostic, convert, model, Conversion(), runtime=runtime, root=root / "conversions")
    assert left_behind(root) == []


def test_weights_beside_the_model_end_up_inside_it(root: Path, runtime: FullRuntime) -> None:
    """The converted model stands alone: it runs when the originals are gone."""
    user = root.parent / "user"
    user.mkdir()
    (user / "w.bin").write_bytes(np.full(4, 2.0, dtype=np.float32).tobytes())
    weights = TensorProto(name="w", data_type=FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="w.bin")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "graph", [tensor("x")], [tensor("y")], [weights]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (user / "m.onnx").write_bytes(model.SerializeToString())
    spec = ModelSpec(name="m", path=Path("m.onnx"))
    copy = prepare(spec, base=user, root=root / "models", ort_version=ORT_VERSION, where="x.toml: models[0]")
    converted_model = convert(copy, Conversion(), runtime=runtime, root=root / "conversions")
    shutil.rmtree(user)
    shutil.rmtree(root / "models")
    assert run(converted_model.path, {"x": np.ones((2, 2), np.float32)})[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]
