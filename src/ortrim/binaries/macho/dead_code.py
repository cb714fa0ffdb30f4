"""What chosen functions need of Mach-O objects, and nothing else, as a linker with -dead_strip leaves it.

zig's linker does that for a shared library. In a static one code that nothing calls would keep what it imports, and
Apple wants reasons for some of that. Of equal functions one is left, which zig's linker does for neither.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from ortrim.binaries.macho.atoms import (
    EXTERN,
    FRAMES,
    HEADER_BYTES,
    LC_SEGMENT_64,
    NUMBERED,
    NUMBERS,
    RELOCATION,
    SECTION,
    SEGMENT,
    SYMBOL,
    TYPE_MASK,
    WEAK,
    ZEROED,
    MachObject,
    Symbol,
    read_object,
)
from ortrim.binaries.macho.files import LC_DYSYMTAB, LC_SYMTAB, diagnosed
from ortrim.binaries.macho.folding import CODE, Place, Target, twins
from ortrim.binaries.macho.objects import PRIVATE_EXTERN, require_defined

SYMTAB, DYSYMTAB = struct.Struct("<6I"), struct.Struct("<20I")
ALIGNMENT, ALL_RIGHTS = 8, 7
OTHERS: Final = 2
"""The group of the names that another object has: it comes after the object's own symbols and those that others see."""
PRIVATE: Final = (b"l", b"L")
"""How the names begin that linkers leave out of what they make."""


def without_dead_code(
    objects: Sequence[bytes], names: Collection[str], where: str, *, folded: bool = False
) -> tuple[bytes, ...]:
    """Return of objects what functions need and what runs when a library starts; objects without any are left out.

    Of several definitions of a name one stays, and of equal parts one if they are to be `folded`. Names are C's,
    without the underscore.
    """
    with diagnosed(where):
        link = _Link(tuple(map(read_object, objects)))
        require_defined(names, {name.decode()[1:] for name in link.definitions}, where)
        live = link.reached(names)
        if folded:
            link.twins.update(twins(link.objects, live, link.target, {f"_{name}".encode() for name in names}))
            live = link.reached(names)
        changed = link.changed_symbols(live)
        return tuple(_Cut(link.objects[number], live[number], changed[number]).written() for number in sorted(live))


class _Link:
    """Objects that are linked, and what their names stand for: `twins` say which atoms stand for equal ones."""

    def __init__(self, objects: Sequence[MachObject]) -> None:
        self.objects, self.twins = objects, dict[Place, Place]()
        self._targets, self._needed = dict[Place, Target | None](), dict[Place, tuple[Place, ...]]()
        self.definitions = {
            symbol.name: (number, index)
            for weak in (WEAK, 0)
            for number, each in reversed(tuple(enumerate(objects)))
            for index, symbol in enumerate(each.symbols)
            if symbol.here and symbol.visible and symbol.note & WEAK == weak
        }
        """Which object's symbol linkers take for each name: the first that is not weak, or else the first."""

    def target(self, number: int, index: int) -> Target | None:
        """Return what a symbol of an object stands for: by its name that of any object, or its object's own."""
        if (number, index) not in self._targets:
            self._targets[number, index] = self._found(number, index)
        return self._targets[number, index]

    def _found(self, number: int, index: int) -> Target | None:
        symbol = self.objects[number].symbols[index]
        if symbol.visible:
            number, index = self.definitions.get(symbol.name, (number, index))
            symbol = self.objects[number].symbols[index]
        if not symbol.here:
            return None
        atom = self.objects[number].atom_of(symbol)
        return Target(number, atom, symbol.value - self.objects[number].atoms[atom].start)

    def reached(self, names: Iterable[str]) -> dict[int, set[int]]:
        """Return of objects the atoms that functions and a library's start need."""
        named = (self.target(*self.definitions[f"_{name}".encode()]) for name in names)
        pending = [each[:2] for each in named if each]
        pending += ((number, atom) for number, each in enumerate(self.objects) for atom in each.roots)
        live = defaultdict[int, set[int]](set)
        while pending:
            number, atom = pending.pop()
            if atom not in live[number]:
                live[number].add(atom)
                if (number, atom) not in self._needed:
                    self._needed[number, atom] = tuple(self._needs(number, atom))
                pending += (self.twins.get(each, each) for each in self._needed[number, atom])
        return live

    def _needs(self, number: int, atom: int) -> Iterator[Place]:
        read = self.objects[number]
        for index in read.symbols_of(atom):
            if there := self.target(number, index):
                yield there[:2]
        for own in chain((fixup.atom for fixup in read.fixups(atom)), read.followers.get(atom, ())):
            yield number, own

    def changed_symbols(self, live: Mapping[int, Collection[int]]) -> Mapping[int, Mapping[int, Symbol]]:
        """Return of each object the symbols that change, by their numbers: what has an equal one goes by its name.

        An equal one that other objects did not see gets a name of its own, and stays hidden from other files.
        """
        changed = defaultdict[int, dict[int, Symbol]](dict)
        names = dict[Place, tuple[int, bytes]]()
        for count, place in enumerate(dict.fromkeys(self.twins.values())):
            index, symbol = self._own_symbol(*place)
            if self.definitions.get(symbol.name) == (place[0], index):
                names[place] = index, symbol.name
                continue
            own = b"_%b.folded%d" % (symbol.name.removeprefix(b"_"), count)
            changed[place[0]][index] = symbol._replace(name=own, kind=symbol.kind | EXTERN | PRIVATE_EXTERN)
            names[place] = index, own
        for number, atoms in live.items():
            for index in {each for atom in atoms for each in self.objects[number].symbols_of(atom)}:
                there = self.target(number, index)
                place = self.twins.get(there[:2], there[:2]) if there else (-1, -1)
                if place in names and (number, index) != (place[0], names[place][0]):
                    changed[number][index] = Symbol(names[place][1], EXTERN, 0, 0, 0)
        return changed

    def _own_symbol(self, number: int, atom: int) -> tuple[int, Symbol]:
        """Return the symbol by which other objects can refer to an atom, or else one that has a name of the source."""
        read = self.objects[number]
        found = ((index, read.symbols[index]) for index in read.names[atom])
        return max(
            found, key=lambda each: (self.definitions.get(each[1].name) == (number, each[0]), each[1].name[:1] == b"_")
        )


