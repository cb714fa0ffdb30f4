from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.serialization import from_json, to_json
from ortrim.core.tolerance_spec import Tolerance
from ortrim.core.tolerances import Bounds, bounds_of
from ortrim.errors import VerifyError
from ortrim.verify.arrays import save_array
from ortrim.verify.devices.base import SavedOutput
from ortrim.verify.parity import compare, difference_of
from ortrim.verify.reference import CaseOutputs, SavedOutputs

Save = Callable[..., SavedOutputs]
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Save the outputs of one case; `(array, element type)` for types that NumPy lacks."""

    def make(side: str, **outputs: Any) -> SavedOutputs:
        folder = tmp_path / side
        (folder / "case").mkdir(parents=True)
        saved = [_saved(folder / "case", at, name, given) for at, (name, given) in enumerate(outputs.items())]
        return SavedOutputs(folder=folder, cases=(CaseOutputs(name="case", outputs=tuple(saved)),))

    return make


def _saved(folder: Path, at: int, name: str, given: Any) -> SavedOutput:
    if isinstance(given, str):
        return SavedOutput(name=name, element_type=given, shape=(), file=None)
    array, kind = given if isinstance(given, tuple) else (np.asarray(given), None)
    file = save_array(folder, f"output_{at:03}", array).name
    return SavedOutput(name=name, element_type=kind or array.dtype.name, shape=array.shape, file=file)


def compared(save: Save, theirs: Any, ours: Any, **tolerances: Tolerance) -> OutputParity:
    """Compare one output."""
    (parity,) = compare("m", save("reference", y=theirs), save("ours", y=ours), tolerances)  # type: ignore[arg-type]
    return parity


def floats(*values: float) -> Any:
    """Make a float32 array."""
    return np.array(values, np.float32)


def strings(*values: str) -> Any:
    """Make an array of strings, with its element type."""
    return np.array(values, dtype=object), "string"


def test_equal_outputs_pass(save: Save) -> None:
    """Equal outputs differ by nothing, in whatever measure."""
    parity = compared(save, floats(1, 2), floats(1, 2))
    assert (parity.verdict, parity.reason) == (Verdict.PASS, "")
    assert (parity.max_absolute, parity.max_relative, parity.cosine, parity.argmax_agreement) == (0, 0, 1, 1)
    assert (parity.model, parity.case, parity.output, parity.shape) == ("m", "case", "y", (2,))


def test_either_tolerance_is_enough(save: Save) -> None:
    """Small values may differ relatively and large ones absolutely."""
    parity = compared(save, floats(1e-6, 1000), floats(2e-6, 1000.5))
    assert parity.verdict is Verdict.PASS
    assert parity.max_absolute == pytest.approx(0.5)
    assert parity.max_relative == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        (floats(1, 2), floats(1, 2.1), "1 of 2 elements out of tolerance"),
        (floats(1, NAN), floats(1, 2), "not-a-number in 0 elements, not the reference's 1"),
        (floats(1, NAN), floats(NAN, 1), "not-a-number"),
        (floats(1, INF), floats(1, -INF), "infinities"),
        (floats(1, INF), floats(1, 3e38), "infinities"),
        (floats(1, 2), floats(1, 2, 3), "the shape is [3], not [2]"),
        (floats(1), np.float32(1), "the shape is [], not [1]"),
        (floats(1), np.array([1.0]), "the type is float64, not float32"),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements"),
        (np.array([2**63 - 1]), np.array([2**63 - 2]), "1 of 1 element out"),
        (np.array([True]), np.array([False]), "1 of 1 element out"),
        (strings("a", "b"), strings("a", "c"), "1 of 2 elements"),
        (floats(1), "absent", "the type is absent, not float32"),
        (np.array([1e308]), np.array([-1e308]), "1 of 1 element out"),
    ],
)
def test_differences_fail_with_their_reason(save: Save, theirs: Any, ours: Any, words: str) -> None:
    """Each way of differing fails, says how, and leaves numbers that JSON can hold."""
    parity = compared(save, theirs, ours)
    assert parity.verdict is Verdict.FAIL
    assert words in parity.reason
    assert from_json(OutputParity, to_json(parity)) == parity


@pytest.mark.parametrize(
    "value",
    [
        floats(),
        floats(NAN, INF, -INF, 0),
        np.float32(3),
        np.zeros((2, 0, 3), np.float32),
        np.array([2**63 - 1, -(2**63)]),
        strings("a", ""),
        (np.array([0x3F80, 0x7FC0], np.uint16), "bfloat16"),
        np.array([True, False]),
        "absent",
    ],
)
def test_every_value_is_equal_to_itself(save: Save, value: Any) -> None:
    """Special values, scalars and empty outputs are in parity with themselves."""
    assert compared(save, value, value).verdict is Verdict.PASS


def test_what_is_no_tensor_is_not_judged(save: Save) -> None:
    """Maps cannot be compared, which is said and is no pass."""
    parity = compared(save, "unsupported", "unsupported")
    assert parity.verdict is Verdict.NOT_JUDGED
    assert "not a tensor" in parity.reason


def test_keys_of_maps_are_equal_or_fail(save: Save) -> None:
    """What a buildspec allows for integers does not hold for the keys of a map, which are told by their file."""
    sides = {side: save(side, y=np.array(keys)) for side, keys in (("reference", [1, 2]), ("ours", [1, 3]))}
    loose = {"int64": Tolerance(absolute=1.0)}
    assert compare("m", sides["reference"], sides["ours"], loose)[0].verdict is Verdict.PASS  # type: ignore[arg-type]
    renamed = [as_keys(sides[side]) for side in ("reference", "ours")]
    assert compare("m", renamed[0], renamed[1], loose)[0].verdict is Verdict.FAIL  # type: ignore[arg-type]


def as_keys(saved: SavedOutputs) -> SavedOutputs:
    """Rename the one saved output to that of a map's keys."""
    folder = saved.folder / "case"
    (folder / "output_000.npy").rename(folder / "output_000_keys.npy")
    output = replace(saved.cases[0].outputs[0], file="output_000_keys.npy")
    return replace(saved, cases=(replace(saved.cases[0], outputs=(output,)),))


