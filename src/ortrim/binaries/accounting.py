"""Where every byte of a library file is: by component, object file, symbol, section and operator."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile

from ortrim.binaries.components import LINK_TIME
from ortrim.binaries.elf import read_bytes, with_elf_bytes
from ortrim.binaries.extents import Piece
from ortrim.binaries.file_layout import Part, file_pieces, sections_in_memory, zeroed_bytes
from ortrim.binaries.leaves import Accounting, Leaf
from ortrim.binaries.link_map import read_link_map
from ortrim.binaries.macho import is_macho
from ortrim.binaries.macho_accounting import account_macho
from ortrim.binaries.map_inputs import require_match
from ortrim.binaries.map_sections import MapOutput
from ortrim.binaries.mapped_leaves import mapped_leaves
from ortrim.binaries.operators import registered_operators, with_operators
from ortrim.binaries.symbol_leaves import Symbols, read_symbols, symbol_leaves
from ortrim.console import counted
from ortrim.core.units import UnitIndex

NO_MAP: Final = "there is no link map: object files and operators are not known"
STRIPPED: Final = "the library is stripped: without a link map its code is one part for each section"
BY_NAME: Final = "components are guessed from the symbols' names"
LINKED: Final = "are code made at link time: its object files are not known, components are told by the symbols' names"


def account(path: Path, link_map: Path | None, index: UnitIndex | None = None) -> Accounting:
    """Return the leaves of a shared library; their sizes sum to the file's, whatever the file or the map says.

    Without a map the leaves are the library's own symbols, or its sections when it is stripped; those of a Mach-O
    library are always its sections. By an index of units,
    operators have the files that serve them alone. Raises `BinaryError`
    (those of `read_library` and `read_link_map`, and `link-map-mismatch` when the map is of another link).
    """
    data = read_bytes(path)
    if is_macho(data):
        return account_macho(data, str(path))
    outputs = () if link_map is None else read_link_map(link_map)

    def read(elf: ELFFile) -> Accounting:
        if outputs:
            require_match(sections_in_memory(elf), outputs, str(link_map))
        return _account(elf, len(data), outputs, index)

    return with_elf_bytes(data, path, read)


def _account(elf: ELFFile, file_bytes: int, outputs: tuple[MapOutput, ...], index: UnitIndex | None) -> Accounting:
    symbols: Symbols = {} if outputs else read_symbols(elf)
    by_place = {(output.name, output.address): output for output in outputs}
    found = [leaf for part, piece in file_pieces(elf, file_bytes) for leaf in _leaves(part, piece, by_place, symbols)]
    leaves = with_operators(found, registered_operators(found), index)
    return Accounting(
        file_bytes=file_bytes,
        zeroed_bytes=zeroed_bytes(elf),
        leaves=leaves,
        mapped=bool(outputs),
        notes=tuple(_notes(outputs, symbols, leaves)),
    )


def _leaves(
    part: Part, piece: Piece[Part], outputs: Mapping[tuple[str, int], MapOutput], symbols: Symbols
) -> Iterator[Leaf]:
    """Yield the leaves of one part of the file."""
    start = (part.address or 0) + piece.start - part.offset
    end = start + piece.size_bytes
    output = None if part.address is None else outputs.get((part.name, part.address))
    if output and output.inputs:
        yield from mapped_leaves(output, start, end)
    elif part.number in symbols:
        yield from symbol_leaves(symbols[part.number], part, start, end)
    else:
        yield Leaf(component=part.content, section=part.name, symbol=part.name, size_bytes=piece.size_bytes)


def _notes(outputs: tuple[MapOutput, ...], symbols: Symbols, leaves: tuple[Leaf, ...]) -> Iterator[str]:
    if not outputs:
        yield NO_MAP
        yield BY_NAME if symbols else STRIPPED
    linked = sum(leaf.size_bytes for leaf in leaves if LINK_TIME.fullmatch(leaf.file))
    if linked:
        yield f"{counted(linked, 'byte')} {LINKED}"
