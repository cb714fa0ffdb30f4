"""Making an index of units from the symbols of a full build's objects. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from ortrim.core.kernel_names import kernel_key
from ortrim.core.units import Unit, UnitIndex, Variant, bad_index, index_errors

Definers = Mapping[str, set[int]]


@dataclass(frozen=True, kw_only=True)
class ObjectSymbols:
    """The symbols that one object defines, global or weak, and those that it needs of others."""

    unit: str
    defined: frozenset[str]
    undefined: frozenset[str]


def make_index(variant: Variant, objects: Iterable[ObjectSymbols], roots: Iterable[str]) -> UnitIndex:
    """Make the index of all objects of a build; `roots` are the units that the link itself names.

    Of a symbol with several definers all are needed. The need of a kernel's registration is left out, so that a kernel
    is compiled only for its operator; a kernel whose operator cannot be told is needed as any symbol is. A unit that
    was compiled twice is one unit. Raises `SourcesError` (`bad-unit-index`) for a root that was not compiled, for no
    root at all, and for a name that an index cannot hold.
    """
    entries = _merged(objects)
    numbers = {entry.unit: number for number, entry in enumerate(entries)}
    asked = sorted(set(roots))
    if absent := [root for root in asked if root not in numbers]:
        raise bad_index(variant.stem, f"its root {absent[0]} was not compiled")
    definers = _definers(entries)
    with index_errors(variant.stem):
        return UnitIndex(
            variant=variant,
            roots=tuple(numbers[root] for root in asked),
            units=_units(entries, definers),
            kernels=_kernels(definers),
        )


def _merged(objects: Iterable[ObjectSymbols]) -> tuple[ObjectSymbols, ...]:
    """Return one entry for each unit, in order; it needs only what it does not define itself."""
    found: dict[str, list[ObjectSymbols]] = {}
    for entry in objects:
        found.setdefault(entry.unit, []).append(entry)
    merged = []
    for unit, same in sorted(found.items()):
        defined = frozenset[str]().union(*(entry.defined for entry in same))
        undefined = frozenset[str]().union(*(entry.undefined for entry in same)) - defined
        merged.append(ObjectSymbols(unit=unit, defined=defined, undefined=undefined))
    return tuple(merged)


def _definers(entries: Iterable[ObjectSymbols]) -> Definers:
    definers: defaultdict[str, set[int]] = defaultdict(set)
    for number, entry in enumerate(entries):
        for symbol in entry.defined:
            definers[symbol].add(number)
    return dict(definers)


def _units(entries: tuple[ObjectSymbols, ...], definers: Definers) -> tuple[Unit, ...]:
    undefined = frozenset(chain.from_iterable(entry.undefined for entry in entries))
    wanted = frozenset(symbol for symbol in undefined & definers.keys() if kernel_key(symbol) is None)
    return tuple(
        Unit(
            path=entry.unit,
            provides=tuple(sorted(entry.defined & wanted)),
            needs=_sorted(definers[symbol] for symbol in entry.undefined & wanted),
        )
        for entry in entries
    )


def _kernels(definers: Definers) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found: defaultdict[str, list[set[int]]] = defaultdict(list)
    for symbol, numbers in definers.items():
        if key := kernel_key(symbol):
            found[key].append(numbers)
    return tuple((key, _sorted(numbers)) for key, numbers in sorted(found.items()))


def _sorted(sets: Iterable[set[int]]) -> tuple[int, ...]:
    return tuple(sorted(set[int]().union(*sets)))
