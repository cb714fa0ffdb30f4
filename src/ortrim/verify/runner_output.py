"""What the runner left behind: its measurements, or the diagnostic that its end amounts to, on every device alike."""

import json
import signal
from typing import Final

from pydantic import ValidationError

from ortrim.core.serialization import from_json
from ortrim.errors import VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.base import RunnerOutput, RunRequest

FAILURES: Final = {
    2: ("runner-usage", "the runner does not understand its command line"),
    3: ("library-refused", "the library cannot be loaded"),
    4: ("model-refused", "the library refuses the model"),
    5: ("input-refused", "an input of the case cannot be used"),
    6: ("inference-failed", "running the model failed"),
    7: ("output-unwritable", "the runner cannot write its results"),
}
"""The runner's exit codes; `runner/report.h` lists them too."""
TAIL_LINES: Final = 6
ABORT_HINT: Final = (
    "a library built without exceptions aborts on errors; build with exceptions = true to read the message"
)
KILL_HINT: Final = "the system may have run out of memory"


def read_output(completed: Completed, request: RunRequest) -> RunnerOutput:
    """Return what a finished runner measured.

    Raises `VerifyError`: `runner-crashed` (a signal, which is named), `runner-garbage` (no report, or another
    program's), `runner-failed` (an exit code of its own), and one for each exit code in `FAILURES`.
    """
    where = f"{request.library.name} with {request.model.name}"
    if completed.returncode < 0:
        raise _crash(completed, where)
    if completed.returncode > 0:
        raise _failure(completed, where)
    try:
        output = from_json(RunnerOutput, completed.stdout)
        _check(output, request)
    except (ValidationError, ValueError) as error:
        why = "\n".join(str(error).splitlines()[:3])
        what = "the runner ended well but did not print its report"
        raise VerifyError("runner-garbage", what, where=where, why=why) from error
    return output


def _check(output: RunnerOutput, request: RunRequest) -> None:
    """Hold the report against what was asked for."""
    names, asked = [case.name for case in output.cases], [case.name for case in request.cases]
    if names != asked:
        raise ValueError(f"cases {names}, not {asked}")
    for case in output.cases:
        if not case.runs == len(case.input_ms) == len(case.inference_ms) == len(case.output_ms) > 0:
            raise ValueError(f"case {case.name}: the numbers of samples differ, or there are none")


def _crash(completed: Completed, where: str) -> VerifyError:
    number = -completed.returncode
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hint = {"SIGABRT": ABORT_HINT, "SIGKILL": KILL_HINT}.get(name, "")
    what = f"the runner was ended by {name}"
    return VerifyError("runner-crashed", what, where=where, why=_tail(completed), hint=hint)


def _failure(completed: Completed, where: str) -> VerifyError:
    """Return the diagnostic of an orderly failure, in the runner's words when it printed any."""
    reference, what = FAILURES.get(completed.returncode, ("runner-failed", f"exit code {completed.returncode}"))
    return VerifyError(reference, what, where=where, why=_message(completed.stdout) or _tail(completed))


def _message(stdout: str) -> str:
    try:
        document = json.loads(stdout)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("message", "")) if isinstance(document, dict) else ""


def _tail(completed: Completed) -> str:
    return "\n".join(completed.stderr.strip().splitlines()[-TAIL_LINES:])
