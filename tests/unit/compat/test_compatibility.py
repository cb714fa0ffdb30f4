"""`check-compat` without a converter: what it answers of a model in ORT format, and when conversions differ."""

import io
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from fake_sources import private_cache
from onnx_samples import branching, model_of, relu, write
from ortrim.analysis import compat as trials
from ortrim.analysis.compat import CompatibilityAnswer, check_compatibility, failure_of
from ortrim.base.console import Console
from ortrim.buildspec.load import name_from
from ortrim.errors import ConvertError, Diagnostic, ExitCode, ModelError, OperatorsError
from ortrim.models.convert import Conversion
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel, PreparedModel
from refusing import refused

RECORDED = Path(__file__).parents[1] / "models" / "data" / "branching_first.ort"
ALL = "ai.onnx;6;Abs\nai.onnx;13;Abs,Sqrt,Tanh,Exp,Floor,Neg\nai.onnx;14;Relu\nai.onnx;16;If\n"
WITHOUT_RELU = ALL.replace("ai.onnx;14;Relu\n", "")
Outcome = Path | Diagnostic


@pytest.fixture
def converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Outcome]:
    private_cache(tmp_path, monkeypatch)
    answers: dict[tuple[str, str], Outcome] = {}
    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=tmp_path, library=tmp_path / "full.so")
    monkeypatch.setattr(trials, "full_runtime", lambda *_: runtime)

    def convert(model: PreparedModel, conversion: Conversion, **_: Any) -> OrtModel:
        outcome = answers.get((conversion.style, conversion.level), RECORDED)
        if isinstance(outcome, Diagnostic):
            raise outcome
        return OrtModel(
            name=model.name, path=outcome, sha256="0" * 64, size_bytes=1, ort_version="1.21.0", style=conversion.style,
            level=conversion.level, config="",
        )  # fmt: skip

    monkeypatch.setattr(trials, "convert", convert)
    monkeypatch.setattr(trials, "loads_in_place", lambda *_, **__: True)
    return answers


def check(tmp_path: Path, config: str, *models: Path) -> CompatibilityAnswer:
    path = tmp_path / "theirs.config"
    path.write_text(config)
    return check_compatibility(path, models, Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={}))


def test_a_converted_model_fits_as_it_is(tmp_path: Path) -> None:
    answer = check(tmp_path, ALL, RECORDED)
    (model,) = answer.models
    assert (answer.fits, answer.change, answer.buildspec, model.conversion) == (True, "", "", "")
    assert failure_of(answer) is None


def test_what_a_model_lacks_is_the_change(tmp_path: Path) -> None:
    """In the failure's words too, with the class for operators that are not satisfied."""
    answer = check(tmp_path, WITHOUT_RELU, RECORDED)
    assert answer.change == 'ai.onnx;14;Relu{"inputs": {"0": ["float"]}}\n'
    failure = failure_of(answer)
    assert isinstance(failure, OperatorsError)
    assert (failure.code, failure.exit_code) == ("model-does-not-fit", ExitCode.OPERATORS)
    assert failure.why == f"{RECORDED}: ai.onnx Relu (14) is missing: the operator"
    assert "smallest change" in failure.hint


def test_one_answer_for_several_models(tmp_path: Path, converter: dict[tuple[str, str], Outcome]) -> None:
    """Each by itself; the buildspec's lines are those of the models that do not fit and can be converted again."""
    other = write(tmp_path / 'My "Model" 2.onnx', branching())
    answer = check(tmp_path, WITHOUT_RELU, RECORDED, other)
    assert [model.fits for model in answer.models] == [False, False]
    assert answer.models[1].conversion == "style 'fixed', level 'extended'"
    escaped = str(other).replace('"', '\\"')
    assert answer.buildspec == f'[[models]]\nname = "my-model-2"\npath = "{escaped}"\n'
    failure = failure_of(answer)
    assert failure is not None
    assert failure.what == "2 of 2 models would not run on it"


def test_another_level_is_a_remedy_when_it_was_tried(tmp_path: Path, converter: dict[tuple[str, str], Outcome]) -> None:
    missing = tmp_path / "unfit.ort"
    missing.write_bytes(RECORDED.read_bytes().replace(b"Floor", b"Flood"))
    converter["fixed", "extended"] = missing
    converter["fixed", "disable"] = ConvertError("conversion-failed", "no")
    (model,) = check(tmp_path, ALL, write(tmp_path / "m.onnx", branching())).models
    assert model.remedies == ("convert it with style 'fixed', level 'basic'",)
    assert not model.fits
    failure = failure_of(check(tmp_path, ALL, tmp_path / "m.onnx"))
    assert failure is not None
    assert failure.hint == "without a new runtime: convert it with style 'fixed', level 'basic'"


