"""The members of one archive: where each goes, what it may be, and how it is written."""

import os
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from ortrim.errors import StorageError
from ortrim.storage.bounded import TooLarge

MAXIMUM_ENTRIES: Final = 200_000
MAXIMUM_BYTES: Final = 4 << 30
MAXIMUM_NAME: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link: where it goes, what the archive calls it, and what it says that it leads to."""

    path: Path
    name: str
    target: str
    hard: bool = False


class Members:
    """What is taken from `archive` into `destination`, and the account of it."""

    def __init__(self, archive: Path, destination: Path, strip: int, wanted: Mapping[str, str]) -> None:
        self.destination = destination.resolve()
        self.written = 0
        self._archive = archive
        self._strip = strip
        self._wanted = tuple((PurePosixPath(source), PurePosixPath(target)) for source, target in wanted.items())
        self._entries = 0
        self._bytes = 0

    def count(self, size: int) -> None:
        """Take account of one member that claims `size` bytes."""
        if size < 0:
            raise tarfile.ReadError(f"a member claims {size} bytes")
        self._entries += 1
        self._bytes += size
        if self._entries > MAXIMUM_ENTRIES or self._bytes > MAXIMUM_BYTES:
            raise TooLarge

    def path_of(self, name: str) -> Path | None:
        """Return where the member called `name` goes, or None when it is not wanted."""
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or "\\" in name or len(name) > MAXIMUM_NAME:
            raise self.unsafe(name, "its name is absolute, climbs, or is too long")
        if len(inside.parts) <= self._strip:
            return None
        kept = PurePosixPath(*inside.parts[self._strip :])
        for source, target in self._wanted:
            if kept.is_relative_to(source):
                return self.destination / target / kept.relative_to(source)
        return None

    def write(self, path: Path, content: IO[bytes], *, executable: bool) -> None:
        """Write one regular file; of its permissions only whether it can be run is kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
        path.chmod(0o755 if executable else 0o644)
        self.written += 1

    def make_links(self, links: Iterable[Link]) -> None:
        """Make the links after all files, hard ones first, so that no file is written through one."""
        ordered = sorted(links, key=lambda link: not link.hard)
        for link in ordered:
            (self._hard_link if link.hard else self._link)(link)
        for link in ordered:
            if not link.hard:
                self._settle(link)

    def _link(self, link: Link) -> None:
        """Make a symbolic link if all of it stays inside and nothing is in its place."""
        path = link.path
        # Nothing is made through an earlier link: a chain of links can leave where each alone does not.
        if not self._inside(os.path.realpath(path.parent / link.target)) or os.path.realpath(path.parent) != str(
            path.parent
        ):
            raise self.unsafe(link.name, f"a link that leads outside, to {link.target[:200]!r}")
        if not link.target or len(link.target) > MAXIMUM_NAME or os.path.lexists(path):
            raise self.unsafe(link.name, "a link in the place of another member, or to no name that a file can have")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link.target)

    def _settle(self, link: Link) -> None:
        """Look again once all links are there: refuse one that leads outside, remove one that leads nowhere."""
        try:
            actual = os.path.realpath(link.path, strict=True)
        except OSError:
            link.path.unlink(missing_ok=True)
            return
        if not self._inside(actual):
            raise self.unsafe(link.name, f"a chain of links that leads outside, to {actual[:200]!r}")

    def unsafe(self, name: str, why: str) -> StorageError:
        """Make the diagnostic of a member that must not be unpacked."""
        hint = "do not use this archive: a well-meant one does not hold such a thing"
        what = f"holds {name[:200]!r}, which could do harm"
        return StorageError("unsafe-archive", what, where=str(self._archive), why=why, hint=hint)

    def _hard_link(self, link: Link) -> None:
        source = self.path_of(link.target)
        if source is None or source.is_symlink() or not source.is_file():
            raise self.unsafe(link.name, f"a link to {link.target[:200]!r}, which is not a file taken from here")
        link.path.parent.mkdir(parents=True, exist_ok=True)
        if link.path != source:
            link.path.unlink(missing_ok=True)
            link.path.hardlink_to(source)

    def _inside(self, path: str) -> bool:
        return Path(path).is_relative_to(self.destination)
