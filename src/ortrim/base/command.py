"""Running programs. The only module that imports `subprocess`; commands are lists, never shell strings."""

import math
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import IO, Any, Final, Self

from ortrim.base.files import FULL_DISK, disk_full
from ortrim.errors import MemoryShortage, ToolError

CHUNK_BYTES: Final = 1 << 16
MOST_CHUNKS: Final = 16
"""How many may have been read that nobody has taken yet; then the program waits, as on a full pipe."""
AHEAD_SECONDS: Final = 0.01


class TooMuchOutput(Exception):
    """A program printed more than it may."""


class Captured:
    """Reads streams to their ends, `most_bytes` of all together; in threads, as Windows waits for one pipe alone."""

    def __init__(self, streams: Sequence[IO[str]], most_bytes: int | None) -> None:
        self._parts = tuple(bytearray() for _ in streams)
        self._most_bytes = most_bytes
        self._chunks: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        self._reading = len(streams)
        self._left = False
        for number, stream in enumerate(streams):
            # A descriptor of its own: the stream is closed though a child may hold its other end for long.
            descriptor = os.dup(stream.fileno())
            threading.Thread(target=self._forward, args=(number, descriptor), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True

    def _forward(self, number: int, descriptor: int) -> None:
        chunk = b"some"
        while chunk and not self._left:
            chunk = os.read(descriptor, CHUNK_BYTES)
            self._chunks.put((number, chunk))
            while self._chunks.qsize() > MOST_CHUNKS and not self._left:
                time.sleep(AHEAD_SECONDS)
        os.close(descriptor)

    def read(self, seconds: float) -> bool:
        """Read what comes first, within `seconds`; return whether all streams have ended. Raises `TooMuchOutput`."""
        with suppress(Empty):
            for _ in range(max(self._chunks.qsize(), min(self._reading, 1))):
                number, chunk = self._chunks.get(timeout=seconds)
                self._parts[number].extend(chunk)
                self._reading -= not chunk
        if self._most_bytes is not None and self.size_bytes > self._most_bytes:
            raise TooMuchOutput
        return not self._reading

    @property
    def size_bytes(self) -> int:
        """How much was read so far, of all streams together."""
        return sum(map(len, self._parts))

    def texts(self) -> tuple[str, ...]:
        """Return what was read of each stream, with replacement characters for what is not UTF-8."""
        return tuple(_text(part) for part in self._parts)


def _text(part: bytearray) -> str:
    # As text streams read: a line may end in any of three ways.
    return part.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


_REQUEST: ContextVar["StopRequest | None"] = ContextVar("stop request", default=None)


class StopRequest:
    """Asks one thread once; what it runs afterwards, to clean up, is left alone."""

    def __init__(self, asked: threading.Event) -> None:
        self._asked = asked
        self._told = False

    def check(self) -> None:
        """Raise `KeyboardInterrupt` when the thread is asked to stop, once."""
        if self._asked.is_set() and not self._told:
            self._told = True
            raise KeyboardInterrupt


@contextmanager
def stopped_by(asked: threading.Event) -> Iterator[None]:
    """Let whatever this thread runs be stopped, as on Ctrl-C, once `asked` is set."""
    token = _REQUEST.set(StopRequest(asked))
    try:
        yield
    finally:
        _REQUEST.reset(token)


def stop_request() -> StopRequest | None:
    """Return the event that asks this thread to stop; None when there is none."""
    return _REQUEST.get()


GRACE_SECONDS: Final = 5.0  # how long a program may take to end by itself when it is asked to
ORPHAN_GRACE_SECONDS: Final = 0.3  # how much longer children may take that the program did not wait for
ASKED_SECONDS: Final = 0.2  # how often the question whether to stop interrupts the wait for a program
SILENT_SECONDS: Final = 30.0
"""How long a program with a limit on its silence may say nothing before its last line is reported."""
_TELL: ContextVar[Callable[[str], None] | None] = ContextVar("reports silent programs", default=None)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A finished program: what it was called with, its exit code (negative: the signal) and what it printed."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


def last_lines(printed: str, most: int = 5) -> str:
    """Return the end of what a program printed."""
    return "\n".join(printed.strip().splitlines()[-most:])


def signal_name(returncode: int) -> str:
    """Return the name of the signal that a negative return code stands for."""
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


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

    `environment` replaces the whole environment. What is not UTF-8 comes back with replacement characters. At a limit,
    on Ctrl-C, SIGTERM, SIGHUP and by `stopped_by`, the program is stopped with its children.

    `silent_seconds` is for programs that say what they do. After `SILENT_SECONDS` without a word their last line is
    passed to the function of `silence_told_to`, and one that spoke of a full disk is stopped: apt-get of Debian 12 then
    waits for ever.
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
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Do `work` in a thread while the body runs, and wait for it in the end; what ends the body early stops it."""
    asked = threading.Event()

    def stoppable() -> None:
        with stopped_by(asked), suppress(KeyboardInterrupt):
            work()

    thread = threading.Thread(target=copy_context().run, args=(stoppable,))
    thread.start()
    try:
        yield
    except BaseException:
        asked.set()
        raise
    finally:
        thread.join()


@contextmanager
def silence_told_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Report each program that prints nothing for long to `tell`; see `run`."""
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

    The program and its children are stopped first when `on_line` raises, and on Ctrl-C, SIGTERM and SIGHUP.
    """
    words = tuple(str(word) for word in argv)
    with started(words, cwd, environment, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        return process.wait()


ENDING: Final = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that end a program; Windows has no SIGHUP."""


class Terminated(SystemExit, KeyboardInterrupt):
    """SIGTERM or SIGHUP: a Ctrl-C to whoever cleans up after one; left alone it ends the program as a shell expects."""


@contextmanager
def termination_raises() -> Iterator[list[signal.Signals]]:
    """Make SIGTERM and SIGHUP raise `Terminated` for a while; yields the signals received so far.

    Only the main thread receives any; another handler, and a signal that is ignored, are respected.
    """
    heard: list[signal.Signals] = []

    def end(number: int, _frame: FrameType | None) -> None:
        heard.append(signal.Signals(number))
        raise Terminated(128 + number)

    names = ENDING[1:] if threading.current_thread() is threading.main_thread() else ()
    ours = [name for name in names if signal.getsignal(name) is signal.SIG_DFL]
    for name in ours:
        signal.signal(name, end)
    try:
        yield heard
    finally:
        for name in ours:
            signal.signal(name, signal.SIG_DFL)


@contextmanager
def _signals_held() -> Iterator[Callable[[], None]]:
    """Hold signals back until the yielded function is called, which hands them on.

    An exception inside of `subprocess.Popen`, where the program runs already, would leave it to nobody.
    """
    held: list[int] = []
    handlers: dict[int, Any] = {}

    def release() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        waiting = [(handlers[number], number) for number in held]
        handlers.clear()
        held.clear()
        for handler, number in waiting:
            handler(number, None)

    try:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if callable(handler := signal.getsignal(number)):
                    handlers[number] = handler
                    signal.signal(number, lambda came, _frame: held.append(came))
        yield release
    finally:
        release()


class _Silence:
    """Watches that a program says something; without a `limit` it may be silent."""

    def __init__(self, words: tuple[str, ...], cwd: Path | None, limit: float | None) -> None:
        self._program = words[words.index("-m") + 1] if "-m" in words[:-1] else Path(words[0]).name
        self._cwd, self._limit = cwd, limit
        self._since, self._size, self._told = time.monotonic(), 0, False

    def patience(self, patience: float) -> float:
        """Return how long may be waited for a word."""
        if self._limit is None:
            return patience
        limit = self._limit if self._told else min(self._limit, SILENT_SECONDS)
        return min(max(0.0, self._since + limit - time.monotonic()), patience)

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
            what = f"printed nothing for {self._limit:g} seconds and was stopped"
            raise ToolError("tool-silent", what, where=self._program, why=self._last_words(captured))

    def _tell(self, seconds: float, captured: Captured) -> None:
        last = self._last_words(captured)
        if any(words in text for words in FULL_DISK for text in captured.texts()):
            what = f"{self._program} ran out of disk space and was stopped"
            raise disk_full(what, self._cwd or Path(tempfile.gettempdir()), why=last)
        if (tell := _TELL.get()) is not None:
            tell(f"{self._program} has printed nothing for {seconds:.0f} s; {last}")

    def _last_words(self, captured: Captured) -> str:
        lines = [text.rstrip().rpartition("\n")[2].strip() for text in captured.texts()]
        return f"its last line: {' | '.join(filter(None, lines))}" if any(lines) else "it has printed nothing so far"


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


def _patience(ends: float, request: StopRequest | None) -> float:
    """Return how long to wait; raises when it is time to stop. On Windows Ctrl-C is heard only between two waits."""
    if request is not None:
        request.check()
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, ASKED_SECONDS)


