"""What is read from a library: where its bytes are, and what a loader sees of it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ComponentSize:
    """Bytes of the library that come from one component (`framework`, `session`, `mlas`, ...)."""

    component: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class SymbolSize:
    """One of the largest symbols (or input sections) of the library."""

    name: str
    component: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class FileSize:
    """One of the object files with the largest share of a component: its name, such as `conv.cc.o`."""

    name: str
    component: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class LibrarySize:
    """Where the bytes of a library are."""

    file_bytes: int
    loadable_bytes: int
    compressed_bytes: int
    components: tuple[ComponentSize, ...]
    largest_symbols: tuple[SymbolSize, ...]
    largest_files: tuple[FileSize, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    """What a loader sees of a library."""

    soname: str
    machine: str
    needed: tuple[str, ...]
    symbol_versions: tuple[str, ...]
    exported: tuple[str, ...]
    executable_stack: bool
    text_relocations: bool
    stripped: bool
    load_alignment: int
