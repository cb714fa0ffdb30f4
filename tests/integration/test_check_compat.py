"""`check-compat` with the real converter, and its verdicts compared with what the real trimmed library does."""

import io
import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from judged_models import DEMO, fused
from onnx_samples import model_of, value, write
from ortrim.analysis.compat import CompatibilityAnswer, ModelAnswer, Trials, check_compatibility
from ortrim.analysis.compat_runtime import InstalledRuntime, read_runtime
from ortrim.base.archives import unpack
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.cli.options import request_from
from ortrim.devices.host import Host
from ortrim.errors import VerifyError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import full_runtime
from ortrim.models.kernels import missing_kernel
from ortrim.models.operators import parse_config, render_config
from ortrim.models.prepare import prepare
from ortrim.package.package import make_package
from ortrim.parity.inputs import make_cases
from ortrim.parity.runner import Repetition, RunnerEnded, RunRequest
from ortrim.pipeline.building import executor_for, package_inputs
from ortrim.planning.planned import planned_for

ROOT: Final = Path(__file__).parents[2]
FLOAT, DOUBLE, INT32, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64
BOOL = TensorProto.BOOL
Level = Literal["disable", "extended"]
VERSION: Final = "1.21.0"


def console() -> Console:
    return Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})


def one(operator: str, kinds: Sequence[int], *, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node with inputs of these types; random integers are indices into any of them."""
    names = [f"x{number}" for number in range(len(kinds))]
    inputs = [value(name, kind, (10, 10)) for name, kind in zip(names, kinds, strict=True)]
    node = helper.make_node(operator, names, ["y"], **attributes)
    return model_of([node], inputs, [value("y", kinds[0], None)], opsets=[("", opset)])


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., ModelAnswer]:
    """Hold a model against a runtime of a configuration."""

    def answer(model: onnx.ModelProto, config: str = DEMO) -> ModelAnswer:
        (tmp_path / "theirs.config").write_text(config)
        path = write(tmp_path / "new.onnx", model)
        (found,) = check_compatibility(tmp_path / "theirs.config", [path], console()).models
        return found

    return answer


Check = Callable[..., ModelAnswer]


def test_nothing_is_promised_that_does_not_fit(check: Check) -> None:
    """A type is missing whatever the opset and the level."""
    found = check(one("Relu", [DOUBLE]))
    assert [(each.missing, each.operator.name) for each in found.operators] == [("type", "Relu")]
    assert found.remedies == ()


def test_a_kernel_serves_the_opsets_of_its_range(check: Check) -> None:
    """The full runtime says which: that of If from 16 to 18 is kept for a configuration with 18, and serves 16."""
    identity = {
        f"{name}_branch": helper.make_graph([helper.make_node("Identity", ["x"], [name])], name, [], [value(name)])
        for name in ("then", "else")
    }
    node = helper.make_node("If", ["c"], ["y"], **identity)
    model = model_of([node], [value("x"), value("c", BOOL, ())], opsets=[("", 17)])
    others = "ai.onnx;16;Identity\n"
    assert check(model, "ai.onnx;18;If\n" + others).fits
    assert not check(model, "ai.onnx;13;If\n" + others).fits


def test_a_newer_ir_version_is_no_obstacle(check: Check) -> None:
    """It is only a number, which ortrim lowers in its own copy."""
    model = one("Relu", [FLOAT])
    model.ir_version = 11
    assert check(model).fits


def test_an_operator_of_a_custom_library_is_named(check: Check) -> None:
    """It cannot be built in at all, which is an answer."""
    node = helper.make_node("Foo", ["x"], ["y"], domain="my.ops")
    found = check(model_of([node], opsets=[("", 17), ("my.ops", 1)]))
    assert not found.fits
    assert "my.ops Foo" in found.obstacles[0]
    assert "custom library" in found.obstacles[0]


def test_weights_in_other_files_are_converted_with_the_model(tmp_path: Path) -> None:
    """As a build would; the answer is about the whole."""
    weights = numpy_helper.from_array(numpy_helper.to_array(helper.make_tensor("w", FLOAT, [300, 2], [0.5] * 600)), "w")
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    model = model_of([node], [value("x", FLOAT, (2, 300))], [value("y", FLOAT, (2, 2))], initializers=[weights])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "theirs.config").write_text(DEMO)
    answer = check_compatibility(tmp_path / "theirs.config", [tmp_path / "m.onnx"], console())
    assert (tmp_path / "m.data").stat().st_size >= 2400
    assert answer.fits


def quantized() -> onnx.ModelProto:
    """Return an addition of 8-bit numbers that an extended build makes one operator of."""
    scale = helper.make_tensor("scale", FLOAT, [], [0.1])
    zero = helper.make_tensor("zero", TensorProto.INT8, [], [3])
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["z", "scale", "zero"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["y"]),
    ]
    ends = [value(name, TensorProto.INT8, (4,)) for name in "xzy"]
    return model_of(nodes, ends[:2], ends[2:], initializers=[scale, zero])


QUANTIZED: Final = "ai.onnx;13;DequantizeLinear,QuantizeLinear\nai.onnx;14;Add\n"


@pytest.mark.parametrize(
    ("extended", "more", "missing"),
    [
        (False, "", []),
        (True, "", ["operator"]),
        (True, "com.microsoft;1;QLinearAdd\n", []),
        (True, 'com.microsoft;1;QLinearAdd{"inputs": {"0": ["uint8_t"]}}\n', ["type"]),
    ],
)
def test_saved_optimizations_need_operators_where_they_are_applied(
    tmp_path: Path,
    extended: bool,  # noqa: FBT001 - a parameter of the test
    more: str,
    missing: list[str],
) -> None:
    """With their types, which the converter has told; a plain minimal build leaves them alone."""
    operators = parse_config(QUANTIZED + more)
    runtime = InstalledRuntime(
        label="theirs",
        ort_version=VERSION,
        operators=operators,
        extended=extended,
        conversions=(Conversion(style="runtime", level="all"),),
    )
    trials = Trials(runtime)
    judged = trials.judge(
        trials.uses(trials.convert(trials.prepare(write(tmp_path / "m.onnx", quantized())), trials.usual))
    )
    assert [each.missing for each in judged.missing] == missing
    assert [each.operator.name for each in judged.missing] == ["QLinearAdd"] * len(missing)
    assert judged.unknowns == ()


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The demo's package, and the runner that loads and runs a model on its library."""

    package: Path
    library: Path
    runner: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return built(None, tmp_path_factory)


@pytest.fixture(scope="module")
def installed_with_exceptions(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    spec = tmp_path_factory.mktemp("spec") / "silero-vad.toml"
    spec.write_text("exceptions = true\n" + (ROOT / "buildspecs" / spec.name).read_text(encoding="utf-8"))
    return built(str(spec), tmp_path_factory)


def built(spec: str | None, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    request = request_from(spec, target="linux-x64", output=str(tmp_path_factory.mktemp("out")))
    here = console()
    planned = planned_for(request, here)
    (target,) = planned.plan.targets
    with here.step("build") as step:
        executor = executor_for(planned, target, request, step)
        result, runner = executor.run(target.job), executor.run_runner(target.runner)
    package = make_package(package_inputs(planned, target.job, result), tmp_path_factory.mktemp("package"))
    return Installed(package=package.archive, library=result.library, runner=runner)


def refusal(installed: Installed, path: Path, folder: Path, level: Level = "extended") -> VerifyError | None:
    """Convert a model, as the demo's by default, load and run it on the trimmed library; return what came of it."""
    spec = ModelSpec(name="model", path=Path(path.name))
    prepared = prepare(spec, base=folder, root=folder / "models", ort_version=VERSION, where="model")
    conversion = Conversion(level=level)
    ort = convert(prepared, conversion, runtime=full_runtime(VERSION, None), root=folder / "conversions")
    request = RunRequest(
        runner=installed.runner,
        library=installed.library,
        model=ort.path,
        cases=make_cases(prepared, spec, folder, folder / "cases"),
        repetition=Repetition(runs=1, warmup=0, timeout_seconds=60),
    )
    try:
        with closing(Host()) as host:
            host.run(request)
    except VerifyError as error:
        return error
    return None


def branch_of(operator: str) -> onnx.ModelProto:
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [value(name)])
        for name in ("then", "else")
    }
    node = helper.make_node("If", ["c"], ["y"], **branches)
    return model_of([node], [value("x"), value("c", BOOL, ())], opsets=[("", 18)])


def product_of_bytes() -> onnx.ModelProto:
    """Return a model whose kernels MLAS has in a family of their own, which nothing in the demo's library reaches."""
    ends = [value(name, TensorProto.UINT8, (4, 4)) for name in "ab"]
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    return model_of([node], ends, [value("y", INT32, (4, 4))])


UNSIGNED: Final = TensorProto.UINT32


def sparse_weights() -> onnx.ModelProto:
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", FLOAT, (4,))], [value("y", FLOAT, (4,))])
    numbers, places = helper.make_tensor("w", FLOAT, [2], [1.0, 2.0]), helper.make_tensor("p", INT64, [2], [0, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(numbers, places, [4]))
    return model


def eight_bit_weights() -> onnx.ModelProto:
    weights = helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [4], [1.0, 2.0, 3.0, 4.0])
    nodes = [helper.make_node("Cast", ["w"], ["a"], to=FLOAT), helper.make_node("Add", ["x", "a"], ["y"])]
    ends = [value(name, FLOAT, (4,)) for name in "xy"]
    return model_of(nodes, ends[:1], ends[1:], opsets=[("", 19)], ir_version=9, initializers=[weights])


def optional_value() -> onnx.ModelProto:
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    return model_of([node], [value("x", FLOAT, (4,))], [value("y", BOOL, ())], opsets=[("", 18)])


LEFT_OUT: Final[dict[str, tuple[onnx.ModelProto, str]]] = {
    "sparse weights": (sparse_weights(), "this library is compiled without sparse tensors"),
    "8-bit floats": (eight_bit_weights(), "Could not find an implementation for Cast(19)"),
    "optional values": (optional_value(), "Could not find an implementation for OptionalHasElement(18)"),
}
"""Models with kinds of values that the demo's library is compiled without, and what it says of them."""
MODELS: Final[dict[str, tuple[onnx.ModelProto, str]]] = {
    "as in the demo": (one("Relu", [FLOAT]), ""),
    "an operator in a branch": (branch_of("Relu"), ""),
    "integers that upstream keeps for its optimizers": (one("Add", [INT64, INT64]), "type"),
    "a type that is listed to no effect": (one("Gather", [INT32, INT64]), ""),
    "elements as large as those that are there": (one("Concat", [UNSIGNED, UNSIGNED], axis=0), ""),
    "an operator without types": (one("Sigmoid", [FLOAT]), ""),
    "no such operator": (one("Softplus", [FLOAT]), "operator"),
    "no such operator in a branch": (branch_of("Neg"), "operator"),
    "a family of kernels that was left out": (product_of_bytes(), "operator"),
    "a contributed operator that the optimizer makes": (fused(), "operator"),
    "an older opset": (one("Relu", [FLOAT], opset=13), "opset"),
    "another type": (one("Relu", [DOUBLE]), "type"),
    "another type of two inputs": (one("Add", [DOUBLE, DOUBLE]), "type"),
    "another type that only running meets": (one("Concat", [BOOL, BOOL], axis=0), "type"),
}
"""Models, and what of them the demo's runtime lacks."""


@pytest.mark.build
@pytest.mark.network
@pytest.mark.parametrize("name", MODELS)
def test_the_verdict_is_what_the_trimmed_library_does(installed: Installed, tmp_path: Path, name: str) -> None:
    """A model that fits loads and runs; of one that does not, ONNX Runtime names the same operator and opset."""
    model, lacking = MODELS[name]
    path = write(tmp_path / "model.onnx", model)
    (answer,) = check_compatibility(installed.package, [path], console()).models
    error = refusal(installed, path, tmp_path)
    assert answer.fits is (error is None) is (not lacking), error
    missing = [each for each in answer.operators if each.missing]
    assert [each.missing for each in missing] == ([lacking] if lacking else [])
    if error and error.code == "model-refused":
        named = missing_kernel(error.why)
        assert named is not None, error.why
        assert (named.name, named.opset) == (missing[0].operator.name, str(missing[0].operator.opset))
    elif error:
        assert (error.code, missing[0].operator.name) == ("inference-failed", "Concat")


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.network
@pytest.mark.parametrize("name", ["as in the demo", "no such operator", "a family of kernels that was left out"])
def test_with_exceptions_the_same_models_are_refused(
    installed_with_exceptions: Installed, tmp_path: Path, name: str
) -> None:
    """By the same status that a library without exceptions gives for a missing operator."""
    model, lacking = MODELS[name]
    error = refusal(installed_with_exceptions, write(tmp_path / "model.onnx", model), tmp_path)
    assert (error is None) is (not lacking), error
    if error:
        assert error.code == "model-refused"
        assert missing_kernel(error.why) is not None, error.why


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.network
@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize("runtime", ["installed", "installed_with_exceptions"])
def test_kinds_of_values_that_were_left_out_are_refused_when_a_model_is_loaded(
    request: pytest.FixtureRequest, tmp_path: Path, runtime: str, name: str
) -> None:
    """By a message and the runner's exit code, with exceptions and without: nothing ends in a signal."""
    model, words = LEFT_OUT[name]
    path = write(tmp_path / "model.onnx", model)
    error = refusal(request.getfixturevalue(runtime), path, tmp_path, level="disable")
    assert isinstance(error, RunnerEnded)
    assert (error.code, error.returncode) == ("model-refused", 4), error
    assert words in error.why


def eight_bit_output(path: Path) -> Path:
    """Write a model in ORT format with an output of 8-bit floats, which ortrim itself does not convert."""
    weights = [
        helper.make_tensor(name, kind, [2], [1.0, 2.0]) for name, kind in (("e", TensorProto.FLOAT8E5M2), ("f", FLOAT))
    ]
    ends = [value("y", FLOAT, (2,)), value("e", TensorProto.FLOAT8E5M2, (2,))]
    node = helper.make_node("Add", ["x", "f"], ["y"])
    model = model_of([node], [value("x", FLOAT, (2,))], ends, opsets=[("", 18)], ir_version=9, initializers=weights)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.network
@pytest.mark.parametrize(("runtime", "reference", "returncode"), [
    ("installed", "runner-crashed", -signal.SIGABRT), ("installed_with_exceptions", "model-refused", 4),
])  # fmt: skip
def test_eight_bit_floats_at_a_models_ends_end_the_process_without_exceptions(
    request: pytest.FixtureRequest, tmp_path: Path, runtime: str, reference: str, returncode: int
) -> None:
    """All its operators are there, so that upstream meets the type itself, and throws; `check-compat` tells before."""
    here = request.getfixturevalue(runtime)
    model = eight_bit_output(tmp_path / "model.ort")
    answer = check_compatibility(here.package, [model], console())
    assert not answer.fits
    assert "compiled without 8-bit floats" in answer.models[0].obstacles[0]
    once = Repetition(runs=1, warmup=0, timeout_seconds=60)
    with closing(Host()) as host, pytest.raises(RunnerEnded) as caught:
        host.run(RunRequest(runner=here.runner, library=here.library, model=model, cases=(), repetition=once))
    assert (caught.value.code, caught.value.returncode) == (reference, returncode)
    assert "tensor(float8e5m2) is not currently registered or supported" in caught.value.why


@pytest.mark.build
@pytest.mark.network
def test_a_runtime_fits_the_models_in_its_own_package(installed: Installed, tmp_path: Path) -> None:
    """Through the command line, on the package's archive; and its configuration says the same."""
    unpack(installed.package, tmp_path / "unpacked")
    (model,) = tmp_path.glob("unpacked/*/models/silero-vad.ort")
    words: list[str | Path] = [sys.executable, "-m", "invoke", "check-compat", "--json", "--model", model, "--runtime"]
    done = run([*words, installed.package], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["fits"], document["targets"], document["change"]) == (True, ["linux-x64"], "")
    config = tmp_path / "required_operators.config"
    config.write_text(render_config(read_runtime(installed.package).operators))
    assert json.loads(run([*words, config], cwd=ROOT).stdout)["models"] == document["models"]


@pytest.mark.build
@pytest.mark.network
def test_a_model_of_another_kind_does_not_fit(installed: Installed) -> None:
    """A transformer on the voice detector's runtime; the change is what its own build would have more."""
    answer: CompatibilityAnswer = check_compatibility(
        installed.package, [ROOT / "buildspecs/transformer/encoder.onnx"], console()
    )
    assert not answer.fits
    assert {"LayerNormalization", "Softmax", "MatMul"} <= {
        each.operator.name for each in answer.models[0].operators if each.missing
    }
    assert "ai.onnx;17;LayerNormalization\n" in answer.change
    assert answer.buildspec.startswith('[[models]]\nname = "encoder"\n')