def test_random_outputs_are_not_judged(save: Save) -> None:
    """An output that the reference itself makes anew for each seed cannot be held against it; a missing one can."""
    reference, ours = save("reference", y=floats(1)), save("ours", y=floats(2))
    output = replace(reference.cases[0].outputs[0], random=True)
    drawn = replace(reference, cases=(replace(reference.cases[0], outputs=(output,)),))
    (parity,) = compare("m", drawn, ours, {})
    assert parity.verdict is Verdict.NOT_JUDGED
    assert "random numbers" in parity.reason
    (missing,) = compare("m", drawn, replace(ours, cases=()), {})
    assert missing.verdict is Verdict.FAIL


def test_missing_outputs_and_cases_fail(save: Save) -> None:
    """What only one side has is out of parity, whichever side it is."""
    reference, ours = save("reference", a=floats(1), b=floats(1)), save("ours", a=floats(1), c=floats(1))
    found = {parity.output: parity.reason for parity in compare("m", reference, ours, {})}
    assert found == {"a": "", "b": "the output is missing from ours", "c": "the output is missing from the reference"}
    none = SavedOutputs(folder=ours.folder, cases=())
    assert {parity.verdict for parity in compare("m", reference, none, {})} == {Verdict.FAIL}


def test_tolerances_go_by_type(save: Save) -> None:
    """The buildspec's tolerance for a type replaces the default, also for types that are exact by default."""
    loose = Tolerance(absolute=1.0, relative=0.0, cosine=0.9)
    parity = compared(save, np.array([10, 20]), np.array([10, 21]), int64=loose)
    assert (parity.verdict, parity.absolute_tolerance) == (Verdict.PASS, 1.0)
    assert bounds_of("int64", {}).absolute == 0
    assert bounds_of("float16", {}).absolute > bounds_of("float32", {}).absolute


def test_half_precision_is_held_to_its_own_tolerance(save: Save) -> None:
    """What would fail as float32 passes as float16 and as bfloat16."""
    assert compared(save, np.array([1.0, 2.0], np.float16), np.array([1.0, 2.002], np.float16)).verdict is Verdict.PASS


def test_bfloat16_is_compared_by_value(save: Save) -> None:
    """Its bits are numbers again: one unit in the last place passes, a wrong sign does not."""
    one, near, minus = (np.array([bits], np.uint16) for bits in (0x3F80, 0x3F81, 0xBF80))
    assert compared(save, (one, "bfloat16"), (near, "bfloat16")).verdict is Verdict.PASS
    assert difference_of(one, minus, "bfloat16", bounds_of("bfloat16", {})).reason


def test_cosine_is_judged() -> None:
    """An output whose elements all pass but whose direction differs fails; noise has no direction."""
    wide = Bounds(absolute=1.0, relative=0.0, cosine=0.999)
    one, other = floats(2, 0), floats(2, 1)
    assert "cosine" in difference_of(one, other, "float32", wide).reason
    assert difference_of(floats(1e-9), floats(-1e-9), "float32", bounds_of("float32", {})).reason == ""


def test_argmax_agreement_is_judged() -> None:
    """The share of rows whose largest element is the same is measured along the last axis."""
    wide = Bounds(absolute=9.0, cosine=-1.0, argmax_agreement=0.75)
    one, other = np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32)
    found = difference_of(one, other, "float32", wide)
    assert found.argmax_agreement == 0.5
    assert "arg-max" in found.reason


def test_truncated_outputs_are_a_diagnostic(save: Save) -> None:
    """A saved output that cannot be read stops the comparison."""
    reference, ours = save("reference", y=floats(1, 2)), save("ours", y=floats(1, 2))
    (ours.folder / "case" / "output_000.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(VerifyError) as caught:
        compare("m", reference, ours, {})
    assert caught.value.reference == "bad-output"


ELEMENTS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@settings(deadline=None)
@given(pair=st.integers(0, 6).flatmap(lambda n: st.tuples(*[npst.arrays(np.float32, n, elements=ELEMENTS)] * 2)))
def test_numbers_are_always_finite(pair: tuple[Any, Any]) -> None:
    """Whatever the values, what is measured can be written as JSON, and the comparison is symmetric."""
    tolerance = bounds_of("float32", {})
    found, turned = (difference_of(*order, "float32", tolerance) for order in (pair, pair[::-1]))
    numbers = (found.max_absolute, found.max_relative, found.cosine, found.argmax_agreement)
    assert np.isfinite(numbers).all()
    assert bool(found.reason) == bool(turned.reason)
    assert found.max_relative <= 2


def test_elements_that_are_no_number_on_one_side_alone_are_counted(save: Save) -> None:
    """Wherever they are; on both sides they agree."""
    assert compared(save, floats(NAN, 1, NAN, 4), floats(NAN, NAN, 3, 4)).nan_mismatch == 2


def test_where_both_have_the_same_there_is_no_mismatch(save: Save) -> None:
    """Integers and strings are always numbers in that sense."""
    assert compared(save, floats(NAN, 1), floats(NAN, 1)).nan_mismatch == 0
