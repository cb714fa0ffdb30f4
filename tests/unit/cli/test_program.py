"""The program as a whole: its list, its help, and words that it does not know."""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu, write
from ortrim.base.command import run
from ortrim.cli.namespace import MAINTAINING, maintains, namespace_for
from ortrim.cli.namespace import TASKS as WHERE
from program_runs import MEASURE as MEASURING
from program_runs import Ended, Run

TASKS = (
    "accept-build", "api", "attach", "bench", "build", "bundle", "check-build", "check-compat", "compare", "convert",
    "cost", "devices", "doctor", "fetch", "history", "hot", "init", "inspect", "lint", "page", "plan", "prepare",
    "profile", "reduce", "report", "runs", "schema", "size", "verify", "workflows", "cache.pull", "cache.push",
    "ci.app", "ci.compile", "ci.deliver", "ci.farm", "ci.judge", "ci.plan", "ci.prepare", "ci.setup", "pins.compare",
    "pins.index", "pins.propose", "pins.update", "release.check", "release.draft",
    "release.publish",
)  # fmt: skip
MEASURE: Final = tuple(f"measure.{name}" for name in MEASURING.task_names)


def listed(printed: str) -> dict[str, str]:
    """Return the tasks of a list with their texts."""
    return dict(re.findall(r"^  (\S+) +(\S.*)$", printed, re.MULTILINE))


def test_the_list_shows_each_task_with_one_line(ortrim: Run) -> None:
    """Eighty columns are enough for all of them, also for those of a checkout."""
    for name, tasks in (("ortrim", set(TASKS)), ("invoke", {*TASKS, *MEASURE})):
        ended = ortrim("--list", name=name)
        assert ended.code == 0
        assert set(listed(ended.out)) == tasks
        assert max(map(len, ended.out.splitlines())) <= 80
        assert all(text.endswith(".") for text in listed(ended.out).values())


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
def test_tasks_that_maintain_ortrim_are_listed_after_those_that_users_call(ortrim: Run, name: str) -> None:
    """Under a heading of their own: who builds a model need not read past it."""
    users, of_maintainers = ortrim("--list", name=name).out.split("Tasks that maintain ortrim and its workflows:\n")
    assert users.startswith("Tasks:\n\n  accept-build")
    assert list(listed(users)) == [task for task in TASKS if not maintains(task)]
    groups = [task.partition(".")[0] for task in listed(of_maintainers)]
    assert list(dict.fromkeys(groups)) == [group for group in MAINTAINING if name == "invoke" or group != "measure"]


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
@pytest.mark.parametrize("group", ["cache", "ci"])
def test_a_group_is_listed_by_names_that_can_be_typed(ortrim: Run, name: str, group: str) -> None:
    """A name without its group is no task."""
    ended = ortrim("--list", group, name=name)
    assert (ended.code, ended.err) == (0, "")
    assert tuple(listed(ended.out)) == tuple(task for task in TASKS if task.startswith(f"{group}."))
    assert ended.out.count(":\n\n") == 1


def test_without_a_task_the_list_is_shown_and_nothing_is_built(ortrim: Run) -> None:
    """A quarter of an hour of compiling is not what one expects of a bare word; the last line says how to begin."""
    shown = ortrim().out
    assert shown == ortrim("--list").out
    assert shown.endswith("\nTo begin: ortrim build MODEL.onnx; for a task's options: ortrim --help TASK\n")
    assert namespace_for(()).default is None


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_the_program_shows_how_a_line_is_written_and_the_tasks(ortrim: Run, option: str) -> None:
    """Of Invoke's own options it shows those that do something for ortrim's tasks."""
    shown = ortrim(option).out
    assert shown.startswith("Usage: ortrim TASK [WORD...] [options]\n")
    assert shown.endswith(ortrim("--list").out)
    assert set(re.findall(r"^  --([a-z-]+)", shown, re.MULTILINE)) == {
        "help",
        "list",
        "print-completion-script",
        "version",
    }
    assert max(map(len, shown.splitlines())) <= 80


def test_the_version_is_the_packages(ortrim: Run) -> None:
    assert re.fullmatch(r"ortrim \d+\.\d+\.\d+\n", ortrim("--version").out)


@pytest.mark.parametrize("task", TASKS)
def test_every_option_of_every_task_is_explained(ortrim: Run, task: str) -> None:
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
    assert loaded("--help", "build").isdisjoint({"boto3", "lief", "ortrim.bench"})
    assert "ortrim.bench" in loaded("--help", "compare")


