"""One cause of a refusal by the full runtime has one code, one hint and one exit code, whatever command meets it."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from onnx_samples import model_of, value, write
from ortrim.analysis.compat import check_compatibility
from ortrim.analysis.compat import failure_of as unfit
from ortrim.analysis.cost.run import CostsAsked, costs_of
from ortrim.analysis.lint.rules import BY_CODE
from ortrim.analysis.lint.run import LintRequest, failure_of, lint_models
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import CaseSpec, ModelSpec
from ortrim.cli.options import request_from
from ortrim.errors import Diagnostic, ExitCode
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import prepare
from ortrim.models.refusals import CAUSES, CONVERTED, CRASH_HINT, LOAD_HINT
from ortrim.parity.cases.found import found_cases
from ortrim.parity.inputs import make_cases
from ortrim.parity.reference import reference_outputs
from refused_models import BIG, REFUSED, beside, dividing, shrinking_when_run, sized, split, unwrapped, wrapped

pytestmark = pytest.mark.usefixtures("cache")

CONSOLE: Final = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})


@pytest.fixture(scope="module")
def runtime() -> FullRuntime:
    return full_runtime(onnxruntime.__version__, None)


def kept(path: Path, folder: Path) -> PreparedModel:
    spec = ModelSpec(name="m", path=Path(path.name))
    return prepare(spec, base=path.parent, root=folder, ort_version=onnxruntime.__version__, where="here")


def diagnostics(path: Path, runtime: FullRuntime, folder: Path) -> Iterator[tuple[str, Diagnostic | None]]:
    """Yield what each command that loads the model ends with: None when it has nothing to say."""
    for name in ("conversions", "references", "cases"):
        (folder / name).mkdir()
    theirs = folder / "theirs.config"
    theirs.write_text("!no_ops_specified_means_all_ops_are_required\n")

    def model() -> PreparedModel:
        return kept(path, folder / "models")

    def referred() -> object:
        cases = make_cases(
            model(), ModelSpec(name="m", path=path, cases=(CaseSpec(name="c"),)), folder, folder / "cases"
        )
        return reference_outputs(model(), cases, runtime, folder / "references")

    commands: dict[str, Callable[[], Any]] = {
        "convert": lambda: convert(model(), Conversion(), runtime=runtime, root=folder / "conversions"),
        "plan": lambda: found_cases(model(), runtime, lambda _: None),
        "verify": referred,
        "check-compat": lambda: unfit(check_compatibility(theirs, [path], CONSOLE)),
    }
    for name, command in commands.items():
        try:
            ended = command()
        except Diagnostic as error:
            yield name, error
        else:
            yield name, ended if isinstance(ended, Diagnostic) else None


def linted(path: Path) -> tuple[dict[str, str], Diagnostic | None]:
    """Return the codes of the errors that `lint` finds, with their words, and what it ends with."""
    found = lint_models(LintRequest(models=(str(path),), request=request_from(None)), CONSOLE)
    return {error.code: error.words for error in found[0].errors}, failure_of(found)


@pytest.mark.parametrize("case", REFUSED)
def test_a_cause_is_the_same_whatever_command_meets_it(case: str, runtime: FullRuntime, tmp_path: Path) -> None:
    """Code, what, hint, exit code and ONNX Runtime's own words."""
    refused = REFUSED[case]
    (cause,) = (cause for cause in CAUSES if cause.code == refused.code)
    path = refused.write(tmp_path / "m.onnx", refused.model())
    whys = set()
    for name, met in diagnostics(path, runtime, tmp_path):
        assert met is not None, name
        assert (met.code, met.exit_code) == (cause.code, ExitCode.MODEL), name
        if name == "check-compat":  # it answers for each model
            assert met.why.startswith(f"{path}: {cause.what}; ")
            assert met.why.endswith(cause.hint)
            continue
        assert (met.what, met.hint) == (cause.what, cause.hint), name
        whys.add(met.why)
    assert len(whys) == refused.ways
    findings, failure = linted(path)
    assert list(findings) == [cause.code]
    assert (BY_CODE[cause.code].title, BY_CODE[cause.code].fix) == (cause.what, cause.hint)
    assert failure is not None
    assert failure.exit_code == ExitCode.MODEL
    assert findings[cause.code].replace("m.onnx", "m") in whys


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_hint_says_helps(case: str, runtime: FullRuntime, tmp_path: Path) -> None:
    """Each of the changes that it names makes a model that converts and runs."""
    for number, change in enumerate(REFUSED[case].changes):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = kept(write(folder / "m.onnx", change(REFUSED[case].model())), folder / "models")
        convert(model, Conversion(), runtime=runtime, root=folder)
        assert found_cases(model, runtime, lambda _: None).cases


