"""One cause of a refusal by the full runtime has one code, one hint and one exit code, whatever command meets it."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, version_converter

from onnx_samples import model_of, value, write
from ortrim.base.console import Console
from ortrim.cases.found import found_cases
from ortrim.cli.options import request_from
from ortrim.compat.check import check_compatibility
from ortrim.errors import Diagnostic, ExitCode
from ortrim.lint.rules import BY_CODE
from ortrim.lint.run import LintRequest, failure_of, lint_models
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import prepare
from ortrim.models.refusals import CAUSES, CRASH_HINT, LOAD_HINT
from ortrim.spec.buildspec import CaseSpec, ModelSpec
from ortrim.verify.cases import make_cases
from ortrim.verify.reference import reference_outputs

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CONSOLE: Final = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
Change = Callable[[onnx.ModelProto], onnx.ModelProto]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found in the cache that another test put there."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def runtime() -> FullRuntime:
    """Give the installed full runtime."""
    return full_runtime(onnxruntime.__version__, None)


def sparse(shape: tuple[int, int], name: str = "w") -> onnx.SparseTensorProto:
    """Return three ones in a matrix."""
    values = helper.make_tensor(name, FLOAT, [3], [1.0] * 3)
    return helper.make_sparse_tensor(values, helper.make_tensor(f"{name}_at", INT64, [3], [0, 1, 2]), shape)


def with_sparse(model: onnx.ModelProto, shape: tuple[int, int]) -> onnx.ModelProto:
    """Return the model with a sparse initializer `w`."""
    model.graph.sparse_initializer.append(sparse(shape))
    return model


def normalizer() -> onnx.ModelProto:
    """Return a model that needs a locale which no machine has."""
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER", locale="xx_XX")
    return model_of([node], [value("x", TensorProto.STRING, (3,))], [value("y", TensorProto.STRING, (None,))])


def shrinking(operator: str = "Upsample") -> onnx.ModelProto:
    """Return a model that makes an image half as large by an operator of opset 9."""
    scales = numpy_helper.from_array(np.array([1, 1, 0.5, 0.5], np.float32), "scales")
    node = helper.make_node(operator, ["x", "scales"], ["y"], mode="nearest")
    ends = [value("x", shape=(1, 1, 4, 4))], [value("y", shape=(1, 1, 2, 2))]
    return model_of([node], *ends, opsets=[("", 9)], initializers=[scales])


def shrinking_when_run() -> onnx.ModelProto:
    """Return one that loads and does not run: the scales are computed."""
    model = shrinking()
    model.graph.initializer[0].name = "given"
    model.graph.node.insert(0, helper.make_node("Abs", ["given"], ["scales"]))
    model.graph.input.append(value("given", shape=(4,)))
    return model


def quantized(opset: int, kind: type[np.generic], domain: str = "") -> onnx.ModelProto:
    """Return a model that quantizes to integers of a type."""
    constants = [
        numpy_helper.from_array(np.array(0.5, np.float32), "scale"),
        numpy_helper.from_array(np.array(0, kind), "zero"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], domain=domain),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], domain=domain),
    ]
    return model_of(nodes, opsets=[("", opset), ("com.microsoft", 1)], initializers=constants, ir_version=9)


def sparse_operand() -> onnx.ModelProto:
    """Return a model that gives sparse weights to the operator that should take them."""
    node = helper.make_node("SparseToDenseMatMul", ["w", "x"], ["y"], domain="com.microsoft")
    ends = [value("x", shape=(4, 4))], [value("y", shape=(4, 4))]
    return with_sparse(model_of([node], *ends, opsets=[("", 17), ("com.microsoft", 1)]), (4, 4))


def huge(*, constant: bool, side: int = 2**20) -> onnx.ModelProto:
    """Return a model of a few hundred bytes with a sparse matrix of terabytes, or of more than can be counted."""
    nodes = [helper.make_node("Constant", [], ["w"], sparse_value=sparse((side, side), ""))] if constant else []
    nodes += [
        helper.make_node("Size", ["w"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=FLOAT),
        helper.make_node("Add", ["x", "b"], ["y"]),
    ]
    model = model_of(nodes)
    return model if constant else with_sparse(model, (side, side))


def split(parts: int) -> onnx.ModelProto:
    """Return a model whose sizes of parts are to lie in another file."""
    names = [f"y{number}" for number in range(parts)]
    sizes = numpy_helper.from_array(np.ones(parts, np.int64), "sizes")
    node = helper.make_node("Split", ["x", "sizes"], names, axis=0)
    outputs = [value(name) for name in names]
    return model_of([node], [value("x", shape=(parts,))], outputs, initializers=[sizes])


def beside(path: Path, model: onnx.ModelProto) -> Path:
    """Write a model with all constants in another file."""
    onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)
    return path


def to_c_locale(model: onnx.ModelProto) -> onnx.ModelProto:
    """Apply the hint."""
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "locale":
            attribute.s = b"C"
    return model


def to_opset(version: int) -> Change:
    """Apply the hint that names `onnx.version_converter`."""
    return lambda model: version_converter.convert_version(model, version)


def to_microsoft(model: onnx.ModelProto) -> onnx.ModelProto:
    """Apply the hint that names the domain."""
    for node in model.graph.node:
        node.domain = "com.microsoft"
    return model


def to_matmul(model: onnx.ModelProto) -> onnx.ModelProto:
    """Apply the hint that names another operator."""
    model.graph.node[0].op_type, model.graph.node[0].domain = "MatMul", ""
    return model


def to_dense(model: onnx.ModelProto) -> onnx.ModelProto:
    """Apply the hint: a smaller matrix."""
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    return model_of(model.graph.node[-3:], initializers=[weights])


def as_it_is(model: onnx.ModelProto) -> onnx.ModelProto:
    """Leave a model, which is then written as one file."""
    return model


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A model that is refused for a cause, and what its hint says to do, each way by itself."""

    code: str
    model: Callable[[], onnx.ModelProto]
    changes: tuple[Change, ...]
    write: Callable[[Path, onnx.ModelProto], Path] = write


