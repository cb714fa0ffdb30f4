"""Keeping the runner on chosen cores, so that a phone's slow and fast cores do not mix in one number."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from ortrim.core.processor_cores import MOST_CORES, cores_text, read_cores
from ortrim.errors import UsageError
from ortrim.tools.command import Completed

CHECK_SECONDS: Final = 20.0
STATUS: Final = "/proc/self/status"
ALLOWED: Final = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
HINT: Final = "choose cores that are there and not switched off: cat /sys/devices/system/cpu/online"


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
        raise _cannot(cores, name, why="\n".join(done.stderr.strip().splitlines()[-2:]))
    allowed = ALLOWED.search(done.stdout)
    there = read_cores(allowed[1]) if allowed else ()
    if there and set(there) != set(cores):
        raise _cannot(cores, name, why=f"of these it has {cores_text(there)} alone")


def _cannot(cores: tuple[int, ...], name: str, *, why: str = "", hint: str = HINT) -> UsageError:
    what = f"cannot run on cores {', '.join(map(str, sorted(set(cores))[:8]))}"
    return UsageError("cannot-pin", what, where=name, why=why, hint=hint)
