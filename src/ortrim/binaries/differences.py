"""What tells two libraries apart, in the terms in which one is promised to be the other."""

from pathlib import Path

from ortrim.binaries.elf import read_library
from ortrim.binaries.sizes import library_size
from ortrim.core.measurements import LibrarySize
from ortrim.storage.files import sha256_of


def differences(first: Path, second: Path) -> tuple[str, ...]:
    """Return in words how two shared libraries differ in size, sections, exports and needs; none when in nothing.

    Bytes that differ within sections of the same sizes are one difference of their own. Raises `BinaryError`.
    """
    facts = (read_library(first), read_library(second))
    if sha256_of(first) == sha256_of(second):
        return ()
    sizes = (library_size(first, None), library_size(second, None))
    pairs = (
        ("file bytes", *(size.file_bytes for size in sizes)),
        *(
            (f"section {name} bytes", *(_sections(size).get(name, 0) for size in sizes))
            for name in sorted({name for size in sizes for name in _sections(size)})
        ),
        ("exported symbols", *(fact.exported for fact in facts)),
        ("needed libraries", *(fact.needed for fact in facts)),
        ("needed versions", *(fact.symbol_versions for fact in facts)),
    )
    found = tuple(f"{name}: {one} and {other}" for name, one, other in pairs if one != other)
    return found or ("the same sizes, exports and needs, but other bytes",)


def _sections(size: LibrarySize) -> dict[str, int]:
    return {component.component: component.size_bytes for component in size.components}
