"""Running our stand-alone scripts inside the full runtime's Python."""

import json
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ortrim.errors import ConvertError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import Completed, run
from ortrim.tools.full_runtime import FullRuntime

SCRIPTS: Final = Path(__file__).parent.parent / "data" / "scripts"
TIMEOUT_SECONDS: Final = 1800
LAST_LINES: Final = 8
SAFE_PATH: Final = "-P"
"""Keeps the folder of our scripts off the search path, where a name of theirs could hide a package."""


def run_script(
    runtime: FullRuntime,
    script: str,
    request: Mapping[str, object],
    *,
    folder: Path,
    where: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run `script` in the full runtime on `request` and return its answer.

    It is a program of its own, so that its crash is not ours and what ONNX Runtime prints stays off our output;
    it works in a folder below `folder`. Raises `ConvertError` (`converter-crashed`) or `ToolError`, `tool-timeout`
    among them.
    """
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as working:
        request_path = Path(working) / "request.json"
        request_path.write_text(json.dumps(dict(request)))
        words: tuple[str | Path, ...] = (*runtime.words, SAFE_PATH, SCRIPTS / script, request_path)
        done = run(words, environment=runtime.environment, cwd=Path(working), timeout_seconds=timeout_seconds)
        return _answer(done, Path(working) / "answer.json", runtime, where)


def _answer(done: Completed, path: Path, runtime: FullRuntime, where: str) -> dict[str, Any]:
    try:
        answer = json.loads(path.read_text())
    except (FileNotFoundError, ValueError) as error:
        what = f"ONNX Runtime {runtime.version} {_ending(done.returncode)} while it worked on the model"
        hint = "try a lower optimization level; if it stays, report it to ONNX Runtime with the model"
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LAST_LINES:])
        raise ConvertError("converter-crashed", what, where=where, why=why, hint=hint) from error
    if not isinstance(answer, dict):
        raise ConvertError("converter-crashed", "the converter gave no answer", where=where)
    return answer


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"crashed ({signal.Signals(-returncode).name})"
    except ValueError:
        return f"crashed (signal {-returncode})"
