"""What a piece of work costs: wall and CPU seconds, and memory, of this process and of all that it starts."""

import ctypes
import os
import resource
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER: orphans, such as a compiler cache's server, become children of this process."""
LOOK_SECONDS: Final = 0.5
ORPHAN_SECONDS: Final = 15.0
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TICKS: Final = os.sysconf("SC_CLK_TCK")
PROC: Final = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class Cost:
    wall_seconds: float
    cpu_seconds: float
    other_cpu_seconds: float
    peak_process_bytes: int
    peak_total_bytes: int
    complete: bool


def cost_of(work: Callable[[], None]) -> Cost:
    adopt_orphans()
    own_before, all_before = _cpu_seconds(), busy_seconds()
    with _Watch() as watch:
        started = time.monotonic()
        work()
        wall = time.monotonic() - started
    complete = _orphans_ended(ORPHAN_SECONDS)
    own, everything = _cpu_seconds() - own_before, busy_seconds() - all_before
    return Cost(
        wall_seconds=wall,
        cpu_seconds=own,
        other_cpu_seconds=max(0.0, everything - own),
        peak_process_bytes=1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
        peak_total_bytes=watch.peak_bytes,
        complete=complete,
    )


def adopt_orphans() -> None:
    """Make this process the parent of those of its descendants that lose theirs."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def busy_seconds(text: str | None = None) -> float:
    """Return the CPU seconds that all processors have worked since the start, with those that a hypervisor took away.

    `text` is Linux's `/proc/stat`, the machine's own when None.
    """
    line = ((PROC / "stat").read_text() if text is None else text).partition("\n")[0]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, line.split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / TICKS


def resident_of(processes: Mapping[int, tuple[int, int]], root: int) -> int:
    """Return the sum of the resident sets of a process and of all its descendants."""
    children: dict[int, list[int]] = {}
    for process, (parent, _) in processes.items():
        children.setdefault(parent, []).append(process)
    total, found = 0, [root]
    while found:
        process = found.pop()
        total += processes.get(process, (0, 0))[1]
        found += children.pop(process, [])
    return total


def running_processes() -> dict[int, tuple[int, int]]:
    found = {}
    for name in os.listdir(PROC):  # noqa: PTH208 - a Path for each of hundreds of entries, twice a second
        if name.isdigit():
            try:
                fields = (PROC / name / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            found[int(name)] = (int(fields[1]), int(fields[21]) * PAGE)
    return found


class _Watch:
    """Looks at the memory of this process and its descendants now and then."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, resident_of(running_processes(), os.getpid()))
            if self._ended.wait(LOOK_SECONDS):
                return


def _cpu_seconds() -> float:
    used = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _orphans_ended(patience_seconds: float) -> bool:
    """Wait for the children that are left, so that their CPU time is counted; return whether all have ended."""
    until = time.monotonic() + patience_seconds
    while time.monotonic() < until:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if process == 0:
            time.sleep(0.05)
    return False
