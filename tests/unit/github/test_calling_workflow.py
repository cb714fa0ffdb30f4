"""The workflow that an app's repository gets: what it says is what the guide shows, and what GitHub takes."""

from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.errors import ExitCode
from ortrim.github.workflow_files import CalledProgram, calling_text
from program_runs import Run

PAGE: Final = Path(__file__).parents[3] / "docs" / "guides" / "ci.md"
PROGRAM: Final = CalledProgram(repository="OWNER/ortrim", ref="v1")


def test_the_guide_shows_what_is_written() -> None:
    """Its example is run by act, from a repository of its own."""
    text = calling_text("runtimes", "app/speech.toml", PROGRAM, "linux-x64,android")
    assert f"```yaml\n{text}```\n" in PAGE.read_text()


@pytest.mark.parametrize("word", ["*", "a b/#1.toml", "!linux", "[x]"])
def test_what_yaml_would_read_otherwise_is_quoted(word: str) -> None:
    """Globs of targets and names of folders may hold anything."""
    text = calling_text("net", word, PROGRAM, word)
    assert f'      spec: "{word}"\n      target: "{word}"\n' in text


def test_init_writes_a_workflow_for_its_repository(ortrim: Run) -> None:
    """Beside the repository's others, wherever in it the buildspec is; neither file is ever written over."""
    Path(".git").mkdir()
    write(Path("net.onnx"), relu())
    words = ("init", "net.onnx", "--case", "a:x=1", "--output", "app", "--target", "linux-x64")
    ended = ortrim(*words, "--github", "octo/ortrim@v1.2.0")
    assert ended.code == 0, ended.err
    text = Path(".github/workflows/net.yml").read_text()
    assert text == calling_text(
        "net", "app/net.toml", CalledProgram(repository="octo/ortrim", ref="v1.2.0"), "linux-x64"
    )
    assert "net.yml" in ended.out
    Path("app/net.toml").unlink()
    ended = ortrim(*words, "--github", "octo/ortrim")
    assert (ended.code, Path("app/net.toml").exists()) == (ExitCode.USAGE, False)
    assert "spec-exists" in ended.err
    assert ".github/workflows/net.yml" in ended.err


@pytest.mark.parametrize("word", ["ortrim", "a/b/c", "octo/ortrim@", "octo/ortrim@-x", "octo/ortrim@${{ x }}"])
def test_what_is_no_repository_is_refused(ortrim: Run, word: str) -> None:
    """Before any case is sought."""
    write(Path("net.onnx"), relu())
    ended = ortrim("init", "net.onnx", "--github", word)
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert "OWNER/NAME@REF" in ended.err
