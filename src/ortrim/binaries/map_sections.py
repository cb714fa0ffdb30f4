"""What link maps of every linker say: output sections, the input sections in them, and the symbols in those. Pure."""

from dataclasses import dataclass
from typing import Final

INTERNAL: Final = "<internal>"
"""What lld writes for the file of the sections that it makes itself."""


@dataclass(frozen=True, kw_only=True)
class MapSymbol:
    """A symbol of an input section, demangled, and its size in bytes."""

    name: str
    address: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class MapInput:
    """An input section: the object file, or `<internal>`, the section's name in it, its place, and its symbols."""

    file: str
    section: str
    address: int
    size_bytes: int
    symbols: tuple[MapSymbol, ...]


@dataclass(frozen=True, kw_only=True)
class MapOutput:
    """An output section, its place, and the input sections that went into it."""

    name: str
    address: int
    size_bytes: int
    inputs: tuple[MapInput, ...]
