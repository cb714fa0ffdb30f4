"""What the runner left behind: its measurements, or the diagnostic that its end amounts to, on every device alike.

- ONNX Runtime's profile of single operators: whether what a run left can be opened.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import ValidationError

from ortrim.base.command import Completed, last_lines, signal_name
from ortrim.base.files import storage_errors
from ortrim.base.json import from_json
from ortrim.errors import ToolError, VerifyError
from ortrim.models.refusals import CAUSES, cause_of
from ortrim.parity.runner import RunnerOutput, RunRequest, endless_output

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
        raise VerifyError("trace-missing", "the run succeeded but wrote no profile", where=where)
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


FAILURES: Final = {
    2: ("runner-usage", "the runner does not understand its command line"),
    3: ("library-refused", "the library cannot be loaded"),
    4: ("model-refused", "the library refuses the model"),
    5: ("input-refused", "an input of the case cannot be used"),
    6: ("inference-failed", "running the model failed"),
    7: ("output-unwritable", "the runner cannot write its results"),
}
"""The runner's exit codes; `runner/report.h` lists them too."""
OF_ONE_MODEL: Final = frozenset(
    {
        "model-refused", "input-refused", "inference-failed", "runner-crashed", "illegal-instruction", "out-of-memory",
        "runner-timeout", "endless-output", *(cause.code for cause in CAUSES),
    }
)  # fmt: skip
"""Codes of ends that say nothing of the library's other models."""
TAIL_LINES: Final = 6
OWN_WORDS: Final = "runner: "
"""What begins the lines in which the runner says how far it is."""
ABORT_HINT: Final = (
    "a library built without exceptions aborts on errors; build with exceptions = true to read the message"
)
KILL_HINT: Final = "the system may have run out of memory"
ALIGNMENT_HINT: Final = "an address was not aligned as the instruction requires, which 32-bit ARM refuses"
ILLEGAL_HINT: Final = "build the library for an older kind of processor, or verify on a newer one"
ILLEGAL: Final = "the library uses an instruction that this processor does not have"
OUT_OF_MEMORY: Final = "there is not enough memory to load the model and run it"
EXIT_MEMORY: Final = 1
SHORT_OF_MEMORY: Final = re.compile(r"bad_alloc|(?:Failed to|Cannot) allocate memory|Unable to allocate")
"""What the C++ library, ONNX Runtime's arena, the system and NumPy say when there is no more."""


class RunnerEnded(VerifyError):
    """A runner that did not end well; `returncode` is its exit code, or the negative number of a signal."""

    def __init__(
        self, code: str, what: str, *, returncode: int, where: str = "", why: str = "", hint: str = ""
    ) -> None:
        super().__init__(code, what, where=where, why=why, hint=hint)
        self.returncode = returncode


def read_output(completed: Completed, request: RunRequest) -> RunnerOutput:
    """Return what a finished runner measured.

    Raises `RunnerEnded`: those of `models.refusals.CAUSES`, `illegal-instruction` (the signal SIGILL), `runner-crashed`
    (any other signal, which is named), `out-of-memory` (in the runner's words or the library's), `runner-failed` (an
    exit code of its own), and one for each exit code in `FAILURES`; `VerifyError` `runner-garbage` (no report, or
    another program's); for a trace that was asked for, which a device brings along with the outputs, those of
    `check_trace`.
    """
    where = place_of(request)
    if completed.returncode < 0:
        raise _crash(completed, request)
    if completed.returncode > 0:
        raise _failure(completed, request)
    try:
        output = from_json(RunnerOutput, completed.stdout)
        _check(output, request)
    except (ValidationError, ValueError) as error:
        why = "\n".join(str(error).splitlines()[:3])
        what = "the runner ended with 0 but printed no report"
        raise VerifyError("runner-garbage", what, where=where, why=why) from error
    if request.trace and request.outputs:
        check_trace(request.outputs / TRACE, where)
    return output


def place_of(request: RunRequest) -> str:
    """Name what was run, for diagnostics."""
    return f"{request.library.name} with {request.name or request.model.name}"


def never_ended(request: RunRequest) -> VerifyError:
    """Return the diagnostic of a runner that was stopped at its time limit."""
    what = f"the runner did not end within {request.repetition.timeout_seconds:g} seconds and was stopped"
    hint = "use smaller cases, or fewer of them"
    return VerifyError("runner-timeout", what, where=place_of(request), hint=hint)


