"""How large a library is, where its bytes come from, and what makes it differ from another."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.files import sha256_of
from ortrim.binaries import elf
from ortrim.binaries.link_map import (
    INTERNAL,
    MapInput,
    MapOutput,
    file_name,
    input_name,
    member_name,
    read_link_map,
    require_match,
    source_file,
)
from ortrim.binaries.macho.files import diagnosed, is_macho, is_thin, read_apple_library, unwritten_bytes
from ortrim.compiling.translation_units import UnitIndex
from ortrim.size import accounting

LARGEST_COUNT: Final = 40
LARGEST_FILES: Final = 80


def library_size(path: Path, link_map: Path | None) -> elf.LibrarySize:
    """Return the sizes of a shared library, all in bytes.

    `compressed_bytes` is gzip at level 9, `loadable_bytes` the sum of the sections in memory (zero-initialised ones
    included, `.relro_padding` left out). `components` sum to exactly `loadable_bytes`, largest first: by the link map,
    or by section without one.
    """
    data = elf.read_bytes(path)
    sections = elf.with_elf(path, accounting.sections_in_memory)
    outputs = () if link_map is None else _loaded_outputs(link_map, sections)
    components = _by_component(outputs) if outputs else sections
    largest = sorted(components.items(), key=lambda item: (-item[1], item[0]))
    found = [symbol for output in outputs for inner in output.inputs for symbol in _symbols(inner)]
    found.sort(key=lambda symbol: (-symbol.size_bytes, symbol.name, symbol.component))
    return elf.LibrarySize(
        file_bytes=len(data),
        loadable_bytes=sum(sections.values()),
        compressed_bytes=len(gzip.compress(data, compresslevel=9, mtime=0)),
        components=tuple(elf.ComponentSize(component=name, size_bytes=size) for name, size in largest if size),
        largest_symbols=tuple(found[:LARGEST_COUNT]),
        largest_files=_largest_files(outputs),
    )


def _loaded_outputs(link_map: Path, sections: Counter[str]) -> tuple[MapOutput, ...]:
    """Return the map's output sections that are in memory, once it is known to be of this library."""
    outputs = read_link_map(link_map)
    require_match(sections, outputs, str(link_map))
    return tuple(output for output in outputs if output.name in sections)


def _by_component(outputs: tuple[MapOutput, ...]) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for output in outputs:
        for inner in output.inputs:
            sizes[accounting.component_of(source_file(inner.file), inner.section)] += inner.size_bytes
        rest = output.size_bytes - sum(inner.size_bytes for inner in output.inputs)
        sizes[accounting.PADDING if output.inputs else accounting.section_kind(output.name)] += rest
    return sizes


def _largest_files(outputs: tuple[MapOutput, ...]) -> tuple[elf.SymbolSize, ...]:
    """Return the object files with the largest parts in one component each; what the linker made is in none."""
    sizes: Counter[tuple[str, str]] = Counter()
    for output in outputs:
        for inner in output.inputs:
            if inner.file != INTERNAL:
                file = source_file(inner.file)
                sizes[member_name(file_name(file)), accounting.component_of(file, inner.section)] += inner.size_bytes
    found = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        elf.SymbolSize(name=name, component=part, size_bytes=size) for (name, part), size in found[:LARGEST_FILES]
    )


def _symbols(inner: MapInput) -> Iterator[elf.SymbolSize]:
    """Return an input section's symbols, one for each address; itself where they cover less than half."""
    component = accounting.component_of(source_file(inner.file), inner.section)
    by_address = {symbol.address: symbol for symbol in sorted(inner.symbols, key=lambda each: each.size_bytes)}
    if 2 * sum(symbol.size_bytes for symbol in by_address.values()) < inner.size_bytes:
        yield elf.SymbolSize(name=input_name(inner), component=component, size_bytes=inner.size_bytes)
        return
    for symbol in by_address.values():
        yield elf.SymbolSize(name=symbol.name, component=component, size_bytes=symbol.size_bytes)


