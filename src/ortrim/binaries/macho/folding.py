"""Equal parts of Mach-O objects, of which one can stand for all, as lld's `--icf=all` finds them.

Equal are those of the same bytes that refer to equal ones at the same places. All that have the same bytes are taken
for equal at first and told apart by what they refer to until nothing changes, so that functions that call each other
can be equal, too. How calls are unwound is compared with what it is said of.

As with lld, functions whose addresses a program compares are folded, and constants are not unless no program can: it
has no name for them but the compiler's own, or they are tables of virtual functions. zig's linker folds nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ortrim.binaries.macho.atoms import (
    COMPACT,
    DIVISIBLE,
    FRAMES,
    NEVER_DEAD,
    NUMBERED,
    NUMBERS,
    STRINGS,
    MachObject,
    Symbol,
)

Place = tuple[int, int]
"""An object among all, and one of its atoms."""


class Target(NamedTuple):
    """What a symbol stands for: an object's atom, and how far inside."""

    number: int
    atom: int
    inside: int


CODE: Final = 0x80000000  # S_ATTR_PURE_INSTRUCTIONS
LITERALS: Final = frozenset({STRINGS, 0x03, 0x04, 0x0E})
CONSTANTS, TABLES = b"__const", b"__gcc_except_tab"
OF_COMPILER, TYPES = b"l", b"__ZTI"
"""How the names begin of constants that no source names, and of what tells types apart by its address."""


class _Shape(NamedTuple):
    """What an atom is but for what it refers to, and that."""

    key: Hashable
    references: tuple[Place, ...]


class _Atoms:
    """The atoms of an object that are needed, with their names."""

    def __init__(self, number: int, read: MachObject, live: Iterable[int]) -> None:
        self.number, self.read, self.live = number, read, sorted(live)

    def symbols(self, atom: int) -> list[Symbol]:
        return [self.read.symbols[index] for index in self.read.names.get(atom, ())]

    def comparable(self, atom: int) -> bool:
        """Whether nothing but its bytes and what it refers to tells an atom from another."""
        section = self.read.sections[self.read.atoms[atom].section]
        if section.flags & CODE or section.kind in LITERALS or section.name in {COMPACT, FRAMES, TABLES}:
            return True
        if section.name != CONSTANTS or any(each.name.startswith(TYPES) for each in self.symbols(atom)):
            return False
        pointers = self.read.relocations(*self.read.atoms[atom])
        return bool(pointers) or all(each.name.startswith(OF_COMPILER) for each in self.symbols(atom))

    def foldable(self, kept: Collection[bytes]) -> Iterator[int]:
        """Yield the atoms that can give way: all that refers to them names them, and `kept` does not."""
        read = self.read
        if not int.from_bytes(read.header[24:28], "little") & DIVISIBLE:
            return
        pinned = {fixup.atom for atom in self.live for fixup in read.fixups(atom) if atom not in self._own(fixup.atom)}
        for atom in self.live:
            _, start, end = read.atoms[atom]
            section = read.sections[read.atoms[atom].section]
            symbols = self.symbols(atom)
            if (
                (section.flags & CODE or section.name == CONSTANTS)
                and start < end
                and symbols
                and atom not in pinned
                and all(each.value == start and not each.note & NEVER_DEAD for each in symbols)
                and not any(each.name in kept for each in symbols)
                and self.comparable(atom)
            ):
                yield atom

    def _own(self, atom: int) -> Collection[int]:
        return self.read.followers.get(atom, ())

    def shape(self, atom: int, target: Callable[[int, int], Target | None]) -> _Shape:
        """Return an atom's shape; `target` says what a symbol of an object stands for, if any object has it."""
        if not self.comparable(atom):
            return _Shape((self.number, atom), ())
        read, (number, start, end) = self.read, self.read.atoms[atom]
        section = read.sections[number]
        content = bytearray(section.content[start - section.start : end - section.start])
        details, references = list[Hashable](), list[Place]()
        for each in read.relocations(number, start, end):
            details.append((each.place + section.start - start, each.info & ~0xFFFFFF))
            if each.named:
                there = target(self.number, each.number)
                details.append(there.inside if there else read.symbols[each.number].name)
                references += [there[:2]] if there else []
            elif each.kind == NUMBERED:
                details.append(each.number)
        for fixup in read.fixups(atom):
            by = read.atoms[fixup.atom].start - (start if fixup.relative else 0)
            place, form = fixup.address - start, NUMBERS[fixup.width]
            value = form.unpack_from(content, place)[0] - fixup.sign * by
            content[place : place + form.size] = (value % (1 << 8 * form.size)).to_bytes(form.size, "little")
            references.append((self.number, fixup.atom))
        references += ((self.number, follower) for follower in self._own(atom))
        return _Shape((section.fields[:2], section.flags, bytes(content), tuple(details)), tuple(references))


def twins(
    objects: Sequence[MachObject],
    live: Mapping[int, Collection[int]],
    target: Callable[[int, int], Target | None],
    kept: Collection[bytes],
) -> dict[Place, Place]:
    """Return of needed atoms those for which an equal one can stand, with that one; `kept` are symbols that stay."""
    atoms = {number: _Atoms(number, objects[number], live[number]) for number in sorted(live)}
    shapes = {(each.number, atom): each.shape(atom, target) for each in atoms.values() for atom in each.live}
    classes = _classes(shapes)
    groups = defaultdict[int, list[Place]](list)
    for each in atoms.values():
        for atom in each.foldable(kept):
            groups[classes[each.number, atom]].append((each.number, atom))
    found = dict[Place, Place]()
    for group in groups.values():
        first = max(group, key=lambda place: objects[place[0]].alignment(place[1]))
        found |= {place: first for place in group if place != first}
    return found


def _classes(shapes: Mapping[Place, _Shape]) -> dict[Place, int]:
    """Return the coarsest division in which equal atoms refer to equal ones."""
    places = {place: number for number, place in enumerate(shapes)}
    references = [tuple(map(places.__getitem__, shape.references)) for shape in shapes.values()]
    classes = _numbered(shape.key for shape in shapes.values())
    while True:
        finer = _numbered(
            (own, *map(classes.__getitem__, others)) for own, others in zip(classes, references, strict=True)
        )
        if max(finer, default=0) == max(classes, default=0):
            return dict(zip(places, classes, strict=True))
        classes = finer


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers = dict[Hashable, int]()
    return [numbers.setdefault(key, len(numbers)) for key in keys]
