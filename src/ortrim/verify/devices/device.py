"""What every device offers: to run the runner once and say what it measured.

- Ends of a run that are alike on devices of every kind, and are not the runner's own.
- Keeping the runner on chosen cores, so that a phone's slow and fast cores do not mix in one number.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from ortrim.base.command import Completed, last_lines
from ortrim.base.processor_cores import MOST_CORES, cores_text, read_cores
from ortrim.errors import UsageError, VerifyError
from ortrim.spec.buildspec import SessionSettings
from ortrim.verify.cases import Case
from ortrim.verify.measurements import HostFacts, PeakSource


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

    With `trace`, which needs `outputs`, ONNX Runtime's profile of single operators is among them (`traces.TRACE`); it
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
        """Input, inference and output of each run aggregate, as an application waits for them."""
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


class Device(Protocol):
    """A machine that runs the runner. Whoever opened it closes it, `with contextlib.closing(device)`."""

    @property
    def name(self) -> str:
        """Name in reports, and on the command line."""

    @property
    def memory_meaningful(self) -> bool:
        """Whether the memory of a process there says anything of a real machine."""

    @property
    def time_meaningful(self) -> bool:
        """Whether the time that a process takes there says anything of a real machine."""

    def facts(self) -> HostFacts:
        """Describe the machine, as it is now. Raises `VerifyError` when it cannot be asked."""

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once to its end, and leave nothing on the machine but what `close` removes.

        Raises `VerifyError` when the runner fails, crashes, hangs or prints nonsense, or the machine goes away.
        """

    def close(self) -> None:
        """Remove from the machine whatever runs left there. Raises nothing, and may be called twice."""


@runtime_checkable
class HeatedDevice(Protocol):
    """A device that can become too hot: `heat` says why its times are not meaningful, empty while they are."""

    heat: str


@runtime_checkable
class PreparedDevice(HeatedDevice, Protocol):
    """A device that runs an app, which is made of all runs before the first of them."""

    def prepare(self, requests: Sequence[RunRequest]) -> None:
        """Make and install the app that carries all requests; nothing else can be run afterwards."""


@runtime_checkable
class SimulatedDevice(Protocol):
    """A device that stands for one of another kind: `says` ends the sentence on what its measurements are."""

    says: str


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
NOT_STARTED: Final = (126, 127)
"""What a shell gives for a program that it cannot execute, or that (or whose loader) is not there."""


def endless_output(where: str) -> VerifyError:
    """Return the diagnostic of a program that was ended because it printed too much."""
    what = f"more than {MOST_PRINTED_BYTES >> 20} MiB were printed, so it was stopped"
    hint = "the library may log too much, or endlessly; run it by hand and look at its output"
    return VerifyError("endless-output", what, where=where, hint=hint)


def not_startable(where: str, why: str, besides: str = "") -> VerifyError:
    """Return the diagnostic of a runner that the machine cannot start; `besides` is another thing to look at."""
    hints = ("build it for this machine's processor and C library", besides)
    what = "the machine cannot start the runner"
    return VerifyError("runner-not-startable", what, where=where, why=why, hint="; ".join(filter(None, hints)))


CHECK_SECONDS: Final = 20.0
STATUS: Final = "/proc/self/status"
ALLOWED: Final = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
HINT: Final = "choose cores that exist and are online: cat /sys/devices/system/cpu/online"


def pinned(cores: tuple[int, ...]) -> tuple[str, ...]:
    """Return the words that go before a command to keep it on `cores`; none when there are none.

    A mask in hexadecimal without `0x` is what `taskset` takes in util-linux, in toybox (Android) and in BusyBox.
    """
    return ("taskset", f"{sum(1 << core for core in set(cores)):x}") if cores else ()


def check_pinning(execute: Callable[[Sequence[str], float], Completed], cores: tuple[int, ...], name: str) -> None:
    """Find out before anything is measured whether a machine can keep a program on all these cores.

    `taskset` would fail in the runner's place, or leave out the cores that are not there. `execute` runs a command
    within so many seconds. Raises `UsageError` (`cannot-pin`) and what `execute` raises.
    """
    if not cores:
        return
    if not all(0 <= core < MOST_CORES for core in cores):
        raise _cannot(cores, name, hint=f"cores have numbers from 0 to {MOST_CORES - 1}")
    done = execute((*pinned(cores), "cat", STATUS), CHECK_SECONDS)
    if done.returncode != 0:
        raise _cannot(cores, name, why=last_lines(done.stderr, 2))
    allowed = ALLOWED.search(done.stdout)
    there = read_cores(allowed[1]) if allowed else ()
    if there and set(there) != set(cores):
        raise _cannot(cores, name, why=f"of these it has {cores_text(there)} alone")


def _cannot(cores: tuple[int, ...], name: str, *, why: str = "", hint: str = HINT) -> UsageError:
    what = f"cannot run on cores {', '.join(map(str, sorted(set(cores))[:8]))}"
    return UsageError("cannot-pin", what, where=name, why=why, hint=hint)
