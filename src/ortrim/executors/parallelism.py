"""How many compilations may run at once."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.console import counted

# One clang on a large kernel file takes up to 1.5 GB; bare `--parallel` runs builders out of memory (upstream's
# issue 22859).
BYTES_PER_COMPILATION: Final = 2_000_000_000

CGROUP_MEMORY: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where a container reads how much memory it may use: cgroup version 2, then 1."""


@dataclass(frozen=True, kw_only=True)
class Parallelism:
    """A number of jobs and, in words, what limits it."""

    jobs: int
    reason: str


def choose_parallelism(asked: int | None) -> Parallelism:
    """Return `asked` when given, otherwise as many jobs as both the cores and the memory of this machine allow."""
    if asked is not None:
        return Parallelism(jobs=asked, reason="as asked")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return limit_parallelism(cores, min(memory, memory_limit(CGROUP_MEMORY) or memory))


def memory_limit(files: tuple[Path, ...]) -> int | None:
    """Return the bytes of memory that a container may use, as the first readable of `files` says; None for no limit."""
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() and int(text) > 0 else None
    return None


def limit_parallelism(cores: int, memory_bytes: int) -> Parallelism:
    """Return how many compilations fit into a number of cores and an amount of memory, at least one."""
    by_memory = max(1, memory_bytes // BYTES_PER_COMPILATION)
    if by_memory < cores:
        return Parallelism(jobs=by_memory, reason=f"{memory_bytes / 1e9:.0f} GB of memory, 2 GB for each")
    return Parallelism(jobs=cores, reason=counted(cores, "core"))
