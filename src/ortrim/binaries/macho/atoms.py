"""Mach-O objects as linkers see them: cut into atoms, each what one symbol names, which may move or be left out.

What an atom says of another place goes by relocations, most of which name a symbol. Those that name a section instead,
and what descriptions of calls in DWARF say without any, depend on where atoms lie: these are an atom's fixups.

Source of the format: Apple's mach-o/loader.h, nlist.h, reloc.h, x86_64/reloc.h and arm64/reloc.h.
"""

import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from ortrim.binaries.macho.files import LC_DYSYMTAB, LC_SYMTAB, checked_header, load_commands

LC_SEGMENT_64: Final = 0x19
LEFT_OUT: Final = frozenset({0x29, 0x2E})
"""Where data is in code, which disassemblers ask, and hints for linkers: they speak of code that moves."""
HEADER_BYTES, SEGMENT, SECTION = 32, struct.Struct("<II16sQQQQIIII"), struct.Struct("<16s16sQQIIIIIIII")
SYMBOL, RELOCATION = struct.Struct("<IBBHQ"), struct.Struct("<II")
ARM64, X86_64 = 0x0100000C, 0x01000007
DIVISIBLE: Final = 0x2000
"""MH_SUBSECTIONS_VIA_SYMBOLS of a header: nothing runs from one symbol's code into the next one's."""
STAB_MASK, TYPE_MASK, EXTERN, IN_SECTION = 0xE0, 0x0E, 0x01, 0x0E
NEVER_DEAD, WEAK, INSIDE = 0x20, 0x80, 0x200
"""Of a symbol's description: N_NO_DEAD_STRIP, N_WEAK_DEF and N_ALT_ENTRY, which is a place inside of an atom."""
ZEROED: Final = frozenset({0x01, 0x0C, 0x12})
STRINGS, STARTING = 0x02, frozenset({0x09, 0x0A})
UNITS: Final = {0x03: 4, 0x04: 8, 0x0E: 16, 0x09: 8, 0x0A: 8}
"""Kinds of sections -> the bytes of each atom: constants, and pointers to what runs when a library starts or ends."""
LARGEST_ALIGNMENT: Final = 16  # as a power of two
FOR_DEBUGGERS, NEVER_DEAD_SECTION = 0x02000000, 0x10000000
COMPACT, FRAMES, COMPACT_BYTES, ENCODING = b"__compact_unwind", b"__eh_frame", 32, slice(12, 16)
FUNCTION_IN_FRAME, TABLE_IN_FRAME = 8, 25
"""Where a description of calls in DWARF names the function and its table of handlers, as clang writes it."""
SUBTRACTOR: Final = {ARM64: 1, X86_64: 5}
NUMBERED: Final = 10
"""A relocation of ARM64 that has a number where others have their symbol."""
BEHIND: Final = {6: 1, 7: 2, 8: 4}
"""Relocations of x86-64 after whose four bytes an instruction goes on, by how many bytes."""
NUMBERS: Final = (struct.Struct("<b"), struct.Struct("<h"), struct.Struct("<i"), struct.Struct("<q"))


class Relocation(NamedTuple):
    """One relocation: its place in the section, and the rest as the format packs it."""

    place: int
    info: int

    @property
    def kind(self) -> int:
        """What is to be done there, in the processor's own numbers."""
        return self.info >> 28

    @property
    def named(self) -> bool:
        """Whether it names a symbol, not a section."""
        return bool(self.info >> 27 & 1)

    @property
    def width(self) -> int:
        """The bytes that it changes, as a power of two."""
        return self.info >> 25 & 3

    @property
    def relative(self) -> bool:
        """Whether it says how far away something is."""
        return bool(self.info >> 24 & 1)

    @property
    def number(self) -> int:
        """The number of the symbol or section."""
        return self.info & 0xFFFFFF


