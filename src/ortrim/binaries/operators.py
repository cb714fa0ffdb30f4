"""Which operator's kernel a leaf belongs to, read from the registrations that stand in the same object file."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from ortrim.binaries.components import LINK_TIME
from ortrim.binaries.leaves import Leaf
from ortrim.binaries.map_inputs import member_name
from ortrim.core.kernel_names import demangled_kernel_key
from ortrim.core.unit_owners import Owners, object_owners
from ortrim.core.units import UnitIndex

SHARED: Final = "several in "
"""Begins the operator of code that serves more than one kernel of its object file."""
COMMON: Final = "common in "
"""Begins the operator of code of the kernels' library in an object file that registers none."""
KERNELS: Final = "providers"
MATRICES: Final = "mlas"

Registered = Mapping[str, frozenset[str]]
"""The keys of the operators that each object file registers kernels of."""


def registered_operators(leaves: Iterable[Leaf]) -> Registered:
    """Return which operators' kernels the object files register."""
    found: dict[str, set[str]] = {}
    for leaf in leaves:
        for name in (leaf.symbol, *leaf.folded):
            key = demangled_kernel_key(name)
            if key and leaf.file:
                found.setdefault(leaf.file, set()).add(key)
    return {file: frozenset(names) for file, names in found.items()}


def with_operators(leaves: Iterable[Leaf], registered: Registered, index: UnitIndex | None) -> tuple[Leaf, ...]:
    """Return the leaves with the operators of those that belong to a kernel.

    An object file that registers kernels of one operator is that operator's; of one that registers several, a symbol
    belongs to the operator that it alone names, and all else to `several in FILE`; what was made of all files at link
    time has nothing to say beyond the names. A file that registers none is the operator's for whose sake alone it is
    there, as the index has it; else, in the kernels' library, it is `common in FILE`.
    """
    owners = object_owners(index, frozenset().union(*registered.values())) if index else {}
    return tuple(replace(leaf, operator=_operator(leaf, registered, owners)) for leaf in leaves)


def _operator(leaf: Leaf, registered: Registered, owners: Owners) -> str:
    keys = registered.get(leaf.file)
    if keys is None:
        return _of_helper(leaf, owners)
    linked = LINK_TIME.fullmatch(leaf.file) is not None
    if len(keys) == 1 and not linked:
        return _shown(next(iter(keys)))
    named = {key for key in keys if _names(leaf.symbol, key)}
    if len(named) == 1:
        return _shown(named.pop())
    return "" if linked else SHARED + member_name(leaf.file)


def _of_helper(leaf: Leaf, owners: Owners) -> str:
    """Return the operator of a file that registers no kernel."""
    kernels = leaf.component.startswith(KERNELS)
    if not leaf.file or not (kernels or leaf.component == MATRICES):
        return ""
    sole = owners.get(member_name(leaf.file), frozenset())
    if len(sole) == 1:
        return _shown(next(iter(sole)))
    return COMMON + member_name(leaf.file) if kernels else ""


def _names(symbol: str, operator: str) -> bool:
    key = demangled_kernel_key(symbol)
    if key:
        return key == operator
    return re.search(rf"\b{re.escape(operator.rpartition(':')[2])}\b", symbol) is not None


def _shown(key: str) -> str:
    """Write an operator's key as it is spoken of: without ONNX's own domain."""
    return key.removeprefix("ai.onnx:")
