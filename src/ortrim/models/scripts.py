"""Running our stand-alone scripts inside the full runtime's Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ortrim.errors import ConvertError
from ortrim.tools import scripts
from ortrim.tools.full_runtime import FullRuntime
from ortrim.tools.scripts import SCRIPTS, TIMEOUT_SECONDS, Python, ScriptCrash


def run_script(
    runtime: FullRuntime,
    script: str,
    request: Mapping[str, object],
    *,
    folder: Path,
    where: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run `script` in the full runtime on `request` and return its answer, as `tools.scripts.run_script` does.

    Raises `ConvertError` (`converter-crashed`) or `ToolError`, `tool-timeout` among them.
    """
    python = Python(words=runtime.words, environment=runtime.environment)
    try:
        return scripts.run_script(python, SCRIPTS / script, request, folder=folder, timeout_seconds=timeout_seconds)
    except ScriptCrash as crash:
        what = f"ONNX Runtime {runtime.version} {crash.ending} while it worked on the model"
        hint = "try a lower optimization level; if it stays, report it to ONNX Runtime with the model"
        raise ConvertError("converter-crashed", what, where=where, why=crash.last_lines, hint=hint) from crash
