"""Running programs. The only module that imports `subprocess`; commands are lists, never shell strings."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ortrim.errors import ToolError


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A finished program: what it was called with, its exit code (negative: the signal) and what it printed."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float | None = None,
) -> Completed:
    """Run a program to its end and return what it printed, whatever its exit code.

    `environment` replaces the whole environment when given. Raises `ToolError` when the program does not exist
    (`tool-missing`) or runs longer than `timeout_seconds` (`tool-timeout`); it is then killed with its children.
    """
    words = tuple(str(word) for word in argv)
    with _started(words, cwd, environment, stderr=subprocess.PIPE) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            what = f"did not end within {timeout_seconds:g} seconds and was stopped"
            raise ToolError("tool-timeout", what, where=words[0]) from error
    return Completed(argv=words, returncode=process.returncode, stdout=stdout, stderr=stderr)


def stream(
    argv: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a program, hand over each line of its output (both streams) as it comes, and return its exit code.

    Raises `ToolError` (`tool-missing`). If `on_line` raises, or Ctrl-C is pressed, the program and its children
    are stopped first.
    """
    words = tuple(str(word) for word in argv)
    with _started(words, cwd, environment, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        return process.wait()


@contextmanager
def _started(
    words: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str] | None, stderr: int
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a process group of its own, so that all of it can be stopped."""
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        what = "cannot be started"
        raise ToolError("tool-missing", what, where=words[0], why=str(error), hint="run: invoke doctor") from error
    with process:
        try:
            yield process
        except BaseException:
            _stop(process)
            raise


def _stop(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            pass
        return
