"""Running programs. The only module that imports `subprocess`; commands are lists, never shell strings."""

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.captured import Captured, TooMuchOutput
from ortrim.tools.stopping import StopRequest, stop_request

GRACE_SECONDS: Final = 5.0
"""How long a program may take to end by itself when it is asked to."""
ORPHAN_GRACE_SECONDS: Final = 0.3
"""How much longer children may take that the program did not wait for."""
ASKED_SECONDS: Final = 0.2
"""How often a program that another thread may ask to stop is interrupted by the question."""


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
    most_bytes: int | None = None,
) -> Completed:
    """Run a program to its end and return what it printed, whatever its exit code.

    `environment` replaces the whole environment when given. What is not UTF-8 comes back with replacement
    characters. Raises `ToolError` when the program does not exist (`tool-missing`), cannot be started
    (`tool-not-startable`), runs longer than `timeout_seconds` (`tool-timeout`) or prints more than `most_bytes` on both
    streams (`tool-endless`); it is then stopped with its children, as it is on Ctrl-C, SIGTERM and SIGHUP; in another
    thread than the main one, when that says so by `stopped_by`.
    """
    words = tuple(str(word) for word in argv)
    with started(words, cwd, environment) as process:
        try:
            stdout, stderr = _output(process, timeout_seconds, most_bytes)
        except TimeoutError as error:
            what = f"did not end within {timeout_seconds:g} seconds and was stopped"
            raise ToolError("tool-timeout", what, where=words[0], why=" ".join(words)) from error
        except TooMuchOutput as error:
            what = f"printed more than {most_bytes} bytes and was stopped"
            raise ToolError("tool-endless", what, where=words[0], why=" ".join(words)) from error
    return Completed(argv=words, returncode=process.returncode, stdout=stdout, stderr=stderr)


def stream(
    argv: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a program, hand over each line of its output (both streams) as it comes, and return its exit code.

    Raises `ToolError` (`tool-missing`, `tool-not-startable`). If `on_line` raises, or on Ctrl-C, SIGTERM and
    SIGHUP, the program and its children are stopped first.
    """
    words = tuple(str(word) for word in argv)
    with started(words, cwd, environment, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        return process.wait()


@contextmanager
def termination_raises() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise `SystemExit` for a while, so that whoever is told to end stops its programs too.

    Only the main thread can; a handler that somebody else installed, or a signal that is ignored, is respected.
    """
    names = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    ours = [name for name in names if signal.getsignal(name) is signal.SIG_DFL]
    for name in ours:
        signal.signal(name, _exit)
    try:
        yield
    finally:
        for name in ours:
            signal.signal(name, signal.SIG_DFL)


def _output(process: subprocess.Popen[str], seconds: float | None, most_bytes: int | None) -> tuple[str, ...]:
    """Read what a program prints, and wait for its end. Raises `TimeoutError` and `TooMuchOutput`."""
    assert process.stdout is not None
    assert process.stderr is not None
    request = stop_request()
    ends = math.inf if seconds is None else time.monotonic() + seconds
    with Captured((process.stdout, process.stderr), most_bytes) as captured:
        while not captured.read(_patience(ends, request)):
            pass
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_patience(ends, request))
    return captured.texts()


def _patience(ends: float, request: StopRequest | None) -> float | None:
    """Return how long may be waited before this is asked again, None for ever; raises when it is time to stop."""
    if request is not None:
        request.check()
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    patience = left if request is None else min(left, ASKED_SECONDS)
    return None if math.isinf(patience) else patience


@contextmanager
def started(
    words: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str] | None, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own, so that all of it can be stopped, and stop it on any exception.

    Raises `ToolError` (`tool-missing`, `tool-not-startable`, `unsupported-host`).
    """
    if not hasattr(os, "killpg"):
        what = "cannot be started: it could not be stopped with all its children on this system"
        hint = "on Windows, use the Windows Subsystem for Linux"
        raise ToolError("unsupported-host", what, where=words[0], hint=hint)
    with termination_raises(), _open(words, cwd, environment, stderr) as process:
        try:
            yield process
        except BaseException:
            stop(process)
            raise


def _open(
    words: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str] | None, stderr: int
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _start_error(words[0], cwd, error) from error


def _start_error(program: str, cwd: Path | None, error: OSError | ValueError) -> ToolError:
    """Tell an absent program from one that cannot run: no permission, wrong format, no interpreter, bad folder."""
    at_folder = cwd is not None and not cwd.is_dir()
    if isinstance(error, FileNotFoundError) and not at_folder and not (os.sep in program and Path(program).exists()):
        return ToolError("tool-missing", "is not installed", where=program, why=str(error), hint="run: invoke doctor")
    what = f"cannot be started in {cwd}" if at_folder else "cannot be started"
    return ToolError("tool-not-startable", what, where=program, why=str(error))


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def stop(process: subprocess.Popen[str]) -> None:
    """Ask the program and all its children to end, and kill those that do not."""
    try:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)
        if _signal_group(process, 0):
            time.sleep(ORPHAN_GRACE_SECONDS)
    finally:
        _signal_group(process, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)


def _signal_group(process: subprocess.Popen[str], number: int) -> bool:
    """Signal what is left of the program's process group; return whether anything was.

    Reaps the program first, or it would stay in its group as a zombie. macOS answers EPERM for a group of zombies.
    """
    process.poll()
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