@contextmanager
def within_limits(request: RunRequest) -> Iterator[None]:
    """Raise `VerifyError` `runner-timeout`, `endless-output` for a program that was stopped at its limits."""
    try:
        yield
    except ToolError as error:
        match error.code:
            case "tool-timeout":
                raise never_ended(request) from error
            case "tool-endless":
                raise endless_output(place_of(request)) from error
            case _:
                raise


def out_of_memory(request: RunRequest, why: str) -> VerifyError:
    """Return the diagnostic of a run for which the machine's memory was too small."""
    hint = "use a machine with more memory, or a smaller model"
    return VerifyError("out-of-memory", OUT_OF_MEMORY, where=place_of(request), why=why, hint=hint)


def _check(output: RunnerOutput, request: RunRequest) -> None:
    """Compare the report with what was asked for."""
    names, asked = [case.name for case in output.cases], [case.name for case in request.cases]
    if names != asked:
        raise ValueError(f"cases {names}, not {asked}")
    for case in output.cases:
        if not case.runs == len(case.input_ms) == len(case.inference_ms) == len(case.output_ms) > 0:
            raise ValueError(f"case {case.name}: the numbers of samples differ, or there are none")
        if case.instructions is not None and len(case.instructions) != case.runs:
            raise ValueError(f"case {case.name}: instructions of other runs than those that are reported")
        if not all(output.file is None or _is_plain(output.file) for output in case.outputs):
            raise ValueError(f"case {case.name}: an output's file has a path for its name")


def _is_plain(name: str) -> bool:
    """Whether a name that another machine gave stays in the folder that it is put behind."""
    return PurePosixPath(name).name == name != ".."


def _crash(completed: Completed, request: RunRequest) -> RunnerEnded:
    code, why, where = completed.returncode, last_lines(completed.stderr, TAIL_LINES), place_of(request)
    name = signal_name(code)
    if name == "SIGABRT" and SHORT_OF_MEMORY.search(why):
        return _out_of_memory(request, code, why)
    if known := _known(why, code, where):
        return known
    if name == "SIGILL":
        return RunnerEnded("illegal-instruction", ILLEGAL, returncode=code, where=where, why=why, hint=ILLEGAL_HINT)
    silent = all(line.startswith(OWN_WORDS) for line in why.splitlines())
    hint = {"SIGABRT": ABORT_HINT if silent else "", "SIGKILL": KILL_HINT, "SIGBUS": ALIGNMENT_HINT}.get(name, "")
    what = f"the runner was ended by {name}"
    return RunnerEnded("runner-crashed", what, returncode=code, where=where, why=why, hint=hint)


def _failure(completed: Completed, request: RunRequest) -> RunnerEnded:
    """Return the diagnostic of an orderly failure, in the runner's words when it printed any."""
    code, why = completed.returncode, _message(completed.stdout)
    if (code == EXIT_MEMORY and why == "out of memory") or SHORT_OF_MEMORY.search(why):
        return _out_of_memory(request, code, why)
    reference, what = FAILURES.get(code, ("runner-failed", f"exit code {code}"))
    if known := _known(why, code, place_of(request)):
        return known
    why = why or last_lines(completed.stderr, TAIL_LINES)
    return RunnerEnded(reference, what, returncode=code, where=place_of(request), why=why)


def _known(why: str, code: int, where: str) -> RunnerEnded | None:
    """Return the diagnostic of a cause for which the full runtime refuses models, too."""
    cause = cause_of(why, converted=True)
    if cause is None:
        return None
    ended = RunnerEnded(cause.code, cause.what, returncode=code, where=where, why=why, hint=cause.hint)
    ended.exit_code = cause.kind.exit_code
    return ended


def _out_of_memory(request: RunRequest, code: int, why: str) -> RunnerEnded:
    said = out_of_memory(request, why)
    return RunnerEnded(said.code, said.what, returncode=code, where=said.where, why=said.why, hint=said.hint)


def _message(stdout: str) -> str:
    try:
        document = json.loads(stdout)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("message", "")) if isinstance(document, dict) else ""
