"""`inspect`: any kind of file, told by its content."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnx_samples import relu, write
from ortrim.analysis.inspect import inspect_file
from ortrim.errors import BinaryError, Diagnostic, ExitCode, ModelError
from refusing import refused

UNIT = Path(__file__).parents[1]
LIBRARY = UNIT / "binaries" / "data" / "tiny.so"
ORT = UNIT / "models" / "data" / "branching_first.ort"
HEADS = (b"", b"\x7fELF", b"\x18\0\0\0ORTM", b"ai.onnx;1;", b"\x08\x07")
CONFIG = "# größe\nai.onnx;13;Gemm,Relu\n"


def test_a_library_shows_what_a_loader_sees() -> None:
    content = inspect_file(LIBRARY)
    assert content["kind"] == "library"
    assert content["facts"]["machine"] == "x64"
    assert content["size"]["file_bytes"] == LIBRARY.stat().st_size


def test_an_ort_model_shows_its_operators() -> None:
    content = inspect_file(ORT)
    assert content["kind"] == "ort model"
    assert content["format_version"] == "6"


def test_an_onnx_model_shows_its_inputs(tmp_path: Path) -> None:
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
    (tmp_path / "operators").write_text(f"#{'x' * 1022}ü\n{CONFIG}", encoding="utf-8")
    assert inspect_file(tmp_path / "operators")["kind"] == "operator configuration"


@pytest.mark.parametrize("name", ["model.so", "model.ort", "library.onnx"])
def test_the_content_decides_not_the_name(tmp_path: Path, name: str) -> None:
    source, kind = (LIBRARY, "library") if name == "library.onnx" else (ORT, "ort model")
    (tmp_path / name).write_bytes(source.read_bytes())
    assert inspect_file(tmp_path / name)["kind"] == kind


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Missing and not a file are told apart; a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("absent", "there is no such file"), ("", "is not a file"), ("pipe", "is not a file")):
        error = refused(Diagnostic, inspect_file, tmp_path / name)
        assert (error.code, error.exit_code, error.what) == ("file-missing", ExitCode.MODEL, what)
        assert error.where == str(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [b"\x00\x01\x02\xff" * 64, b"\x89PNG\r\n\x1a\n", b"\xff\xfet\x00e\x00", b"# ortrim\n\nTrims.\n"],
    ids=["noise", "picture", "utf-16", "readme"],
)
def test_what_is_nothing_known_is_reported_which_kinds_there_are(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "README.md").write_bytes(content)
    error = refused(Diagnostic, inspect_file, tmp_path / "README.md")
    assert (error.code, error.exit_code) == ("unknown-kind", ExitCode.MODEL)
    assert "libraries (.so, .dylib, .a)" in error.hint
    assert error.why


@pytest.mark.parametrize(("name", "reference"), [("x.config", "config-syntax"), ("x.onnx", "not-onnx")])
def test_what_says_by_its_name_what_it_is_is_refused_as_that(tmp_path: Path, name: str, reference: str) -> None:
    (tmp_path / name).write_text("hello\n")
    assert refused(Diagnostic, inspect_file, tmp_path / name).code == reference


def archive(*members: tuple[str, bytes]) -> bytes:
    found = [b"!<arch>\n"]
    for name, content in members:
        found.append(f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode())
        found.append(content + b"\n" * (len(content) % 2))
    return b"".join(found)


def test_a_static_library_shows_its_names(tmp_path: Path) -> None:
    """What could clash with a program's own, and that it needs no C++ library; whatever is no object is named."""
    objects = UNIT / "binaries" / "data"
    joined = (objects / "joined.o").read_bytes()
    path = tmp_path / "lib.bin"
    path.write_bytes(archive(("joined.o", joined), ("notes.txt", b"text")))
    content = inspect_file(path)
    assert (content["kind"], content["objects"], content["unread"]) == ("static library", 1, ["notes.txt"])
    assert content["machines"] == ["x64"]
    assert {"offered", "_Z5otheri"} <= set(content["other_names"])
    assert (content["public_api"], content["names_offered"]) == ([], len(content["other_names"]))
    assert content["names_asked_for"] > 0
    assert content["largest_objects"][0] == {"name": "joined.o", "size_bytes": len(joined)}


def test_a_damaged_static_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.a").write_bytes(archive(("a.o", b"x" * 100))[:80])
    error = refused(Diagnostic, inspect_file, tmp_path / "x.a")
    assert (error.code, error.exit_code) == ("not-an-archive", ExitCode.BINARY)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(LIBRARY.read_bytes()[:100], BinaryError), (ORT.read_bytes()[:200], ModelError)],
    ids=["library", "ort"],
)
def test_a_damaged_file_is_refused_by_its_own_reader(tmp_path: Path, content: bytes, kind: type[Diagnostic]) -> None:
    (tmp_path / "file").write_bytes(content)
    assert isinstance(refused(Diagnostic, inspect_file, tmp_path / "file"), kind)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.sampled_from(HEADS), tail=st.binary(max_size=80))
def test_no_content_is_more_than_a_diagnostic(tmp_path: Path, head: bytes, tail: bytes) -> None:
    (tmp_path / "file").write_bytes(head + tail)
    with suppress(Diagnostic):
        assert "kind" in inspect_file(tmp_path / "file")