def test_every_cause_has_a_model_that_is_refused_for_it() -> None:
    """What converting alone meets needs other versions, or weights that one version fuses."""
    assert {cause.code for cause in CAUSES} - CONVERTED == {each.code for each in REFUSED.values()}


def test_small_constants_of_shapes_may_lie_in_another_file(runtime: FullRuntime, tmp_path: Path) -> None:
    """They are loaded into our copy of the model, since ONNX Runtime does not look for them."""
    path = beside(tmp_path / "m.onnx", split(2))
    with pytest.raises(Exception, match="Cannot parse data from external tensors"):
        onnxruntime.InferenceSession(str(path))
    assert dict(diagnostics(path, runtime, tmp_path)) == dict.fromkeys(("convert", "plan", "verify", "check-compat"))
    assert linted(path) == ({}, None)


def test_weights_stay_beside_a_model_whose_shapes_are_taken_in(runtime: FullRuntime, tmp_path: Path) -> None:
    """Only small vectors are loaded, and the values of both are right."""
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    constants = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.array([8, 8], np.int64), "shape"),
    ]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Reshape", ["a", "shape"], ["y"])]
    ends = [value("x", shape=(1, 64))], [value("y", shape=(8, 8))]
    path = beside(tmp_path / "m.onnx", model_of(nodes, *ends, initializers=constants))
    copy = kept(path, tmp_path / "models")
    assert [
        len(tensor.external_data) > 0 for tensor in onnx.load(copy.path, load_external_data=False).graph.initializer
    ] == [True, False]
    fed = {"x": np.ones((1, 64), np.float32)}
    assert np.allclose(
        onnxruntime.InferenceSession(str(copy.path)).run(None, fed)[0].ravel(), weights.sum(axis=0), atol=1e-4
    )
    assert linted(path) == ({}, None)


@pytest.mark.parametrize(
    ("model", "code"),
    [(shrinking_when_run(), "upsample-shrinks"), (sized(own=True), "values-exceed-memory")],
    ids=["scales", "size"],
)
def test_a_cause_that_only_running_meets_is_the_same(
    model: onnx.ModelProto, code: str, runtime: FullRuntime, tmp_path: Path
) -> None:
    """What decides it is computed, so that the model loads and converts."""
    path = write(tmp_path / "m.onnx", model)
    met = dict(diagnostics(path, runtime, tmp_path))
    assert (met["convert"], met["check-compat"]) == (None, None)
    assert {met[name].code for name in ("plan", "verify")} == {code}  # type: ignore[union-attr]
    assert list(linted(path)[0]) == [code]


