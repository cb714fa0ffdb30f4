"""The program in shells and pipes: completion, streams that are closed, full or read by nobody."""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.errors import ExitCode
from workflow_runner import ROOT

COMPLETING: Final = """
eval "$(ortrim --print-completion-script bash)"
COMP_WORDS=($LINE)
_complete_ortrim ortrim "$LAST"
complete -p ortrim
echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize(
    ("line", "last", "offered"),
    [
        ("ortrim bu", "bu", "build bundle"),
        ("ortrim build", "", ""),
        ("ortrim build mo", "mo", ""),
        ("ortrim build model.onnx --ta", "--ta", "--target"),
        ("ortrim build model.onnx --target", "", "linux-x64"),
        ("ortrim plan --target linux-x", "linux-x", "linux-x64"),
        ("ortrim lint --library", "", ""),
        ("ortrim lint model.onnx size --di", "--di", "--diff"),
        ("ortrim prepare model.onnx --step", "", "simplify"),
        ("ortrim pins.com", "pins.com", "pins.compare"),
        ("ortrim no-such-task --x", "--x", ""),
    ],
)
def test_bash_completes_a_command_line(line: str, last: str, offered: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LINE": line, "LAST": last}
    done = run(("bash", "-c", COMPLETING), environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    how, found, *_ = done.stdout.splitlines()
    assert "-o default" in how
    assert set(offered.split()) <= set(found.split())
    assert bool(offered) == bool(found)


ORTRIM: Final = (sys.executable, "-c", "from ortrim.cli.program import main; main()")
INVOKE: Final = (sys.executable, "-m", "invoke", "--search-root", str(ROOT))
each_program = pytest.mark.parametrize(
    "program", [pytest.param(ORTRIM, id="ortrim"), pytest.param(INVOKE, id="invoke")]
)


def shelled(folder: Path, line: str, program: tuple[str, ...] = ORTRIM) -> tuple[int, str, str]:
    """Run a program as `"$@"` of a shell's line, with Python's buffers; return its exit code, output and errors."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = run(("sh", "-c", line, "sh", *program), cwd=folder, environment=environment)
    return done.returncode, done.stdout, done.stderr


def unread(folder: Path, words: str, program: tuple[str, ...] = ORTRIM) -> tuple[str, str]:
    """Run a program whose output goes to another that reads nothing and is gone before the first one writes.

    Return its exit code and what it complained of.
    """
    shelled(folder, f'( "$@" {words} 2>said; echo $? >code ) | true', program)
    return (folder / "code").read_text().strip(), (folder / "said").read_text()


@each_program
@pytest.mark.parametrize("word", ["--list", "schema"])
def test_a_program_that_nobody_reads_ends_quietly(word: str, program: tuple[str, ...], tmp_path: Path) -> None:
    """As the shell's own programs do behind `head`, whether Invoke prints or a task does."""
    assert unread(tmp_path, word, program) == ("141", "")


def test_an_error_that_nobody_reads_has_its_code(tmp_path: Path) -> None:
    """The document goes nowhere, and the diagnostic to standard error as always."""
    code, said = unread(tmp_path, "plan --json --spec absent.toml")
    assert code == "10"
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


@pytest.mark.parametrize(
    ("words", "streams", "code"),
    [
        ("schema", ">&-", 0),
        ("schema", "<&- >&- 2>&-", 0),
        ("--list", ">&-", 0),
        ("plan --spec absent.toml", "2>&-", 10),
    ],
)
def test_closed_streams_are_nothing_to_speak_of(words: str, streams: str, code: int, tmp_path: Path) -> None:
    """What would be printed goes nowhere, and the work and its exit code are the same."""
    assert shelled(tmp_path, f'"$@" {words} {streams}') == (code, "", "")


def test_what_is_open_beside_a_closed_stream_is_used(tmp_path: Path) -> None:
    """A closed standard error takes nothing from standard output."""
    code, out, _ = shelled(tmp_path, '"$@" schema 2>&-')
    assert code == 0
    assert json.loads(out)["title"] == "BuildSpec"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@each_program
@pytest.mark.parametrize("word", ["--list", "schema"])
def test_a_full_disk_behind_standard_output_is_named(word: str, program: tuple[str, ...], tmp_path: Path) -> None:
    """Whether Invoke prints or a task does."""
    code, _, said = shelled(tmp_path, f'"$@" {word} >/dev/full', program)
    assert code == ExitCode.STORAGE
    assert said.startswith("error: disk-full\n  standard output: there is no space left\n")
    assert "ignored" not in said


def test_a_home_that_is_no_folder_is_no_traceback(tmp_path: Path) -> None:
    """Invoke looks there for its settings; some containers say HOME=/dev/null."""
    code, out, said = shelled(tmp_path, 'HOME=/dev/null "$@" schema')
    assert (code, said) == (0, "")
    assert out
