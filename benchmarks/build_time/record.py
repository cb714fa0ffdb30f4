"""What was measured: `build-time.json`."""

import hashlib
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from build_time.meter import Cost, busy_seconds
from ortrim.base.command import run
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.compiling.plan import CompilerCacheUse
from ortrim.errors import StorageError, ToolError, UsageError

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
class Machine:
    cores: int
    cpu: str
    memory_bytes: int
    system: str
    load_average: float

    @property
    def identity(self) -> "Machine":
        return replace(self, load_average=0.0)


@dataclass(frozen=True, kw_only=True)
class Record:
    """All measurements on one machine; the load average is the one when the first was begun."""

    schema: Literal["ortrim-build-time/1"] = "ortrim-build-time/1"
    machine: Machine
    measurements: tuple[Measurement, ...] = ()

    def of(self, spec: str, case: str, key: str | None = None) -> tuple[Measurement, ...]:
        found = (each for each in self.measurements if (each.spec, each.case) == (spec, case))
        return tuple(sorted((each for each in found if key in (None, each.key)), key=lambda each: each.round))

    def latest(self, spec: str, case: str) -> tuple[Measurement, ...]:
        found = self.of(spec, case)
        return self.of(spec, case, max(found, key=lambda each: each.started).key) if found else ()

    def with_measurement(self, new: Measurement) -> "Record":
        return replace(self, measurements=(*(each for each in self.measurements if not each.same_as(new)), new))


def read_record(path: Path, machine: Machine) -> Record:
    """Return the record in a file, or an empty one when there is none yet."""
    if not path.exists():
        return Record(machine=machine)
    hint = "move the file away, or name another folder with --output"
    try:
        with storage_errors(path):
            record = from_json(Record, path.read_bytes())
    except ValidationError as error:
        why = str(error).splitlines()[0]
        raise StorageError("measurements-damaged", "not a record", where=str(path), why=why, hint=hint) from error
    if record.machine.identity != machine.identity:
        what = "holds measurements of another machine, which say nothing about this one"
        raise UsageError("other-machine", what, where=str(path), why=str(record.machine.cpu), hint=hint)
    return record


def write_record(path: Path, record: Record) -> None:
    write_atomically(path, to_json(record))


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
