"""What was measured: `build-time.json`."""

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from build_time.meter import Cost, busy_seconds
from ortrim.base.command import run
from ortrim.compiling.plan import CompilerCacheUse
from ortrim.errors import ToolError
from ortrim.parity.measurements import HostFacts

BUSY_LIMIT: Final = 0.5
"""As many processors at work before a measurement mean that it was not alone on the machine."""
OTHERS_LIMIT: Final = 0.05
"""As large a share of a processor, spent by others during a measurement, means the same."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A stripped library: its bytes, what it exports, and the bytes of each section that is loaded."""

    size_bytes: int
    sha256: str
    exports: tuple[str, ...]
    sections: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    spec: str
    case: str
    round: int
    key: str
    commit: str
    started: str
    load_average: float
    busy_processors: float
    operator_types: int
    cost: Cost
    steps: int
    units: tuple[int, int] | None = None
    cache: CompilerCacheUse | None = None
    library: Library | None = None

    @property
    def disturbed(self) -> bool:
        """Whether something else was running, before or meanwhile."""
        others = self.cost.other_cpu_seconds > OTHERS_LIMIT * self.cost.wall_seconds
        return others or self.busy_processors > BUSY_LIMIT

    def same_as(self, other: "Measurement") -> bool:
        """Whether both measure the same thing in the same round."""
        names = ("spec", "case", "round", "key")
        return all(getattr(self, name) == getattr(other, name) for name in names)


@dataclass(frozen=True, kw_only=True)
class Record:
    """All measurements on one machine."""

    schema: Literal["ortrim-build-time/2"] = "ortrim-build-time/2"
    machine: HostFacts
    measurements: tuple[Measurement, ...] = ()

    def of(self, spec: str, case: str, key: str | None = None) -> tuple[Measurement, ...]:
        found = (each for each in self.measurements if (each.spec, each.case) == (spec, case))
        return tuple(sorted((each for each in found if key in (None, each.key)), key=lambda each: each.round))

    def latest(self, spec: str, case: str) -> tuple[Measurement, ...]:
        found = self.of(spec, case)
        return self.of(spec, case, max(found, key=lambda each: each.started).key) if found else ()

    def with_measurement(self, new: Measurement) -> "Record":
        return replace(self, measurements=(*(each for each in self.measurements if not each.same_as(new)), new))


LOOK_SECONDS: Final = 3.0


def load_average() -> float:
    """Return how many processes ran or waited on average over the last minute, those of the case before included."""
    return os.getloadavg()[0]


def busy_processors() -> float:
    """Return how many processors are at work, on average over `LOOK_SECONDS`."""
    before, started = busy_seconds(), time.monotonic()
    time.sleep(LOOK_SECONDS)
    return (busy_seconds() - before) / (time.monotonic() - started)


def wait_for_rest(patience_seconds: float, on_wait: Callable[[str], None]) -> float:
    """Wait until the machine is at rest, though not for ever, and return how many processors are at work."""
    waited = LOOK_SECONDS
    while (now := busy_processors()) > BUSY_LIMIT and waited < patience_seconds:
        on_wait(f"waits: {now:.1f} processors are at work")
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
