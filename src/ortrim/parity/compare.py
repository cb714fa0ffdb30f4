"""Parity: our outputs compared with the full runtime's, output by output."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ortrim.base.console import counted
from ortrim.buildspec.tolerances import (
    DEFAULT_TOLERANCES,
    EXACT,
    FEW_VALUES,
    QUANTIZED,
    Bounds,
    ElementType,
    Tolerance,
    bounds_of,
    for_float32_weights,
)
from ortrim.parity.evidence import Seen, seen, shows_nothing, unproved
from ortrim.parity.inputs import BFLOAT16, FLOATS, STRING, Array, load_array, widened
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput

UNSUPPORTED: Final = "unsupported"
KEYS: Final = ("_keys.npy", "_keys.strings")
"""How the files end that hold the keys of a map."""
PART: Final = re.compile(r"(\[\d+\])?(\.keys|\.values)?$")
"""What the name of an output has behind it for an element of a sequence, and for a map's keys and values."""
ELEMENT: Final = re.compile(r"^(output_\d+)_\d+")
"""How the files of a sequence's elements begin."""
SIGNIFICANT_BITS: Final = {"float16": 11, BFLOAT16: 8}
LEAST_EXPONENT: Final = {"float16": -14, BFLOAT16: -126}
"""Of the smallest normal number; below it the unit in the last place stays the same."""
TOP: Final = 5
"""How many of the best classes are compared beside the best one."""
SUM_SLACK: Final = {"float16": 1e-2, BFLOAT16: 3e-2}
"""How far the probabilities of a distribution may be from 1 together; 1e-3 in wider types."""
BOXES: Final = re.compile(r"box|roi|det|rect", re.IGNORECASE)
CORNERS: Final = 4
ROUNDING_SHARE: Final = 1e-2
"""The most that `rounding` may be of an output's largest magnitude."""
DISTANCE: Final = 1.5
"""How many times as far from floats as the full runtime an output may be whose factors every kernel rounds in its own
way, in root mean square: roundings that have nothing in common come to 1.37 (benchmarks/results/parity.md)."""
IN_FLOATS: Final = "with products of floats that are not rounded to 8 bits"
GIVEN: Final = "with the random numbers given as inputs"
LARGEST: Final = float(np.finfo(np.float64).max)


Survey = tuple[float, str]
"""The largest magnitude of an output in any case, and why no case can prove anything about the output."""


def compare(
    model: str,
    reference: SavedOutputs,
    ours: SavedOutputs,
    tolerances: Mapping[ElementType, Tolerance],
    *,
    defaults: Mapping[str, Bounds] | None = None,
    same_library: bool = False,
) -> tuple[OutputParity, ...]:
    """Compare every output of every case; what either side lacks fails.

    Bounds are those of `tolerances`, else of `defaults` or those of such models, by element type:
    `numpy.testing.assert_allclose` with the absolute part tied to the magnitude of the output. Not-a-number and
    infinities have to be in the same places. Integers, booleans and strings have to be equal unless `tolerances` says
    otherwise; strings that differ count as a difference of 1. The elements of a sequence, and the keys and values of a
    map, are outputs of their own; keys have to be equal.

    Not judged, with the reason, is what agrees but could not have differed: an output without elements, without a
    finite number, of zeros alone, of the same values in all cases in whatever shape, or of probabilities that are all
    saturated; values that are not tensors, and those that the model makes of random numbers. With `same_library`, one
    library made both, so that seeds that the model sets draw the same numbers. Raises `VerifyError` (`bad-output`).
    """
    if same_library:
        reference = without_draws(reference)
    found = {case.name: case for case in ours.cases}
    surveys = _surveys(reference)
    defaults = defaults or (QUANTIZED if reference.quantized else DEFAULT_TOLERANCES)
    if reference.float32_weights:
        defaults = for_float32_weights(defaults)
    return tuple(
        parity
        for case in reference.cases
        for parity in _compare_case(
            model, case, found.get(case.name), (reference.folder, ours.folder), (tolerances, defaults, surveys)
        )
    )


