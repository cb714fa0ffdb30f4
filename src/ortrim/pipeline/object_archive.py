"""Compiled objects in one file: from the machine that compiled them to those that should not, such as a CI job's.

It is a `tar.gz` of this user's compiler cache, and of what zig has compiled of its own libraries for each target. An
object goes into a library unseen, so that an archive is as good as whoever made it: it is taken by its digest alone.
"""

import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.archives import unpack
from ortrim.base.cache import cache_folder, kept_folder, locked
from ortrim.base.files import require_writable, sha256_of, storage_errors
from ortrim.base.http import download
from ortrim.compiling.workspace import copy_zig
from ortrim.errors import StorageError, UsageError
from ortrim.models.prepare import ADDRESSES
from ortrim.package.package import new_archive

TOP: Final = "ortrim-objects"
OBJECTS: Final = "ccache"
LIBRARIES: Final = "zig"
OBJECT: Final = re.compile(r"(?:[0-9a-f]/)+[0-9a-z]{20,}")
"""Where ccache has an object or a manifest: two folders or more, and the rest of the digest."""
TARGET: Final = re.compile(r"\w+(-[\w.]+)+")
"""A target in zig's words. Beside such folders zig itself may have worked, whose own folders are nobody's to keep."""
LITTLE: Final = 1
"""How hard an archive is packed: ccache has packed the objects."""
WORK: Final = ".archive-"
HALF_DONE: Final = re.compile(rf"^{TOP}/{LIBRARIES}/[^/]+/tmp(/|$)")
"""Where zig writes what gets its name when it is complete."""


@dataclass(frozen=True, kw_only=True)
class ObjectArchive:
    """An archive that was written or taken: how many objects are in it, and for which targets zig's libraries are.

    `added` counts the objects that were not here before.
    """

    path: str
    sha256: str
    objects: int
    targets: tuple[str, ...]
    added: int = 0


def write_objects(destination: Path) -> ObjectArchive:
    """Write all that this user has compiled into an archive."""
    require_writable(destination.parent)
    objects = tuple(_objects(cache_folder("compiler") / OBJECTS))
    if not objects:
        hint = "build something first, without a compiler cache of a team's"
        raise UsageError(
            "nothing-compiled", "holds no compiled objects", where=str(cache_folder("compiler")), hint=hint
        )
    libraries = cache_folder(LIBRARIES)
    targets = _targets(libraries)
    with new_archive(destination) as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=LITTLE) as archive:
        for name in objects:
            with suppress(FileNotFoundError):  # A build that fills the cache throws the oldest out.
                archive.add(cache_folder("compiler") / OBJECTS / name, f"{TOP}/{OBJECTS}/{name}", filter=_of_nobody)
        for target in targets:
            with kept_folder(libraries / target) as kept:
                archive.add(kept.path, f"{TOP}/{LIBRARIES}/{target}", filter=_of_nobody)
    return ObjectArchive(path=str(destination), sha256=sha256_of(destination), objects=len(objects), targets=targets)


def take_objects(source: str, sha256: str) -> ObjectArchive:
    """Put what is in an archive, a file or an address, where builds look for it; what is there stays."""
    with _work() as work:
        archive = _at_hand(source, sha256, work)
        unpack(archive, work / "unpacked", strip=1)
        objects = tuple(_objects(work / "unpacked" / OBJECTS))
        if not objects:
            hint = "name a file that invoke cache.push has written"
            raise StorageError("not-objects", "holds no compiled objects", where=source, hint=hint)
        there = cache_folder("compiler") / OBJECTS
        with storage_errors(there):
            added = sum(_put(work / "unpacked" / OBJECTS / name, there / name) for name in objects)
        libraries = work / "unpacked" / LIBRARIES
        targets = _targets(libraries)
        for target in targets:
            with kept_folder(cache_folder(LIBRARIES) / target) as kept:
                copy_zig(libraries / target, kept.path)
    return ObjectArchive(path=source, sha256=sha256, objects=len(objects), targets=targets, added=added)


@contextmanager
def _work() -> Iterator[Path]:
    """Give a folder on the cache's disk, from which files can be moved into it."""
    folder = cache_folder("compiler")
    with locked(folder / "archive"):
        for left in folder.glob(f"{WORK}*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=WORK) as name:
            yield Path(name)


def _at_hand(source: str, sha256: str, work: Path) -> Path:
    if source.startswith(ADDRESSES):
        download(source, work / "archive.tar.gz", sha256)
        return work / "archive.tar.gz"
    archive = Path(source)
    if not archive.is_file():
        raise StorageError("no-such-archive", "is no file", where=source, hint="name a file, or an https address")
    with storage_errors(archive):
        actual = sha256_of(archive)
    if actual != sha256:
        hint = "take the digest from whom you trust, where invoke cache.push printed it"
        why = f"expected {sha256}\nactual   {actual}"
        raise StorageError("digest-mismatch", "is another file than was asked for", where=source, why=why, hint=hint)
    return archive


def _targets(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in folder.glob("*") if each.is_dir() and TARGET.fullmatch(each.name)))


def _objects(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if OBJECT.fullmatch(name) and path.is_file():
            yield name


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return an entry that tells nothing of this machine; None for what zig has not finished."""
    if HALF_DONE.search(entry.name):
        return None
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _put(source: Path, destination: Path) -> bool:
    """Move a file to another place, at once and whole, unless something is there; whether nothing was."""
    if destination.exists():
        return False
    destination.parent.mkdir(parents=True, exist_ok=True)
    half = destination.with_name(f"{destination.name}.tmp.archive")
    shutil.move(source, half)
    half.replace(destination)
    return True
