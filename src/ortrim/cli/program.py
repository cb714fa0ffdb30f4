"""The program `ortrim`: the same tasks, from any folder."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from invoke.collection import Collection
from invoke.config import Config
from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.parser.context import ParserContext
from invoke.program import Program

from ortrim.base.console import Console
from ortrim.cli.boundary import end_unread, end_unwritten, open_standard_streams
from ortrim.cli.task import task_help, without_name
from ortrim.cli.tasks import namespace_for
from ortrim.errors import ExitCode


class OrtrimConfig(Config):
    """Invoke's settings, without the user's own when the home folder is closed to this user."""

    def load_user(self, merge: bool = True) -> None:
        """Load Invoke's file in the home folder, if there is one."""
        with suppress(PermissionError, NotADirectoryError):  # HOME=/dev/null is what some containers have
            super().load_user(merge)


class OrtrimProgram(Program):
    """Invoke's program, which lists the tasks when none is given, and has ortrim's exit code for bad options."""

    def run(self, argv: list[str] | None = None, exit: bool = True) -> None:  # noqa: A002 - Invoke's name
        """Run a command line, or say how a shell may go on with one, for which Invoke would load all tasks."""
        words = sys.argv if argv is None else argv
        if words[1:2] == ["--complete"]:  # as Invoke's scripts ask: ortrim --complete -- ortrim build --ta
            from ortrim.cli.completion import candidates  # noqa: PLC0415 - no other command needs it

            sys.stdout.writelines(f"{each}\n" for each in candidates(words[4:]))
        else:
            super().run(argv, exit)

    def normalize_argv(self, argv: list[str] | None) -> None:
        """Take words behind `--` for files, whatever they begin with; Invoke keeps them from tasks."""
        super().normalize_argv(argv)
        words = list(self.argv)
        end = words.index("--") if "--" in words else len(words)
        self.argv = [*words[:end], *(f"./{word}" if word.startswith("-") else word for word in words[end + 1 :])]

    def parse_core(self, argv: list[str] | None) -> None:
        """Read the options that stand before any task."""
        with _usage_errors(argv):
            super().parse_core(argv)

    def parse_collection(self) -> None:
        """Import the tasks that the words name."""
        self.namespace = namespace_for(self.argv[1:])
        super().parse_collection()

    def parse_tasks(self) -> None:
        """Read tasks and their options."""
        with _usage_errors(self.argv):
            super().parse_tasks()

    def _make_parser(self) -> Parser:
        """Return Invoke's parser; words that stand alone become a task's models or sources.

        Invoke takes `--help` for a positional argument that is still missing.
        """
        parser = super()._make_parser()
        if not {"-h", "--help"}.isdisjoint(self.core.unparsed):
            for task in parser.contexts.values():
                task.positional_args.clear()
        self.core.unparsed[:] = _with_options(self.core.unparsed, parser.contexts)
        return parser

    def parse_cleanup(self) -> None:
        """Answer `--help` and `--list`."""
        with _usage_errors():
            super().parse_cleanup()

    def print_task_help(self, name: str) -> None:
        """Show the options of a task by groups."""
        options = {each.names[0]: each for each in self.parser.contexts[name].args.values()}
        Console().render(task_help(self.binary, name, self.collection[name], options))

    def no_tasks_given(self) -> None:
        """List the tasks."""
        self.list_tasks()
        raise Exit


def _with_options(words: Sequence[str], tasks: Mapping[str, ParserContext]) -> list[str]:
    """Write `--model=` or `--app=` before each word behind the first task that is no option, option's value or task.

    Invoke's own positional arguments cannot be repeated or left out.
    """
    task = tasks.get(words[0]) if words else None
    option = without_name(task.args) if task else None
    if task is None or option is None or task.args[option].positional:
        return list(words)
    written, expects, several = [words[0]], False, task.args[option].kind is list
    for at, word in enumerate(words[1:], start=1):
        if word in tasks and not expects and not Path(word).exists():
            return [*written, *words[at:]]
        takes_value = word in task.flags and task.flags[word].takes_value  # its `get` knows no letters
        alone = not (expects or word.startswith("-"))
        written.append(f"--{option}={word}" if alone else word)
        if alone and not several:
            return [*written, *words[at + 1 :]]
        expects = not expects and takes_value
    return written


program = OrtrimProgram(
    namespace=Collection(), version=version("ortrim"), name="ortrim", binary="ortrim", config_class=OrtrimConfig
)


def main() -> None:
    """Run the program on the command line's arguments and exit; quietly when nobody reads its list any more."""
    open_standard_streams()
    try:
        try:
            program.run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(end_unread())
    except OSError as error:
        sys.exit(end_unwritten(error))


@contextmanager
def _usage_errors(argv: Sequence[str] | None = None) -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        files = (word for word in argv or () if word.startswith("-") and Path(word).is_file())
        file = next(files, "")
        model = next((word for word in argv or () if word.endswith((".onnx", ".toml"))), "")
        hint = "run ortrim --list"
        if file:
            hint = f"the file's name begins with a dash; write ./{file}, or put -- before it"
        elif model and model == next(iter((argv or ())[1:]), None):
            hint = f"say what to do with it: ortrim build {model}"
        raise Exit(message=f"error: bad-usage\n  {error}\n  hint: {hint}", code=ExitCode.USAGE) from error
