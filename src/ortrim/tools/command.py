"""Running programs. The only module that imports `subprocess`; commands are lists, never shell strings."""

import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from ortrim.errors import ToolError
from ortrim.storage.files import FULL_DISK, disk_full
from ortrim.tools.captured import Captured, TooMuchOutput
from ortrim.tools.stopping import StopRequest, stop_request

GRACE_SECONDS: Final = 5.0
"""How long a program may take to end by itself when it is asked to."""
ORPHAN_GRACE_SECONDS: Final = 0.3
"""How much longer children may take that the program did not wait for."""
ASKED_SECONDS: Final = 0.2
"""How often a program that another thread may ask to stop is interrupted by the question."""
SILENT_SECONDS: Final = 30.0
"""How long a program with a limit on its silence may say nothing before its last line is told."""
_TELL: ContextVar[Callable[[str], None] | None] = ContextVar("tells of silent programs", default=None)


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
    silent_seconds: float | None = None,
    most_bytes: int | None = None,
) -> Completed:
    """Run a program to its end and return what it printed, whatever its exit code.

    `environment` replaces the whole environment when given. What is not UTF-8 comes back with replacement
    characters. Raises `ToolError` when the program does not exist (`tool-missing`), cannot be started
    (`tool-not-startable`), runs longer than `timeout_seconds` (`tool-timeout`), says nothing for `silent_seconds`
    (`tool-silent`) or prints more than `most_bytes` on both streams (`tool-endless`); it is then stopped with its
    children, as it is on Ctrl-C, SIGTERM and SIGHUP; in another thread than the main one, when that says so by
    `stopped_by`.

    `silent_seconds` is for programs that say what they do, as those that fetch. After `SILENT_SECONDS` without a word
    their last line is told to whoever asked by `silence_told_to`, and one that spoke of a full disk before is stopped
    with `StorageError` (`disk-full`): apt-get of Debian 12 then waits for ever.
    """
    words = tuple(str(word) for word in argv)
    with started(words, cwd, environment) as process:
        try:
            silence = _Silence(words, cwd, silent_seconds)
            stdout, stderr = _output(process, timeout_seconds, most_bytes, silence)
        except TimeoutError as error:
            what = f"did not end within {timeout_seconds:g} seconds and was stopped"
            raise ToolError("tool-timeout", what, where=words[0], why=" ".join(words)) from error
        except TooMuchOutput as error:
            what = f"printed more than {most_bytes} bytes and was stopped"
            raise ToolError("tool-endless", what, where=words[0], why=" ".join(words)) from error
    return Completed(argv=words, returncode=process.returncode, stdout=stdout, stderr=stderr)


@contextmanager
def silence_told_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Let `tell` have a line about each program that falls silent; see `run`."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


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


class Terminated(SystemExit, KeyboardInterrupt):
    """SIGTERM or SIGHUP: a Ctrl-C to whoever cleans up after one; left alone it ends the program as a shell expects."""


@contextmanager
def termination_raises() -> Iterator[list[signal.Signals]]:
    """Make SIGTERM and SIGHUP raise `Terminated` for a while, so that whoever is told to end stops its programs too.

    Yields the signals that were heard so far. Only the main thread hears any; a handler that somebody else installed,
    or a signal that is ignored, is respected.
    """
    heard: list[signal.Signals] = []

    def end(number: int, _frame: FrameType | None) -> None:
        heard.append(signal.Signals(number))
        raise Terminated(128 + number)

    here = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has one
    names = here if threading.current_thread() is threading.main_thread() else []
    ours = [name for name in names if signal.getsignal(name) is signal.SIG_DFL]
    for name in ours:
        signal.signal(name, end)
    try:
        yield heard
    finally:
        for name in ours:
            signal.signal(name, signal.SIG_DFL)


class _Silence:
    """Watches that a program says something; without a `limit` it may be silent."""

    def __init__(self, words: tuple[str, ...], cwd: Path | None, limit: float | None) -> None:
        self._program = words[words.index("-m") + 1] if "-m" in words[:-1] else Path(words[0]).name
        self._cwd, self._limit = cwd, limit
        self._since, self._size, self._told = time.monotonic(), 0, False

    def patience(self, patience: float | None) -> float | None:
        """Return how long may be waited for a word."""
        if self._limit is None:
            return patience
        limit = self._limit if self._told else min(self._limit, SILENT_SECONDS)
        left = max(0.0, self._since + limit - time.monotonic())
        return left if patience is None else min(left, patience)

    def check(self, captured: Captured) -> None:
        """Tell of a silence; raises at its limit, or when a full disk is what it is about."""
        if self._limit is None:
            return
        if captured.size_bytes != self._size:
            self._since, self._size, self._told = time.monotonic(), captured.size_bytes, False
            return
        seconds = time.monotonic() - self._since
        if not self._told and seconds >= min(self._limit, SILENT_SECONDS):
            self._told = True
            self._tell(seconds, captured)
        if seconds >= self._limit:
            what = f"said nothing for {self._limit:g} seconds and was stopped"
            raise ToolError("tool-silent", what, where=self._program, why=self._last_words(captured))

    def _tell(self, seconds: float, captured: Captured) -> None:
        last = self._last_words(captured)
        if any(words in text for words in FULL_DISK for text in captured.texts()):
            what = f"{self._program} ran out of disk space and was stopped"
            raise disk_full(what, self._cwd or Path(tempfile.gettempdir()), why=last)
        if (tell := _TELL.get()) is not None:
            tell(f"{self._program} has said nothing for {seconds:.0f} s; {last}")

    def _last_words(self, captured: Captured) -> str:
        lines = [text.rstrip().rpartition("\n")[2].strip() for text in captured.texts()]
        return f"its last line: {' | '.join(filter(None, lines))}" if any(lines) else "it has not said anything so far"


def _output(
    process: subprocess.Popen[str], seconds: float | None, most_bytes: int | None, silence: _Silence
) -> tuple[str, ...]:
    """Read what a program prints, and wait for its end. Raises `TimeoutError`, `TooMuchOutput`, and as `_Silence`."""
    assert process.stdout is not None
    assert process.stderr is not None
    request = stop_request()
    ends = math.inf if seconds is None else time.monotonic() + seconds
    with Captured((process.stdout, process.stderr), most_bytes) as captured:
        while not captured.read(silence.patience(_patience(ends, request))):
            silence.check(captured)
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
