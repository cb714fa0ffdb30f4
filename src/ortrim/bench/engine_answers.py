"""What the script of the engines answers, and why an engine could not run."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import ValidationError

from ortrim.core.engine_comparison import STAGES, EngineLibrary, Stage
from ortrim.core.serialization import from_json
from ortrim.tools.command import Completed

T = TypeVar("T")
LONGEST_REASON: Final = 300
LAST_LINES: Final = 2
KILLED: Final = "killed by the system, as it does for want of memory"


@dataclass(frozen=True, kw_only=True)
class SavedArray:
    """One output, in a file of the folder that the request named."""

    file: str
    element_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """One process of one engine with one case."""

    status: Literal["ok"]
    version: str
    open_ms: float
    load_ms: float
    first_run_ms: float
    samples_ms: tuple[float, ...]
    processor_ms: float
    loaded_bytes: int
    peak_bytes: int
    outputs: tuple[SavedArray, ...]
    libraries: tuple[EngineLibrary, ...]


@dataclass(frozen=True, kw_only=True)
class EngineConversion:
    """One model brought into an engine's own form."""

    status: Literal["ok"]
    version: str
    convert_ms: float


@dataclass(frozen=True, kw_only=True)
class CannotRun:
    """At which stage an engine ended, and why, in one line."""

    stage: Stage
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Refusal:
    status: Literal["error"]
    stage: Stage
    message: str


def run_answer(folder: Path, done: Completed) -> EngineRun | CannotRun:
    """Read the answer of a run in `folder`."""
    found = _answer(folder, done, EngineRun)
    if isinstance(found, EngineRun) and not found.samples_ms:
        return CannotRun(stage="run", reason="it took no time: the script measured nothing")
    return found


def conversion_answer(folder: Path, done: Completed) -> EngineConversion | CannotRun:
    """Read the answer of a conversion in `folder`."""
    return _answer(folder, done, EngineConversion)


def _answer(folder: Path, done: Completed, kind: type[T]) -> T | CannotRun:
    try:
        text = (folder / "answer.json").read_text(encoding="utf-8")
        if _status(text) == "error":
            return _refused(from_json(_Refusal, text), done, folder)
        return from_json(kind, text)
    except (OSError, UnicodeDecodeError):
        return CannotRun(stage=stage_of(folder), reason=shortened(_crash(done)))
    except ValidationError as error:
        what = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:2])
        return CannotRun(stage=stage_of(folder), reason=shortened(f"what it answered cannot be read: {what}"))


def _status(text: str) -> str:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("status")) if isinstance(document, dict) else ""


def _refused(refusal: _Refusal, done: Completed, folder: Path) -> CannotRun:
    """Return an engine's own words, and those of its native code where the error itself says little."""
    words = shortened(refusal.message.replace(f"{folder}/", ""))
    said = _last_words(done) if refusal.stage == "load" and len(words) < LONGEST_REASON / 2 else ""
    return CannotRun(stage=refusal.stage, reason=shortened(f"{words} ({said})" if said else words))


def stage_of(folder: Path) -> Stage:
    """Return what a script was at when it wrote last."""
    try:
        word = (folder / "stage").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "start"
    return next((stage for stage in STAGES if stage == word), "start")


def _crash(done: Completed) -> str:
    said = _last_words(done)
    if done.returncode == -signal.SIGKILL:
        return KILLED
    if done.returncode >= 0:
        return f"it ended with exit code {done.returncode} and no answer" + (f": {said}" if said else "")
    try:
        name = signal.Signals(-done.returncode).name
    except ValueError:
        name = f"signal {-done.returncode}"
    return f"it crashed ({name})" + (f": {said}" if said else "")


def _last_words(done: Completed) -> str:
    return " / ".join(line.strip() for line in done.stderr.strip().splitlines()[-LAST_LINES:])


def shortened(words: str) -> str:
    """Return words on one line, cut where they go on for long."""
    flat = " ".join(words.split())
    return flat if len(flat) <= LONGEST_REASON else f"{flat[: LONGEST_REASON - 1]}\N{HORIZONTAL ELLIPSIS}"