def without_draws(reference: SavedOutputs) -> SavedOutputs:
    """Return the same outputs as if no node drew random numbers by a seed of its own."""
    cases = (
        replace(case, outputs=tuple(replace(output, draws="") for output in case.outputs)) for case in reference.cases
    )
    return replace(reference, cases=tuple(cases))


def within_conversion_bounds(
    parity: tuple[OutputParity, ...], same_graph: tuple[OutputParity, ...], wider: tuple[OutputParity, ...]
) -> tuple[OutputParity, ...]:
    """Return outputs, by the wider bounds those that fail although the same converted model gives the same numbers."""
    passes = {(each.case, each.output) for each in same_graph if each.verdict is Verdict.PASS}
    found = {(each.case, each.output): each for each in wider}
    return tuple(
        found[key] if output.verdict is Verdict.FAIL and (key := (output.case, output.output)) in passes else output
        for output in parity
    )


def with_same_graph(parity: tuple[OutputParity, ...], same_graph: tuple[OutputParity, ...]) -> tuple[OutputParity, ...]:
    """Return outputs with what `compare` found of each against the full runtime with the same converted model.

    What is out of tolerance there is the library's own doing and fails, whatever conversion may change.
    """
    found = {(each.case, each.output): each for each in same_graph}

    def joined(output: OutputParity) -> OutputParity:
        same = found.get((output.case, output.output))
        if same is None:
            return output
        output = replace(output, same_graph=same.difference, same_graph_allowed=same.allowed)
        if same.verdict is not Verdict.FAIL or output.verdict is Verdict.FAIL:
            return output
        reason = f"the full runtime with the same converted model has other numbers: {same.reason}"
        return replace(output, verdict=Verdict.FAIL, reason=reason)

    return tuple(map(joined, parity))


def as_near_to_floats(
    same_graph: tuple[OutputParity, ...], ours: SavedOutputs, theirs: SavedOutputs, floats: SavedOutputs
) -> tuple[OutputParity, ...]:
    """Return what `compare` found against the same graph, with those outputs passing that are as near to `floats`.

    `floats` has what the model gives without rounding the numbers that it multiplies, which each kernel does in its own
    way. Such an output's `difference` and `allowed` are our distance from it, and `DISTANCE` times `theirs`.
    """

    def judged(output: OutputParity) -> OutputParity:
        if output.verdict is not Verdict.FAIL:
            return output
        found = [each for outputs in (floats, ours, theirs) for each in _numbers_of(outputs, output)]
        if (
            len({each.shape for each in found}) != 1
            or len(found) < 3
            or not all(np.isfinite(each).all() for each in found)
        ):
            return output
        exact, mine, official = found
        distance, own = (_relative_rms(np.abs(each - exact), exact) or 0.0 for each in (mine, official))
        if distance > DISTANCE * own:
            return output
        return replace(output, verdict=Verdict.PASS, reason="", difference=distance, allowed=DISTANCE * own)

    return tuple(map(judged, same_graph))


def _numbers_of(outputs: SavedOutputs, which: OutputParity) -> Iterator[Array]:
    """Yield an output's numbers; nothing if it is not there, or is made of others than floats."""
    for case in outputs.cases:
        for output in case.outputs:
            if (case.name, output.name) == (which.case, which.output) and output.file and output.element_type in FLOATS:
                yield _numbers(load_array(outputs.folder / case.name / output.file), output.element_type)


def with_float_products(parity: tuple[OutputParity, ...], floats: tuple[OutputParity, ...]) -> tuple[OutputParity, ...]:
    """Return outputs, failing also those that fail where the library computes the same model with floats throughout."""
    failed = {(each.case, each.output): each.reason for each in floats if each.verdict is Verdict.FAIL}
    return tuple(
        replace(output, verdict=Verdict.FAIL, reason=f"{IN_FLOATS}: {why}")
        if output.verdict is not Verdict.FAIL and (why := failed.get((output.case, output.output)))
        else output
        for output in parity
    )


