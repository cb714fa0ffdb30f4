"""Mach-O files: libraries, objects and static libraries for Apple's systems, of one architecture or several.

Bad files become diagnostics in bounded time. Source of the format: Apple's mach-o/loader.h, mach-o/fat.h and ar(5).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.binaries.archives import MAGIC as ARCHIVE_MAGIC
from ortrim.binaries.archives import members_of
from ortrim.binaries.elf import read_bytes
from ortrim.binaries.macho_layout import BITCODE_MAGICS, fat_parts, is_fat, is_thin
from ortrim.core.macho import MachFile, MachImage, MachKind, MachSignature
from ortrim.errors import BinaryError, Diagnostic

OTHERS: Final = {
    b"": "the file is empty",
    b"\x7fELF": "it is an ELF file, of Linux or Android",
    b"MZ": "it is a program or library of Windows",
    b"PK\x03\x04": "it is a zip archive",
    b"\xfe\xed\xfa": "it is for PowerPC",
    b"\xca\xfe\xba\xbe": "it is a class file of Java",
}
"""What is met instead, by how it begins."""


def read_macho(path: Path) -> MachFile:
    """Return what is in a Mach-O file or a static library of Mach-O objects.

    Raises `BinaryError` (`library-missing`, `not-mach-o`, `corrupt-mach-o`, `not-an-archive`, and
    `objects-differ` for a static library that mixes architectures).
    """
    return macho_of(read_bytes(path), str(path))


def is_macho(data: bytes) -> bool:
    """Whether bytes, at least the first eight of a file, begin a Mach-O file of one architecture or several."""
    return is_thin(data) or is_fat(data)


def macho_of(data: bytes, where: str) -> MachFile:
    """Return what `read_macho` does of a file in memory, such as a member of an archive, which errors call `where`."""
    with diagnosed(where):
        parts = tuple(fat_parts(data)) if is_fat(data) else (("", data),)
        return MachFile(size_bytes=len(data), images=tuple(_part(name, part, where) for name, part in parts))


def one_architecture(data: bytes, architecture: str, where: str) -> bytes:
    """Return one architecture of a file as a file of its own.

    Raises `BinaryError` (`architecture-missing`, and as `macho_of` does).
    """
    with diagnosed(where):
        found = dict(fat_parts(data)) if is_fat(data) else {_thin(data, where).architecture: data}
    if architecture not in found:
        what, why = f"this is not a library for {architecture}", f"it is for {', '.join(sorted(found))}"
        raise BinaryError("architecture-missing", what, where=where, why=why)
    return found[architecture]


@contextmanager
def diagnosed(where: str) -> Iterator[None]:
    """Turn all that LIEF and struct raise on damaged files into ours."""
    try:
        yield
    except Diagnostic:
        raise
    except Exception as error:
        hint = "it may be truncated: build or download it again"
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise BinaryError("corrupt-mach-o", "the Mach-O file is damaged", where=where, why=why, hint=hint) from error


def _part(said: str, data: bytes, where: str) -> MachImage:
    """Read one architecture, which is called `said` by the file that holds several."""
    image = _archive(data, where) if data.startswith(ARCHIVE_MAGIC) else _thin(data, where)
    if said not in {"", image.architecture}:
        raise ValueError(f"what is called {said} is {image.architecture}")
    return image


def _thin(data: bytes, where: str) -> MachImage:
    if not is_thin(data):
        why = next((why for head, why in OTHERS.items() if head and data.startswith(head)), "")
        why = why or (f"it begins with {data[:4]!r}" if data else OTHERS[b""])
        raise BinaryError("not-mach-o", "this is not a Mach-O file", where=where, why=why)
    from ortrim.binaries.macho_image import read_image  # noqa: PLC0415 - imports lief

    return read_image(data)


def _archive(data: bytes, where: str) -> MachImage:
    """Return a static library as one: what its objects offer and ask for together."""
    members = members_of(data, where)
    objects = [
        _thin(content, f"{where}: {name}") for name, content in members if not content.startswith(BITCODE_MAGICS)
    ]
    if not objects:
        raise BinaryError(
            "not-mach-o", "this is not a library of Mach-O objects", where=where, why="it holds no object"
        )
    architectures = sorted({each.architecture for each in objects})
    if len(architectures) > 1:
        why = f"it has objects of {', '.join(architectures)}"
        raise BinaryError("objects-differ", "a static library is of one architecture", where=where, why=why)
    return replace(
        _joined(objects),
        size_bytes=len(data),
        bitcode=any(each.bitcode for each in objects) or len(objects) < len(members),
        objects=len(objects),
    )


def _joined(objects: list[MachImage]) -> MachImage:
    offered = {name for each in objects for name in each.exported}
    asked = {name for each in objects for name in each.undefined}
    return MachImage(
        architecture=objects[0].architecture,
        kind=MachKind.ARCHIVE,
        size_bytes=0,
        builds=tuple(sorted({build for each in objects for build in each.builds})),
        unmarked=sum(each.unmarked for each in objects),
        install_name="",
        version="",
        exported=tuple(sorted(offered)),
        undefined=tuple(sorted(asked - offered)),
        needed=(),
        segments=(),
        bitcode=False,
        debug=any(each.debug for each in objects),
        uuid="",
        signature=MachSignature.NONE,
    )
