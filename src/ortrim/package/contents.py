"""What goes into a package: each file with the bytes or the file it comes from, and the symbolic links."""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.sums import SUMS, FileEntry, is_plain_path, sums_text
from ortrim.errors import PackageError
from ortrim.storage.files import sha256_of

FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """A file of the package: its path inside it, and its content as bytes or as the file to copy."""

    path: str
    content: bytes | Path
    mode: int = FILE_MODE

    @property
    def entry(self) -> FileEntry:
        """Size and digest of the file, as manifests record them."""
        if isinstance(self.content, bytes):
            digest = hashlib.sha256(self.content).hexdigest()
            return FileEntry(path=self.path, size_bytes=len(self.content), sha256=digest)
        return FileEntry(path=self.path, size_bytes=self.content.stat().st_size, sha256=sha256_of(self.content))


@dataclass(frozen=True, kw_only=True)
class PackagedLink:
    """A symbolic link of the package and the name, in the same folder, that it leads to."""

    path: str
    target: str


def check_paths(paths: Iterable[str]) -> None:
    """Refuse paths that leave the package or occur twice. Raises `PackageError` (`bad-package-path`)."""
    seen: set[str] = set()
    for path in paths:
        if not is_plain_path(path) or path in seen:
            why = "it is there twice" if path in seen else "it is not a plain path inside the package"
            raise PackageError("bad-package-path", "a file cannot be packaged", where=path, why=why)
        seen.add(path)


def write_contents(folder: Path, files: Iterable[PackagedFile], links: Iterable[PackagedLink]) -> None:
    """Write files and links into an empty folder; the modes do not depend on the umask."""
    for file in files:
        destination = folder / file.path
        destination.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file.content, bytes):
            destination.write_bytes(file.content)
        else:
            shutil.copyfile(file.content, destination)
        destination.chmod(file.mode)
    for link in links:
        (folder / link.path).symlink_to(link.target)
    for inner in folder.rglob("*/"):
        inner.chmod(PROGRAM_MODE)


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of all files in a folder into it; nothing else may be written there afterwards."""
    written = (path for path in folder.rglob("*") if path.is_file())
    entries = [PackagedFile(path=path.relative_to(folder).as_posix(), content=path).entry for path in written]
    (folder / SUMS).write_text(sums_text(entries), encoding="utf-8")
    (folder / SUMS).chmod(FILE_MODE)