def with_draws_given(
    parity: tuple[OutputParity, ...], given: tuple[OutputParity, ...], drawn: Collection[tuple[str, str]]
) -> tuple[OutputParity, ...]:
    """Return outputs, those that are `drawn` (by case and name) as `given` has them where it judges them.

    That is the same model with the random numbers as inputs.
    """
    judged = {(each.case, each.output): each for each in given if each.verdict is not Verdict.NOT_JUDGED}
    return tuple(
        replace(found, reason="; ".join(filter(None, (GIVEN, found.reason)))) if found else output
        for output in parity
        for key in ((output.case, output.output),)
        for found in (judged.get(key) if key in drawn else None,)
    )


def not_computed(parity: tuple[OutputParity, ...]) -> tuple[OutputParity, ...]:
    """Return the outputs of a model without nodes, of which those that agree show nothing."""
    reason = "the model has no nodes: nothing was computed"
    return tuple(
        replace(output, verdict=Verdict.NOT_JUDGED, reason=reason) if output.verdict is Verdict.PASS else output
        for output in parity
    )


def _surveys(reference: SavedOutputs) -> dict[str, Survey]:
    """Return what the reference holds of each output; the elements of a sequence show together that they may differ."""
    magnitudes: dict[str, list[float]] = {}
    wholes: dict[str, str] = {}
    shown: dict[str, list[Seen]] = {}
    cases: dict[str, set[str]] = {}
    for case in reference.cases:
        for output in case.outputs:
            if output.file is not None:
                array = load_array(reference.folder / case.name / output.file)
                kind, whole = output.element_type, ELEMENT.sub(r"\1", output.file)
                wholes[output.name] = whole
                magnitude = 0.0 if kind == STRING else _magnitude(_numbers(array, kind))
                magnitudes.setdefault(output.name, []).append(magnitude)
                shown.setdefault(whole, []).extend([seen(_values(array, kind))] if array.size else [])
                cases.setdefault(whole, set()).update([case.name] if array.size else [])
    probable = {name: PART.sub("", name) in reference.probabilities for name in magnitudes}
    return {
        name: (max(found), unproved(shown[whole], cases=len(cases[whole]), probabilities=probable[name]))
        for name, found in magnitudes.items()
        for whole in (wholes[name],)
    }


def _compare_case(
    model: str,
    reference: CaseOutputs,
    ours: CaseOutputs | None,
    folders: tuple[Path, Path],
    given: tuple[Mapping[ElementType, Tolerance], Mapping[str, Bounds], Mapping[str, Survey]],
) -> list[OutputParity]:
    tolerances, defaults, surveys = given
    mine = {output.name: output for output in ours.outputs} if ours else {}
    theirs = {output.name: output for output in reference.outputs}
    places = folders[0] / reference.name, folders[1] / reference.name
    return [
        replace(
            _compare_output((theirs.get(name), mine.get(name)), places, (tolerances, defaults), surveys.get(name)),
            model=model,
            case=reference.name,
        )
        for name in dict.fromkeys([*theirs, *mine])
    ]


def _parity(output: SavedOutput, reason: str = "", **numbers: Any) -> OutputParity:
    """Return what is known of an output, which fails if there is a reason; its model and case are to be filled in."""
    return OutputParity(
        model="",
        case="",
        output=output.name,
        element_type=output.element_type,
        shape=output.shape,
        verdict=Verdict.FAIL if reason else Verdict.PASS,
        reason=reason,
        **numbers,
    )