def test_a_size_for_which_memory_lacks_is_no_fault_of_a_model_that_runs_with_others(tmp_path: Path) -> None:
    assert linted(write(tmp_path / "m.onnx", sized(count=BIG // 2**20, own=True)))[0] == {}


def test_an_unknown_refusal_is_the_same(runtime: FullRuntime, tmp_path: Path) -> None:
    """`check-compat` answers for each model, with the same code."""
    path = write(tmp_path / "m.onnx", model_of([helper.make_node("Concat", ["x", "x"], ["y"], axis=7)]))
    met = dict(diagnostics(path, runtime, tmp_path))
    answered = met.pop("check-compat")
    assert answered is not None
    assert (answered.code, answered.exit_code) == ("does-not-load", ExitCode.MODEL)
    for name, each in met.items():
        assert each is not None, name
        assert (each.code, each.hint, each.exit_code) == ("does-not-load", LOAD_HINT, ExitCode.MODEL), name
        assert "axis" in each.why, name
    assert list(linted(path)[0]) == ["does-not-load"]
    assert BY_CODE["does-not-load"].fix == LOAD_HINT


def looped() -> onnx.ModelProto:
    """Return a model whose function calls itself."""
    imports = [("", 17), ("own", 1)]
    model = model_of([helper.make_node("F", ["x"], ["y"], domain="own")], opsets=imports)
    calls = [helper.make_node("F", ["a"], ["b"], domain="own")]
    model.functions.append(
        helper.make_function("own", "F", ["a"], ["b"], calls, [*map(helper.make_opsetid, *zip(*imports, strict=True))])
    )
    return model


def without(*parts: str) -> onnx.ModelProto:
    """Return a model whose graph lacks nodes, outputs or both."""
    model = model_of([helper.make_node("Relu", ["x"], ["y"])])
    for part in parts:
        model.graph.ClearField(part)
    return model


def using(operator: str, domain: str = "", kind: int = onnx.TensorProto.FLOAT, inputs: int = 1) -> onnx.ModelProto:
    """Return a model of one node."""
    node = helper.make_node(operator, ["x"] * inputs, ["y"], domain=domain)
    opsets = [("", 17), *([(domain, 1)] if domain else [])]
    return model_of([node], [value("x", kind)], [value("y", kind)], opsets=opsets)


def twice() -> onnx.ModelProto:
    """Return a model two of whose nodes give the same value."""
    return model_of([helper.make_node(name, ["x"], ["y"]) for name in ("Relu", "Abs")])


@pytest.mark.parametrize(
    ("model", "code", "exit_code"),
    [
        (using("Relu", kind=onnx.TensorProto.BFLOAT16), "no-kernel", ExitCode.OPERATORS),
        (using("Foo", "my.own"), "unknown-operator", ExitCode.OPERATORS),
        (using("Foo"), "unknown-operator", ExitCode.OPERATORS),
        (using("ComplexMul", "com.microsoft", inputs=2), "other-provider-only", ExitCode.OPERATORS),
        (looped(), "model-invalid", ExitCode.MODEL),
        (twice(), "model-invalid", ExitCode.MODEL),
        (without("output"), "no-outputs", ExitCode.MODEL),
        (without("input", "node", "output"), "no-outputs", ExitCode.MODEL),
    ],
    ids=["types", "custom", "unknown", "for GPUs", "recursive", "same name", "no outputs", "empty"],
)
def test_what_is_wrong_with_a_model_is_the_same(
    model: onnx.ModelProto, code: str, exit_code: ExitCode, runtime: FullRuntime, tmp_path: Path
) -> None:
    """For whatever reason; `cost` runs nothing, and does not meet what only ONNX Runtime says."""
    path = write(tmp_path / "m.onnx", model)
    met = {name: each and (each.code, each.exit_code) for name, each in diagnostics(path, runtime, tmp_path)}
    assert met == dict.fromkeys(met, (code, exit_code))
    ends: list[tuple[str, int]] = []
    with suppress(Diagnostic), watching(ends):
        findings, failure = linted(path)
        assert list(findings) == [code]
        assert failure is not None
        ends.append((code, failure.exit_code))
    with suppress(Diagnostic), watching(ends):
        costs_of(str(path), CostsAsked(dimensions={}), CONSOLE)
    assert ends
    assert ends == [(code, exit_code)] * len(ends)


@contextmanager
def watching(ends: list[tuple[str, int]]) -> Iterator[None]:
    """Keep the code and the exit code with which something ends."""
    try:
        yield
    except Diagnostic as error:
        ends.append((error.code, error.exit_code))
        raise


def test_a_crash_is_said_with_its_signal_by_all(runtime: FullRuntime, tmp_path: Path) -> None:
    """Also where the search goes on without what crashed, and finds nothing else to try."""
    path = write(tmp_path / "m.onnx", dividing())
    met = dict(diagnostics(path, runtime, tmp_path))
    for name in ("plan", "verify"):
        each = met[name]
        assert each is not None, name
        assert (each.code, each.exit_code) == ("crashes-runtime", ExitCode.MODEL), name
        assert "crashed (SIGFPE)" in each.what, name
        assert each.hint == CRASH_HINT, name
    findings, _ = linted(path)
    assert list(findings) == ["crashes-runtime"]
    assert re.search(r"crashed \(SIGFPE\)", findings["crashes-runtime"])


def test_optional_values_are_refused_by_whatever_converts_with_what_lint_says(
    runtime: FullRuntime, tmp_path: Path
) -> None:
    """The full runtime loads and runs such a model; ORT format holds none."""
    path = write(tmp_path / "m.onnx", wrapped())
    met = dict(diagnostics(path, runtime, tmp_path))
    assert (met.pop("plan"), met.pop("verify")) == (None, None)
    assert {(each.code, each.exit_code) for each in met.values() if each} == {("optional-values", ExitCode.MODEL)}
    assert met["convert"] is not None
    assert met["convert"].hint == BY_CODE["optional-values"].fix
    findings, failure = linted(path)
    assert (list(findings), failure and failure.exit_code) == (["optional-values"], ExitCode.MODEL)
    convert(
        kept(write(path, unwrapped()), tmp_path / "without"), Conversion(), runtime=runtime, root=tmp_path / "without"
    )
