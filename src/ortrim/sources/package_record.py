"""Which Debian packages a folder of the cache was made of, written down in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ortrim.core.serialization import from_json, to_json
from ortrim.errors import SourcesError
from ortrim.sources.apt_packages import DebianPackage
from ortrim.storage.files import write_atomically
from ortrim.tools.emulators import PACKAGES_FILE


@dataclass(frozen=True, kw_only=True)
class _Record:
    packages: tuple[DebianPackage, ...]


def write_packages(folder: Path, packages: Sequence[DebianPackage]) -> None:
    """Write down what a folder was made of. Raises `StorageError`."""
    write_atomically(folder / PACKAGES_FILE, to_json(_Record(packages=tuple(packages))))


def read_packages(folder: Path, *, reference: str, what: str) -> tuple[DebianPackage, ...]:
    """Return what a folder was made of. Raises `SourcesError` of this reference, which says `what` is damaged."""
    try:
        return from_json(_Record, (folder / PACKAGES_FILE).read_bytes()).packages
    except (OSError, ValidationError) as error:
        why, hint = str(error)[:300], f"remove it: rm -r {folder}"
        raise SourcesError(reference, f"{what} is damaged", where=str(folder), why=why, hint=hint) from error