def _compare_output(
    pair: tuple[SavedOutput | None, SavedOutput | None],
    places: tuple[Path, Path],
    given: tuple[Mapping[Any, Tolerance], Mapping[str, Bounds]],
    survey: Survey | None,
) -> OutputParity:
    theirs, ours = pair
    known = theirs or ours
    assert known is not None
    if theirs is None or ours is None:
        return _parity(known, "the output is missing from " + ("ours" if ours is None else "the reference"))
    if theirs.element_type != ours.element_type:
        return _parity(theirs, f"the type is {ours.element_type}, not {theirs.element_type}")
    if theirs.file is None or ours.file is None or is_drawn(theirs):
        found, excuse = _parity(theirs), _excuse(theirs)
    else:
        arrays = load_array(places[0] / theirs.file), load_array(places[1] / ours.file)
        if arrays[0].shape != arrays[1].shape:
            return _parity(theirs, f"the shape is {list(arrays[1].shape)}, not {list(arrays[0].shape)}")
        assert survey is not None
        # The keys of a map have to be equal whatever the buildspec allows their type.
        few = survey[0] if arrays[0].size <= FEW_VALUES else None
        bounds = EXACT if theirs.file.endswith(KEYS) else bounds_of(theirs.element_type, *given, few)
        found = difference_of(*arrays, theirs, bounds, survey[0])
        excuse = shows_nothing(_values(arrays[0], theirs.element_type)) or survey[1]
    is_excused = excuse and found.verdict is Verdict.PASS
    return replace(found, verdict=Verdict.NOT_JUDGED, reason=excuse) if is_excused else found


def is_drawn(output: SavedOutput) -> bool:
    """Whether the reference's values are others than any other library's, or run's."""
    return output.random or bool(output.draws)


def _excuse(output: SavedOutput) -> str:
    """Return why an output without values to compare is not judged; empty for one that is absent on both sides."""
    if output.draws:
        return f"it depends on the random numbers of {output.draws}, which every C++ library draws in its own way"
    if output.random:
        return "the model draws random numbers: no two runs of it agree"
    return "it is not a tensor and cannot be compared" if output.element_type == UNSUPPORTED else "it is absent"


def difference_of(
    reference: Array, ours: Array, output: SavedOutput, bounds: Bounds, magnitude: float = 0.0
) -> OutputParity:
    """Return how two arrays of one shape and type differ, and why they are out of tolerance if they are.

    `magnitude` is the largest of the output in any case: it limits `rounding`, and takes the place of the reference's
    own where that is 0.
    """
    if reference.size == 0:
        return _parity(output, nan_mismatch=0)
    kind = output.element_type
    if kind == STRING:  # 0 where they are equal, and 0 against 1 where they differ
        theirs, mine = np.zeros(reference.shape), np.asarray(reference != ours, dtype=np.float64)
    else:
        theirs, mine = _numbers(reference, kind), _numbers(ours, kind)
    if misplaced := _misplaced(theirs, mine):
        return _parity(output, misplaced, nan_mismatch=int((np.isnan(theirs) != np.isnan(mine)).sum()))
    finite = np.isfinite(theirs)
    unequal = (reference != ours) & finite
    theirs, mine = np.where(finite, theirs, 0.0), np.where(finite, mine, 0.0)
    # Never infinite; integers too large to differ as float64 are 1 apart.
    with np.errstate(over="ignore"):
        absolute = np.minimum(np.abs(theirs - mine), LARGEST)
    absolute = np.where(unequal & (absolute == 0) & (theirs != 0), 1.0, absolute)
    larger = np.maximum(np.abs(theirs), np.abs(mine))
    relative = np.divide(absolute, larger, out=np.zeros_like(absolute), where=larger > 0)
    axis = class_axis(theirs, kind) if finite.all() else None
    rounding = min(bounds.rounding, ROUNDING_SHARE * (magnitude or _magnitude(theirs))) if axis is None else 0.0
    allowed = rounding + _allowed(theirs, kind, bounds, axis, magnitude)
    top, top_reason = _top(theirs, mine, allowed, axis, bounds)
    iou = _least_iou(theirs, mine) if kind in FLOATS and holds_boxes(theirs, output.name) else None
    worst = np.unravel_index(np.argmax(_share(absolute, allowed)), absolute.shape)
    found = _parity(
        output,
        difference=float(absolute[worst]),
        allowed=float(allowed[worst]),
        max_absolute=float(absolute.max()),
        max_relative=float(relative.max()),
        rms=_relative_rms(np.where(absolute > rounding, absolute, 0.0), theirs) if math.isfinite(bounds.rms) else None,
        rms_allowed=bounds.rms if math.isfinite(bounds.rms) else None,
        ulps=float((absolute / _unit(theirs, kind)).max()) if kind in SIGNIFICANT_BITS else None,
        cosine=_cosine(theirs, mine),
        argmax_agreement=top,
        iou=iou,
        nan_mismatch=0,
    )
    reason = "; ".join(_reasons(found, int((absolute > allowed).sum()), absolute.size, bounds, top_reason))
    return replace(found, verdict=Verdict.FAIL, reason=reason) if reason else found


