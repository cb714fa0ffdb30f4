"""Folders that nobody vouches for, as they lie on the disk or in a zip archive, read without following links out."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from ortrim.errors import StorageError
from ortrim.storage.files import storage_errors
from ortrim.storage.members import MAXIMUM_ENTRIES
from ortrim.storage.zips import LARGEST_MEMBER, open_zip

MOST_LINKS: Final = 40
"""How many links may lead from one to the next, as on Linux."""


class _Source(Protocol):
    def read(self, name: str, limit: int = -1) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The files of a folder by their paths below it, with their sizes in bytes, and its links with what they say."""

    files: Mapping[str, int]
    links: Mapping[str, str]
    where: str
    source: _Source

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that have a file in them, at whatever depth; the empty path is that of all."""
        parents = (str(parent) for name in self.files for parent in PurePosixPath(name).parents)
        return frozenset("" if parent == "." else parent for parent in parents)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. Raises `StorageError` (`archive-too-large`, ...), KeyError when it is not there.

        `name` is a key of `files`.
        """
        if self.files[name] > LARGEST_MEMBER:
            what = f"{name} is larger than {LARGEST_MEMBER:,} bytes"
            raise StorageError("archive-too-large", what, where=self.where)
        return self.source.read(name)

    def head(self, name: str, count: int) -> bytes:
        """Return the first bytes of a file; raises as `read` does."""
        return self.source.read(name, count)

    def found(self, name: str) -> str | None:
        """Return where links lead from a path, a file or a folder; None when it is not there, or outside."""
        parts, done, followed = list(PurePosixPath(name).parts), list[str](), 0
        while parts:
            part = parts.pop(0)
            if part == ".." and not done:
                return None
            if part == "..":
                done.pop()
                continue
            done.append(part)
            target = self.links.get("/".join(done))
            if target is not None:
                followed += 1
                if followed > MOST_LINKS or PurePosixPath(target).is_absolute():
                    return None
                done.pop()
                parts = [*PurePosixPath(target).parts, *parts]
        path = "/".join(done)
        return path if path in self.files or path in self.folders else None

    def file(self, name: str) -> str | None:
        """Return the file that a path leads to, over links if need be; None when there is none."""
        path = self.found(name)
        return path if path in self.files else None

    def below(self, folder: str) -> tuple[str, ...]:
        """Return the files below a folder, in order of their paths; all of them below the empty one."""
        start = f"{folder}/" if folder else ""
        return tuple(sorted(name for name in self.files if name.startswith(start)))


def inside(folder: str, name: str) -> str:
    """Return the path of something in a folder of a bundle, whose own folder is the empty path."""
    path = str(PurePosixPath(folder, name))
    return "" if path == "." else path


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Open a folder or a zip archive.

    Raises `StorageError`: as `open_zip` does, `unsafe-folder` for a folder with a device or a pipe in it, and
    `folder-too-large`.
    """
    if path.is_dir():
        yield _folder(path)
        return
    with open_zip(path, str(path), links=True) as archive:
        sizes = {name: entry.file_size for name, entry in archive.members.items()}
        yield Bundle(files=sizes, links=archive.links, where=str(path), source=archive)


@dataclass(frozen=True, kw_only=True)
class _Folder:
    path: Path

    def read(self, name: str, limit: int = -1) -> bytes:
        with storage_errors(self.path / name), (self.path / name).open("rb") as file:
            return file.read(limit)


def _folder(path: Path) -> Bundle:
    files, links = dict[str, int](), dict[str, str]()
    with storage_errors(path):
        for entry in _entries(path):
            name, mode = entry.relative_to(path).as_posix(), entry.lstat().st_mode
            if stat.S_ISLNK(mode):
                links[name] = str(entry.readlink())
            elif stat.S_ISREG(mode):
                files[name] = entry.lstat().st_size
            else:
                what = f"holds {name[:200]!r}, which is a device or a pipe"
                raise StorageError("unsafe-folder", what, where=str(path), hint="remove it")
            if len(files) + len(links) > MAXIMUM_ENTRIES:
                what = f"holds more than {MAXIMUM_ENTRIES:,} files"
                raise StorageError("folder-too-large", what, where=str(path))
    return Bundle(files=files, links=links, where=str(path), source=_Folder(path=path))


def _entries(path: Path) -> Iterator[Path]:
    """Yield all that is no folder; links to folders are not entered."""
    for folder, inner, names in os.walk(path, onerror=_raised):
        here = Path(folder)
        yield from (here / name for name in names)
        yield from (here / name for name in inner if (here / name).is_symlink())


def _raised(error: OSError) -> None:
    raise error
