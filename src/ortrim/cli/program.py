"""The program `ortrim`: the same tasks, from any folder."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from invoke.collection import Collection
from invoke.config import Config
from invoke.exceptions import Exit, ParseError
from invoke.program import Program

from ortrim.cli.boundary import end_unread, end_unwritten, open_standard_streams
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

    def parse_cleanup(self) -> None:
        """Answer `--help` and `--list`."""
        with _usage_errors():
            super().parse_cleanup()

    def no_tasks_given(self) -> None:
        """List the tasks."""
        self.list_tasks()
        raise Exit


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
        hint = (
            f"the file's name begins with a dash; write ./{file}, or put -- before it" if file else "run ortrim --list"
        )
        raise Exit(message=f"error: bad-usage\n  {error}\n  hint: {hint}", code=ExitCode.USAGE) from error
