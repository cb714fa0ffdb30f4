"""What became of new versions of ONNX Runtime: a record that one job leaves for another."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ortrim.core.serialization import from_json, to_json
from ortrim.errors import Diagnostic, DiagnosticGroup, StorageError
from ortrim.storage.files import storage_errors, write_atomically

RECORD: Final = "versions.json"
LARGEST: Final = 1 << 20
Version = Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){2}$")]
Reference = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A version that could not be pinned, or not be built, and why: fields of a `Diagnostic`."""

    version: Version
    reference: Reference
    what: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class VersionsUpdate:
    """The newest version that was pinned before, those that were pinned now, oldest first, and those that were not.

    `unbuilt` says why the demo could not be built with the newest of `pinned`.
    """

    schema: Literal["ortrim-versions/1"] = "ortrim-versions/1"
    last: Version
    pinned: tuple[Version, ...] = ()
    refused: tuple[Refused, ...] = ()
    unbuilt: Refused | None = None

    @property
    def newest(self) -> str:
        """The newest version that is pinned now."""
        return self.pinned[-1] if self.pinned else self.last


def refused_by(version: str, diagnostic: Diagnostic) -> Refused:
    """Return a refusal in the words of a diagnostic."""
    first = diagnostic.diagnostics[0] if isinstance(diagnostic, DiagnosticGroup) else diagnostic
    why = first.why.strip().splitlines()
    return Refused(version=version, reference=first.reference, what=first.what, why=why[-1] if why else "")


def write_update(update: VersionsUpdate, folder: Path) -> Path:
    """Write the record into a folder and return its file. Raises `StorageError`."""
    write_atomically(folder / RECORD, to_json(update))
    return folder / RECORD


def read_update(folder: Path) -> VersionsUpdate | None:
    """Read the record in a folder, None when there is none. Raises `StorageError` (`record-damaged`, ...)."""
    path = folder / RECORD
    with storage_errors(path):
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    try:
        return from_json(VersionsUpdate, content)
    except ValidationError as error:
        hint = "run: invoke pins.update --latest"
        raise StorageError("record-damaged", "is no record of versions", where=str(path), hint=hint) from error