def test_an_operator_without_any_kernel_is_an_answer(tmp_path: Path, converter: dict[tuple[str, str], Outcome]) -> None:
    """Such a model runs nowhere; what else was asked is answered as well, and the code is that of any other command."""
    converter["fixed", "extended"] = OperatorsError(
        "no-kernel", "there is no kernel of my.ops Foo", hint="a custom one"
    )
    answer = check(tmp_path, ALL, write(tmp_path / "m.onnx", branching()), RECORDED)
    assert [model.fits for model in answer.models] == [False, True]
    assert answer.models[0].obstacles == ("there is no kernel of my.ops Foo; a custom one",)
    assert (answer.change, answer.buildspec) == ("", "")
    failure = failure_of(answer)
    assert failure is not None
    assert (failure.code, failure.exit_code, failure.hint) == (
        "no-kernel",
        ExitCode.OPERATORS,
        "change the model as it says",
    )


@pytest.mark.parametrize(("opset", "ir_version", "word"), [(99, 8, "opset 99"), (17, 99, "IR version 99")])
def test_a_model_newer_than_the_runtime_is_an_answer(
    tmp_path: Path, converter: dict[tuple[str, str], Outcome], opset: int, ir_version: int, word: str
) -> None:
    """What ONNX Runtime of that version does not take is said; of an IR version, a number alone is none of it."""
    node = helper.make_node("Cast", ["x"], ["y"], to=99)
    path = write(tmp_path / "m.onnx", model_of([node], opsets=[("", opset)], ir_version=ir_version))
    (model,) = check(tmp_path, ALL, path).models
    assert not model.fits
    assert word in model.obstacles[0]
    assert model.remedies == ()


def test_a_model_whose_types_the_runtime_does_not_take_is_an_answer(
    tmp_path: Path, converter: dict[tuple[str, str], Outcome]
) -> None:
    """In ONNX Runtime's words, recorded of 1.24.4, which name the type."""
    why = "Load model from m failed:This is an invalid model. Type Error: Type 'tensor(int2)' of input is invalid."
    converter["fixed", "extended"] = ModelError("does-not-load", "it does not load the model", why=why)
    (model,) = check(tmp_path, ALL, write(tmp_path / "m.onnx", branching())).models
    assert not model.fits
    assert model.obstacles == (f"it does not load the model; {why}",)


def test_whatever_is_wrong_with_a_model_is_its_answer(
    tmp_path: Path, converter: dict[tuple[str, str], Outcome]
) -> None:
    """It ends as in any other command, the gravest last where there are several."""
    converter["fixed", "extended"] = ConvertError("conversion-failed", "no", why="it says so", hint="another level")
    unlike, text = write(tmp_path / "m.onnx", relu()), tmp_path / "text.onnx"
    text.write_text("hello")
    for models, code, exit_code in (
        ((unlike,), "conversion-failed", ExitCode.CONVERT),
        ((text,), "not-onnx", ExitCode.MODEL),
        ((text, unlike, RECORDED), "model-does-not-fit", ExitCode.CONVERT),
    ):
        answer = check(tmp_path, ALL, *models)
        failure = failure_of(answer)
        assert failure is not None
        assert (failure.code, failure.exit_code) == (code, exit_code)
    assert [model.fits for model in answer.models] == [False, False, True]
    assert answer.models[1].obstacles == ("no; it says so; another level",)


def test_no_model_is_not_an_answer(tmp_path: Path, converter: dict[tuple[str, str], Outcome]) -> None:
    assert refused(Diagnostic, check, tmp_path, ALL, RECORDED, tmp_path / "absent.onnx").code == "model-missing"
    error = refused(Diagnostic, check, tmp_path, ALL)
    assert (error.code, error.exit_code) == ("no-model", ExitCode.USAGE)


def test_a_long_answer_is_cut_in_the_failure(tmp_path: Path) -> None:
    failure = failure_of(check(tmp_path, "ai.onnx;1;Foo\n", RECORDED, RECORDED))
    assert failure is not None
    assert len(failure.why.splitlines()) == 13
    assert failure.why.splitlines()[-1].startswith("and ")


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/Model V2.onnx", "model-v2"), ("ä.onnx", "model"), ("-.onnx", "model"), ("x" * 99 + ".ort", "x" * 64)],
)
def test_any_file_gives_a_name_for_a_buildspec(path: str, name: str) -> None:
    assert (name_from(Path(path)) or "model") == name