REFUSED: Final = {
    "locale": Refused(code="locale-missing", model=normalizer, changes=(to_c_locale,)),
    "upsample": Refused(code="upsample-shrinks", model=shrinking, changes=(to_opset(17), to_opset(10))),
    **{
        f"{kind.__name__} of opset {opset}": Refused(
            code="quantize-16-bits",
            model=lambda kind=kind, opset=opset: quantized(opset, kind),  # type: ignore[misc]
            changes=(to_opset(21), to_microsoft),
        )
        for kind, opset in ((np.uint16, 13), (np.int16, 19))
    },
    "sparse operand": Refused(code="sparse-operand", model=sparse_operand, changes=(to_matmul,)),
    "sparse constant": Refused(code="weights-exceed-memory", model=lambda: huge(constant=True), changes=(to_dense,)),
    "sparse weights": Refused(code="weights-exceed-memory", model=lambda: huge(constant=False), changes=(to_dense,)),
    "countless": Refused(
        code="weights-exceed-memory", model=lambda: huge(constant=False, side=2**31), changes=(to_dense,)
    ),
    "large shape": Refused(code="external-shape", model=lambda: split(600), changes=(as_it_is,), write=beside),
}
"""By what is special in it."""


def kept(path: Path, folder: Path) -> PreparedModel:
    """Return ortrim's copy of a model."""
    spec = ModelSpec(name="m", path=Path(path.name))
    return prepare(spec, base=path.parent, root=folder, ort_version=onnxruntime.__version__, where="here")


