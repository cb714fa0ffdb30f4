"""The program as a whole: its list, its help, and words that it does not know."""

import json
import os
import re
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.base.command import run
from ortrim.cli.tasks import TASKS as WHERE
from ortrim.cli.tasks import namespace_for
from ortrim.errors import ExitCode
from program_runs import Run

TASKS = (
    "accept-build", "api", "attach", "bench", "build", "bundle", "check-build", "check-compat", "compare", "convert",
    "cost", "devices", "doctor", "fetch", "history", "hot", "init", "inspect", "lint", "page", "plan", "prepare",
    "profile", "reduce", "report", "runs", "schema", "size", "verify", "workflows", "cache.pull", "cache.push",
    "ci.app", "ci.compile", "ci.deliver", "ci.farm", "ci.judge", "ci.plan", "ci.prepare", "ci.setup", "pins.compare",
    "pins.index", "pins.propose", "pins.update", "release.draft", "release.publish",
)  # fmt: skip


def listed(printed: str) -> dict[str, str]:
    """Return the tasks of a list with their texts."""
    return dict(re.findall(r"^  (\S+) +(\S.*)$", printed, re.MULTILINE))


def test_the_list_shows_each_task_with_one_line(ortrim: Run) -> None:
    """Eighty columns are enough for all of them."""
    ended = ortrim("--list")
    assert ended.code == 0
    assert tuple(listed(ended.out)) == TASKS
    assert len(ended.out.strip().splitlines()) == len(TASKS) + 2
    assert all(text.endswith(".") for text in listed(ended.out).values())


def test_without_a_task_the_list_is_shown_and_nothing_is_built(ortrim: Run) -> None:
    """A quarter of an hour of compiling is not what one expects of a bare word."""
    assert ortrim().out == ortrim("--list").out
    assert namespace_for(()).default is None


def test_the_version_is_the_packages(ortrim: Run) -> None:
    """Name and number."""
    assert re.fullmatch(r"ortrim \d+\.\d+\.\d+\n", ortrim("--version").out)


@pytest.mark.parametrize("task", TASKS)
def test_every_option_of_every_task_is_explained(ortrim: Run, task: str) -> None:
    """`--help` names each option with a text."""
    ended = ortrim("--help", task)
    assert ended.code == 0
    assert ended.err == ""
    options = [line for line in ended.out.splitlines() if line.startswith("  -")]
    assert options or "--" not in ended.out
    for line in options:
        assert re.match(r"  -.*?  +\S", line), line


@pytest.mark.parametrize("task", ["build", "lint", "inspect", "fetch"])
def test_help_may_stand_behind_the_task(ortrim: Run, task: str) -> None:
    """Also where an argument is missing."""
    assert ortrim(task, "--help") == ortrim("--help", task)
    assert ortrim(task, "-h").out == ortrim("--help", task).out


HEAVY: Final = ("boto3", "elftools", "jinja2", "lief", "numpy", "onnx", "onnxruntime", "requests")
LOADED: Final = """
import sys
from ortrim.cli.program import program
try:
    program.run(["ortrim", *sys.argv[1:]])
except SystemExit as ended:
    print(*(name for name in sys.modules if name.count(".") < 2), file=sys.stderr)
    sys.exit(ended.code)
"""


def loaded(*words: str) -> set[str]:
    """Return the packages and the folders of ortrim that a run of the program loads."""
    done = run((sys.executable, "-c", LOADED, *words))
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_version_loads_nothing_heavy_and_no_feature() -> None:
    """Neither what reads models and binaries, nor any folder but what every command needs."""
    found = loaded("--version")
    assert found.isdisjoint(HEAVY)
    assert {name for name in found if name.startswith("ortrim.")} == {"ortrim.base", "ortrim.cli", "ortrim.errors"}


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_said_before_invoke_is_imported(option: str) -> None:
    """It is asked for by scripts, again and again."""
    code = "import sys; from ortrim.cli.start import main; main(); print('invoke' in sys.modules)"
    done = run((sys.executable, "-c", code, option))
    assert done.stdout == f"ortrim {installed('ortrim')}\nFalse\n"


def test_farms_and_engines_are_loaded_by_who_asks_for_them() -> None:
    """A build without a farm's device loads neither, nor what reads a Mac's libraries; comparing engines does."""
    assert loaded("--help", "build").isdisjoint({"boto3", "lief", "ortrim.farms", "ortrim.engines"})
    assert "ortrim.engines" in loaded("--help", "compare")


@pytest.mark.parametrize("names", WHERE)
def test_a_command_finds_its_task_among_those_that_are_loaded_for_it(names: tuple[str, ...]) -> None:
    """The table has the tasks of each module, all of them, and Invoke reads the same words from few as from all."""
    found = namespace_for(names[:1])
    assert {name for name in found.task_names if "." not in name} == set(names)