@pytest.mark.parametrize("names", WHERE)
def test_a_command_finds_its_task_among_those_that_are_loaded_for_it(names: tuple[str, ...]) -> None:
    """The table has the tasks of each module, all of them, and Invoke reads the same words from few as from all."""
    found = namespace_for(names[:1])
    assert {name for name in found.task_names if "." not in name} == set(names)


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
    ("words", "what", "hint"),
    [
        ("--frob", "ortrim has no option '--frob'", "run: ortrim --list"),
        ("build --frob", "build has no option '--frob'", "run: ortrim --help build"),
        ("build --jbos 2", "build has no option '--jbos'", "did you mean --jobs?"),
        ("build --jobs", "--jobs needs a value", "run: ortrim --help build"),
        ("plan --jobs 2", "plan has no option '--jobs'", "run: ortrim --help plan"),
        ("inspect", "inspect needs FILE", "run: ortrim --help inspect"),
        ("cache.pull file", "cache.pull needs SHA256", "run: ortrim --help cache.pull"),
    ],
)
def test_options_that_make_no_sense_are_explained(ortrim: Run, words: str, what: str, hint: str) -> None:
    """The text goes to standard error, in the layout of all errors, and nothing is done."""
    ended = ortrim(*words.split())
    assert ended == Ended(2, "", f"error: bad-usage\n  {what}\n  hint: {hint}\n")


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ("bild", "'bild': is no task", "did you mean the task 'build'?"),
        ("--help bild", "'bild': is no task", "did you mean the task 'build'?"),
        ("xyzzy", "'xyzzy': is no task", "run: ortrim --list"),
        ("help build", "'help': is no task", "did you mean --help?"),
        ("version", "'version': is no task", "did you mean --version?"),
        ("build model", "'model': no model, buildspec or task has this name", "did you mean 'model.onnx'?"),
        ("build modle", "'modle': no model, buildspec or task has this name", "did you mean 'model.onnx'?"),
        ("build nets/", "'nets/': there is no such file", "name files, folders"),
        ("ci", "'ci': is a group of tasks", "run: ortrim --list ci"),
        ("--help ci", "'ci': is a group of tasks", "run: ortrim --list ci"),
        ("cashe", "'cashe': is no task", "did you mean 'cache'?"),
        ("ci.pln", "'ci.pln': is no task", "did you mean 'ci.plan'?"),
        ("--list cashe", "'cashe': is no group of tasks", "did you mean 'cache'?"),
        ("--list build", "'build': is no group of tasks", "there are: cache, ci, pins, release"),
        ("moddle.onnx", "'moddle.onnx': there is no such file, and no task of this name", "did you mean 'model.onnx'?"),
        ("model.onnx", "'model.onnx': is a file or a folder", "say what to do with it: ortrim build model.onnx"),
        ("schema extra", "'extra': schema takes no such word, and no task has", "run: ortrim --help schema"),
        ("schema lnt", "'lnt': schema takes no such word, and no task has this name", "did you mean the task 'lint'?"),
        ("inspect model.onnx model.onnx", "'model.onnx': inspect takes no such word", "did you mean"),
        ("build moddle.onnx", "'moddle.onnx': there is no such file", "did you mean 'model.onnx'?"),
        ("build lnt", "'lnt': no model, buildspec or task has this name", "did you mean the task 'lint'?"),
        ("lint nets/x.onnx", "'nets/x.onnx': there is no such file", "there is no folder 'nets'"),
        ("cost model.onnx x.toml", "'x.toml': there is no such file", "name files, folders"),
        ("report modle", "'modle': no build in artifacts has this name", "did you mean 'model'?"),
        ("size xyzzy", "'xyzzy': no build in artifacts has this name", "built are: model"),
    ],
)  # fmt: skip
def test_a_word_that_names_nothing_is_explained(ortrim: Run, words: str, what: str, hint: str) -> None:
    """What it could have meant, the task that is nearest, or what is not there."""
    write(Path("model.onnx"), relu())
    Path("artifacts/model/0123/linux-x64").mkdir(parents=True)
    Path("artifacts/model/0123/linux-x64/report.json").touch()
    ended = ortrim(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: unknown-word\n  {what}")
    assert f"\n  hint: {hint}" in ended.err


@pytest.mark.parametrize("option", ["-s", "--spec", "-s="])
def test_a_letters_value_is_no_model(ortrim: Run, option: str) -> None:
    """Words that stand alone are models; what follows an option is its value, however the option is written."""
    words = (option + "missing.toml",) if option.endswith("=") else (option, "missing.toml")
    ended = ortrim("plan", *words)
    assert ended.err.startswith("error: spec-missing\n  missing.toml: does not exist")


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
def test_tasks_with_models_may_follow_each_other(ortrim: Run, name: str) -> None:
    """A task's name begins the next one, unless it is a file, or an option's value."""
    write(Path("m.onnx"), relu())
    write(Path("cost"), relu())
    ended = ortrim("inspect", "m.onnx", "cost", "m.onnx", "cost", "inspect", "./cost", name=name)
    assert (ended.code, ended.err) == (0, "")
    assert [line.split(":")[0] for line in ended.out.splitlines() if ": x " in line] == ["m.onnx", "cost"]
    assert ended.out.count("onnx model") == 2


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
@pytest.mark.parametrize("words", ["", "--spec s.toml", "s.toml"])
def test_hints_name_what_was_written(ortrim: Run, name: str, words: str) -> None:
    """The option where models are words, the key where a buildspec has it."""
    newer = relu()
    newer.opset_import[0].version = 99
    write(Path("m.onnx"), newer)
    Path("s.toml").write_text('[[models]]\nname = "m"\npath = "m.onnx"\n')
    ended = ortrim("convert", *(words.split() or ["m.onnx"]), name=name)
    assert (ended.code, "error: unsupported-opset" in ended.err) == (11, True)
    assert ("--ort-version" in ended.err, "onnxruntime.version" in ended.err) == (not words, bool(words))
