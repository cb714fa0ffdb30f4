"""Reference outputs: the original model in the full runtime with every optimization off."""

import hashlib
import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

import ortrim
from ortrim.core.models import PreparedModel
from ortrim.core.serialization import from_json
from ortrim.errors import ToolError, VerifyError
from ortrim.storage.files import sha256_of
from ortrim.storage.folders import publish_folder
from ortrim.tools.command import Completed, run
from ortrim.tools.full_runtime import FullRuntime
from ortrim.tools.memory import is_shortage, out_of_memory
from ortrim.verify.advice import advice
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import SavedOutput

SCRIPT: Final = Path(ortrim.__file__).parent / "data" / "scripts" / "reference.py"
INDEX: Final = "reference.json"
TIMEOUT_SECONDS: Final = 1800.0


@dataclass(frozen=True, kw_only=True)
class CaseOutputs:
    """The outputs of one case, in the order of the model's."""

    name: str
    outputs: tuple[SavedOutput, ...]


@dataclass(frozen=True, kw_only=True)
class SavedOutputs:
    """The outputs of one model: those of a case lie in `folder/<case>`."""

    folder: Path
    cases: tuple[CaseOutputs, ...]


@dataclass(frozen=True, kw_only=True)
class _Index:
    status: Literal["ok"]
    runtime_version: str
    cases: tuple[CaseOutputs, ...]


def reference_outputs(
    model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, folder: Path
) -> SavedOutputs:
    """Return the full runtime's outputs, from a folder below `folder` that is made when it is not there yet.

    Raises `VerifyError`: `reference-failed` (the full runtime refuses the model or an input, or dies),
    `reference-timeout`.
    """
    destination = folder / f"{model.name}-{_digest(model, cases, runtime)[:16]}"
    publish_folder(destination, lambda temporary: _run(model, cases, runtime, temporary))
    return SavedOutputs(folder=destination, cases=_read_index(destination, model).cases)


def _digest(model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime) -> str:
    parts = [sha256_of(SCRIPT), runtime.version, model.facts.sha256]
    text = json.dumps([*parts, *([case.name, case.digest] for case in cases)])
    return hashlib.sha256(text.encode()).hexdigest()


def _run(model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, temporary: Path) -> None:
    words = [word for case in cases for word in ("--case", case.name, str(case.folder))]
    command = [*runtime.words, str(SCRIPT), "--model", str(model.path), "--outputs", str(temporary), *words]
    try:
        completed = run(command, environment=runtime.environment, timeout_seconds=TIMEOUT_SECONDS)
    except ToolError as error:
        reference = "reference-timeout" if error.reference == "tool-timeout" else "reference-failed"
        what = f"the full runtime {error.what}"
        raise VerifyError(reference, what, where=f"model '{model.name}'", why=error.why) from error
    if completed.returncode != 0:
        said = completed.stdout + completed.stderr
        if is_shortage(said):
            raise out_of_memory(f"model '{model.name}'", said.strip().rpartition("\n")[2][:300])
        raise _refusal(model, completed)
    (temporary / INDEX).write_text(completed.stdout)
    _read_index(temporary, model)


def _refusal(model: PreparedModel, completed: Completed) -> VerifyError:
    """Return the diagnostic for the full runtime's refusal of the model, or of one case when it names one."""
    what, where = "the full runtime does not run the original model", f"model '{model.name}'"
    try:
        document: Any = json.loads(completed.stdout)
        why, case = str(document["message"]), document.get("case")
    except (ValueError, KeyError, TypeError, AttributeError):
        why, case = "\n".join([_ending(completed.returncode), *completed.stderr.strip().splitlines()[-5:]]), ""
    if case is None:
        hint = "it does not even load; if onnx.checker accepts the model, report it to ONNX Runtime"
        return VerifyError("reference-failed", what, where=where, why=why, hint=hint)
    where = f"{where}, case '{case}'" if case else where
    return VerifyError("reference-failed", what, where=where, why=why, hint=advice(model.facts, why))


def _ending(returncode: int) -> str:
    try:
        return (
            f"it was ended by {signal.Signals(-returncode).name}" if returncode < 0 else f"it ended with {returncode}"
        )
    except ValueError:
        return f"it was ended by signal {-returncode}"


def _read_index(folder: Path, model: PreparedModel) -> _Index:
    try:
        return from_json(_Index, (folder / INDEX).read_bytes())
    except (OSError, ValidationError) as error:
        why = "\n".join(str(error).splitlines()[:3])
        what = "the full runtime's outputs are not described as they should be"
        hint = f"remove {folder}, then run the same command again"
        raise VerifyError("reference-failed", what, where=f"model '{model.name}'", why=why, hint=hint) from error