class Section(NamedTuple):
    """One section: its header's fields, its bytes (none if it is zeroed), its relocations in order of their places."""

    fields: tuple[bytes, bytes, int, int, int, int, int, int, int, int, int, int]
    content: bytes
    relocations: tuple[Relocation, ...]
    places: tuple[int, ...]

    @property
    def name(self) -> bytes:
        """Its name, without its segment's."""
        return self.fields[0].rstrip(b"\0")

    @property
    def start(self) -> int:
        """Its first address in the object."""
        return self.fields[2]

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.fields[2] + self.fields[3]

    @property
    def alignment(self) -> int:
        """What its address has to be a multiple of."""
        return 1 << self.fields[5]

    @property
    def flags(self) -> int:
        """Its kind and its attributes."""
        return self.fields[8]

    @property
    def kind(self) -> int:
        """What it holds, if that is of a special kind."""
        return self.flags & 0xFF


class Symbol(NamedTuple):
    """One symbol, as the table has it but for its name."""

    name: bytes
    kind: int
    section: int
    note: int
    value: int

    @property
    def here(self) -> bool:
        """Whether it names a place in a section of this object."""
        return self.kind & TYPE_MASK == IN_SECTION

    @property
    def visible(self) -> bool:
        """Whether it is for other objects as well, or another one's."""
        return bool(self.kind & EXTERN)


class Atom(NamedTuple):
    """A part of a section, by the section's place among all and by the addresses where it begins and ends."""

    section: int
    start: int
    end: int


class Fixup(NamedTuple):
    """A number at an address that changes by `sign` times how far another atom moves, or moves away if `relative`."""

    address: int
    width: int
    atom: int
    sign: int = 1
    relative: bool = True


