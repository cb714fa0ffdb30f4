"""The leaves of a section that a link map speaks of: input sections, and in each its symbols."""

from collections.abc import Iterable, Iterator

from ortrim.binaries.components import LINK_TIME, OTHER, PADDING, component_of, component_of_symbol, section_kind
from ortrim.binaries.extents import Claim, Piece, divided
from ortrim.binaries.leaves import REST, Leaf
from ortrim.binaries.map_inputs import file_name, source_file
from ortrim.binaries.map_sections import INTERNAL, MapInput, MapOutput, MapSymbol


def mapped_leaves(output: MapOutput, start: int, end: int) -> Iterator[Leaf]:
    """Yield the leaves of the bytes of a section that are loaded at `start` to before `end`.

    Bytes between input sections are padding.
    """
    section = output.name
    claims = (Claim(start=each.address, end=each.address + each.size_bytes, owner=each) for each in output.inputs)
    for piece in divided(start, end, claims):
        if piece.owner is None:
            yield Leaf(component=PADDING, section=section, symbol=f"in {section}", size_bytes=piece.size_bytes)
        else:
            yield from _input_leaves(piece.owner, section, piece)


def _input_leaves(inner: MapInput, section: str, where: Piece[MapInput]) -> Iterator[Leaf]:
    """Yield the symbols of an input section, and what is left of it."""
    if inner.file == INTERNAL:
        yield _leaf(inner, section, inner.section, where.size_bytes)
        return
    rest = 0
    for piece in divided(where.start, where.end, _claims(inner.symbols)):
        if piece.owner is None:
            rest += piece.size_bytes
            continue
        first, *others = dict.fromkeys(piece.owner)
        yield _leaf(inner, section, first, piece.size_bytes, tuple(others))
    if rest:
        name = REST if inner.symbols and rest < where.size_bytes else inner.section
        yield _leaf(inner, section, name, rest)


def _claims(symbols: Iterable[MapSymbol]) -> Iterator[Claim[tuple[str, ...]]]:
    """Claim each place once, with all names that it has there; the longest symbol says how far it goes."""
    places: dict[int, list[MapSymbol]] = {}
    for symbol in symbols:
        places.setdefault(symbol.address, []).append(symbol)
    for address, here in places.items():
        names = tuple(symbol.name for symbol in sorted(here, key=lambda symbol: -symbol.size_bytes))
        yield Claim(start=address, end=address + max(symbol.size_bytes for symbol in here), owner=names)


def _leaf(inner: MapInput, section: str, symbol: str, size_bytes: int, folded: tuple[str, ...] = ()) -> Leaf:
    file = source_file(inner.file)
    component = component_of(file, inner.section)
    if component == OTHER and LINK_TIME.fullmatch(file):
        told = component_of_symbol(symbol)
        component = section_kind(section) if told == OTHER else told
    return Leaf(
        component=component,
        section=section,
        file=file_name(file),
        symbol=symbol,
        size_bytes=size_bytes,
        folded=folded,
    )
