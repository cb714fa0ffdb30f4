"""How large a library is and where its bytes come from."""

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ortrim.binaries.components import PADDING, component_of, section_kind
from ortrim.binaries.elf import read_bytes, with_elf
from ortrim.binaries.file_layout import sections_in_memory
from ortrim.binaries.link_map import read_link_map
from ortrim.binaries.map_inputs import file_name, input_name, member_name, require_match, source_file
from ortrim.binaries.map_sections import INTERNAL, MapInput, MapOutput
from ortrim.core.library_facts import ComponentSize, FileSize, LibrarySize, SymbolSize

LARGEST_COUNT: Final = 40
LARGEST_FILES: Final = 80


def library_size(path: Path, link_map: Path | None) -> LibrarySize:
    """Return the sizes of a shared library, all in bytes.

    `file_bytes` is the file as it is, `compressed_bytes` the same through gzip at level 9, and `loadable_bytes` the
    sum of the sections that are in memory (zero-initialised ones included, `.relro_padding` left out). `components`
    sum to exactly `loadable_bytes`, largest first: by the link map of that very link, or by section without one.
    `largest_symbols` and `largest_files` are empty without a map. Raises `BinaryError` (those of `read_library` and
    `read_link_map`, and `link-map-mismatch` when the map is of another link).
    """
    data = read_bytes(path)
    sections = with_elf(path, sections_in_memory)
    outputs = () if link_map is None else _loaded_outputs(link_map, sections)
    components = _by_component(outputs) if outputs else sections
    return LibrarySize(
        file_bytes=len(data),
        loadable_bytes=sum(sections.values()),
        compressed_bytes=len(gzip.compress(data, compresslevel=9, mtime=0)),
        components=tuple(ComponentSize(component=name, size_bytes=size) for name, size in _largest_first(components)),
        largest_symbols=_largest_symbols(outputs),
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
            sizes[component_of(source_file(inner.file), inner.section)] += inner.size_bytes
        rest = output.size_bytes - sum(inner.size_bytes for inner in output.inputs)
        sizes[PADDING if output.inputs else section_kind(output.name)] += rest
    return sizes


def _largest_first(sizes: Counter[str]) -> list[tuple[str, int]]:
    """Return the non-empty entries, largest first and by name among equals."""
    return sorted(((name, size) for name, size in sizes.items() if size), key=lambda item: (-item[1], item[0]))


def _largest_files(outputs: tuple[MapOutput, ...]) -> tuple[FileSize, ...]:
    """Return the object files with the largest parts in one component each; what the linker made is in none."""
    sizes: Counter[tuple[str, str]] = Counter()
    for output in outputs:
        for inner in output.inputs:
            if inner.file != INTERNAL:
                file = source_file(inner.file)
                sizes[member_name(file_name(file)), component_of(file, inner.section)] += inner.size_bytes
    found = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return tuple(FileSize(name=name, component=part, size_bytes=size) for (name, part), size in found[:LARGEST_FILES])


def _largest_symbols(outputs: tuple[MapOutput, ...]) -> tuple[SymbolSize, ...]:
    found = [symbol for output in outputs for inner in output.inputs for symbol in _symbols(inner)]
    found.sort(key=lambda symbol: (-symbol.size_bytes, symbol.name, symbol.component))
    return tuple(found[:LARGEST_COUNT])


def _symbols(inner: MapInput) -> Iterator[SymbolSize]:
    """Return the symbols of an input section, one for each address (folded functions share theirs).

    Where the symbols cover less than half of the section, as in assembly and merged strings, it stands itself.
    """
    component = component_of(source_file(inner.file), inner.section)
    by_address = {symbol.address: symbol for symbol in sorted(inner.symbols, key=lambda each: each.size_bytes)}
    if 2 * sum(symbol.size_bytes for symbol in by_address.values()) < inner.size_bytes:
        yield SymbolSize(name=input_name(inner), component=component, size_bytes=inner.size_bytes)
        return
    for symbol in by_address.values():
        yield SymbolSize(name=symbol.name, component=component, size_bytes=symbol.size_bytes)
