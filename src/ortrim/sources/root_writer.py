"""Writing a root file system out of the files of Debian packages."""

import io
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from ortrim.errors import StorageError
from ortrim.storage.bounded import DAMAGE, bounded_stream

ALIASES: Final = ("bin", "lib", "lib64", "sbin")
"""Names at the top that lead into `usr`."""
EMPTY_FOLDERS: Final = ("dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "var/tmp")
FOR_EVERYBODY: Final = ("tmp", "var/tmp")
ACCOUNTS: Final = (("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("etc/group", "root:x:0:\n"))
PYTHON: Final = re.compile(r"usr/bin/python3\.\d+")
MAXIMUM_BYTES: Final = 4 << 30
SOURCE_DATE: Final = 315532800
"""The time of every file: the first of 1980, as in builds."""


class RootWriter:
    """Writes a root file system as a tar file, the same bytes for the same packages.

    Nothing is unpacked here, so that links may lead wherever they lead in the root itself.
    """

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._names: set[str] = set()
        for alias in ALIASES:
            self._add_folder(f"usr/{alias}")
            self._add_link(alias, f"usr/{alias}")

    def add_package(self, data: Path, package: str) -> None:
        """Add the files of a package's `data.tar`.

        Raises `StorageError` `corrupt-archive`, or `unsafe-archive` for a name that climbs, or for a device.
        """
        try:
            with (
                bounded_stream(data, MAXIMUM_BYTES) as stream,
                tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:") as source,
            ):
                for member in source:
                    self._add(member, source, package)
        except DAMAGE as error:
            what = "is damaged or cut short"
            raise StorageError("corrupt-archive", what, where=package, why=str(error)) from error

    def complete(self) -> None:
        """Add what packages bring by scripts of their own, which are not run."""
        for name in EMPTY_FOLDERS:
            self._add_folder(name)
        for name, text in ACCOUNTS:
            member = _plain(tarfile.TarInfo(name), 0o644)
            member.size = len(text)
            self._archive.addfile(member, io.BytesIO(text.encode()))
        pythons = sorted(name for name in self._names if PYTHON.fullmatch(name))
        if pythons and "usr/bin/python3" not in self._names:
            self._add_link("usr/bin/python3", PurePosixPath(pythons[0]).name)

    def _add(self, member: tarfile.TarInfo, source: tarfile.TarFile, package: str) -> None:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir() or _is_link(member)):
            what = f"holds {member.name[:200]!r}, which could do harm"
            hint = "do not use this mirror before you know why"
            raise StorageError("unsafe-archive", what, where=package, hint=hint)
        name = str(path)
        if name in self._names or not path.parts:
            return
        self._names.add(name)
        member.name, member.pax_headers = name, {}
        if member.islnk():
            member.linkname = str(PurePosixPath(member.linkname))
        content = source.extractfile(member) if member.isreg() else None
        self._archive.addfile(_plain(member, member.mode & 0o755), content)

    def _add_folder(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            member = _plain(tarfile.TarInfo(name), 0o1777 if name in FOR_EVERYBODY else 0o755)
            member.type = tarfile.DIRTYPE
            self._archive.addfile(member)

    def _add_link(self, name: str, target: str) -> None:
        self._names.add(name)
        member = _plain(tarfile.TarInfo(name), 0o777)
        member.type, member.linkname = tarfile.SYMTYPE, target
        self._archive.addfile(member)


def _is_link(member: tarfile.TarInfo) -> bool:
    return member.issym() or member.islnk()


def _plain(member: tarfile.TarInfo, mode: int) -> tarfile.TarInfo:
    """Make a member root's, with the one time that all have."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.mode = SOURCE_DATE, mode
    return member
