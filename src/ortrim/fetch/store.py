"""The cache of fetched files: each under its SHA-256, shared by all apps of a user."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.core.serialization import from_json, to_json
from ortrim.core.sums import FileEntry
from ortrim.errors import StorageError
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import sha256_of, storage_errors, write_atomically
from ortrim.storage.records import is_kept, record_entry

KIND: Final = "downloads"
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder with files by digest, and lists of what archives held by the archives' digests."""

    folder: Path

    def path_of(self, sha256: str) -> Path:
        """Return where a file lies, or would."""
        return self.folder / "files" / sha256[:2] / sha256

    def list_of(self, archive: str) -> Path:
        """Return where the list of an archive's files lies, or would."""
        return self.folder / "archives" / f"{archive}.json"

    def has(self, entry: FileEntry) -> bool:
        """Whether a file is there and still what its name says; a damaged one is removed."""
        path = self.path_of(entry.sha256)
        with storage_errors(path):
            if not path.is_file():
                return False
            if path.stat().st_size == entry.size_bytes and sha256_of(path) == entry.sha256:
                return True
            path.unlink(missing_ok=True)
        return False

    def missing(self, entries: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
        """Return those of the files that are not there."""
        return tuple(entry for entry in entries if not self.has(entry))

    def adopt(self, folder: Path, listed: Mapping[str, str]) -> tuple[FileEntry, ...]:
        """Move checked files, by path in `folder` and digest, into the store, and return what they are."""
        entries = []
        for path, sha256 in sorted(listed.items()):
            source, destination = folder / path, self.path_of(sha256)
            with storage_errors(destination):
                entries.append(FileEntry(path=path, size_bytes=source.stat().st_size, sha256=sha256))
                destination.parent.mkdir(parents=True, exist_ok=True)
                source.chmod(0o644)
                source.replace(destination)
        return tuple(entries)

    def remember(self, archive: str, entries: tuple[FileEntry, ...]) -> None:
        """Write down what an archive held."""
        write_atomically(self.list_of(archive), to_json(entries))
        record_entry(self.list_of(archive))

    def remembered(self, archive: str) -> tuple[FileEntry, ...] | None:
        """Return what an archive held if all of that is still there, otherwise None."""
        path = self.list_of(archive)
        with storage_errors(path):
            if not is_kept(path):
                return None
            try:
                entries = from_json(tuple[FileEntry, ...], path.read_bytes())
            except ValidationError:
                return None
        return None if self.missing(entries) else entries

    def copy(self, entry: FileEntry, destination: Path) -> None:
        """Copy a file out of the store. Raises `StorageError` (`cache-damaged`) if it is not what it was."""
        digest = hashlib.sha256()
        source = self.path_of(entry.sha256)
        with storage_errors(destination), source.open("rb") as file, destination.open("xb") as copy:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                copy.write(chunk)
        if digest.hexdigest() != entry.sha256:
            what, hint = "changed while it was read", "run the same command again: it is fetched anew"
            raise StorageError("cache-damaged", what, where=str(source), hint=hint)


def user_store() -> Store:
    """Return the user's own store. Raises `StorageError` as `cache_folder` does."""
    return Store(folder=cache_folder(KIND))