@dataclass(frozen=True, kw_only=True)
class MachObject:
    """An object: header, load commands that hold no place, and what it is made of. Atoms lie in their order."""

    header: bytes
    commands: tuple[bytes, ...]
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    atoms: tuple[Atom, ...]

    @cached_property
    def processor(self) -> int:
        """Apple's number of the architecture."""
        return int.from_bytes(self.header[4:8], "little")

    @cached_property
    def roots(self) -> frozenset[int]:
        """The atoms that stay although nothing needs them, those that run when the library starts among them."""
        kept = frozenset(self.atom_of(each) for each in self.symbols if each.here and each.note & NEVER_DEAD)
        flags = (self.sections[atom.section].flags for atom in self.atoms)
        return kept | {n for n, flag in enumerate(flags) if flag & 0xFF in STARTING or flag & NEVER_DEAD_SECTION}

    @cached_property
    def followers(self) -> Mapping[int, Sequence[int]]:
        """What stays where an atom does: how its calls are unwound; all of an object that cannot be divided."""
        found = defaultdict[int, list[int]](list)
        divisible = int.from_bytes(self.header[24:28], "little") & DIVISIBLE
        for number, atom in enumerate(self.atoms):
            name = self.sections[atom.section].name
            if not divisible:
                found[number] += range(len(self.atoms))
            elif atom.start == atom.end:
                continue
            elif name == COMPACT:
                found[self._pointed(atom.section, atom.start)].append(number)
            elif name == FRAMES and self._common_part(atom):
                found[self._pointed(atom.section, atom.start + FUNCTION_IN_FRAME)].append(number)
        return found

    def unwinding(self, atom: int) -> bytes:
        """Return how compact descriptions say that calls of a function are unwound, empty for what has none."""
        for each in map(self.atoms.__getitem__, self.followers.get(atom, ())):
            section = self.sections[each.section]
            if section.name == COMPACT:
                return section.content[each.start - section.start :][ENCODING]
        return b""

    def alignment(self, atom: int) -> int:
        """Return what an atom's address is a multiple of, and is to be, as linkers take it."""
        section, start = self.sections[self.atoms[atom].section], self.atoms[atom].start
        return min(section.alignment, start & -start or section.alignment)

    @cached_property
    def names(self) -> Mapping[int, Sequence[int]]:
        """The numbers of the symbols in each atom that has any."""
        found = defaultdict[int, list[int]](list)
        for number, symbol in enumerate(self.symbols):
            if symbol.here:
                found[self.atom_of(symbol)].append(number)
        return found

    def atom_of(self, symbol: Symbol) -> int:
        """Return the atom that a symbol names, or is in."""
        return self._atom_at(symbol.section - 1, symbol.value)

    def relocations(self, section: int, start: int, end: int) -> Sequence[Relocation]:
        """Return the relocations between two addresses of a section."""
        _, _, relocations, places = self.sections[section]
        first = self.sections[section].start
        return relocations[bisect_left(places, start - first) : bisect_left(places, end - first)]

    def symbols_of(self, atom: int) -> Iterator[int]:
        """Yield the numbers of the symbols that an atom names."""
        return (each.number for each in self.relocations(*self.atoms[atom]) if each.named)

    @cached_property
    def _known(self) -> dict[int, tuple[Fixup, ...]]:
        return {}

    def fixups(self, atom: int) -> Sequence[Fixup]:
        """Return what an atom says of places without their names."""
        if atom not in self._known:
            self._known[atom] = tuple(self._fixups(atom))
        return self._known[atom]

    def _fixups(self, atom: int) -> Iterator[Fixup]:
        number = self.atoms[atom].section
        section = self.sections[number]
        for each in self.relocations(*self.atoms[atom]):
            address = section.start + each.place
            if (
                section.name == FRAMES and each.kind == SUBTRACTOR[self.processor]
            ):  # of the section's start, not of its own
                yield Fixup(address, each.width, self.atom_of(self.symbols[each.number]))
            elif not each.named and each.kind != NUMBERED:
                yield Fixup(address, each.width, self._target(number, each), relative=each.relative)
        if section.name == FRAMES:
            yield from self._frame(self.atoms[atom])

    def _atom_at(self, section: int, address: int) -> int:
        """Return the atom of an address, which may be a little beside its section."""
        if section >= len(self.sections):
            raise ValueError("it has not the section that a symbol or a relocation names")
        place = (section, max(address, self.sections[section].start))
        return bisect_right(self.atoms, place, key=lambda atom: atom[:2]) - 1

    def _number(self, section: Section, address: int, width: int) -> int:
        return int(NUMBERS[width].unpack_from(section.content, address - section.start)[0])

    def _target(self, section: int, relocation: Relocation) -> int:
        """Return the atom to which a relocation points that names a section."""
        address = self.sections[section].start + relocation.place
        alone = len(self.relocations(section, address, address + 1)) == 1
        if not alone or (relocation.relative and self.processor == ARM64):
            raise ValueError("it has a relocation without a name of a kind that clang does not write")
        value = self._number(self.sections[section], address, relocation.width)
        behind = address + 4 + BEHIND.get(relocation.kind, 0) if relocation.relative else 0
        return self._atom_at(relocation.number - 1, value + behind)

    def _pointed(self, section: int, address: int) -> int:
        """Return the atom to which a field points that tells how calls are unwound."""
        relocations = self.relocations(section, address, address + 1)
        if relocations:
            last = relocations[-1]
            return self.atom_of(self.symbols[last.number]) if last.named else self._target(section, last)
        target = address + self._number(self.sections[section], address, 3)
        there = next((n for n, each in enumerate(self.sections) if each.start <= target < each.end), None)
        if there is None:
            raise ValueError("how calls are unwound is said of no function")
        return self._atom_at(there, target)

    def _common_part(self, atom: Atom) -> int:
        """Return where the common part begins to which a description of calls belongs, 0 for a common part."""
        back = self._number(self.sections[atom.section], atom.start + 4, 2)
        return atom.start + 4 - back if back else 0

    def _frame(self, atom: Atom) -> Iterator[Fixup]:
        """Yield what a description of calls says without relocations: on x86-64 that is all."""
        section, common = self.sections[atom.section], self._common_part(atom)
        if not common:
            return
        yield Fixup(atom.start + 4, 2, self._atom_at(atom.section, common), sign=-1)
        letters = section.content[common + 9 - section.start :].partition(b"\0")[0]
        for address in (FUNCTION_IN_FRAME, TABLE_IN_FRAME)[: 2 if b"L" in letters else 1]:
            there = atom.start + address
            if not self.relocations(atom.section, there, there + 1) and self._number(section, there, 3):
                yield Fixup(there, 3, self._pointed(atom.section, there))


