"""Link maps as lld writes them (`-Map`, `--print-map`): which bytes of a library came from which object file.

A line is `VMA LMA Size Align` (all but the last in hexadecimal) and a name, whose indentation says what it is: an
output section, eight spaces deeper an input section `file:(section)`, sixteen deeper a symbol.
Source: https://github.com/llvm/llvm-project/blob/main/lld/ELF/MapFile.cpp
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.binaries.gnu_map import MARK, parse_gnu_map
from ortrim.binaries.map_sections import INTERNAL, MapInput, MapOutput, MapSymbol
from ortrim.errors import BinaryError

HEADER: Final = re.compile(r"\s*VMA\s+LMA\s+Size\s+Align\s+Out\s+In\s+Symbol\s*")
LINE: Final = re.compile(r"\s*([0-9a-f]{1,16})\s+[0-9a-f]{1,16}\s+([0-9a-f]{1,16})\s+\d{1,20} (\s*)(\S.*)")
INPUT: Final = re.compile(r"(.*):\((.*)\)")
__all__ = ["INTERNAL", "MapInput", "MapOutput", "MapSymbol", "parse_link_map", "read_link_map"]


@dataclass(frozen=True, kw_only=True)
class _Line:
    depth: int
    address: int
    size_bytes: int
    text: str


def read_link_map(path: Path) -> tuple[MapOutput, ...]:
    """Return the output sections of a link map of lld or of GNU's ld, in order.

    Raises `BinaryError` (`link-map-missing`, `not-a-link-map`).
    """
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        what = "the link map cannot be read"
        raise BinaryError("link-map-missing", what, where=str(path), why=str(error)) from error
    outputs = parse_gnu_map(text) if MARK in text else parse_link_map(text)
    if not outputs:
        why = f"there is no line `VMA LMA Size Align Out In Symbol`, or `{MARK}`, with output sections after it"
        raise BinaryError("not-a-link-map", "this is not a link map of lld or GNU's ld", where=str(path), why=why)
    return outputs


def parse_link_map(text: str) -> tuple[MapOutput, ...]:
    """Return the output sections of the text of lld's map; lines that are none of the three kinds say nothing."""
    outputs = []
    for line, below in _grouped(list(_lines(text)), 0):
        inputs = tuple(_input(inner, symbols) for inner, symbols in _grouped(below, 1) if INPUT.fullmatch(inner.text))
        outputs.append(MapOutput(name=line.text, address=line.address, size_bytes=line.size_bytes, inputs=inputs))
    return tuple(outputs)


def _lines(text: str) -> Iterator[_Line]:
    started = False
    for row in text.split("\n"):
        started = started or HEADER.fullmatch(row) is not None
        found = LINE.fullmatch(row) if started else None
        if found:
            address, size, indentation, name = found.groups()
            yield _Line(depth=len(indentation) // 8, address=int(address, 16), size_bytes=int(size, 16), text=name)


def _grouped(lines: list[_Line], depth: int) -> list[tuple[_Line, list[_Line]]]:
    """Return each line of the given depth with the deeper ones that follow it."""
    groups: list[tuple[_Line, list[_Line]]] = []
    for line in lines:
        if line.depth == depth:
            groups.append((line, []))
        elif groups:
            groups[-1][1].append(line)
    return groups


def _input(line: _Line, below: list[_Line]) -> MapInput:
    found = INPUT.fullmatch(line.text)
    assert found is not None
    symbols = tuple(MapSymbol(name=each.text, address=each.address, size_bytes=each.size_bytes) for each in below)
    return MapInput(file=found[1], section=found[2], address=line.address, size_bytes=line.size_bytes, symbols=symbols)
