"""What was built: `build-options-SPEC-TARGET.json`, in which each result stands as soon as it is there."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.errors import StorageError

HINT: Final = "move the file away, or name another folder with --output"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one variant: the sizes of its library, or why there is none."""

    profile: str
    option: str
    key: str
    file_bytes: int = 0
    compressed_bytes: int = 0
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    schema: Literal["ortrim-build-options/1"] = "ortrim-build-options/1"
    outcomes: tuple[Outcome, ...] = ()

    def built(self, profile: str, option: str, key: str) -> Outcome | None:
        """Return what a variant came to when the same job was built before; a failure is tried again."""
        found = (each for each in self.outcomes if (each.profile, each.option, each.key) == (profile, option, key))
        return next((each for each in found if not each.failure), None)

    def with_outcome(self, new: Outcome) -> "Record":
        others = (each for each in self.outcomes if (each.profile, each.option) != (new.profile, new.option))
        return replace(self, outcomes=(*others, new))


def read_record(path: Path) -> Record:
    """Return the record in a file, an empty one without a file. Raises `StorageError` (`measurements-damaged`)."""
    if not path.exists():
        return Record()
    try:
        with storage_errors(path):
            return from_json(Record, path.read_bytes())
    except ValidationError as error:
        why = str(error).splitlines()[0]
        raise StorageError("measurements-damaged", "not a record", where=str(path), why=why, hint=HINT) from error


def write_record(path: Path, record: Record) -> None:
    write_atomically(path, to_json(record))
