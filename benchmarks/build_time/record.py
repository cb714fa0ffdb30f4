"""What was measured: `build-time.json`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from build_time.meter import Cost
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.compiling.plan import CompilerCacheUse
from ortrim.errors import StorageError, UsageError

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
