"""The one error boundary: a diagnostic becomes words for the user and an exit code for the shell."""

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from invoke.exceptions import Exit

from ortrim.base.cache import watched_cache
from ortrim.base.command import out_of_memory, silence_told_to, termination_raises
from ortrim.base.console import STANDARD_OUTPUT, Console
from ortrim.base.files import own_temporary_folder, storage_errors
from ortrim.errors import Diagnostic, DiagnosticGroup, Interrupted, StorageError

PROGRAM: Final = ContextVar("PROGRAM", default="invoke")
"""The program that the user called: messages are written for `invoke`."""
IN_OPTIONS: Final = ContextVar("IN_OPTIONS", default=False)
"""Whether options stand for a buildspec's keys, so that messages name these."""
COMMAND: Final = re.compile(r"\binvoke (?=[a-z-])")
VERSION_KEY: Final = re.compile(r'onnxruntime\.version(?: = "([^"]*)")?')
"""The key that an option stands for."""
KEY: Final = re.compile(r"(?<![\w(.])(?!locale )[a-z_][a-z_.0-9]* = (?:['\"\[{\d]|true|false)|\(step ")
"""Keys, and steps, that a buildspec alone has."""
IN_BUILDSPEC: Final = "; invoke init MODEL writes a buildspec, to edit, for that"
ErrorData = dict[str, str | int]

STANDARD_ERROR: Final = 2
"""The largest number of a standard stream."""
BROKEN_PIPE: Final = 141
"""What a shell reports of a program that wrote to a pipe which nobody reads any more, as `head` leaves it."""


@contextmanager
def boundary(*, json_mode: bool = False, in_options: bool = False) -> Iterator[Console]:
    """Give a task its console; turn what goes wrong into a diagnostic and `invoke.Exit` with its code.

    In `json_mode` standard output gets one JSON document in that case too, `{"errors": [...]}`, unless the task has
    printed one already. Damage in the cache is shown as a warning. `in_options` says that options stand for a
    buildspec's keys.
    """
    open_standard_streams()
    console = Console(json_mode=json_mode, reword=reworded)
    token = IN_OPTIONS.set(in_options)
    heard: list[signal.Signals] = []
    try:
        with (
            own_temporary_folder(),
            watched_cache(console.warn),
            silence_told_to(console.note),
            termination_raises() as heard,
        ):
            yield console
    except Diagnostic as diagnostic:
        _fail(console, diagnostic, heard, json_mode=json_mode)
    except KeyboardInterrupt:
        _fail(console, _goodbye(heard), heard, json_mode=json_mode)
    except BrokenPipeError:
        raise Exit(code=end_unread()) from None
    except MemoryError as error:
        _fail(console, out_of_memory(why=str(error)), heard, json_mode=json_mode)
    except OSError as error:  # a terminal that was closed cannot be written
        _fail(console, _goodbye(heard) if heard else _storage_error(error), heard, json_mode=json_mode)
    else:
        if heard:  # a task shows what was finished, and ends as if nothing had been
            _fail(console, _goodbye(heard), heard, json_mode=json_mode)
    finally:
        IN_OPTIONS.reset(token)


def reworded(text: str) -> str:
    """Name the program that the user called, and options in the place of keys which the user has not written."""
    if IN_OPTIONS.get():
        text = VERSION_KEY.sub(lambda key: f"--ort-version {key[1] or ''}".rstrip(), text).replace(
            "by 'data'", "by --data"
        )
    return COMMAND.sub(f"{PROGRAM.get()} ", text)


def _reword(failure: Diagnostic | None) -> tuple[Diagnostic, ...]:
    """Return a failure, or each of a group, in the words that `reworded` gives; nothing without one."""
    parts = failure.diagnostics if isinstance(failure, DiagnosticGroup) else (failure,) if failure else ()
    for part in parts:
        more = IN_BUILDSPEC if IN_OPTIONS.get() and KEY.search(part.hint) and " init " not in part.hint else ""
        part.where, part.what, part.hint = map(reworded, (part.where, part.what, part.hint + more))
    return parts


def _goodbye(heard: Sequence[signal.Signals]) -> Interrupted:
    by = f" by {heard[0].name}" if heard else ""
    return Interrupted("interrupted", f"stopped{by}; finished work is kept, and the same command continues")


def open_standard_streams() -> None:
    """Lead each standard stream that the caller closed (`>&-`) to nowhere, as other programs' output is then.

    Otherwise the next file that is opened gets the stream's number, and what any library says of an error is written
    into that file.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        pass
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for as long as we run


def end_unwritten(error: OSError) -> int:
    """Say why standard output cannot be written, and return the exit code; nothing is written any more."""
    error.filename = STANDARD_OUTPUT
    diagnostic = _storage_error(error)
    with suppress(OSError):
        Console().diagnostic(diagnostic)
    return int(diagnostic.exit_code)


def end_unread() -> int:
    """Return the exit code of a program whose output nobody reads any more; nothing is written any more either."""
    _silence(sys.stdout.fileno())
    return BROKEN_PIPE


def as_data(failure: Diagnostic | None) -> list[ErrorData]:
    """Return a failure, or each of a group, as JSON-ready data; without one, nothing."""
    return [
        {
            "code": part.code,
            "where": part.where,
            "what": part.what,
            "why": part.why,
            "hint": part.hint,
            "exit_code": int(part.exit_code),
        }
        for part in _reword(failure)
    ]


def _storage_error(error: OSError) -> StorageError:
    """Return the diagnostic for an error of the operating system that nobody nearer to it knew how to word."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout.fileno())
    try:
        with storage_errors(Path(str(error.filename or "."))):
            raise error
    except StorageError as diagnosed:
        return diagnosed


def _fail(console: Console, diagnostic: Diagnostic, heard: Sequence[signal.Signals], *, json_mode: bool) -> None:
    """Tell a diagnostic and end with its code, or as shells expect it of who was stopped by a signal."""
    _reword(diagnostic)
    code = 128 + heard[0] if heard and isinstance(diagnostic, Interrupted) else int(diagnostic.exit_code)
    with suppress(OSError):  # a full disk may hold the log that standard error goes to
        console.diagnostic(diagnostic)
    if json_mode and not console.answered:
        try:
            errors = [each | {"exit_code": code} if heard else each for each in as_data(diagnostic)]
            console.document({"errors": errors})
        except BrokenPipeError:  # who reads nothing has the exit code
            end_unread()
    raise Exit(code=code)


def _silence(descriptor: int) -> None:
    """Send what is buffered for a broken pipe or a full disk to nowhere, or Python complains of it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
