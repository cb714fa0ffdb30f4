"""The file of hot operators: what it may hold, and what is said of one that is damaged."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.buildspec.load import LARGEST_BYTES
from ortrim.errors import Diagnostic, ExitCode
from ortrim.models.hot_operators import MOST_OPERATORS, hot_file, ranked, read_hot, render_hot
from refusing import refused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a buildspec's file of hot operators is looked for."""
    return hot_file(tmp_path / "kws.toml")


def refusal(file: Path) -> Diagnostic:
    error = refused(Diagnostic, read_hot, file)
    assert error.exit_code == ExitCode.SPEC
    assert error.where == str(file)
    return error


def test_it_lies_beside_the_buildspec(tmp_path: Path) -> None:
    assert hot_file(tmp_path / "silero-vad.toml") == tmp_path / "silero-vad.hot.toml"
    assert hot_file(Path("v1.2.toml")) == Path("v1.2.hot.toml")


def test_without_a_file_there_are_none(file: Path) -> None:
    """Every kernel is hot then; nothing is made."""
    assert read_hot(file) == ()
    assert not file.exists()


def test_what_is_written_is_read(file: Path) -> None:
    shares = {"ai.onnx:Conv": 0.6, "com.microsoft:FusedConv": 0.4}
    file.write_text(render_hot(ranked({"m": shares}), ["Measured somewhere."]))
    assert read_hot(file) == ("ai.onnx:Conv", "com.microsoft:FusedConv")


def test_a_name_that_is_there_twice_counts_once(file: Path) -> None:
    """As it may be after two branches were merged."""
    file.write_text('operators = ["a:B", "c:D", "a:B"]')
    assert read_hot(file) == ("a:B", "c:D")


MANY = ",".join(['"a:B"'] * (MOST_OPERATORS + 1))


@pytest.mark.parametrize(
    ("text", "reference", "what"),
    [
        ("operators = ", "not-toml", "is not TOML"),
        ("", "missing-key", "'operators' is missing"),
        ('operator = ["a:B"]', "unknown-key", "'operator' is not a known key"),
        ('operators = ["a:B"]\nlevel = 1', "unknown-key", "'level' is not a known key"),
        ('operators = "a:B"', "wrong-type", "'operators' must be an array, not a string"),
        ("operators = []", "bad-value", "'operators' has 0 operators"),
        (f"operators = [{MANY}]", "bad-value", "'operators' has 1,001 operators"),
        ('operators = ["a:B", 3]', "wrong-type", "'operators[1]' must be a string, not an integer"),
        ('operators = ["Conv"]', "bad-value", "'operators[0]' must be an operator as in 'ai.onnx:Conv'"),
        ('operators = ["ai.onnx:Conv; id"]', "bad-value", "'operators[0]' must be an operator"),
        ('operators = ["a:B\\n"]', "bad-value", "'operators[0]' must be an operator"),
        (f'operators = ["a:{"B" * 200}"]', "bad-value", "'operators[0]' must be an operator"),
    ],
)
def test_what_is_wrong_with_it_is_said(file: Path, text: str, reference: str, what: str) -> None:
    file.write_text(text)
    error = refusal(file)
    assert error.code == reference
    assert error.what.startswith(what)


def test_all_that_is_wrong_is_said_at_once(file: Path) -> None:
    file.write_text('x = 1\noperators = ["Conv", "a:B", 3]')
    assert str(refusal(file)).count("error: ") == 3


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00\x01\x02\xff"])
def test_bytes_that_are_no_text_are_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    error = refusal(file)
    assert (error.code, "invoke hot" in error.hint) == ("not-utf8", True)


def test_a_large_file_is_not_read(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(LARGEST_BYTES + 1)
    assert refusal(file).code == "spec-too-large"


def test_a_folder_a_pipe_and_a_broken_link_are_refused(tmp_path: Path, file: Path) -> None:
    file.mkdir()
    assert refusal(file).code == "spec-missing"
    file.rmdir()
    os.mkfifo(file)
    assert refusal(file).code == "spec-missing"
    file.unlink()
    file.symlink_to(tmp_path / "nowhere")
    assert refusal(file).code == "spec-missing"


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing but names of operators comes out, and nothing but a diagnostic is raised."""
    file = tmp_path_factory.getbasetemp() / "any.hot.toml"
    file.write_bytes(content)
    names: tuple[str, ...] = ()
    refused = None
    try:
        names = read_hot(file)
    except Diagnostic as error:
        refused = error
    assert refused is None or refused.exit_code == ExitCode.SPEC
    assert all(":" in name for name in names)
