"""The program `ortrim`: the same tasks, from any folder."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from invoke.exceptions import Exit, ParseError
from invoke.program import Program

from ortrim.errors import ExitCode
from ortrim.tasks import namespace
from ortrim.tasks.boundary import end_unread


class OrtrimProgram(Program):
    """Invoke's program, with a list of the tasks for who asks for none and ortrim's exit code for bad options."""

    def parse_core(self, argv: list[str] | None) -> None:
        """Read the options that stand before any task."""
        with _usage_errors():
            super().parse_core(argv)

    def parse_tasks(self) -> None:
        """Read tasks and their options."""
        with _usage_errors():
            super().parse_tasks()

    def parse_cleanup(self) -> None:
        """Answer `--help` and `--list`."""
        with _usage_errors():
            super().parse_cleanup()

    def no_tasks_given(self) -> None:
        """List the tasks."""
        self.list_tasks()
        raise Exit


program = OrtrimProgram(namespace=namespace, version=version("ortrim"), name="ortrim", binary="ortrim")


def main() -> None:
    """Run the program on the command line's words and exit; quietly when nobody reads its list any more."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # or what Invoke prints waits until Python ends, and fails there
    try:
        program.run()
    except BrokenPipeError:
        sys.exit(end_unread())


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        raise Exit(message=f"error: bad-usage\n  {error}\n  hint: run ortrim --list", code=ExitCode.USAGE) from error