@dataclass(frozen=True, kw_only=True)
class SizeChange:
    """What has one name in both libraries, with its bytes in each; a change of nothing is none."""

    name: tuple[str, ...]
    before: int
    after: int

    @property
    def difference(self) -> int:
        """How many bytes it grew by."""
        return self.after - self.before

    @property
    def kind(self) -> str:
        """What became of it: `new`, `gone`, `grown` or `shrunk`."""
        if not self.before:
            return "new"
        if not self.after:
            return "gone"
        return "grown" if self.difference > 0 else "shrunk"


def comparable(
    before: accounting.Accounting, after: accounting.Accounting, index: UnitIndex | None = None
) -> tuple[accounting.Accounting, accounting.Accounting]:
    """Return both with operators told by what either registers, so that the same code has the same operator in both."""
    one, other = (accounting.registered_operators(each.leaves) for each in (before, after))
    both = {file: one.get(file, frozenset()) | other.get(file, frozenset()) for file in (*one, *other)}
    first, second = (
        replace(each, leaves=accounting.with_operators(each.leaves, both, index)) for each in (before, after)
    )
    return first, second


def changes(
    before: accounting.Accounting, after: accounting.Accounting, key: Callable[[accounting.Leaf], tuple[str, ...]]
) -> tuple[SizeChange, ...]:
    """Return what differs in size, grouped by `key`, largest effect first; the differences sum to that of the files."""
    old, new = (
        {share.name: share.size_bytes for share in accounting.shares(each.leaves, key)} for each in (before, after)
    )
    found = (
        SizeChange(name=name, before=old.get(name, 0), after=new.get(name, 0)) for name in dict.fromkeys((*old, *new))
    )
    differing = (change for change in found if change.difference)
    return tuple(sorted(differing, key=lambda each: (-abs(each.difference), -each.difference, each.name)))


OTHER_BYTES: Final = "the same sizes, exports and needs, but other bytes"


def differences(first: Path, second: Path) -> tuple[str, ...]:
    """Return in words how two shared libraries differ in size, sections (a Mac's: segments), exports and needs."""
    (one_facts, one_size), (other_facts, other_size) = _read(first), _read(second)
    facts, sizes = (one_facts, other_facts), (one_size, other_size)
    if sha256_of(first) == sha256_of(second):
        return ()
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
    return found or (OTHER_BYTES,)


def differs_in_order_alone(found: tuple[str, ...], first_map: Path, second_map: Path) -> bool:
    """Whether two libraries with the differences `found` are the same but for the order of the linker's own tables.

    Both maps then put the same sections of the same objects at the same addresses. lld orders the entries of `.got`,
    and their relocations, as it first reads each name, in members of archives that it does not take as well.
    """
    return found == (OTHER_BYTES,) and first_map.read_bytes() == second_map.read_bytes()


def differs_in_what_was_not_written(found: tuple[str, ...], first: Path, second: Path) -> bool:
    """Whether two libraries for Macs with the differences `found` are the same but for what no linker wrote."""
    one, other = elf.read_bytes(first), elf.read_bytes(second)
    if found != (OTHER_BYTES,) or not (is_thin(one) and is_thin(other)):
        return False
    with diagnosed(str(first)):
        places = unwritten_bytes(one)
        return places == unwritten_bytes(other) and _without(one, places) == _without(other, places)


def _without(data: bytes, places: tuple[range, ...]) -> bytes:
    rest = bytearray(data)
    for place in places:
        rest[place.start : place.stop] = bytes(len(place))
    return bytes(rest)


def _read(library: Path) -> tuple[elf.LibraryFacts, elf.LibrarySize]:
    if is_macho(elf.read_bytes(library)):
        return read_apple_library(library)
    return elf.read_library(library), library_size(library, None)


def _sections(size: elf.LibrarySize) -> dict[str, int]:
    return {component.component: component.size_bytes for component in size.components}
