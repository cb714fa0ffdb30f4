"""Parity: our outputs against the full runtime's, output by output."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ortrim.console import counted
from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.tolerance_spec import ElementType, Tolerance
from ortrim.core.tolerances import EXACT, Bounds, bounds_of
from ortrim.verify.arrays import BFLOAT16, Array, load_array, widened
from ortrim.verify.devices.base import SavedOutput
from ortrim.verify.reference import CaseOutputs, SavedOutputs

UNSUPPORTED: Final = "unsupported"
KEYS: Final = ("_keys.npy", "_keys.strings")
"""How the files end that hold the keys of a map."""


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """How two arrays of one shape differ. `reason` is empty when nothing but the numbers below decides.

    `nan_mismatch` counts elements that are not a number in one of them alone; None for arrays that were not compared.
    """

    max_absolute: float = 0.0
    max_relative: float = 0.0
    cosine: float = 1.0
    argmax_agreement: float = 1.0
    nan_mismatch: int | None = None
    reason: str = ""


def compare(
    model: str, reference: SavedOutputs, ours: SavedOutputs, tolerances: Mapping[ElementType, Tolerance]
) -> tuple[OutputParity, ...]:
    """Compare every output of every case; what either side lacks fails.

    An element passes when its absolute *or* its relative difference is within tolerance; relative differences
    are relative to the larger of the two. Not-a-number and infinities have to be in the same places. Integers,
    booleans and strings have to be equal unless `tolerances` says otherwise; strings that differ count as a
    difference of 1. When outputs cannot be compared element by element (another shape or type), the numbers are
    those of no difference at all or total disagreement, and `reason` says why. The elements of a sequence, and the
    keys and values of a map, are outputs of their own; keys have to be equal. Other values that are not tensors,
    and those that the model makes of random numbers, are not judged. Raises `VerifyError` (`bad-output`).
    """
    found = {case.name: case for case in ours.cases}
    return tuple(
        parity
        for case in reference.cases
        for parity in _compare_case(model, case, found.get(case.name), (reference.folder, ours.folder), tolerances)
    )


def _compare_case(
    model: str,
    reference: CaseOutputs,
    ours: CaseOutputs | None,
    folders: tuple[Path, Path],
    tolerances: Mapping[ElementType, Tolerance],
) -> list[OutputParity]:
    mine = {output.name: output for output in ours.outputs} if ours else {}
    theirs = {output.name: output for output in reference.outputs}
    compared = []
    for name in dict.fromkeys([*theirs, *mine]):
        pair = theirs.get(name), mine.get(name)
        difference = _compare_output(pair, (folders[0] / reference.name, folders[1] / reference.name), tolerances)
        compared.append(_judged(model, reference.name, pair, difference, tolerances))
    return compared


def _bounds(output: SavedOutput, tolerances: Mapping[Any, Tolerance]) -> Bounds:
    """Return the bounds of an output; the keys of a map have to be equal whatever the buildspec allows their type."""
    is_keys = output.file is not None and output.file.endswith(KEYS)
    return EXACT if is_keys else bounds_of(output.element_type, tolerances)


def _compare_output(
    pair: tuple[SavedOutput | None, SavedOutput | None], folders: tuple[Path, Path], tolerances: Mapping[Any, Tolerance]
) -> _Difference:
    theirs, ours = pair
    if theirs is None or ours is None:
        return _total("the output is missing from " + ("ours" if ours is None else "the reference"))
    if theirs.element_type != ours.element_type:
        return _total(f"the type is {ours.element_type}, not {theirs.element_type}")
    if theirs.file is None or ours.file is None or theirs.random:
        return _Difference()
    arrays = load_array(folders[0] / theirs.file), load_array(folders[1] / ours.file)
    if arrays[0].shape != arrays[1].shape:
        return _total(f"the shape is {list(arrays[1].shape)}, not {list(arrays[0].shape)}")
    return difference_of(arrays[0], arrays[1], theirs.element_type, _bounds(theirs, tolerances))


def _total(reason: str, nan_mismatch: int | None = None) -> _Difference:
    return _Difference(cosine=0.0, argmax_agreement=0.0, nan_mismatch=nan_mismatch, reason=reason)


def difference_of(reference: Array, ours: Array, element_type: str, tolerance: Bounds) -> _Difference:
    """Return how two arrays of one shape and type differ, and why they are out of tolerance if they are."""
    if reference.size == 0:
        return _Difference(nan_mismatch=0)
    theirs, mine = _as_numbers(reference, ours, element_type)
    misplaced = _misplaced(theirs, mine)
    if misplaced:
        return _total(misplaced, int((np.isnan(theirs) != np.isnan(mine)).sum()))
    finite = np.isfinite(theirs)
    absolute, relative = _element_differences(theirs, mine, finite, reference != ours)
    cosine = _cosine(theirs[finite], mine[finite], tolerance.absolute)
    agreement = _argmax_agreement(theirs, mine)
    outside = (absolute > tolerance.absolute) & (relative > tolerance.relative)
    return _Difference(
        max_absolute=float(absolute.max(initial=0.0)),
        max_relative=float(relative.max(initial=0.0)),
        cosine=cosine,
        argmax_agreement=agreement,
        nan_mismatch=0,
        reason=_reason(int(outside.sum()), reference.size, cosine, agreement, tolerance),
    )


def _as_numbers(reference: Array, ours: Array, element_type: str) -> tuple[Array, Array]:
    """Return both as float64; strings become 0 where they are equal, and 0 against 1 where they differ."""
    if element_type == "string":
        return np.zeros(reference.shape), (reference != ours).astype(np.float64)
    if element_type == BFLOAT16:
        return widened(reference).astype(np.float64), widened(ours).astype(np.float64)
    return reference.astype(np.float64), ours.astype(np.float64)


def _misplaced(theirs: Array, mine: Array) -> str:
    if not np.array_equal(np.isnan(theirs), np.isnan(mine)):
        found, expected = (int(np.isnan(values).sum()) for values in (mine, theirs))
        return f"not-a-number in {counted(found, 'element')}, not the reference's {expected:,}"
    infinite = np.isinf(theirs) | np.isinf(mine)
    return "" if np.array_equal(theirs[infinite], mine[infinite]) else "infinities are in other places"


def _element_differences(theirs: Array, mine: Array, finite: Array, unequal: Array) -> tuple[Array, Array]:
    """Return absolute and relative differences of the finite elements, never infinite.

    Integers that differ but are too large to differ as float64 count as 1 apart.
    """
    one, other = theirs[finite], mine[finite]
    with np.errstate(over="ignore"):
        absolute = np.minimum(np.abs(one - other), np.finfo(np.float64).max)
    absolute = np.where(unequal[finite] & (absolute == 0) & (one != 0), 1.0, absolute)
    larger = np.maximum(np.abs(one), np.abs(other))
    return absolute, np.divide(absolute, larger, out=np.zeros_like(absolute), where=larger > 0)


def _cosine(theirs: Array, mine: Array, noise: float) -> float:
    """Return the cosine similarity; 1 for equal vectors, and for those that are but noise within the tolerance."""
    scale = max(np.abs(theirs).max(initial=0.0), np.abs(mine).max(initial=0.0))
    if scale <= noise or np.array_equal(theirs, mine):
        return 1.0
    one, other = theirs / scale, mine / scale
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.clip(np.sum(one * other) / norms, -1.0, 1.0)) if norms > 0 else 0.0


def _argmax_agreement(theirs: Array, mine: Array) -> float:
    if theirs.ndim == 0:
        return 1.0
    return float(np.mean(theirs.argmax(axis=-1) == mine.argmax(axis=-1)))


def _reason(outside: int, size: int, cosine: float, agreement: float, tolerance: Bounds) -> str:
    reasons = []
    if outside:
        reasons.append(f"{outside:,} of {counted(size, 'element')} out of tolerance")
    if cosine < tolerance.cosine:
        reasons.append(f"the cosine similarity {cosine:.6f} is below {tolerance.cosine:g}")
    if agreement < tolerance.argmax_agreement:
        reasons.append(f"the arg-max agreement {agreement:.4f} is below {tolerance.argmax_agreement:g}")
    return "; ".join(reasons)


def _judged(
    model: str,
    case: str,
    pair: tuple[SavedOutput | None, SavedOutput | None],
    difference: _Difference,
    tolerances: Mapping[Any, Tolerance],
) -> OutputParity:
    output = pair[0] or pair[1]
    assert output is not None
    tolerance = _bounds(output, tolerances)
    excuse = "" if difference.reason else _excuse(output)
    verdict = Verdict.NOT_JUDGED if excuse else Verdict.FAIL if difference.reason else Verdict.PASS
    return OutputParity(
        model=model,
        case=case,
        output=output.name,
        element_type=output.element_type,
        shape=output.shape,
        max_absolute=difference.max_absolute,
        max_relative=difference.max_relative,
        cosine=difference.cosine,
        argmax_agreement=difference.argmax_agreement,
        nan_mismatch=difference.nan_mismatch,
        absolute_tolerance=tolerance.absolute,
        relative_tolerance=tolerance.relative,
        verdict=verdict,
        reason=excuse or difference.reason,
    )


def _excuse(output: SavedOutput) -> str:
    """Return why an output of the reference is not compared; empty when it is."""
    if output.element_type == UNSUPPORTED:
        return "it is not a tensor and cannot be compared"
    return "the model draws random numbers: no two runs of it agree" if output.random else ""
