"""What every device offers: to run the runner and say what it measured."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ortrim.base.command import Completed, last_lines
from ortrim.base.processor_cores import MOST_CORES, cores_text, read_cores
from ortrim.errors import UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest

Outcome = RunnerOutput | VerifyError
"""What a run ended with. Of errors these alone: any other says nothing of the run, and ends all of them."""


class Device(ABC):
    """A machine that runs the runner. Whoever opened it closes it, `with contextlib.closing(device)`.

    `memory_meaningful` and `time_meaningful` say whether what a process takes there says anything of a real machine,
    `caveat` what it is instead; `heat` why times are not meaningful just now. `ceiling_mib` is the machine's memory
    where that can be chosen, 0 elsewhere. `url` is where a farm shows what ran, and `log` the log that it kept.
    """

    name: str
    memory_meaningful: bool = True
    time_meaningful: bool = True
    caveat: str = "says nothing about a real device"
    heat: str = ""
    ceiling_mib: int = 0
    url: str = ""
    log: Path | None = None

    @abstractmethod
    def facts(self) -> HostFacts:
        """Describe the machine, as it is now."""

    @abstractmethod
    def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
        """Run the runner once for each request, and yield what each ended with, in their order.

        A device that starts programs takes each request when it is its turn: what has ended by then may decide what is
        asked for. One that needs an app takes all of them first. Outputs are in their folders when a run is yielded.
        """

    def with_memory(self, memory_mib: int) -> "ProgramDevice":
        """Return the same machine with another ceiling, if it has one."""
        raise LookupError(f"{self.name} cannot have {memory_mib} MiB")

    def close(self) -> None:  # noqa: B027 - most leave nothing behind
        """Remove from the machine whatever runs left there. Raises nothing, and may be called twice."""


class ProgramDevice(Device):
    """A device that starts programs, one after the other."""

    @abstractmethod
    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once to its end, and leave nothing on the machine but what `close` removes."""

    def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
        """Run one after the other."""
        return (outcome(self.run, request) for request in requests)


def outcome(run: Callable[[RunRequest], RunnerOutput], request: RunRequest) -> Outcome:
    """Return what a run ended with."""
    try:
        return run(request)
    except VerifyError as error:
        return error


def device_folder(name: str) -> str:
    """Return the name of the folder of a device's files; different devices have different ones."""
    return quote(name.replace(":", "_", 1), safe="@")


NOT_STARTED: Final = (126, 127)
"""What a shell gives for a program that it cannot execute, or that (or whose loader) is not there."""


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
    """Return the words that go before a command to keep it on `cores`, so that a phone's slow and fast ones do not mix.

    A mask in hexadecimal without `0x` is what `taskset` takes in util-linux, in toybox (Android) and in BusyBox.
    """
    return ("taskset", f"{sum(1 << core for core in set(cores)):x}") if cores else ()


def check_pinning(execute: Callable[[Sequence[str], float], Completed], cores: tuple[int, ...], name: str) -> None:
    """Find out before anything is measured whether a machine can keep a program on all these cores.

    `taskset` would fail in the runner's place, or leave out the cores that are not there. `execute` runs a command
    within so many seconds.
    """
    if not cores:
        return
    why, hint = "", HINT
    if not all(0 <= core < MOST_CORES for core in cores):
        hint = f"cores have numbers from 0 to {MOST_CORES - 1}"
    else:
        done = execute((*pinned(cores), "cat", STATUS), CHECK_SECONDS)
        allowed = ALLOWED.search(done.stdout)
        there = read_cores(allowed[1]) if allowed else ()
        if done.returncode == 0 and (not there or set(there) == set(cores)):
            return
        why = last_lines(done.stderr, 2) if done.returncode != 0 else f"of these it has {cores_text(there)} alone"
    what = f"cannot run on cores {', '.join(map(str, sorted(set(cores))[:8]))}"
    raise UsageError("cannot-pin", what, where=name, why=why, hint=hint)
