"""The program: `ortrim` in any folder, and `invoke` in a checkout."""

import inspect
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from invoke.collection import Collection
from invoke.config import Config
from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext
from invoke.program import Program
from invoke.tasks import Task
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ortrim.base.console import Console
from ortrim.cli.boundary import PROGRAM, end_unread, end_unwritten, open_standard_streams, reworded
from ortrim.cli.namespace import LONGEST, candidates, is_file_like, maintains, namespace_for, nearest_word, unknown_word
from ortrim.errors import ExitCode, UsageError

MODELS: Final = (".onnx", ".toml")
OPTIONS: Final = (
    ("--help TASK", "Show what a task does, and its options."),
    ("--list [GROUP]", "List the tasks, or those of a group such as cache."),
    ("--print-completion-script SHELL", "Print what completes tasks and options in bash, zsh or fish."),
    ("--version", "Show ortrim's version."),
)


GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "What": ("model", "app", "spec", "target", "profile", "ort-version", "case", "data", "dim", "given", "only"),
    "Where to": ("output", "package", "github", "json", "plan-only"),
    "Verify": ("device", "cores", "least-memory", "trace", "training-run"),
    "Compile": ("jobs", "executor", "engine", "mount", "engine-flag", "ndk", "bundle", "verify-cache"),
    "GitHub": ("repo", "ref", "workflow", "token-file"),
}
"""Options that many tasks have, by what they are about; a task's own stand before them."""
WITHOUT_NAME: Final = ("model", "app", "spec")
"""Options whose values stand alone: a task has one of them at most."""


class OrtrimConfig(Config):
    """Invoke's settings, without the user's own when the home folder is closed to this user."""

    def load_user(self, merge: bool = True) -> None:
        """Load Invoke's file in the home folder, if there is one."""
        with suppress(PermissionError, NotADirectoryError):  # HOME=/dev/null is what some containers have
            super().load_user(merge)


