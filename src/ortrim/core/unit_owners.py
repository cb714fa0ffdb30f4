"""Which source files a library has for the sake of which operators, by an index of units. Pure."""

from collections.abc import Collection, Iterable, Mapping

from ortrim.core.units import UnitIndex

Owners = Mapping[str, frozenset[str]]
"""Operators by the name of an object file, such as `upsample.cc.o`."""


def object_owners(index: UnitIndex, operators: Collection[str]) -> Owners:
    """Return the object files that a library with these operators has for them, each with those that lead to it.

    Operators are keys such as `ai.onnx:Resize`. Files that every library has are not in it. Files of one name in
    several folders are one, owned by the operators of all of them, or by none when every library has one of them.
    """
    everywhere = _closure(index, index.roots, frozenset())
    kernels = dict(index.kernels)
    found: dict[str, set[str]] = {}
    for operator in sorted(set(operators) & set(kernels)):
        for number in _closure(index, kernels[operator], everywhere):
            found.setdefault(_object_name(index, number), set()).add(operator)
    common = {_object_name(index, number) for number in everywhere}
    return {name: frozenset(owners) for name, owners in found.items() if name not in common}


def _closure(index: UnitIndex, start: Iterable[int], without: frozenset[int]) -> frozenset[int]:
    """Return the units that some lead to, without those and what they lead to."""
    pending = [number for number in start if number not in without]
    seen = set(pending)
    while pending:
        fresh = set(index.units[pending.pop()].needs) - seen - without
        seen |= fresh
        pending.extend(fresh)
    return frozenset(seen)


def _object_name(index: UnitIndex, number: int) -> str:
    return index.units[number].path.rsplit("/", 1)[-1] + ".o"