def _reasons(found: OutputParity, outside: int, size: int, bounds: Bounds, top_reason: str) -> Iterable[str]:
    if outside:
        yield f"{outside:,} of {counted(size, 'element')} out of tolerance"
    if found.rms is not None and found.rms > bounds.rms:
        yield f"the root mean square of the differences is {found.rms:.2g} of the reference's, over {bounds.rms:g}"
    if found.cosine is not None and found.cosine < bounds.cosine:
        yield f"the cosine similarity {found.cosine:.6f} is below {bounds.cosine:g}"
    if top_reason:
        yield top_reason
    if found.iou is not None and found.iou < bounds.iou:
        yield f"the intersection over union of a box is {found.iou:.3f}, below {bounds.iou:g}"


def _numbers(array: Array, element_type: str) -> Array:
    return np.asarray(_values(array, element_type), dtype=np.float64)


def _values(array: Array, element_type: str) -> Array:
    return widened(array) if element_type == BFLOAT16 else array


def _magnitude(numbers: Array) -> float:
    return float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))


def _misplaced(theirs: Array, mine: Array) -> str:
    if not np.array_equal(np.isnan(theirs), np.isnan(mine)):
        found, expected = (int(np.isnan(values).sum()) for values in (mine, theirs))
        return f"not-a-number in {counted(found, 'element')}, not the reference's {expected:,}"
    infinite = np.isinf(theirs) | np.isinf(mine)
    return "" if np.array_equal(theirs[infinite], mine[infinite]) else "infinities are in other places"


def _allowed(theirs: Array, element_type: str, bounds: Bounds, axis: int | None, magnitude: float) -> Array:
    """Return how far each element may be off; in a distribution, the scale is that of each row."""
    largest = np.abs(theirs).max(axis=axis, keepdims=True) if axis is not None else _magnitude(theirs) or magnitude
    units = bounds.ulps * _unit(theirs, element_type) if element_type in SIGNIFICANT_BITS else 0.0
    with np.errstate(over="ignore"):
        allowed = bounds.absolute + bounds.relative * np.abs(theirs) + bounds.scale * largest + units
    return np.minimum(np.broadcast_to(allowed, theirs.shape), LARGEST)


def _unit(theirs: Array, element_type: str) -> Array:
    _, exponents = np.frexp(theirs)
    least = LEAST_EXPONENT[element_type] + 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponents, least) - SIGNIFICANT_BITS[element_type]))


def _share(absolute: Array, allowed: Array) -> Array:
    """Return how much of its tolerance each element uses."""
    none = np.where(absolute > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.divide(absolute, allowed, out=none, where=allowed > 0))


