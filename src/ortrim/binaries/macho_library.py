"""A Mach-O library as reports tell of libraries: what a loader sees of it, and how large it is."""

import gzip
from pathlib import Path
from typing import Final

from ortrim.binaries.elf import read_bytes
from ortrim.binaries.macho import macho_of, one_architecture
from ortrim.core.library_facts import ComponentSize, LibraryFacts, LibrarySize
from ortrim.core.macho import MachImage

LINKEDIT: Final = "__LINKEDIT"
"""Names, signature and what the loader reads once: in the file, and not for the program."""
PAGE_BYTES: Final = {"arm64": 16384, "x86_64": 4096}


def read_apple_library(path: Path) -> tuple[LibraryFacts, LibrarySize]:
    """Return what reports tell of a library of one architecture; sizes are in bytes, by segment.

    An archive of objects has its size alone. Raises `BinaryError` as `read_macho` does, ValueError for a file of
    several architectures.
    """
    content = read_bytes(path)
    (image,) = macho_of(content, str(path)).images
    return _facts(image), _size(content, image)


def architecture_size(path: Path, architecture: str) -> LibrarySize:
    """Return the sizes of one architecture of a library that may have several, in Apple's word for it.

    Raises `BinaryError` as `read_macho` does, and `architecture-missing`.
    """
    content = one_architecture(read_bytes(path), architecture, str(path))
    (image,) = macho_of(content, str(path)).images
    return _size(content, image)


def _facts(image: MachImage) -> LibraryFacts:
    return LibraryFacts(
        soname=image.install_name,
        machine=image.architecture,
        needed=tuple(need.name for need in image.needed),
        symbol_versions=(),
        exported=image.exported,
        executable_stack=False,
        text_relocations=False,
        stripped=not image.debug,
        load_alignment=PAGE_BYTES.get(image.architecture, 0),
    )


def _size(content: bytes, image: MachImage) -> LibrarySize:
    parts = sorted(
        (ComponentSize(component=segment.name, size_bytes=segment.memory_bytes) for segment in image.segments),
        key=lambda part: (-part.size_bytes, part.component),
    )
    loaded = tuple(part for part in parts if part.component != LINKEDIT and part.size_bytes)
    return LibrarySize(
        file_bytes=len(content),
        loadable_bytes=sum(part.size_bytes for part in loaded),
        compressed_bytes=len(gzip.compress(content, compresslevel=9, mtime=0)),
        components=loaded,
        largest_symbols=(),
    )
