"""`inspect`: any kind of file, told by its content."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnx_samples import relu, write
from ortrim.errors import BinaryError, Diagnostic, ExitCode, ModelError, OperatorsError
from ortrim.pipeline.inspection import inspect_file

UNIT = Path(__file__).parents[1]
LIBRARY = UNIT / "binaries" / "data" / "tiny.so"
ORT = UNIT / "models" / "data" / "branching_first.ort"
HEADS = (b"", b"\x7fELF", b"\x18\0\0\0ORTM", b"ai.onnx;1;", b"\x08\x07")
CONFIG = "# größe\nai.onnx;13;Gemm,Relu\n"


def test_a_library_shows_what_a_loader_sees() -> None:
    """Facts and sizes, for a library under any name."""
    content = inspect_file(LIBRARY)
    assert content["kind"] == "library"
    assert content["facts"]["machine"] == "x64"
    assert content["size"]["file_bytes"] == LIBRARY.stat().st_size


def test_an_ort_model_shows_its_operators() -> None:
    """Its identifier stands at its fourth byte."""
    content = inspect_file(ORT)
    assert content["kind"] == "ort model"
    assert content["format_version"] == "6"


def test_an_onnx_model_shows_its_inputs(tmp_path: Path) -> None:
    """It has no magic number: it is what nothing else is."""
    content = inspect_file(write(tmp_path / "model.onnx", relu()))
    assert content["kind"] == "onnx model"
    assert [each["name"] for each in content["facts"]["inputs"]] == ["x"]


@pytest.mark.parametrize("name", ["operators.config", "operators.txt", "operators"])
def test_a_configuration_shows_its_operators(tmp_path: Path, name: str) -> None:
    """Text is a configuration whatever it is called, with comments in any script."""
    (tmp_path / name).write_text(CONFIG, encoding="utf-8")
    content = inspect_file(tmp_path / name)
    assert content["kind"] == "operator configuration"
    assert [each["name"] for each in content["required"]["operators"]] == ["Gemm", "Relu"]


def test_a_character_that_is_cut_by_the_look_at_the_head_is_no_binary(tmp_path: Path) -> None:
    """The first kilobyte may end inside a letter."""
    (tmp_path / "operators").write_text(f"#{'x' * 1022}ü\n{CONFIG}", encoding="utf-8")
    assert inspect_file(tmp_path / "operators")["kind"] == "operator configuration"


@pytest.mark.parametrize("name", ["model.so", "model.ort", "library.onnx"])
def test_the_content_decides_not_the_name(tmp_path: Path, name: str) -> None:
    """A library called model.onnx is a library, and a model called model.so is a model."""
    source, kind = (LIBRARY, "library") if name == "library.onnx" else (ORT, "ort model")
    (tmp_path / name).write_bytes(source.read_bytes())
    assert inspect_file(tmp_path / name)["kind"] == kind


def refused(path: Path) -> Diagnostic:
    """Inspect what cannot be inspected and return the diagnostic."""
    with pytest.raises(Diagnostic) as caught:
        inspect_file(path)
    return caught.value


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Missing and not a file are told apart; a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("absent", "there is no such file"), ("", "is not a file"), ("pipe", "is not a file")):
        error = refused(tmp_path / name)
        assert (error.reference, error.exit_code, error.what) == ("file-missing", ExitCode.MODEL, what)
        assert error.where == str(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\xff" * 64, b"\x89PNG\r\n\x1a\n", b"\xff\xfet\x00e\x00"])
def test_what_is_nothing_known_is_refused_as_a_model(tmp_path: Path, content: bytes) -> None:
    """Empty, noise, a picture, text in UTF-16."""
    (tmp_path / "file").write_bytes(content)
    assert isinstance(refused(tmp_path / "file"), ModelError)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(LIBRARY.read_bytes()[:100], BinaryError), (ORT.read_bytes()[:200], ModelError), (b"hello\n", OperatorsError)],
    ids=["library", "ort", "text"],
)
def test_a_damaged_file_is_refused_by_its_own_reader(tmp_path: Path, content: bytes, kind: type[Diagnostic]) -> None:
    """The exit code says of which kind the file would have been."""
    (tmp_path / "file").write_bytes(content)
    assert isinstance(refused(tmp_path / "file"), kind)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.sampled_from(HEADS), tail=st.binary(max_size=80))
def test_no_content_is_more_than_a_diagnostic(tmp_path: Path, head: bytes, tail: bytes) -> None:
    """Whatever is in a file, the answer is data or a diagnostic."""
    (tmp_path / "file").write_bytes(head + tail)
    with suppress(Diagnostic):
        assert "kind" in inspect_file(tmp_path / "file")