def read_object(data: bytes) -> MachObject:
    """Return what an object is made of, without what is for debuggers. Raises ValueError or struct.error."""
    checked_header(data)
    sections, symbols, commands = tuple[Section, ...](), tuple[Symbol, ...](), list[bytes]()
    for kind, place in load_commands(data):
        if kind == LC_SEGMENT_64:
            sections = tuple(_sections(data, place))
        elif kind == LC_SYMTAB:
            symbols = tuple(_symbols(data, place))
        elif kind not in LEFT_OUT | {LC_DYSYMTAB}:
            commands.append(data[place : place + int.from_bytes(data[place + 4 : place + 8], "little")])
    header = data[:HEADER_BYTES]
    marks = defaultdict[int, set[int]](set)
    if int.from_bytes(header[24:28], "little") & DIVISIBLE:
        for each in symbols:
            if each.here and not each.note & INSIDE and not each.name.startswith(b"L"):
                marks[each.section - 1].add(each.value)
    atoms = tuple(
        Atom(number, start, end)
        for number, section in enumerate(sections)
        for start, end in _spans(section, marks[number])
    )
    return MachObject(header=header, commands=tuple(commands), sections=sections, symbols=symbols, atoms=atoms)


def _sections(data: bytes, place: int) -> Iterator[Section]:
    count = SEGMENT.unpack_from(data, place)[9]
    for row in SECTION.iter_unpack(data[place + SEGMENT.size :][: count * SECTION.size]):
        name, segment, address, size, offset, align, first, relocations, flags, *rest = row
        if flags & FOR_DEBUGGERS and name.rstrip(b"\0") != COMPACT:
            size = relocations = 0
        content = b"" if flags & 0xFF in ZEROED else data[offset : offset + size]
        if align > LARGEST_ALIGNMENT or (flags & 0xFF not in ZEROED and len(content) != size):
            raise ValueError("a section has an impossible size or address")
        table = RELOCATION.iter_unpack(data[first : first + relocations * RELOCATION.size])
        found = sorted((Relocation(*each) for each in table), key=lambda each: each.place)
        fields = (name, segment, address, size, offset, align, first, relocations, flags, *rest)
        yield Section(fields, content, tuple(found), tuple(each.place for each in found))


def _symbols(data: bytes, place: int) -> Iterator[Symbol]:
    start, count, names, size = struct.unpack_from("<4I", data, place + 8)
    text = data[names : names + size]
    for name, *rest in SYMBOL.iter_unpack(data[start : start + count * SYMBOL.size]):
        if rest[0] & STAB_MASK:
            raise ValueError("it has symbols for debuggers")
        yield Symbol(text[name : text.index(0, name)], *rest)


def _spans(section: Section, marks: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Yield where atoms begin and end: by what the section's kind says of its parts, or at its symbols."""
    unit = COMPACT_BYTES if section.name == COMPACT else UNITS.get(section.kind)
    if section.kind == STRINGS:
        marks = accumulate((len(each) + 1 for each in section.content.split(b"\0")), initial=section.start)
    elif section.name == FRAMES:
        marks = _frame_starts(section)
    elif unit:
        marks = range(section.start, section.end, unit)
    return pairwise(
        (*sorted({section.start, *(each for each in marks if section.start < each < section.end)}), section.end)
    )


def _frame_starts(section: Section) -> Iterator[int]:
    place = 0
    while place < len(section.content):
        yield section.start + place
        place += 4 + int.from_bytes(section.content[place : place + 4], "little")
