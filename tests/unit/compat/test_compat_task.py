"""`check-compat` at its boundary, with models in ORT format, for which no converter is needed."""

import shutil
from pathlib import Path

import pytest
from onnx import helper

from onnx_samples import relu, write
from program_runs import Run

RECORDED = Path(__file__).parents[1] / "models" / "data" / "branching_first.ort"
ALL = "ai.onnx;13;Abs,Sqrt,Tanh,Exp,Floor,Neg\nai.onnx;14;Relu\nai.onnx;16;If\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration with all that the model needs."""
    path = tmp_path / "theirs.config"
    path.write_text(ALL)
    return path


def words(config: Path, *more: str) -> tuple[str, ...]:
    return ("check-compat", "--runtime", str(config), "--model", str(RECORDED), *more)


def test_a_model_that_fits_ends_well(ortrim: Run, config: Path) -> None:
    ended = ortrim(*words(config))
    assert (ended.code, ended.err) == (0, "")
    assert "fits theirs.config, ONNX Runtime 1.21.0" in ended.out
    row = next(line for line in ended.out.splitlines() if line.startswith("ai.onnx If"))
    assert row.split() == ["ai.onnx", "If", "16", "bool,", "float", "is", "there"]


def test_models_are_words_as_the_help_says(ortrim: Run, config: Path) -> None:
    """On either side of the runtime; one that is not named is asked for."""
    for given in (("--runtime", str(config), str(RECORDED)), (str(RECORDED), "--runtime", str(config))):
        assert (ortrim("check-compat", *given).code, ortrim("check-compat", *given).err) == (0, "")
    ended = ortrim("check-compat", str(RECORDED))
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: bad-usage")
    assert "check-compat MODEL.onnx --runtime PACKAGE" in ended.err


def test_models_are_those_of_folders_and_patterns(ortrim: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    shutil.copy(RECORDED, tmp_path / "nets" / "a.ort")
    (tmp_path / "nets" / "b.onnx").write_text("hello")
    for word, names in ((tmp_path / "nets", ["a.ort", "b.onnx"]), (tmp_path / "nets" / "*.ort", ["a.ort"])):
        document = ortrim("check-compat", str(word), "--runtime", str(config), "--json").document()
        assert [Path(each["model"]).name for each in document["models"]] == names
    assert [(each["code"], each["exit_code"]) for each in document["models"]] == [("", 0)]
    (tmp_path / "none").mkdir()
    ended = ortrim("check-compat", str(tmp_path / "none"), "--runtime", str(config))
    assert (ended.code, "no .onnx or .ort file in the folder" in ended.err) == (11, True)


def test_what_is_missing_stands_first(ortrim: Run, config: Path) -> None:
    """Then the smallest change; the exit code is that of operators that are not satisfied."""
    config.write_text(ALL.replace("ai.onnx;14;Relu\n", ""))
    ended = ortrim(*words(config))
    assert ended.code == 13
    assert ended.err.startswith("error: model-does-not-fit\n")
    assert "missing: the operator" in ended.out.splitlines()[1]
    assert 'ai.onnx;14;Relu{"inputs": {"0": ["float"]}}' in ended.out


def test_one_json_document_either_way(ortrim: Run, config: Path) -> None:
    document = ortrim(*words(config, "--json")).document()
    assert (document["schema"], document["fits"], document["errors"]) == ("ortrim-compatibility/2", True, [])
    config.write_text(ALL.replace("Floor,", ""))
    ended = ortrim(*words(config, "--model", str(RECORDED), "--json"))
    document = ended.document()
    assert (ended.code, document["errors"][0]["code"], len(document["models"])) == (13, "model-does-not-fit", 2)
    (baseline,) = [each for each in document["models"][0]["operators"] if each["missing"]]
    assert baseline["operator"] == {"domain": "ai.onnx", "opset": 13, "name": "Floor"}


@pytest.mark.parametrize(
    ("more", "code", "reference"),
    [(("--model", "absent.onnx"), 11, "model-missing"), (("--ort-version", "0.1"), 2, "bad-option")],
)
def test_trouble_ends_with_its_own_code(
    ortrim: Run, config: Path, more: tuple[str, ...], code: int, reference: str
) -> None:
    ended = ortrim(*words(config, *more, "--json"))
    assert (ended.code, ended.document()["errors"][0]["code"]) == (code, reference)


def test_what_is_to_be_changed_is_an_option_and_no_key(ortrim: Run, config: Path, tmp_path: Path) -> None:
    """Nobody who calls this task wrote a buildspec."""
    newer = helper.make_model(relu().graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=8)
    ended = ortrim(*words(config, "--model", str(write(tmp_path / "newer.onnx", newer))))
    assert "--ort-version" in ended.err
    assert "onnxruntime.version" not in ended.err


def test_names_that_would_command_a_terminal_are_shown_harmless(ortrim: Run, config: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil.ort"
    evil.write_bytes(RECORDED.read_bytes().replace(b"Floor", b"\x1b[2J "))
    ended = ortrim("check-compat", "--runtime", str(config), "--model", str(evil))
    assert ended.code == 13
    assert "\x1b" not in ended.out + ended.err
