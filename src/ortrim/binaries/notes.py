"""Notes in ELF files: what a linker wrote into them besides code and data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from ortrim.binaries.elf import read_bytes, with_elf_bytes

ELF: Final = b"\x7fELF"


def notes(elf: ELFFile, owner: str, kind: str) -> Iterator[Any]:
    """Yield the notes of an owner and a kind, in pyelftools' names."""
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            yield from (note for note in section.iter_notes() if (note["n_name"], note["n_type"]) == (owner, kind))


def build_id_in(elf: ELFFile) -> str:
    """Return a library's build-id in hexadecimal, empty when it was linked without."""
    return next((str(note["n_desc"]) for note in notes(elf, "GNU", "NT_GNU_BUILD_ID")), "")


def build_id_of(path: Path) -> str | None:
    """Return the build-id of a file; None for what is no shared library, and for one that was linked without.

    Raises `BinaryError` as `read_library` does for a damaged one.
    """
    data = read_bytes(path)
    return (with_elf_bytes(data, path, build_id_in) or None) if data.startswith(ELF) else None
