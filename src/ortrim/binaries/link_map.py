"""Link maps as lld writes them (`-Map`, `--print-map`): which bytes of a library came from which object file.

A line is `VMA LMA Size Align` (all but the last in hexadecimal) and a name, whose indentation says what it is: an
output section, eight spaces deeper an input section `file:(section)`, sixteen deeper a symbol. Source:
https://github.com/llvm/llvm-project/blob/main/lld/ELF/MapFile.cpp
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from ortrim.base.console import counted
from ortrim.errors import BinaryError

INTERNAL: Final = "<internal>"  # what lld writes for the file of the sections that it makes itself


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


HEADER: Final = re.compile(r"\s*VMA\s+LMA\s+Size\s+Align\s+Out\s+In\s+Symbol\s*")
LINE: Final = re.compile(r"\s*([0-9a-f]{1,16})\s+[0-9a-f]{1,16}\s+([0-9a-f]{1,16})\s+\d{1,20} (\s*)(\S.*)")
INPUT: Final = re.compile(r"(.*):\((.*)\)")
__all__ = ["INTERNAL", "MapInput", "MapOutput", "MapSymbol", "parse_link_map", "read_link_map"]


_Line = tuple[int, MapSymbol]  # how deep a line is, and what it says


def read_link_map(path: Path) -> tuple[MapOutput, ...]:
    """Return the output sections of a link map of lld, in order."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        what = "the link map cannot be read"
        raise BinaryError("link-map-missing", what, where=str(path), why=str(error)) from error
    outputs = parse_link_map(text)
    if not outputs:
        why = "there is no line `VMA LMA Size Align Out In Symbol` with output sections after it"
        raise BinaryError("not-a-link-map", "this is not a link map of lld", where=str(path), why=why)
    return outputs


def parse_link_map(text: str) -> tuple[MapOutput, ...]:
    """Return the output sections of the text of lld's map; lines that are none of the three kinds say nothing."""
    outputs = []
    for line, below in _grouped(list(_lines(text)), 0):
        found = ((INPUT.fullmatch(inner.name), inner, symbols) for inner, symbols in _grouped(below, 1))
        inputs = tuple(
            MapInput(
                file=name[1],
                section=name[2],
                address=inner.address,
                size_bytes=inner.size_bytes,
                symbols=tuple(symbol for _, symbol in symbols),
            )
            for name, inner, symbols in found
            if name
        )
        outputs.append(MapOutput(name=line.name, address=line.address, size_bytes=line.size_bytes, inputs=inputs))
    return tuple(outputs)


def _lines(text: str) -> Iterator[_Line]:
    started = False
    for row in text.split("\n"):
        started = started or HEADER.fullmatch(row) is not None
        found = LINE.fullmatch(row) if started else None
        if found:
            address, size, indentation, name = found.groups()
            yield len(indentation) // 8, MapSymbol(name=name, address=int(address, 16), size_bytes=int(size, 16))


def _grouped(lines: list[_Line], depth: int) -> list[tuple[MapSymbol, list[_Line]]]:
    """Return each line of the given depth with the deeper ones that follow it."""
    groups: list[tuple[MapSymbol, list[_Line]]] = []
    for each, line in lines:
        if each == depth:
            groups.append((line, []))
        elif groups:
            groups[-1][1].append((each, line))
    return groups


def member_name(file: str) -> str:
    """Return the object's own name: `a.cc.o` of `libx.a(a.cc.o)`."""
    return file.rstrip(")").rsplit("(", 1)[-1]


MEMBER: Final = re.compile(r"(.*\.a)\((.*)\)")
THIN: Final = re.compile(r".*\.lto\.((?:.*/)?[^/]*\.a)\((.*) at \d+\)\.o")
"""What lld calls the object that thin link-time optimisation makes of a member of an archive."""


def require_match(sections: Mapping[str, int], outputs: tuple[MapOutput, ...], where: str) -> None:
    """Refuse a map whose output sections are not the library's `sections`, or that lists more in one than it holds."""
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


def source_file(file: str) -> str:
    """Return the object file that a map speaks of, for what link-time optimisation made of one the one it was."""
    thin = THIN.fullmatch(file)
    return f"{thin[1]}({thin[2]})" if thin else file


def file_name(file: str) -> str:
    """Name an object file as `libonnxruntime_mlas.a(sgemm.cpp.o)` or `source.c.o`; nothing for the linker's own."""
    if file == INTERNAL:
        return ""
    member = MEMBER.fullmatch(file)
    if member:
        return f"{member[1].rsplit('/', 1)[-1]}({member[2].rsplit('/', 1)[-1]})"
    return file.rsplit("/", 1)[-1]


def input_name(inner: MapInput) -> str:
    """Name an input section by its object file, `sgemm.cpp.o: .rodata`, or alone when the linker made it."""
    if inner.file == INTERNAL:
        return inner.section
    return f"{member_name(file_name(inner.file))}: {inner.section}"


def _refuse(where: str, why: str) -> NoReturn:
    hint = "build again: a library and its link map come from one link"
    raise BinaryError("link-map-mismatch", "the link map is of another library", where=where, why=why, hint=hint)
