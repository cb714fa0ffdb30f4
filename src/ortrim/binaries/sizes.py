"""How large a library is and where its bytes come from."""

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from ortrim.binaries.components import PADDING, component_of, section_kind
from ortrim.binaries.elf import read_bytes, with_elf
from ortrim.binaries.link_map import INTERNAL, MapInput, MapOutput, read_link_map
from ortrim.console import counted
from ortrim.core.measurements import ComponentSize, LibrarySize, SymbolSize
from ortrim.errors import BinaryError

LARGEST_COUNT: Final = 40
IGNORED_SECTION: Final = ".relro_padding"
"""It fluctuates and is no code; upstream's size check leaves it out too:
https://github.com/microsoft/onnxruntime/blob/v1.21.0/tools/ci_build/github/linux/ort_minimal/readelf_utils.py"""


def library_size(path: Path, link_map: Path | None) -> LibrarySize:
    """Return the sizes of a shared library, all in bytes.

    `file_bytes` is the file as it is, `compressed_bytes` the same through gzip at level 9, and `loadable_bytes` the
    sum of the sections that are in memory (zero-initialised ones included, `.relro_padding` left out). `components`
    sum to exactly `loadable_bytes`, largest first: by the link map of that very link, or by section without one.
    `largest_symbols` is empty without a map. Raises `BinaryError` (those of `read_library` and `read_link_map`, and
    `link-map-mismatch` when the map is of another link).
    """
    data = read_bytes(path)
    sections = with_elf(path, _loadable_sections)
    outputs = () if link_map is None else _loaded_outputs(link_map, sections)
    components = _by_component(outputs) if outputs else sections
    return LibrarySize(
        file_bytes=len(data),
        loadable_bytes=sum(sections.values()),
        compressed_bytes=len(gzip.compress(data, compresslevel=9, mtime=0)),
        components=tuple(ComponentSize(component=name, size_bytes=size) for name, size in _largest_first(components)),
        largest_symbols=_largest_symbols(outputs),
    )


def _loadable_sections(elf: ELFFile) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for section in elf.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != IGNORED_SECTION:
            sizes[section.name] += section["sh_size"]
    return sizes


def _loaded_outputs(link_map: Path, sections: Counter[str]) -> tuple[MapOutput, ...]:
    """Return the map's output sections that are in memory, once it is known to be of this library."""
    outputs = read_link_map(link_map)
    _check_match(sections, outputs, str(link_map))
    return tuple(output for output in outputs if output.name in sections)


def _check_match(sections: Counter[str], outputs: tuple[MapOutput, ...], where: str) -> None:
    """Refuse a map whose output sections are not those of the library, or that lists more in one than it holds."""
    mapped: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    for output in outputs:
        mapped[output.name] += output.size_bytes
        listed[output.name] += sum(inner.size_bytes for inner in output.inputs)
    for name, size in sections.items():
        if mapped[name] != size:
            _refuse(where, f"{name} has {counted(size, 'byte')} in the library and {mapped[name]:,} in the map")
        if listed[name] > size:
            _refuse(where, f"the map lists {counted(listed[name], 'byte')} in {name}, which has {size:,}")


def _refuse(where: str, why: str) -> NoReturn:
    hint = "build again: a library and its link map come from one link"
    raise BinaryError("link-map-mismatch", "the link map is of another library", where=where, why=why, hint=hint)


def _by_component(outputs: tuple[MapOutput, ...]) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for output in outputs:
        for inner in output.inputs:
            sizes[component_of(inner.file, inner.section)] += inner.size_bytes
        rest = output.size_bytes - sum(inner.size_bytes for inner in output.inputs)
        sizes[PADDING if output.inputs else section_kind(output.name)] += rest
    return sizes


def _largest_first(sizes: Counter[str]) -> list[tuple[str, int]]:
    """Return the non-empty entries, largest first and by name among equals."""
    return sorted(((name, size) for name, size in sizes.items() if size), key=lambda item: (-item[1], item[0]))


def _largest_symbols(outputs: tuple[MapOutput, ...]) -> tuple[SymbolSize, ...]:
    found = [symbol for output in outputs for inner in output.inputs for symbol in _symbols(inner)]
    found.sort(key=lambda symbol: (-symbol.size_bytes, symbol.name, symbol.component))
    return tuple(found[:LARGEST_COUNT])


def _symbols(inner: MapInput) -> Iterator[SymbolSize]:
    """Return the symbols of an input section, one for each address (folded functions share theirs).

    Where the symbols cover less than half of the section, as in assembly and merged strings, it stands itself.
    """
    component = component_of(inner.file, inner.section)
    by_address = {symbol.address: symbol for symbol in sorted(inner.symbols, key=lambda each: each.size_bytes)}
    if 2 * sum(symbol.size_bytes for symbol in by_address.values()) < inner.size_bytes:
        yield SymbolSize(name=_own_name(inner), component=component, size_bytes=inner.size_bytes)
        return
    for symbol in by_address.values():
        yield SymbolSize(name=symbol.name, component=component, size_bytes=symbol.size_bytes)


def _own_name(inner: MapInput) -> str:
    """Name a section without the folders of its object file, which are those of the machine that linked."""
    if inner.file == INTERNAL:
        return inner.section
    return f"{inner.file.rstrip(')').rsplit('/', 1)[-1].rsplit('(', 1)[-1]}: {inner.section}"
