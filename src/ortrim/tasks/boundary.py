"""The one error boundary: a diagnostic becomes words for the user and an exit code for the shell."""

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from invoke.exceptions import Exit

from ortrim.console import Console
from ortrim.errors import Diagnostic, DiagnosticGroup, Interrupted, StorageError

STORAGE_HINTS: Final = {
    errno.ENOSPC: "free some space (invoke doctor shows where ortrim keeps things), then run the same command again",
    errno.EDQUOT: "the quota is used up; free some space, then run the same command again",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose a folder that you may write to, or change its permissions",
}


@contextmanager
def boundary(*, json_mode: bool = False) -> Iterator[Console]:
    """Give a task its console; turn what goes wrong into a diagnostic and `invoke.Exit` with its code.

    In `json_mode` standard output gets one JSON document in that case too: `{"errors": [...]}`.
    """
    console = Console(json_mode=json_mode)
    try:
        yield console
    except Diagnostic as diagnostic:
        _fail(console, diagnostic, json_mode=json_mode)
    except KeyboardInterrupt:
        what = "stopped; what was finished is kept and the same command goes on from there"
        _fail(console, Interrupted("interrupted", what), json_mode=json_mode)
    except OSError as error:
        if error.errno not in STORAGE_HINTS:
            raise
        _fail(console, _storage_error(error), json_mode=json_mode)


def _storage_error(error: OSError) -> StorageError:
    assert error.errno is not None
    where = str(error.filename or "")
    return StorageError("storage", error.strerror or "cannot write", where=where, hint=STORAGE_HINTS[error.errno])


def _fail(console: Console, diagnostic: Diagnostic, *, json_mode: bool) -> None:
    console.diagnostic(diagnostic)
    if json_mode:
        parts = diagnostic.diagnostics if isinstance(diagnostic, DiagnosticGroup) else (diagnostic,)
        console.result(json.dumps({"errors": [_as_data(part) for part in parts]}, indent=2))
    raise Exit(code=int(diagnostic.exit_code))


def _as_data(diagnostic: Diagnostic) -> dict[str, str | int]:
    return {
        "reference": diagnostic.reference,
        "where": diagnostic.where,
        "what": diagnostic.what,
        "why": diagnostic.why,
        "hint": diagnostic.hint,
        "exit_code": int(diagnostic.exit_code),
    }