def test_help_of_build_names_the_issues_options(ortrim: Run) -> None:
    """The main task's command line is part of what users rely on."""
    printed = ortrim("--help", "build").out
    for option in ("spec", "target", "executor", "profile", "jobs", "output", "plan-only", "json"):
        assert f"--{option}" in printed


@pytest.mark.parametrize("words", [("--", "-rf.onnx"), ("--json", "--", "-rf.onnx"), ("./-rf.onnx",)])
def test_files_whose_names_begin_with_a_dash_are_read(ortrim: Run, words: tuple[str, ...]) -> None:
    """What stands behind `--` is no option."""
    write(Path("-rf.onnx"), relu())
    ended = ortrim("inspect", *words)
    assert (ended.code, ended.err) == (0, "")
    assert "onnx model" in ended.out


@pytest.mark.parametrize("name", ["-rf.onnx", "-x=1.onnx"])
def test_a_file_that_is_taken_for_options_is_explained(ortrim: Run, name: str) -> None:
    """How to name it is the hint."""
    write(Path(name), relu())
    ended = ortrim("init", "inspect", name)
    assert ended.code == 2
    assert ended.err.endswith(f"hint: the file's name begins with a dash; write ./{name}, or put -- before it\n")


@pytest.mark.parametrize(
    "words",
    [
        ("bild",), ("--frob",), ("build", "--frob"), ("build", "--jobs"), ("inspect",), ("--help", "bild"),
        ("schema", "extra"), ("plan", "--jobs", "2"),
    ],
)  # fmt: skip
def test_words_that_make_no_sense_end_with_the_code_of_usage(ortrim: Run, words: tuple[str, ...]) -> None:
    """The text goes to standard error, in the layout of all errors, and nothing is done."""
    ended = ortrim(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: bad-usage\n  ")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("option", ["-s", "--spec", "-s="])
def test_a_letters_value_is_no_model(ortrim: Run, option: str) -> None:
    """Words that stand alone are models; what follows an option is its value, however the option is written."""
    words = (option + "missing.toml",) if option.endswith("=") else (option, "missing.toml")
    ended = ortrim("plan", *words)
    assert ended.err.startswith("error: spec-missing\n  missing.toml: does not exist")


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
        ("ortrim pins.com", "pins.com", "pins.compare"),
        ("ortrim no-such-task --x", "--x", ""),
    ],
)
def test_bash_completes_a_command_line(line: str, last: str, offered: str) -> None:
    """With Invoke's own script; where nothing is offered, bash offers files, as it does for models."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LINE": line, "LAST": last}
    done = run(("bash", "-c", COMPLETING), environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    how, found, *_ = done.stdout.splitlines()
    assert "-o default" in how
    assert set(offered.split()) <= set(found.split())
    assert bool(offered) == bool(found)


UNREAD: Final = """( program=$1; shift; "$program" -c "$@" 2>said; echo $? >code ) | true"""
"""A shell's line whose second program reads nothing and is gone before the first one writes."""


def unread(folder: Path, *words: str) -> tuple[str, str]:
    """Run the program with nobody at the other end of its output; return its exit code and what it complained of."""
    program = (sys.executable, "from ortrim.cli.program import main; main()")
    run(("sh", "-c", UNREAD, "sh", *program, *words), cwd=folder)
    return (folder / "code").read_text().strip(), (folder / "said").read_text()


@pytest.mark.parametrize("word", ["--list", "schema"])
def test_a_program_that_nobody_reads_ends_quietly(word: str, tmp_path: Path) -> None:
    """As the shell's own programs do behind `head`, whether Invoke prints or a task does."""
    assert unread(tmp_path, word) == ("141", "")


def test_an_error_that_nobody_reads_has_its_code(tmp_path: Path) -> None:
    """The document goes nowhere, and the diagnostic to standard error as always."""
    code, said = unread(tmp_path, "plan", "--json", "--spec", "absent.toml")
    assert code == "10"
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def shelled(folder: Path, line: str) -> tuple[int, str, str]:
    """Run the program as `"$@"` of a shell's line, with Python's buffers; return its exit code, output and errors."""
    program = (sys.executable, "-c", "from ortrim.cli.program import main; main()")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = run(("sh", "-c", line, "sh", *program), cwd=folder, environment=environment)
    return done.returncode, done.stdout, done.stderr


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
@pytest.mark.parametrize("word", ["--list", "schema"])
def test_a_full_disk_behind_standard_output_is_named(word: str, tmp_path: Path) -> None:
    """Whether Invoke prints or a task does."""
    code, _, said = shelled(tmp_path, f'"$@" {word} >/dev/full')
    assert code == ExitCode.STORAGE
    assert said.startswith("error: disk-full\n  standard output: there is no space left\n")
    assert "ignored" not in said


def test_a_home_that_is_no_folder_is_no_traceback(tmp_path: Path) -> None:
    """Invoke looks there for its settings; some containers say HOME=/dev/null."""
    code, out, said = shelled(tmp_path, 'HOME=/dev/null "$@" schema')
    assert (code, said) == (0, "")
    assert out