def _relative_rms(absolute: Array, theirs: Array) -> float | None:
    """Return the root mean square of the differences as a share of the reference's; None for zeros."""
    scale = float(np.abs(theirs).max())
    if scale == 0:
        return None
    with np.errstate(over="ignore"):
        ratio = np.sqrt(np.mean((absolute / scale) ** 2) / np.mean((theirs / scale) ** 2))
    return float(min(ratio, LARGEST))


def _cosine(theirs: Array, mine: Array) -> float | None:
    """Return the cosine similarity; None when one side has no direction."""
    if np.array_equal(theirs, mine):
        return 1.0 if theirs.any() else None
    one, other = (values / (np.abs(values).max() or 1.0) for values in (theirs, mine))
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.clip(np.sum(one * other) / norms, -1.0, 1.0)) if norms > 0 else None


def class_axis(values: Array, element_type: str) -> int | None:
    """Return the axis along which all rows are distributions over classes: of two or more, together 1."""
    if element_type not in FLOATS or values.min(initial=0.0) < 0:
        return None
    slack = SUM_SLACK.get(element_type, 1e-3)
    axes = (axis for axis in range(values.ndim - 1, -1, -1) if values.shape[axis] > 1)
    return next((axis for axis in axes if (np.abs(values.sum(axis=axis) - 1) <= slack).all()), None)


def _top(theirs: Array, mine: Array, allowed: Array, axis: int | None, bounds: Bounds) -> tuple[float | None, str]:
    """Return the share of rows with the same best class, and why that is too small, for the `TOP` best too.

    Classes that are no further apart than both may be off count as equal. Without a distribution nothing is judged
    unless the buildspec gives a bound; rows are then those of the last axis.
    """
    if theirs.ndim == 0 or (axis is None and bounds.argmax_agreement is None):
        return None, ""
    axis = theirs.ndim - 1 if axis is None else axis
    ranked = np.moveaxis(theirs, axis, -1), np.moveaxis(mine, axis, -1)
    most = min(bounds.rms, 1.0) * ranked[0].max(axis=-1)
    slack = 2 * np.minimum(np.moveaxis(allowed, axis, -1).max(axis=-1), most)
    least = 1.0 if bounds.argmax_agreement is None else bounds.argmax_agreement
    agreements = {count: _agreement(*ranked, slack, count) for count in (1, min(TOP, theirs.shape[axis] - 1)) if count}
    small = next((count for count, share in agreements.items() if share < least), None)
    reason = "" if small is None else f"the top-{small} agreement {agreements[small]:.4f} is below {least:g}"
    return agreements.get(1, 1.0), reason


def _agreement(theirs: Array, mine: Array, slack: Array, count: int) -> float:
    """Return the share of rows whose `count` best classes by ours are the reference's, ties aside."""
    threshold = np.partition(theirs, -count, axis=-1)[..., -count]
    chosen = np.argpartition(mine, -count, axis=-1)[..., -count:]
    worst = np.take_along_axis(theirs, chosen, axis=-1).min(axis=-1)
    return float(np.mean(worst >= threshold - slack))


def holds_boxes(values: Array, name: str) -> bool:
    """Whether an output holds boxes by their corners (x1, y1, x2, y2), perhaps with a score behind them."""
    if values.ndim < 2 or values.shape[-1] not in {CORNERS, CORNERS + 1} or not BOXES.search(name):
        return False
    sides = values[..., 2:CORNERS] - values[..., :2]
    return bool((sides >= 0).all() and (sides > 0).all(axis=-1).any())


def _least_iou(theirs: Array, mine: Array) -> float:
    """Return the smallest intersection over union of any box that has an area in the reference."""
    one, other = (values[..., :CORNERS].reshape(-1, CORNERS) for values in (theirs, mine))
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=-1) for boxes in (one, other)]
    overlap = np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2])
    common = np.clip(overlap, 0, None).prod(axis=-1)
    real = areas[0] > 0
    return float((common[real] / (areas[0] + areas[1] - common)[real]).min())