@contextmanager
def started(
    words: tuple[str, ...], cwd: Path | None, environment: Mapping[str, str] | None, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own, so that all of it can be stopped, and stop it on any exception."""
    with termination_raises(), _signals_held() as release, _open(words, cwd, environment, stderr) as process:
        try:
            release()
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
        raise _start_error(words[0], cwd, environment, error) from error


def _start_error(
    program: str, cwd: Path | None, environment: Mapping[str, str] | None, error: OSError | ValueError
) -> ToolError:
    """Tell an absent program from one that cannot run: no permission, wrong format, no interpreter, bad folder."""
    at_folder = cwd is not None and not cwd.is_dir()
    absent = isinstance(error, FileNotFoundError) and not (os.sep in program and Path(program).exists())
    # a folder on PATH that may not be searched, as root's after `su`, turns every absent program into EACCES
    if isinstance(error, PermissionError) and os.sep not in program:
        absent = not any(_is_file(Path(folder) / program) for folder in os.get_exec_path(environment))
    if absent and not at_folder:
        return ToolError("tool-missing", "is not installed", where=program, why=str(error), hint="run: invoke doctor")
    what = f"cannot be started in {cwd}" if at_folder else "cannot be started"
    return ToolError("tool-not-startable", what, where=program, why=str(error))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # of a folder that may not be searched
        return False


def stop(process: subprocess.Popen[str]) -> None:
    """Ask the program and all its children to end, and kill those that do not; Windows does not ask."""
    if not hasattr(os, "killpg"):
        _kill_tree(process)
        return
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


def _kill_tree(process: subprocess.Popen[str]) -> None:
    taskkill = Path(os.environ.get("SYSTEMROOT", "C:/Windows"), "System32", "taskkill.exe")
    with suppress(OSError):  # of a Windows that lacks it
        subprocess.run((taskkill, "/t", "/f", "/pid", str(process.pid)), capture_output=True, check=False)
    process.kill()
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


LAST_WORDS_SECONDS: Final = 1.0
"""How long is read from a program that has ended; more comes only from a child that left its session."""


def watch(
    argv: Sequence[str | Path],
    on_output: Callable[[str], None],
    check: Callable[[], None],
    *,
    environment: Mapping[str, str] | None = None,
    most_bytes: int,
) -> Completed:
    """Run a program to its end like `run`, handing over each line of its standard error as it comes.

    `check` is called several times a second. When it or `on_output` raises, or the program is to be stopped,
    `on_output` still gets what it says meanwhile.
    """
    words = tuple(str(word) for word in argv)
    try:
        with started(words, None, environment) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            with Captured((process.stdout, process.stderr), most_bytes) as captured:
                lines = _Lines(captured, on_output)
                try:
                    request = stop_request()
                    while not captured.read(ASKED_SECONDS):
                        lines.hear_new()
                        check()
                        if request is not None:
                            request.check()
                    process.wait()
                except BaseException:
                    stop(process)
                    lines.hear_the_last()
                    raise
                lines.hear_the_last()
                stdout, stderr = captured.texts()
    except TooMuchOutput as error:
        what = f"printed more than {most_bytes} bytes and was stopped"
        raise ToolError("tool-endless", what, where=words[0], why=" ".join(words)) from error
    return Completed(argv=words, returncode=process.returncode, stdout=stdout, stderr=stderr)


class _Lines:
    """Hands over the lines of the second of two streams, each once."""

    def __init__(self, captured: Captured, on_output: Callable[[str], None]) -> None:
        self._captured = captured
        self._on_output = on_output
        self._heard = 0

    def hear_new(self) -> None:
        """Hand over the lines that have ended since."""
        self._hear_from(self._captured.texts()[1].split("\n")[:-1])

    def hear_the_last(self) -> None:
        """Hand over what is still to be read, also a last line without an end."""
        ends = time.monotonic() + LAST_WORDS_SECONDS
        with suppress(TooMuchOutput):
            while time.monotonic() < ends and not self._captured.read(ASKED_SECONDS):
                pass
        text = self._captured.texts()[1].removesuffix("\n")
        self._hear_from(text.split("\n") if text else [])

    def _hear_from(self, lines: list[str]) -> None:
        new, self._heard = lines[self._heard :], max(self._heard, len(lines))
        for line in new:
            self._on_output(line)


SHORTAGE: Final = re.compile(
    r"bad_alloc|bad allocation|MemoryError|annot allocate memory|ailed to allocate|nable to allocate|alloc failed"
    r"|failed to map segment|out of memory|can't start new thread"
)
"""What C++, Python, NumPy, protobuf, ONNX Runtime and the loader of libraries say."""


def memory_limit() -> int | None:
    """Return how many bytes of address space a process may take here (`ulimit -v`), None for any."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def is_shortage(printed: str, own_limit: int | None = None) -> bool:
    """Whether a program failed because of the limit on memory here, not of a lower one of its own."""
    limit = memory_limit()
    return limit is not None and (own_limit is None or limit < own_limit) and SHORTAGE.search(printed) is not None


def out_of_memory(where: str = "", why: str = "") -> MemoryShortage:
    """Return the diagnostic of memory that ran out; it names the limit."""
    limit = memory_limit()
    what = "memory ran out" if limit is None else f"memory ran out: a process may use {limit / 1e6:,.0f} MB here"
    hint = "raise the limit: ulimit -v unlimited" if limit else "free memory, or use a machine or container with more"
    return MemoryShortage("out-of-memory", what, where=where, why=why, hint=hint)
