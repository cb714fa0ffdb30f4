"""What an output has to show over all cases before its agreement proves anything.

NumPy alone: the search for cases runs this file in the full runtime's own Python, so that what it takes for telling is
what parity judges.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One case's output: a digest of its values, the value that all of several elements have, whether all are 0 or 1.

    Elements that repeat along a whole axis count once, so that a constant is one in every shape.
    """

    digest: str
    uniform: str
    saturated: bool


def seen(array: Any) -> Seen:
    """Return what is kept of an array, which may hold strings."""
    core = array
    for axis in range(array.ndim if array.size else 0):
        first = core.take([0], axis)
        whole = np.broadcast_to(first, core.shape)
        core = first if np.array_equal(core, whole, equal_nan=core.dtype.kind == "f") else core
    content = repr(core.tolist()).encode() if core.dtype == object else core.tobytes()
    return Seen(
        digest=hashlib.sha256(repr(core.shape).encode() + content).hexdigest(),
        uniform=str(core.reshape(-1)[0]) if core.size == 1 < array.size else "",
        saturated=array.dtype.kind == "f" and bool(((array == 0) | (array == 1)).all()),
    )


def shows_nothing(array: Any) -> str:
    """Return why a single array shows nothing; empty if it does."""
    if array.size == 0:
        return "it has no elements"
    if array.dtype == object:
        return "" if any(array.reshape(-1)) else "every string is empty"
    if array.dtype.kind == "f" and not np.isfinite(array).any():
        return "every element is NaN" if np.isnan(array).all() else "no element is finite"
    return "every element is 0" if not array.any() else ""


def unproved(found: Sequence[Seen], *, cases: int, probabilities: bool) -> str:
    """Return why an output proves nothing over so many cases in which it has elements; empty if it does.

    `found` are all its tensors, of which a sequence has several in a case. `probabilities` says that a function made it
    that comes to 0 or 1 only where it is saturated, as Softmax does.
    """
    where = f"all {cases} cases" if cases > 1 else "the only case"
    if len(found) > 1 and len({each.digest for each in found}) == 1:
        return f"the same in {where}"
    if len(found) == 1 and found[0].uniform:
        return f"{found[0].uniform} in every element of {where}"
    if probabilities and found and all(each.saturated for each in found):
        return f"saturated: every probability is exactly 0 or 1 in {where}"
    return ""


def entries(index: Any, dimensions: Sequence[int], axis: int | None) -> set[int]:
    """Return the numbers of the entries of a table that an index names, -1 for what is beyond it.

    See `ortrim.parity.tables.Table`.
    """
    if axis is None:
        parts = [*np.moveaxis(index, -1, 0)]
    elif len(dimensions) == 1:
        parts = [index]
    else:
        parts = [*np.indices(index.shape)]
        parts[axis] = index
    found = np.zeros(parts[0].shape, np.int64)
    known = np.ones(parts[0].shape, bool)
    for part, size in zip(parts, dimensions, strict=False):
        at = np.where(part < 0, part + size, part).astype(np.int64)
        known &= (at >= 0) & (at < size)
        found = found * size + at
    return {*np.unique(np.where(known, found, -1)).tolist()}
