"""The libraries that cases make: kept among the output, so that a difference can be looked into, and compared."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from build_time.record import Library
from ortrim.base.files import sha256_of
from ortrim.binaries.elf import read_library
from ortrim.compiling.size.library import differences, library_size

NAME: Final = "libonnxruntime.so"
OTHERS: Final = (("unpruned", "every file compiled"), ("upstream", "upstream's recipe"))


def keep_library(library: Path, link_map: Path | None, folder: Path) -> Library:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, folder / NAME)
    if link_map is not None:
        shutil.copyfile(link_map, folder / "link.map")
    size = library_size(folder / NAME, None)
    return Library(
        size_bytes=size.file_bytes,
        sha256=sha256_of(folder / NAME),
        exports=read_library(folder / NAME).exported,
        sections=tuple(sorted((section.component, section.size_bytes) for section in size.components)),
    )


def comparisons(folder: Path) -> Iterator[str]:
    """Yield in words how ortrim's library differs from the other recipes', of those that one spec's folder holds."""
    own = folder / "ortrim" / NAME
    for case, recipe in OTHERS:
        other = folder / case / NAME
        if own.is_file() and other.is_file():
            found = differences(other, own)
            yield f"{folder.name}: the library of {recipe}, and ortrim's: {'not the same' if found else 'identical'}"
            yield from (f"  {line}" for line in found)
