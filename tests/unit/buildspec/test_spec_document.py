"""Files that are no TOML, or no files at all."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.buildspec.load import LARGEST_BYTES, _parsed, _text, load_spec, read_document
from ortrim.errors import Diagnostic, ExitCode, SpecError
from ortrim.platforms import target_problems
from refusing import refused


def refusal(file: Path) -> SpecError:
    error = refused(SpecError, load_spec, file, target_problems)
    assert error.exit_code == ExitCode.SPEC
    assert error.where == str(file)
    return error


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    assert str(refusal(file)) == (
        f"error: spec-missing\n  {file}: does not exist\n  hint: check the path of the buildspec"
    )
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_folder_is_a_missing_spec(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "kws.toml").code == "spec-missing"


@pytest.mark.parametrize("path", [Path("/dev/zero"), Path("/")])
def test_what_is_no_plain_file_is_not_read(path: Path) -> None:
    assert refusal(path).what == "is not a plain file"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").code == "spec-missing"


def test_a_name_that_no_system_allows_is_a_diagnostic(tmp_path: Path) -> None:
    error = refusal(tmp_path / ("x" * 300))
    assert (error.code, "too long" in error.why) == ("spec-unreadable", True)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    with file.open("wb") as opened:
        opened.truncate(5 << 30)
    error = refusal(file)
    assert error.code == "spec-too-large"
    assert error.what == f"has 5,368,709,120 bytes; a buildspec has at most {LARGEST_BYTES:,}"
    assert error.hint == "--spec takes a buildspec, a TOML file that names models; invoke init MODEL.onnx writes one"


@pytest.mark.parametrize("content", [b"\x08\x07\x12\x07pytorch\xb2\x05", 'name = "kws"'.encode("utf-16")])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "kws.toml"
    file.write_bytes(content)
    error = refusal(file)
    assert error.code == "not-utf8"
    assert error.what.startswith("is not UTF-8 text (byte ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "kws"\nmodels = [', "is not TOML at end of document\n  why: Invalid value"),
        ('name = "kws\n', "is not TOML at line 1, column 12\n  why: Illegal character '\\n'"),
        ("a = 1\na = 2\n", "is not TOML at line 2, column 6\n  why: Cannot overwrite a value"),
        ("models:\n", "is not TOML at line 1, column 7\n  why: Expected '=' after a key in a key/value pair"),
        ("a = " + "9" * 5000, "is not TOML\n  why: Exceeds the limit (4300 digits) for integer string conversion"),
        ("a = " + "[" * 5000, "is nested too deeply to be read"),
    ],
)
def test_text_that_is_no_toml_is_located(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kws.toml"
    file.write_text(text)
    assert str(refusal(file)).startswith(f"error: not-toml\n  {file}: {words}")


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "kws.toml"
    file.write_text('name = "kws"', encoding="utf-8-sig")
    assert read_document(file) == {"name": "kws"}


def _told(content: bytes) -> str:
    try:
        assert isinstance(_parsed(_text(content, "kws.toml"), "kws.toml"), dict)
    except Diagnostic as error:
        return error.code
    return ""


@settings(deadline=5000)
@given(st.binary(max_size=64) | st.text('[]{}=."#\n\\ab1-:_', max_size=64).map(str.encode))
def test_any_bytes_are_toml_or_a_diagnostic(content: bytes) -> None:
    assert _told(content) in {"", "not-utf8", "not-toml"}
