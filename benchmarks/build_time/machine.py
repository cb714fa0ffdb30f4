"""The machine and the checkout that are measured: what they are, and whether they are at rest."""

import hashlib
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from build_time.meter import busy_seconds
from build_time.record import BUSY_LIMIT, Machine
from ortrim.base.command import run
from ortrim.errors import ToolError

CPUINFO: Final = Path("/proc/cpuinfo")
LOOK_SECONDS: Final = 3.0


def this_machine() -> Machine:
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=cpu_model(CPUINFO),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=f"{platform.system()} {platform.release()}",
        load_average=load_average(),
    )


def cpu_model(file: Path) -> str:
    """Return the processor's name from Linux's list of processors; its architecture where the list has no name."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def load_average() -> float:
    """Return how many processes ran or waited on average over the last minute, those of the case before included."""
    return os.getloadavg()[0]


def busy_processors() -> float:
    """Return how many processors are at work, on average over `LOOK_SECONDS`."""
    before, started = busy_seconds(), time.monotonic()
    time.sleep(LOOK_SECONDS)
    return (busy_seconds() - before) / (time.monotonic() - started)


def wait_for_rest(
    patience_seconds: float,
    on_wait: Callable[[float], None],
    *,
    busy: Callable[[], float] = busy_processors,
) -> float:
    waited = LOOK_SECONDS
    while (now := busy()) > BUSY_LIMIT and waited < patience_seconds:
        on_wait(now)
        waited += LOOK_SECONDS
    return now


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout, with a digest of what its `src` has besides; `unknown` without git."""
    try:
        head, changes, status = (
            run(("git", "-C", str(checkout), *words))
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("diff", "HEAD", "--", "src"),
                ("status", "--porcelain", "--untracked-files=all", "--", "src"),
            )
        )
    except ToolError:
        return "unknown"
    if head.returncode != 0:
        return "unknown"
    changed = changes.stdout + status.stdout
    return head.stdout.strip() + (f"+{hashlib.sha256(changed.encode()).hexdigest()[:8]}" if changed else "")