class OrtrimProgram(Program):
    """Invoke's program with ortrim's help and errors, whose tasks take words that stand alone.

    It is the program `ortrim`; in a checkout, `tasks.py` makes `invoke` one, which has read its own options then.
    """

    def run(self, argv: list[str] | None = None, exit: bool = True) -> None:  # noqa: A002 - Invoke's name
        """Run a command line, or say how a shell may go on with one, for which Invoke would load all tasks."""
        words = sys.argv if argv is None else argv
        if words[1:2] == ["--complete"]:  # as Invoke's scripts ask: ortrim --complete -- ortrim build --ta
            sys.stdout.writelines(f"{each}\n" for each in candidates(words[4:]))
        else:
            token = PROGRAM.set(self.binary_names[0])
            try:
                super().run(argv, exit)
            finally:
                PROGRAM.reset(token)

    def parse_core(self, argv: list[str] | None) -> None:
        """Read the options that stand before any task."""
        with self._usage_errors():
            super().parse_core(argv)

    def parse_collection(self) -> None:
        """Import the tasks that the words name."""
        self.namespace = namespace_for(self.argv[1:])
        super().parse_collection()

    def parse_tasks(self) -> None:
        """Read tasks and their options."""
        with self._usage_errors():
            super().parse_tasks()

    def _make_parser(self) -> Parser:
        """Return Invoke's parser; words that stand alone become a task's models or sources.

        Those behind `--` are files, whatever they begin with; Invoke keeps them from tasks. It takes `--help` for a
        positional argument that is still missing.
        """
        parser = super()._make_parser()
        words = self.core.unparsed
        if not {"-h", "--help"}.isdisjoint(words):
            for task in parser.contexts.values():
                task.positional_args.clear()
        if "--" in self.argv and not self.args.complete.value:
            behind = self.argv[self.argv.index("--") + 1 :]
            words += (f"./{word}" if word.startswith("-") else word for word in behind)
        words[:] = _with_options(words, parser.contexts, self.initial_context, self.binary_names[0])
        return parser

    def parse_cleanup(self) -> None:
        """Answer `--help` and `--list`."""
        with self._usage_errors(), _ending_as_programs_do():
            group, groups = self.args.list.value, tuple(self.collection.collections)
            if isinstance(group, str) and group not in groups:
                near = nearest_word(group, groups)
                hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(groups)}"
                raise UsageError("unknown-word", "is no group of tasks", where=repr(group[:LONGEST]), hint=hint)
            super().parse_cleanup()

    def print_help(self) -> None:
        """Show how a command line is written, and the tasks; most of Invoke's own options do nothing for these."""
        sys.stdout.write(
            f"Usage: {self.binary_names[0]} TASK [WORD...] [options]\n\nOptions in the place of a task:\n\n"
        )
        self.print_columns(OPTIONS)
        self.list_tasks()

    def list_flat(self) -> None:
        """List the tasks that users call, then those that maintain ortrim, by names that can be typed as they are."""
        group, self.list_root = self.list_root, None  # Invoke leaves a group's name away
        pairs = self._make_pairs(self.scoped_collection, [group] if group else None)
        for heading, maintaining in (("Tasks", False), ("Tasks that maintain ortrim and its workflows", True)):
            if own := [pair for pair in pairs if maintains(pair[0].partition(" ")[0]) is maintaining]:
                sys.stdout.write(f"{heading}:\n\n")
                self.print_columns(own)
        if not group:
            program = self.binary_names[0]
            sys.stdout.write(f"To begin: {program} build MODEL.onnx; for a task's options: {program} --help TASK\n")

    def print_task_help(self, name: str) -> None:
        """Show the options of a task by groups."""
        options = {each.names[0]: each for each in self.parser.contexts[name].args.values()}
        Console().render(task_help(self.binary_names[0], name, self.collection[name], options))

    def no_tasks_given(self) -> None:
        """List the tasks."""
        self.list_tasks()
        raise Exit

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        try:
            yield
        except (ParseError, UsageError) as error:
            diagnostic = self._worded(error) if isinstance(error, ParseError) else error
            Console().diagnostic(diagnostic)
            raise Exit(code=ExitCode.USAGE) from error

    def _worded(self, error: ParseError) -> UsageError:
        """Return what Invoke's parser says, in words that name what was written and what is there."""
        said, context = str(error), error.context
        task = context.name if context else None
        program = self.binary_names[0]
        hint = f"run: {program} --help {task}" if task else f"run: {program} --list"
        if (unknown := re.fullmatch("No idea what '(.*)' is!", said, re.DOTALL)) and context:
            word = unknown[1]
            file = next((each for each in self.argv if each.startswith("-") and Path(each).is_file()), "")
            if file:
                hint = f"the file's name begins with a dash; write ./{file}, or put -- before it"
            elif near := nearest_word(word, context.flags):
                hint = f"did you mean {near}?"
            said = f"{task or program} has no option {word[:LONGEST]!r}"
        elif unknown:  # of --help
            return _no_task(unknown[1], "is no task", self.parser.contexts, program)
        elif valueless := re.search("<Argument: ([^ >]+)", said):
            said = f"--{valueless[1]} needs a value"
        elif missing := re.fullmatch("'.*' did not receive required positional arguments: (.*)", said):
            said = f"{task} needs {missing[1].replace(chr(39), '').upper()}"
        return UsageError("bad-usage", said, hint=hint)


def _with_options(
    words: Sequence[str], tasks: Mapping[str, ParserContext], core: ParserContext, program: str
) -> Iterator[str]:
    """Write `--model=` or the like before each word that is no task, option or option's value, for its task.

    Invoke's own positional arguments cannot be repeated or left out. Raises `UsageError` (`unknown-word`) for a word
    that no task takes.
    """
    task: ParserContext | None = None
    option, missing, is_value = None, 0, False
    for word in words:
        if is_value or word.startswith("-"):
            known = () if is_value else tuple(each.flags for each in (task, core) if each)
            flag = next((flags[word] for flags in known if word in flags), None)
            is_value = flag is not None and flag.takes_value and not flag.optional
            yield word
        elif missing:
            missing -= 1
            yield word
        elif word in tasks and not (option and Path(word).exists()):
            task = tasks[word]
            option, missing = without_name(task.args), len(task.positional_args)
            yield word
        elif task and option:
            yield f"--{option}={word}"
            option = option if task.args[option].kind is list else None
        else:
            raise _stray(word, task.name if task else None, tasks, program)


