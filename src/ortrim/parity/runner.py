"""What the runner is asked and what it prints, on every device alike."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ortrim.buildspec.buildspec import SessionSettings
from ortrim.errors import VerifyError
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
        *(
            "--load",
            session.load,
            "--threads",
            str(session.threads),
            "--inter-op-threads",
            str(session.inter_op_threads),
        ),
        *("--allow-spinning", str(int(session.allow_spinning)), "--arena", str(int(session.arena))),
        *("--memory-pattern", str(int(session.memory_pattern))),
        *(("--optimization-level", level) if level else ()),
        *(word for key, value in session.configuration for word in ("--config", f"{key}={value}")),
        *(("--outputs", str(request.outputs)) if request.outputs else ()),
        *(("--trace", "1") if request.trace else ()),
    )


MOST_PRINTED_BYTES: Final = 64 << 20
"""A report of a million samples, of which each is three numbers, has about 30 MB. Output without an end would fill this
machine's memory long before the time limit."""


def endless_output(where: str) -> VerifyError:
    """Return the diagnostic of a program that was ended because it printed too much."""
    what = f"more than {MOST_PRINTED_BYTES >> 20} MiB were printed, so it was stopped"
    hint = "the library may log too much, or endlessly; run it by hand and look at its output"
    return VerifyError("endless-output", what, where=where, hint=hint)
