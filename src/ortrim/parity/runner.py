"""What the runner is asked and what it leaves behind: measurements, or the diagnostic that its end amounts to."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from pydantic import ValidationError

from ortrim.base.command import Completed, last_lines, signal_name
from ortrim.base.files import storage_errors
from ortrim.base.json import from_json
from ortrim.base.tools import MOST_PRINTED_BYTES
from ortrim.buildspec.buildspec import SessionSettings
from ortrim.errors import ModelError, ToolError, VerifyError
from ortrim.models.refusals import CAUSES, cause_of
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import PeakSource


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """How often each case is run in one process: warm-up, then up to `runs`, none begun after `seconds`."""

    runs: int = 200
    warmup: int = 10
    seconds: float = 1.0
    timeout_seconds: float = 300.0


DEFAULT_SESSION: Final = SessionSettings()
DEFAULT_REPETITION: Final = Repetition()


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One process of the runner: one library, one model, its cases. Outputs are saved when `outputs` is given.

    `companions` are the libraries that the library needs and no system has (`libc++_shared.so`), in an order in which
    each can be opened. The runner opens them before the library, whose need of the same name is then met: on Bionic
    and with glibc, wherever they lie, and without a variable that would reach every program.

    `name` is the model's for people, whose file is called alike for all models of ours.

    With `trace`, which needs `outputs`, ONNX Runtime's profile of single operators is among them (`TRACE`); it
    costs time and memory, so that what such a run took is not to be judged.
    """

    runner: Path
    library: Path
    model: Path
    cases: tuple[Case, ...]
    name: str = ""
    companions: tuple[Path, ...] = ()
    outputs: Path | None = None
    trace: bool = False
    session: SessionSettings = DEFAULT_SESSION
    repetition: Repetition = DEFAULT_REPETITION


@dataclass(frozen=True, kw_only=True)
class SavedOutput:
    """One output of one case: `file` lies in the case's folder of outputs; None when it cannot be saved.

    `element_type` is in NumPy's words, or `absent` for an optional output without a value, or `unsupported` (what is
    neither a tensor nor a sequence or map of them). The element of a sequence is named `y[0]`, a map's keys and values
    `y.keys` and `y.values`. `random` says that the reference gives other values with another seed, and `draws` names
    the node that draws the random numbers on which the output depends, by whatever seed.
    """

    name: str
    element_type: str
    shape: tuple[int, ...]
    file: str | None
    random: bool = False
    draws: str = ""


@dataclass(frozen=True, kw_only=True)
class CaseRun:
    """One case in one process: the first run's outputs and time, then the times of the `runs` after warm-up.

    `instructions` are those of each inference, the kernel's apart; None where the machine does not count them.
    """

    name: str
    first_run_ms: float
    outputs: tuple[SavedOutput, ...]
    runs: int
    input_ms: tuple[float, ...]
    inference_ms: tuple[float, ...]
    output_ms: tuple[float, ...]
    instructions: tuple[int, ...] | None = None

    @property
    def total_ms(self) -> tuple[float, ...]:
        """Input, inference and output of each run together, as an application waits for them."""
        return tuple(map(sum, zip(self.input_ms, self.inference_ms, self.output_ms, strict=True)))


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """Resident memory of the process after opening the library, after loading the model, and at most.

    The first two are None where neither `/proc` nor Apple's `task_info` tells. `inference_peak_rss_bytes` is the most
    after loading was over, outputs that are saved included; None where the kernel's high-water mark cannot be reset.
    """

    opened_rss_bytes: int | None
    loaded_rss_bytes: int | None
    peak_rss_bytes: int
    inference_peak_rss_bytes: int | None
    peak_source: PeakSource


@dataclass(frozen=True, kw_only=True)
class RunnerOutput:
    """What the runner prints. `open_ms`: library and environment; `load_ms`: creation of the session.

    `load_waited_ms` of it the thread waited for a processor that others had; None where no kernel tells (Linux does).
    """

    schema: Literal["ortrim-runner/1"]
    status: Literal["ok"]
    runtime_version: str
    open_ms: float
    load_ms: float
    load_waited_ms: float | None = None
    cases: tuple[CaseRun, ...]
    memory: MemoryUse

    @property
    def own_load_ms(self) -> float:
        """Creation of the session without what others on the machine took of it, as far as that is known."""
        return max(0.0, self.load_ms - (self.load_waited_ms or 0.0))