class _Cut:
    """An object of some atoms alone. Constants and variables are as far from a multiple of their alignment as before.

    Functions lie side by side whose calls are unwound alike: linkers describe them together. All else keeps its order.
    """

    def __init__(self, read: MachObject, live: Collection[int], changed: Mapping[int, Symbol]) -> None:
        self.read, self.live, self.changed = read, sorted(live), changed
        self.sections = sorted({read.atoms[atom].section for atom in live})
        self.moved = dict[int, int]()
        self.extents = dict[int, tuple[int, int]]()
        end = 0
        for number in sorted(self.sections, key=lambda each: (self._is_zeroed(each), read.sections[each].start)):
            section = read.sections[number]
            start = end = end + -end % section.alignment
            for atom in self._atoms(number):
                first, last = read.atoms[atom][1:]
                if section.flags & CODE:
                    end += -end % read.alignment(atom)
                elif section.name != FRAMES:  # zeros end that table
                    end += (first - end) % section.alignment
                self.moved[atom] = end - first
                end += last - first
            self.extents[number] = start, end
        named = {symbol for atom in self.live for symbol in read.symbols_of(atom)}
        kept = (self._kept(number, named) for number in range(len(read.symbols)))
        self.symbols, self.numbers, places = list[tuple[int, Symbol]](), dict[int, int](), dict[bytes, int]()
        for group, old, symbol in sorted(filter(None, kept), key=lambda each: each[:2]):
            new = places.setdefault(symbol.name, len(self.symbols)) if symbol.visible else len(self.symbols)
            self.symbols += [(group, symbol)] if new == len(self.symbols) else []
            self.numbers[old] = new

    def written(self) -> bytes:
        """Return the object's bytes: header and commands, sections, relocations, symbols, names."""
        read, content, headers, rows = self.read, bytearray(), b"", b""
        fixed = SEGMENT.size + SYMTAB.size + DYSYMTAB.size
        size = fixed + len(self.sections) * SECTION.size + sum(map(len, read.commands))
        first = HEADER_BYTES + size + -(HEADER_BYTES + size) % ALIGNMENT
        for number in self.sections:
            self._fill(content, number)
        content += bytes(-len(content) % ALIGNMENT)
        for number in self.sections:
            section, (start, end) = read.sections[number], self.extents[number]
            rows_here = sorted(self._relocations(number), key=lambda each: -each[0])  # as clang writes them
            relocations = b"".join(RELOCATION.pack(*each) for each in rows_here)
            place = 0 if self._is_zeroed(number) else first + start
            behind = first + len(content) + len(rows) if relocations else 0
            count = len(relocations) // RELOCATION.size
            places = start, end - start, place, section.fields[5], behind, count
            headers += SECTION.pack(*section.fields[:2], *places, *section.fields[8:])
            rows += relocations
        symbols, names = self._table()
        memory, table = max(len(content), *(end for _, end in self.extents.values())), first + len(content) + len(rows)
        extent = 0, memory, first, len(content), ALL_RIGHTS, ALL_RIGHTS
        commands = SEGMENT.pack(LC_SEGMENT_64, SEGMENT.size + len(headers), b"", *extent, len(self.sections), 0)
        commands += headers + b"".join(read.commands)
        commands += SYMTAB.pack(LC_SYMTAB, SYMTAB.size, table, len(self.symbols), table + len(symbols), len(names))
        commands += DYSYMTAB.pack(LC_DYSYMTAB, DYSYMTAB.size, *self._groups(), *bytes(12))
        header = struct.pack("<16s2I8s", read.header, 3 + len(read.commands), size, read.header[24:])
        return (header + commands).ljust(first, b"\0") + content + rows + symbols + names

    def _is_zeroed(self, section: int) -> bool:
        return self.read.sections[section].kind in ZEROED

    def _atoms(self, section: int) -> Iterable[int]:
        atoms = (atom for atom in self.live if self.read.atoms[atom].section == section)
        return sorted(atoms, key=self.read.unwinding) if self.read.sections[section].flags & CODE else atoms

    def _kept(self, number: int, named: Collection[int]) -> tuple[int, int, Symbol] | None:
        """Return a symbol of the object with its group and old number: of one that another object has, its name."""
        symbol = self.changed.get(number, self.read.symbols[number])
        if symbol.here and (atom := self.read.atom_of(symbol)) in self.moved:
            if not (symbol.visible or number in named) and symbol.name[:1] in PRIVATE:
                return None
            there = self.sections.index(self.read.atoms[atom].section) + 1
            value = symbol.value + self.moved[atom]
            return int(symbol.visible), number, symbol._replace(section=there, value=value)
        if number not in named:
            return None
        if symbol.here:
            return OTHERS, number, Symbol(symbol.name, EXTERN, 0, 0, 0)
        return (int(symbol.visible) if symbol.kind & TYPE_MASK else OTHERS), number, symbol

    def _groups(self) -> tuple[int, ...]:
        """Return where the object's own symbols begin and how many they are, visible ones, and those of others."""
        counts = [sum(group == each for group, *_ in self.symbols) for each in (0, 1, OTHERS)]
        return 0, counts[0], counts[0], counts[1], counts[0] + counts[1], counts[2]

    def _table(self) -> tuple[bytes, bytes]:
        rows, names, places = bytearray(), bytearray(b"\0"), {b"": 0}
        for _, symbol in self.symbols:
            if symbol.name not in places:
                places[symbol.name] = len(names)
                names += symbol.name + b"\0"
            rows += SYMBOL.pack(places[symbol.name], *symbol[1:])
        return bytes(rows), bytes(names) + bytes(-len(names) % ALIGNMENT)

    def _relocations(self, section: int) -> Iterator[tuple[int, int]]:
        first = self.read.sections[section].start
        for atom in self._atoms(section):
            moved = self.moved[atom] + first - self.extents[section][0]
            for each in self.read.relocations(*self.read.atoms[atom]):
                number = each.number
                if each.named:
                    number = self.numbers[number]
                elif each.kind != NUMBERED:
                    number = self.sections.index(number - 1) + 1
                yield each.place + moved, each.info & ~0xFFFFFF | number

    def _fill(self, content: bytearray, number: int) -> None:
        """Add a section's bytes, in which all that hangs on places goes by the new ones."""
        section = self.read.sections[number]
        if self._is_zeroed(number):
            return
        content += bytes(max(self.extents[number][1] - len(content), 0))
        for atom in self._atoms(number):
            start, end, moved = *self.read.atoms[atom][1:], self.moved[atom]
            content[start + moved : end + moved] = section.content[start - section.start : end - section.start]
            for fixup in self.read.fixups(atom):
                there, form = fixup.address + moved, NUMBERS[fixup.width]
                by = self.moved[fixup.atom] - (moved if fixup.relative else 0)
                form.pack_into(content, there, form.unpack_from(content, there)[0] + fixup.sign * by)
