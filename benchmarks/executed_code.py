"""Which code of a library a processor executes: qemu's user emulation tells of each block that it translates."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile

from ortrim.base.command import run
from ortrim.binaries.link_map import MapSymbol, read_link_map

INSTRUCTION: Final = re.compile(r"0x([0-9a-f]+):  ([0-9a-f]{8})  ")
X64_INSTRUCTION: Final = re.compile(r"0x([0-9a-f]+):  ((?:[0-9a-f]{2} )+)")
OPENED: Final = re.compile(r'\d+ openat\((?:AT_FDCWD|-100),"([^"]+)",.*\) = (\d+)')
MAPPED: Final = re.compile(r"\d+ mmap\(\w+,(\d+),(\S+),MAP_PRIVATE\S*,(\d+),(\w+)\) = 0x([0-9a-f]+)")
CLOSED: Final = re.compile(r"\d+ close\((\d+)\) = 0")
ASSEMBLED: Final = "Mlas"
DOT_VECTORS: Final = (0x9FE0FC00, 0x0E809400)
DOT_ELEMENT: Final = (0x9FC0F400, 0x0F80E000)
"""A mask and what is left: SDOT and UDOT with vectors and by element, as the Arm Architecture Reference Manual encodes
them, whichever registers, signs and widths."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    """The instructions of a library that were executed, each once, by their addresses in the file's own terms."""

    instructions: Mapping[int, int]

    @property
    def dot_products(self) -> int:
        """How many of them multiply and add four bytes at once."""
        return sum(1 for word in self.instructions.values() if is_dot_product(word))

    def functions(self, symbols: Sequence[MapSymbol]) -> dict[str, int]:
        """Return how many instructions of each function were executed, for those of which any was."""
        ordered = sorted(symbols, key=lambda symbol: symbol.address)
        starts = [symbol.address for symbol in ordered]
        counts: dict[str, int] = {}
        for address in self.instructions:
            at = bisect_right(starts, address) - 1
            # A function in assembly may have no size: it goes on to the next one.
            if at >= 0 and (not ordered[at].size_bytes or address < starts[at] + ordered[at].size_bytes):
                counts[ordered[at].name] = counts.get(ordered[at].name, 0) + 1
        return counts


def is_dot_product(word: int) -> bool:
    """Whether an instruction of ARM64 is SDOT or UDOT."""
    return any(word & mask == value for mask, value in (DOT_VECTORS, DOT_ELEMENT))


def traced(emulator: Sequence[str], command: Sequence[str], log: Path) -> None:
    """Run a command under qemu, which writes what it executes to `log`. Raises `RuntimeError` when it fails."""
    done = run((*emulator, "-d", "in_asm,strace", "-D", str(log), *command), timeout_seconds=600)
    if done.returncode != 0:
        raise RuntimeError(f"the traced program ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")


def read_executed(lines: Iterable[str], library: Path) -> Executed:
    """Return the instructions of ARM64 that a log of qemu's says were executed."""
    return Executed(instructions=_found(lines, library, INSTRUCTION, lambda word: [int(word, 16)]))


def read_executed_bytes(lines: Iterable[str], library: Path) -> frozenset[int]:
    """Return the addresses of all bytes of instructions of x86-64 that were executed."""
    return frozenset(_found(lines, library, X64_INSTRUCTION, bytes.fromhex))


def _found(
    lines: Iterable[str], library: Path, pattern: re.Pattern[str], parts: Callable[[str], Iterable[int]]
) -> dict[int, int]:
    offsets: dict[int, int] = {}
    reading = _Reading(str(library))
    for line in lines:
        found = pattern.match(line)
        if found is None:
            reading.note(line)
        elif (offset := reading.offset_of(int(found[1], 16))) is not None:
            offsets |= {offset + index: part for index, part in enumerate(parts(found[2]))}
    if not offsets:
        raise ValueError(f"nothing of {library.name} was executed, or this qemu writes another log")
    return dict(_addressed(offsets, library))


class _Reading:
    """Follows where the executable code of a library is mapped while a log is read."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._descriptors: set[str] = set()
        self._mappings: list[tuple[int, int, int]] = []

    def note(self, line: str) -> None:
        """Take notice of a line that may be a system call."""
        if (opened := OPENED.match(line)) and opened[1] == self._library:
            self._descriptors.add(opened[2])
        elif closed := CLOSED.match(line):
            self._descriptors.discard(closed[1])
        elif (mapped := MAPPED.match(line)) and mapped[3] in self._descriptors and "PROT_EXEC" in mapped[2]:
            start = int(mapped[5], 16)
            self._mappings.append((start, start + int(mapped[1]), int(mapped[4], 0)))

    def offset_of(self, address: int) -> int | None:
        """Return the place in the file of what lies at an address; None for other files' code."""
        for start, end, offset in reversed(self._mappings):
            if start <= address < end:
                return address - start + offset
        return None


def _addressed(instructions: Mapping[int, int], library: Path) -> Iterator[tuple[int, int]]:
    """Turn places in the file into addresses as the linker gave them."""
    with library.open("rb") as file:
        segments = [
            (part["p_offset"], part["p_filesz"], part["p_vaddr"]) for part in ELFFile(file).iter_segments("PT_LOAD")
        ]
    for offset, word in instructions.items():
        for start, size, address in segments:
            if start <= offset < start + size:
                yield offset - start + address, word


def code_symbols(link_map: Path) -> tuple[MapSymbol, ...]:
    """Return the functions of a library by its link map. Raises `BinaryError`."""
    text = [part for part in read_link_map(link_map) if part.name == ".text"]
    symbols = (symbol for part in text for each in part.inputs for symbol in each.symbols)
    return tuple(symbol for symbol in symbols if symbol.size_bytes or symbol.name.startswith(ASSEMBLED))