def runner_words(request: RunRequest) -> tuple[str, ...]:
    """Return the runner's command line."""
    session, repetition = request.session, request.repetition
    level = session.optimization_level
    return (
        str(request.runner),
        *("--library", str(request.library.absolute()), "--model", str(request.model)),
        *(word for companion in request.companions for word in ("--preload", str(companion.absolute()))),
        *(word for case in request.cases for word in ("--case", f"{case.name}={case.folder}")),
        *("--runs", str(repetition.runs), "--warmup", str(repetition.warmup), "--seconds", f"{repetition.seconds:g}"),
        *("--load", session.load, "--threads", str(session.threads)),
        *("--inter-op-threads", str(session.inter_op_threads)),
        *("--allow-spinning", str(int(session.allow_spinning)), "--arena", str(int(session.arena))),
        *("--memory-pattern", str(int(session.memory_pattern))),
        *(("--optimization-level", level) if level else ()),
        *(word for name in session.providers for word in ("--provider", name)),
        *(word for key, value in session.configuration for word in ("--config", f"{key}={value}")),
        *(("--outputs", str(request.outputs)) if request.outputs else ()),
        *(("--trace", "1") if request.trace else ()),
    )


def endless_output(where: str) -> VerifyError:
    """Return the diagnostic of a program that was ended because it printed too much."""
    what = f"more than {MOST_PRINTED_BYTES >> 20} MiB were printed, so it was stopped"
    hint = "the library may log too much, or endlessly; run it by hand and look at its output"
    return VerifyError("endless-output", what, where=where, hint=hint)


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
        "runner-timeout", "endless-output", "symbol-not-found", *(cause.code for cause in CAUSES),
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
    """Return what a finished runner measured."""
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
    return VerifyError("runner-timeout", what, where=place_of(request), hint="use smaller cases, or fewer of them")


@contextmanager
def within_limits(request: RunRequest) -> Iterator[None]:
    """Raise `VerifyError` `runner-timeout`, `endless-output` for a program that was stopped at its limits."""
    try:
        yield
    except ToolError as error:
        if error.code == "tool-timeout":
            raise never_ended(request) from error
        if error.code == "tool-endless":
            raise endless_output(place_of(request)) from error
        raise


def out_of_memory(request: RunRequest, why: str) -> VerifyError:
    """Return the diagnostic of a run for which the machine's memory was too small."""
    hint = "use a machine with more memory, or a smaller model"
    return VerifyError("out-of-memory", OUT_OF_MEMORY, where=place_of(request), why=why, hint=hint)


def _check(output: RunnerOutput, request: RunRequest) -> None:
    names, asked = [case.name for case in output.cases], [case.name for case in request.cases]
    if names != asked:
        raise ValueError(f"cases {names}, not {asked}")
    for case in output.cases:
        if not case.runs == len(case.input_ms) == len(case.inference_ms) == len(case.output_ms) > 0:
            raise ValueError(f"case {case.name}: the numbers of samples differ, or there are none")
        if case.instructions is not None and len(case.instructions) != case.runs:
            raise ValueError(f"case {case.name}: instructions of other runs than those that are reported")
        # A name that another machine gave has to stay in the folder that it is put behind.
        files = [output.file for output in case.outputs if output.file is not None]
        if not all(PurePosixPath(file).name == file != ".." for file in files):
            raise ValueError(f"case {case.name}: an output's file has a path for its name")


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
    code, why = completed.returncode, ""
    with suppress(ValueError, RecursionError):
        document = json.loads(completed.stdout)
        why = str(document.get("message", "")) if isinstance(document, dict) else ""
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
    ended.exit_code = (cause.kind or ModelError).exit_code
    return ended


def _out_of_memory(request: RunRequest, code: int, why: str) -> RunnerEnded:
    said = out_of_memory(request, why)
    return RunnerEnded(said.code, said.what, returncode=code, where=said.where, why=said.why, hint=said.hint)
