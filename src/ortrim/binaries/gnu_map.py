"""Link maps as GNU's ld writes them (`-Map`): which bytes of a library came from which object file.

After the line `Linker script and memory map`, a name in the first column is an output section, one after a blank is an
input section with its object file, each with address and size; a long name has a line of its own. An address alone with
a name is a symbol, without a size: it reaches to the next one. Symbols that are local to their file are not listed.
Source: https://sourceware.org/git/?p=binutils-gdb.git;a=blob;f=ld/ldlang.c
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ortrim.binaries.map_sections import INTERNAL, MapInput, MapOutput, MapSymbol

MARK: Final = "Linker script and memory map"
PLACE: Final = re.compile(r"( ?)(\S+) +0x([0-9a-f]{1,16})[ ]+0x([0-9a-f]{1,16})(?:[ ]+(\S.*))?")
LONG: Final = re.compile(r" ?[^\s*]\S{14,}")
"""A name that leaves no room for the rest of its line."""
SYMBOL: Final = re.compile(r" {16}0x([0-9a-f]{1,16}) {16}(\S.*)")
ASSIGNED: Final = re.compile(r".* = |PROVIDE|ASSERT|\. =")
MADE: Final = re.compile(
    r"\.(rela?|relr)\..*|\.(dynsym|dynstr|hash|gnu\.hash|gnu\.version\w*|dynamic|plt|got|iplt|igot)(\..*)?"
    r"|\.note\.gnu\.(build-id|property)|\.eh_frame_hdr|\.dynbss"
)
"""What the linker makes itself, for which it names the first object of the link."""
MERGED: Final = re.compile(r"\.rodata.*\.((?:str|cst)\d+(?:\.\d+)?)")
"""Merged constants, for which it names the first object that has one."""


def parse_gnu_map(text: str) -> tuple[MapOutput, ...]:
    """Return the output sections of the text of GNU ld's map; lines that say nothing of bytes are passed over."""
    outputs: list[tuple[str, int, int, list[MapInput]]] = []
    symbols: list[tuple[int, str]] = []
    for line in _joined(text.partition(MARK)[2].split("\n")):
        place, symbol = PLACE.fullmatch(line), SYMBOL.fullmatch(line)
        if symbol and not ASSIGNED.match(symbol[2]):
            symbols.append((int(symbol[1], 16), symbol[2]))
        elif place and not place[1] and not place[5]:
            outputs.append((place[2], int(place[3], 16), int(place[4], 16), []))
        elif place and place[1] and place[5] and outputs:
            outputs[-1][3].append(_input(place[2], int(place[3], 16), int(place[4], 16), place[5]))
    named = _Names(symbols)
    return tuple(
        MapOutput(name=name, address=address, size_bytes=size, inputs=tuple(named.filled(inner) for inner in inputs))
        for name, address, size, inputs in outputs
    )


class _Names:
    """The symbols of a map by address."""

    def __init__(self, symbols: list[tuple[int, str]]) -> None:
        self._places: dict[int, list[str]] = {}
        for address, name in symbols:
            self._places.setdefault(address, []).append(name)
        self._order = sorted(self._places)

    def filled(self, inner: MapInput) -> MapInput:
        """Return an input section with its symbols; each reaches to the next, the last one to the end."""
        end = inner.address + inner.size_bytes
        first, last = bisect_left(self._order, inner.address), bisect_left(self._order, end)
        bounds = (*self._order[first:last], end)
        found = tuple(
            MapSymbol(name=name, address=address, size_bytes=behind - address)
            for address, behind in pairwise(bounds)
            for name in self._places[address]
        )
        return replace(inner, symbols=found)


def _joined(lines: list[str]) -> Iterator[str]:
    """Yield lines, those of long names with the next one."""
    name = ""
    for line in lines:
        if name and line.startswith(" " * 16):
            yield f"{name}{line}"
            name = ""
        elif LONG.fullmatch(line):
            name = line
        else:
            name = ""
            yield line


def _input(section: str, address: int, size_bytes: int, file: str) -> MapInput:
    merged = MERGED.fullmatch(section)
    made = merged or MADE.fullmatch(section)
    return MapInput(
        file=INTERNAL if made else file,
        section=f".rodata.{merged[1]}" if merged else section,
        address=address,
        size_bytes=size_bytes,
        symbols=(),
    )
