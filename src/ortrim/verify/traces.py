"""ONNX Runtime's profile of single operators: whether what a run left can be opened."""

import json
from pathlib import Path
from typing import Any, Final

from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors

TRACE: Final = "trace.json"
"""Its name among the outputs."""
NUMBERS: Final = ("ts", "dur", "pid", "tid")
UNESCAPED: Final = "ONNX Runtime writes the names of nodes as they are: rename those with a quote or a backslash"


def check_trace(path: Path, where: str) -> None:
    """See that a file is a trace which viewers open: complete events in Chrome's trace event format.

    ONNX Runtime escapes nothing in the names of nodes (`core/common/profiler.cc`), so that a whole file may still be
    no JSON. Raises `VerifyError`: `trace-missing`, `trace-unreadable`; `StorageError`.
    """
    if not path.is_file():
        raise VerifyError("trace-missing", "the run ended well but left no profile", where=where)
    with storage_errors(path):
        content = path.read_bytes()
    try:
        _check_events(json.loads(content))
    except (ValueError, RecursionError) as error:
        what = "the profile is not one that viewers can open"
        raise VerifyError("trace-unreadable", what, where=where, why=str(error), hint=UNESCAPED) from error


def _check_events(events: Any) -> None:
    if not isinstance(events, list) or not events:
        raise ValueError("there are no events")
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X" or not isinstance(event.get("name"), str):
            raise ValueError(f"not a complete event: {str(event)[:100]}")
        if not all(isinstance(event.get(key), int) for key in NUMBERS):
            raise ValueError(f"an event without {', '.join(NUMBERS)}: {str(event)[:100]}")