def _stray(word: str, task: str | None, tasks: Iterable[str], program: str) -> UsageError:
    """Return the diagnostic for a word in whose place only a task could stand."""
    if task:
        what = f"{task} takes no such word, and no task has this name"
        return unknown_word(word, what, f"run: {program} --help {task}")
    if Path(word).exists():
        what = "is a file or a folder, and no task"
        hint = f"say what to do with it: {program} {'build' if word.endswith(MODELS) else 'inspect'} {word[:LONGEST]}"
        return UsageError("unknown-word", what, where=repr(word[:LONGEST]), hint=hint)
    what = "there is no such file, and no task of this name" if is_file_like(word) else "is no task"
    return _no_task(word, what, tasks, program)


def _no_task(word: str, what: str, tasks: Iterable[str], program: str) -> UsageError:
    """Return the diagnostic for a word that is no task, but may be a group of tasks or near to one of a group."""
    in_groups = [name for name in tasks if "." in name]
    groups = {name.partition(".")[0] for name in in_groups}
    if word in groups:
        return UsageError("unknown-word", "is a group of tasks", where=repr(word), hint=f"run: {program} --list {word}")
    is_option = any(name.partition(" ")[0] == f"--{word}" for name, _ in OPTIONS)
    hint = f"did you mean --{word}?" if is_option else f"run: {program} --list"
    return unknown_word(word, what, hint, [*in_groups, *sorted(groups)])


def without_name(options: Container[str]) -> str | None:
    """Return the option of a task whose values may be given without its name, None when it has none."""
    return next((name for name in WITHOUT_NAME if name in options), None)


def words_of(program: str, name: str, options: Mapping[str, Argument]) -> str:
    """Return how a task is called: the words that it takes, then its options."""
    needed = [option for option, each in options.items() if each.positional and each.kind is not list]
    alone = without_name(options)
    several = "..." if alone and options[alone].kind is list else ""
    words = [option.upper() for option in needed] or [f"[{alone.upper()}{several}]" for _ in (alone,) if alone]
    return " ".join((program, name, *words, *(("[options]",) if len(options) > len(needed) else ())))


def task_help(program: str, name: str, called: Task[Any], options: Mapping[str, Argument]) -> Group:
    """Return the help of a task: how it is called, what it does, and its options, given by name, in groups."""
    grouped = {each for names in GROUPS.values() for each in names}
    groups = {"Options": tuple(each for each in options if each not in grouped), **GROUPS}
    shown = {title: [options[each] for each in names if each in options] for title, names in groups.items()}
    return Group(
        Text(f"Usage: {words_of(program, name, options)}\n"),
        Text(f"{inspect.getdoc(called) or ''}\n"),
        *(part for title, each in shown.items() if each for part in _group(title, each)),
    )


def _group(title: str, options: list[Argument]) -> Iterator[Text | Padding]:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for option in options:
        table.add_row(Text(_named(option)), Text(reworded(option.help or "")))
    yield Text(f"{title}:", "bold")
    yield Padding(table, (0, 0, 0, 2), expand=False)
    yield Text()


def _named(option: Argument) -> str:
    (name, *letters) = option.names
    value = "" if option.kind is bool else f" {name.rpartition('-')[2].upper()}"
    return f"{f'-{letters[0]}, ' if letters else ''}--{name}{value}"


program = OrtrimProgram(
    namespace=Collection(),
    version=version("ortrim"),
    name="ortrim",
    binary="ortrim",
    binary_names=["ortrim"],
    config_class=OrtrimConfig,
)


@contextmanager
def _ending_as_programs_do() -> Iterator[None]:
    """Exit quietly when nobody reads standard output any more, and with a message when it cannot be written."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(end_unread())
    except OSError as error:
        sys.exit(end_unwritten(error))


def main() -> None:
    """Run the program on the command line's arguments and exit."""
    open_standard_streams()
    with _ending_as_programs_do():
        program.run()