def diagnostics(path: Path, runtime: FullRuntime, folder: Path) -> Iterator[tuple[str, Diagnostic | None]]:
    """Yield what each command that loads the model ends with: None when it has nothing to say."""
    model = kept(path, folder / "models")
    for name in ("conversions", "references", "cases"):
        (folder / name).mkdir()
    theirs = folder / "theirs.config"
    theirs.write_text("!no_ops_specified_means_all_ops_are_required\n")

    def referred() -> object:
        cases = make_cases(model, ModelSpec(name="m", path=path, cases=(CaseSpec(name="c"),)), folder, folder / "cases")
        return reference_outputs(model, cases, runtime, folder / "references")

    commands: dict[str, Callable[[], Any]] = {
        "convert": lambda: convert(model, Conversion(), runtime=runtime, root=folder / "conversions"),
        "plan": lambda: found_cases(model, runtime, lambda _: None),
        "verify": referred,
        "check-compat": lambda: check_compatibility(theirs, [path], CONSOLE),
    }
    for name, command in commands.items():
        try:
            command()
        except Diagnostic as error:
            yield name, error
        else:
            yield name, None


def linted(path: Path) -> tuple[dict[str, str], Diagnostic | None]:
    """Return the codes of the errors that `lint` finds, with their words, and what it ends with."""
    found = lint_models(LintRequest(models=(str(path),), request=request_from(None)), CONSOLE)
    return {error.code: error.words for error in found.models[0].errors}, failure_of(found)


@pytest.mark.parametrize("case", REFUSED)
def test_a_cause_is_the_same_whatever_command_meets_it(case: str, runtime: FullRuntime, tmp_path: Path) -> None:
    """Code, what, hint, exit code and ONNX Runtime's own words."""
    refused = REFUSED[case]
    (cause,) = (cause for cause in CAUSES if cause.code == refused.code)
    path = refused.write(tmp_path / "m.onnx", refused.model())
    whys = set()
    for name, met in diagnostics(path, runtime, tmp_path):
        assert met is not None, name
        assert (met.code, met.what, met.hint) == (cause.code, cause.what, cause.hint), name
        assert met.exit_code == ExitCode.MODEL, name
        whys.add(met.why)
    assert len(whys) == 1
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
    assert {cause.code for cause in CAUSES if not cause.converted} == {each.code for each in REFUSED.values()}


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


def test_a_cause_that_only_running_meets_is_the_same(runtime: FullRuntime, tmp_path: Path) -> None:
    """The scales are computed, so that the model loads and converts."""
    path = write(tmp_path / "m.onnx", shrinking_when_run())
    met = dict(diagnostics(path, runtime, tmp_path))
    assert (met["convert"], met["check-compat"]) == (None, None)
    assert {met[name].code for name in ("plan", "verify")} == {"upsample-shrinks"}  # type: ignore[union-attr]
    assert list(linted(path)[0]) == ["upsample-shrinks"]


def test_an_unknown_refusal_is_the_same(runtime: FullRuntime, tmp_path: Path) -> None:
    """`check-compat` answers: another version might take the model."""
    path = write(tmp_path / "m.onnx", model_of([helper.make_node("Concat", ["x", "x"], ["y"], axis=7)]))
    met = dict(diagnostics(path, runtime, tmp_path))
    assert met.pop("check-compat") is None
    for name, each in met.items():
        assert each is not None, name
        assert (each.code, each.hint, each.exit_code) == ("does-not-load", LOAD_HINT, ExitCode.MODEL), name
    assert list(linted(path)[0]) == ["does-not-load"]
    assert BY_CODE["does-not-load"].fix == LOAD_HINT


def dividing() -> onnx.ModelProto:
    """Return a model that divides an integer by 0, at which ONNX Runtime's process dies (1.21.0)."""
    zero = numpy_helper.from_array(np.zeros(1, np.int32), "zero")
    ends = [value("x", TensorProto.FLOAT)], [value("y", TensorProto.INT32)]
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.INT32),
        helper.make_node("Div", ["a", "zero"], ["y"]),
    ]
    return model_of(nodes, *ends, initializers=[zero])


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
