"""How a Mach-O library lies in its file and in memory: what dyld maps, codesign appends to and the store encrypts.

Sources of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final

from ortrim.base.tools import require_extra

if TYPE_CHECKING:
    import lief

LINKEDIT: Final = "__LINKEDIT"  # Names, signature and what the loader reads once: in the file, and not for the program
READ_ONLY: Final = 0x10
"""SG_READ_ONLY: the loader takes the right to write away when it has filled in the pointers."""


def require_lief() -> str:
    """Return the version of LIEF, which is large and is not loaded here. Raises `ToolError` where it is missing."""
    return require_extra("lief", "apple")


@cache
def load_lief() -> ModuleType:
    """Return LIEF, quiet; a library for Apple's systems is read by it. Raises `ToolError` where it is missing."""
    require_lief()
    import lief  # noqa: PLC0415 - an extra

    lief.logging.disable()
    lief.disable_leak_warning()  # at the interpreter's end it now and then prints what Python has not collected of it
    return lief


@dataclass(frozen=True, kw_only=True)
class MachSegment:
    """A segment as it is mapped: its memory, its bytes of the file, the rights (`r-x`), and its sections' memory."""

    name: str
    memory: range
    file: range
    rights: str
    read_only: bool
    sections: tuple[tuple[str, range], ...]

    @property
    def memory_bytes(self) -> int:
        """What the segment takes in memory."""
        return self.memory.stop - self.memory.start

    @property
    def file_bytes(self) -> int:
        """What the segment takes in the file."""
        return self.file.stop - self.file.start


@dataclass(frozen=True, kw_only=True)
class LinkeditPart:
    """A table in `__LINKEDIT`: its place in the file, and the number of bytes that it has to start at a multiple of."""

    name: str
    file: range
    alignment: int


@dataclass(frozen=True, kw_only=True)
class MachLayout:
    """Where everything lies that dyld and codesign go by, beside the segments.

    `parts` are in the order in which codesign expects them. `symbols` are the entries of the symbol table: all of them,
    then the local, the defined and the undefined ones. `encrypted` is what App Store Connect may encrypt of the file,
    None when no load command says; `commands_end` is where the load commands end. `relocations` counts those that only
    a linker understands. `shareable` says whether the library is made for the system's shared cache.
    """

    parts: tuple[LinkeditPart, ...]
    symbols: tuple[range, range, range, range]
    encrypted: range | None
    commands_end: int
    chained_fixups: bool
    dyld_info: bool
    relocations: int
    shareable: bool


def read_segments(binary: "lief.MachO.Binary") -> tuple[MachSegment, ...]:
    """Return the segments in the order of their load commands."""
    return tuple(map(_segment, binary.segments))


def read_layout(binary: "lief.MachO.Binary") -> MachLayout:
    """Return where the rest of a file lies."""
    dynamic, encryption = binary.dynamic_symbol_command, binary.encryption_info
    return MachLayout(
        parts=tuple(_parts(binary)),
        symbols=_symbols(binary),
        encrypted=_span(encryption.crypt_offset, encryption.crypt_size) if encryption else None,
        commands_end=HEADER_BYTES + binary.header.sizeof_cmds,
        chained_fixups=binary.has_dyld_chained_fixups,
        dyld_info=binary.has_dyld_info,
        relocations=dynamic.nb_external_relocations + dynamic.nb_local_relocations if dynamic else 0,
        shareable=binary.has_segment_split_info,
    )


HEADER_BYTES: Final = 32
SYMBOL_BYTES, INDEX_BYTES, POINTER_BYTES, SIGNATURE_ALIGNMENT = 16, 4, 8, 16


def _segment(segment: "lief.MachO.SegmentCommand") -> MachSegment:
    rights = int(segment.init_protection)
    return MachSegment(
        name=name_of(segment.name),
        memory=_span(segment.virtual_address, segment.virtual_size),
        file=_span(segment.file_offset, segment.file_size),
        rights="".join(letter if rights & 1 << bit else "-" for bit, letter in enumerate("rwx")),
        read_only=bool(int(segment.flags) & READ_ONLY),
        sections=tuple(
            (name_of(section.name), _span(section.virtual_address, section.size)) for section in segment.sections
        ),
    )


def _parts(binary: "lief.MachO.Binary") -> Iterator[LinkeditPart]:
    """Yield the tables that are there in the order of cctools' codesign_allocate."""
    info, table, dynamic = binary.dyld_info, binary.symbol_command, binary.dynamic_symbol_command
    if info is not None:
        yield from _existing("rebase opcodes", *info.rebase)
        yield from _existing("bind opcodes", *info.bind)
        yield from _existing("weak bind opcodes", *info.weak_bind)
        yield from _existing("lazy bind opcodes", *info.lazy_bind)
        yield from _existing("exports trie", *info.export_info)
    for name, command in (
        ("chained fixups", binary.dyld_chained_fixups),
        ("exports trie", binary.dyld_exports_trie),
        ("split info", binary.segment_split_info),
        ("function starts", binary.function_starts),
        ("data in code", binary.data_in_code),
    ):
        if command is not None and command.data_offset:  # codesign asks for the place of an empty one, too
            span = _span(command.data_offset, command.data_size)
            yield LinkeditPart(name=name, file=span, alignment=POINTER_BYTES)
    if table is not None:
        yield from _existing("symbol table", table.symbol_offset, table.numberof_symbols * SYMBOL_BYTES)
    if dynamic is not None:
        size = dynamic.nb_indirect_symbols * INDEX_BYTES
        yield from _existing("indirect symbols", dynamic.indirect_symbol_offset, size, INDEX_BYTES)
    if table is not None:
        yield from _existing("names", table.strings_offset, table.strings_size, 1)
    if binary.code_signature is not None:
        signature = binary.code_signature
        yield from _existing("signature", signature.data_offset, signature.data_size, SIGNATURE_ALIGNMENT)


def _existing(name: str, offset: int, size: int, alignment: int = POINTER_BYTES) -> Iterator[LinkeditPart]:
    if size:
        yield LinkeditPart(name=name, file=_span(offset, size), alignment=alignment)


def _symbols(binary: "lief.MachO.Binary") -> tuple[range, range, range, range]:
    table, groups = binary.symbol_command, binary.dynamic_symbol_command
    everything = range(table.numberof_symbols if table else 0)
    if groups is None:
        return everything, everything, range(0), range(0)
    return (
        everything,
        _span(groups.idx_local_symbol, groups.nb_local_symbols),
        _span(groups.idx_external_define_symbol, groups.nb_external_define_symbols),
        _span(groups.idx_undefined_symbol, groups.nb_undefined_symbols),
    )


def _span(start: int, size: int) -> range:
    return range(start, start + size)


def name_of(name: str | bytes) -> str:
    """Return a name as lief has it, bytes where it is no UTF-8, as text."""
    return name if isinstance(name, str) else name.decode(errors="backslashreplace")
