"""Running our stand-alone scripts in a Python of their own, on a request in JSON that they answer in JSON."""

import json
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ortrim
from ortrim.storage.files import disk_full, says_full, storage_errors
from ortrim.tools.command import Completed, run
from ortrim.tools.memory import is_shortage, out_of_memory

SCRIPTS: Final = Path(ortrim.__file__).parent / "data" / "scripts"
TIMEOUT_SECONDS: Final = 1800
LAST_LINES: Final = 8
OUT_OF_SPACE: Final = "a program that works on the model ran out of disk space"
LONGEST_WORDS: Final = 300
SAFE_PATH: Final = "-P"
"""Keeps the folder of our scripts off the search path, where a name of theirs could hide a package."""


@dataclass(frozen=True, kw_only=True)
class Python:
    """A Python: the words that start it, and its environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class ScriptCrash(Exception):
    """A script ended without an answer: `ending` in words, such as "crashed (SIGSEGV)", and its last lines."""

    def __init__(self, ending: str, last_lines: str) -> None:
        super().__init__(ending)
        self.ending = ending
        self.last_lines = last_lines


def run_script(
    python: Python,
    script: Path,
    request: Mapping[str, object],
    *,
    folder: Path,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run `script` on `request` and return its answer.

    It is a program of its own, so that its crash is not ours and what it prints stays off our output; it works in a
    folder below `folder`. A request's `memory_bytes` are a limit that the script sets itself. Raises `ScriptCrash`,
    `MemoryShortage`, `ToolError` (`tool-timeout`) or `StorageError` (`disk-full`).
    """
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as working:
        request_path = Path(working) / "request.json"
        request_path.write_text(json.dumps(dict(request)))
        words: tuple[str | Path, ...] = (*python.words, SAFE_PATH, script, request_path)
        done = run(words, environment=python.environment, cwd=Path(working), timeout_seconds=timeout_seconds)
        said, own_limit = _said(done, Path(working) / "answer.json"), request.get("memory_bytes")
        if is_shortage(said, own_limit if isinstance(own_limit, int) else None):
            raise out_of_memory(script.stem, said.rpartition("\n")[2][:LONGEST_WORDS])
        try:
            answer = _answer(done, Path(working) / "answer.json")
        except ScriptCrash as crash:
            if says_full(folder, crash.last_lines):
                raise disk_full(OUT_OF_SPACE, folder, why=crash.last_lines.rpartition("\n")[2]) from crash
            raise
        if "failure" in answer and says_full(folder, json.dumps(answer)):
            raise disk_full(OUT_OF_SPACE, folder, why=str(answer.get("words") or answer["failure"]))
        return answer


def _said(done: Completed, path: Path) -> str:
    """Return what a script answered, or else what it printed last."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return (done.stderr or done.stdout).strip()


def _answer(done: Completed, path: Path) -> dict[str, Any]:
    last_lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LAST_LINES:])
    try:
        answer = json.loads(path.read_text())
    except (FileNotFoundError, ValueError) as error:
        raise ScriptCrash(_ending(done.returncode), last_lines) from error
    if not isinstance(answer, dict):
        raise ScriptCrash("gave no answer", last_lines)
    return answer


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"crashed ({signal.Signals(-returncode).name})"
    except ValueError:
        return f"crashed (signal {-returncode})"
