from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ortrim.base.json import from_json, to_json
from ortrim.buildspec.tolerances import QUANTIZED, SAME_GRAPH, Bounds, ElementType, Tolerance, bounds_of
from ortrim.errors import VerifyError
from ortrim.parity.compare import class_axis, compare, difference_of, holds_boxes, not_computed, with_same_graph
from ortrim.parity.inputs import narrowed, save_array
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput
from refusing import refused

Save = Callable[..., SavedOutputs]
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Save outputs; `(array, element type)` for types that NumPy lacks, a list for one value in each case."""

    def make(side: str, **outputs: Any) -> SavedOutputs:
        count = max((len(given) for given in outputs.values() if isinstance(given, list)), default=1)
        cases = [_case(tmp_path / side, number, outputs) for number in range(count)]
        return SavedOutputs(folder=tmp_path / side, cases=tuple(cases))

    return make


def _case(folder: Path, number: int, outputs: dict[str, Any]) -> CaseOutputs:
    name = f"case-{number}" if number else "case"
    (folder / name).mkdir(parents=True)
    given = {key: value[number] if isinstance(value, list) else value for key, value in outputs.items()}
    saved = [_saved(folder / name, at, *each) for at, each in enumerate(given.items())]
    return CaseOutputs(name=name, outputs=tuple(saved))


def _saved(folder: Path, at: int, name: str, given: Any) -> SavedOutput:
    if isinstance(given, str):
        return SavedOutput(name=name, element_type=given, shape=(), file=None)
    array, kind = given if isinstance(given, tuple) else (np.asarray(given), None)
    file = save_array(folder, f"output_{at:03}", array).name
    return SavedOutput(name=name, element_type=kind or array.dtype.name, shape=array.shape, file=file)


def compared(save: Save, theirs: Any, ours: Any, **tolerances: Tolerance) -> OutputParity:
    (parity,) = compare("m", save("reference", y=theirs), save("ours", y=ours), tolerances)  # type: ignore[arg-type]
    return parity


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def strings(*values: str) -> Any:
    return np.array(values, dtype=object), "string"


def output_of(kind: str, name: str = "y") -> SavedOutput:
    return SavedOutput(name=name, element_type=kind, shape=(), file="output_000.npy")


def test_equal_outputs_pass(save: Save) -> None:
    parity = compared(save, floats(1, 2), floats(1, 2))
    assert (parity.verdict, parity.reason) == (Verdict.PASS, "")
    assert (parity.difference, parity.max_absolute, parity.max_relative, parity.rms, parity.cosine) == (0, 0, 0, 0, 1)
    assert (parity.argmax_agreement, parity.iou, parity.ulps) == (None, None, None)
    assert (parity.model, parity.case, parity.output, parity.shape) == ("m", "case", "y", (2,))


@pytest.mark.parametrize(("single", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_float64_made_of_float32_is_no_more_exact(save: Save, single: bool, verdict: Verdict) -> None:  # noqa: FBT001
    """As where a model of float32 weights casts in the end: swift-f0's pitch."""
    reference = replace(save("reference", y=np.array([1.0, 2.0])), float32_weights=single)
    (parity,) = compare("m", reference, save("ours", y=np.array([1.00001, 2.0])), {})
    assert parity.verdict is verdict


def test_the_tolerance_goes_by_the_magnitude_of_the_output(save: Save) -> None:
    """The same absolute difference is nothing in a large output and everything in a small one."""
    large = compared(save, floats(1000, 1), floats(1000, 1.0001))
    assert large.verdict is Verdict.PASS
    for values in (floats(1000, 1), floats(1e-3, 1e-6)):
        noisy = values + np.abs(values).max() * np.array([0, 1e-6], np.float32)
        assert difference_of(values, noisy, output_of("float32"), bounds_of("float32", {})).reason == ""
    found = difference_of(floats(1e-3, 1e-6), floats(1e-3, 1.01e-4), output_of("float32"), bounds_of("float32", {}))
    assert "1 of 2 elements" in found.reason


def test_small_probabilities_are_not_below_any_tolerance(save: Save) -> None:
    """A softmax over 50,000 classes is in parity neither with zeros nor with its own reversal."""
    probabilities = np.exp(np.random.default_rng(1).normal(size=(1, 50_000))).astype(np.float32)
    probabilities /= probabilities.sum()
    assert compared(save, probabilities, probabilities * np.float32(1 + 1e-6)).verdict is Verdict.PASS
    for other in (np.zeros_like(probabilities), probabilities[:, ::-1]):
        found = difference_of(probabilities, other, output_of("float32"), bounds_of("float32", {}))
        assert "elements out of tolerance" in found.reason
        assert "top-1 agreement 0.0000" in found.reason


def test_a_small_number_may_be_the_difference_of_larger_ones(save: Save) -> None:
    """A Sigmoid's 0.000165 is off by what rounds 0.5; seen with the demo in the official library for ARM64."""
    bounds = bounds_of("float32", {})
    for sizes in ((1.6549e-4,), (1.6549e-4, 2e-5, 8e-5)):
        probabilities = floats(*sizes)
        rounded = probabilities + np.float32(2**-25)
        assert difference_of(probabilities, rounded, output_of("float32"), bounds).reason == ""
        assert difference_of(probabilities, probabilities * np.float32(1.002), output_of("float32"), bounds).reason
    exact = bounds_of("float32", {"float32": Tolerance(absolute=0)})
    assert "1 of 1 element" in difference_of(floats(1e-4), floats(1.0003e-4), output_of("float32"), exact).reason


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_an_output_of_tiny_numbers_is_compared(factor: float) -> None:
    """What rounding may change is a small share of whatever the output holds."""
    tiny = np.random.default_rng(1).uniform(1e-9, 1e-8, 100).astype(np.float32)
    assert difference_of(tiny, tiny * np.float32(factor), output_of("float32"), bounds_of("float32", {})).reason


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
        floats(NAN, INF, -INF, 3),
        np.float32(3),
        np.array([2**63 - 1, -(2**63)]),
        strings("a", ""),
        (np.array([0x3F80, 0x7FC0], np.uint16), "bfloat16"),
        np.array([True, False]),
    ],
)
def test_every_value_is_equal_to_itself(save: Save, value: Any) -> None:
    assert compared(save, value, value).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (floats(), "it has no elements"),
        (np.zeros((2, 0, 3), np.float32), "it has no elements"),
        (floats(NAN, NAN), "every element is NaN"),
        (floats(INF, NAN), "no element is finite"),
        (floats(0, 0), "every element is 0"),
        (np.float32(0), "every element is 0"),
        (np.array([False, False]), "every element is 0"),
        (strings("", ""), "every string is empty"),
        (floats(7, 7, 7), "7.0 in every element of the only case"),
        ([floats(1, 2), floats(1, 2), floats(1, 2)], "the same in all 3 cases"),
        ([floats(7), floats(7, 7), floats(7, 7, 7)], "the same in all 3 cases"),
        ([np.ones((size, 2), np.float32) * [[0.25, 0.75]] for size in (1, 3)], "the same in all 2 cases"),
        ([strings("unknown"), strings("unknown", "unknown")], "the same in all 2 cases"),
        ([floats(7, 7), floats()], "7.0 in every element of the only case"),
        ("absent", "it is absent"),
        ("unsupported", "it is not a tensor"),
    ],
)
def test_what_could_not_have_differed_is_not_judged(save: Save, value: Any, words: str) -> None:
    """An output without information agrees with anything that computes nothing; that is no parity."""
    found = compare("m", save("reference", y=value), save("ours", y=value), {})
    assert {parity.verdict for parity in found} == {Verdict.NOT_JUDGED}
    assert words in found[0].reason
    assert all(from_json(OutputParity, to_json(parity)) == parity for parity in found)


@pytest.mark.parametrize(("last", "verdict"), [(0.0, Verdict.NOT_JUDGED), (0.5, Verdict.PASS)])
def test_elements_of_a_sequence_are_judged_by_each_other(tmp_path: Path, last: float, verdict: Verdict) -> None:
    """A row's map of probabilities is there in one case alone where the other has fewer rows."""
    cases = []
    for case, rows in (("small", [1.0]), ("larger", [1.0, 0.0, last])):
        (tmp_path / case).mkdir()
        files = [
            save_array(tmp_path / case, f"output_000_{at:03}_values", floats(row, 1 - row))
            for at, row in enumerate(rows)
        ]
        outputs = [
            SavedOutput(name=f"y[{at}].values", element_type="float32", shape=(2,), file=file.name)
            for at, file in enumerate(files)
        ]
        cases.append(CaseOutputs(name=case, outputs=tuple(outputs)))
    reference = SavedOutputs(folder=tmp_path, cases=tuple(cases), probabilities=("y",))
    found = compare("m", reference, reference, {})
    assert {each.verdict for each in found} == {verdict}
    assert {each.reason for each in found} == (
        {"saturated: every probability is exactly 0 or 1 in all 2 cases"} if verdict is Verdict.NOT_JUDGED else {""}
    )


@pytest.mark.parametrize("name", ["y", "y[0].values"])
def test_saturated_probabilities_are_not_judged(save: Save, name: str) -> None:
    """Exactly 0 or 1 in all cases, as a Softmax of large numbers: any other weights would give the same."""
    for values, verdict in (
        ([floats(0, 1), floats(1, 0)], Verdict.NOT_JUDGED),
        ([floats(0, 1), floats(0.5, 0.5)], Verdict.PASS),
    ):
        side = f"reference-{verdict}"
        reference = replace(save(side, **{name: values}), probabilities=("y",))
        found = compare("m", reference, reference, {})
        assert {parity.verdict for parity in found} == {verdict}
        assert all("saturated: every probability is exactly 0 or 1 in all 2 cases" in e.reason for e in found) or (
            verdict is Verdict.PASS
        )
        assert {each.verdict for each in compare("m", replace(reference, probabilities=()), reference, {})} == {
            Verdict.PASS
        }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(floats(0, 0), floats(0, 1e-3)), (floats(NAN), floats(1)), (floats(7, 7), floats(7, 8)), (floats(), floats(1))],
)
def test_what_shows_nothing_fails_all_the_same_when_it_differs(save: Save, theirs: Any, ours: Any) -> None:
    """Not to be judged is no licence to differ."""
    assert compared(save, theirs, ours).verdict is Verdict.FAIL


def test_outputs_that_differ_between_cases_are_judged(save: Save) -> None:
    """One value in every element shows something where another case has another one; zeros of one case do not."""
    value = [floats(7, 7), floats(0, 0), floats(8)]
    found = compare("m", save("reference", y=value), save("ours", y=value), {})
    assert [parity.verdict for parity in found] == [Verdict.PASS, Verdict.NOT_JUDGED, Verdict.PASS]


def test_zeros_are_compared_at_the_magnitude_of_other_cases(save: Save) -> None:
    """Noise about zero is noise where the output is large in another case, and a fault where it is zero in all."""
    ours = [floats(7, 8), floats(0, 1e-5)]
    found = compare("m", save("reference", y=[floats(7, 8), floats(0, 0)]), save("ours", y=ours), {})
    assert [parity.verdict for parity in found] == [Verdict.PASS, Verdict.NOT_JUDGED]


def test_a_model_without_nodes_computes_nothing(save: Save) -> None:
    """What passes an input or a constant on is not judged; a difference stays one."""
    found = compare(
        "m", save("reference", a=floats(1, 2), b=floats(1, 2)), save("ours", a=floats(1, 2), b=floats(2, 2)), {}
    )
    assert [parity.verdict for parity in not_computed(found)] == [Verdict.NOT_JUDGED, Verdict.FAIL]


def test_keys_of_maps_are_equal_or_fail(save: Save) -> None:
    """What a buildspec allows for integers does not hold for the keys of a map, which are told by their file."""
    sides = {side: save(side, y=np.array(keys)) for side, keys in (("reference", [1, 2]), ("ours", [1, 3]))}
    loose = {"int64": Tolerance(absolute=1.0)}
    assert compare("m", sides["reference"], sides["ours"], loose)[0].verdict is Verdict.PASS  # type: ignore[arg-type]
    renamed = [as_keys(sides[side]) for side in ("reference", "ours")]
    assert compare("m", renamed[0], renamed[1], loose)[0].verdict is Verdict.FAIL  # type: ignore[arg-type]


def as_keys(saved: SavedOutputs) -> SavedOutputs:
    folder = saved.folder / "case"
    (folder / "output_000.npy").rename(folder / "output_000_keys.npy")
    output = replace(saved.cases[0].outputs[0], file="output_000_keys.npy")
    return replace(saved, cases=(replace(saved.cases[0], outputs=(output,)),))


@pytest.mark.parametrize(("found", "verdict"), [(0.93, Verdict.PASS), (0.79, Verdict.FAIL), (1.15, Verdict.FAIL)])
@pytest.mark.parametrize("others", [(), (0.2, 0.5, 0.1)])
def test_a_probability_of_a_quantized_model(
    save: Save, found: float, others: tuple[float, ...], verdict: Verdict
) -> None:
    """Correct runs differ by 5 %; 19 % were within what the output as a whole may differ."""
    theirs = replace(save("reference", y=floats(0.97, *others)), quantized=True)
    (parity,) = compare("m", theirs, save("ours", y=floats(found, *others)), {})
    assert parity.verdict is verdict
    assert parity.allowed == pytest.approx(0.097)


def test_a_small_probability_may_be_off_as_a_large_one(save: Save) -> None:
    """Each case of an output has the same scale: 0.03 that is off by 0.014 is none of a damage."""
    theirs = replace(save("reference", y=[floats(0.97), floats(0.03)]), quantized=True)
    verdicts = [each.verdict for each in compare("m", theirs, save("ours", y=[floats(0.97), floats(0.044)]), {})]
    assert verdicts == [Verdict.PASS, Verdict.PASS]


def test_what_a_buildspec_allows_of_a_quantized_model_binds(save: Save) -> None:
    """Of few values and of many."""
    allowed: dict[ElementType, Tolerance] = {"float32": Tolerance(absolute=0.01)}
    for count in (1, 100):
        values = np.linspace(0.9, 1, count, dtype=np.float32)
        theirs = replace(save(f"reference-{count}", y=values), quantized=True)
        near, far = (
            save(f"near-{count}", y=values + np.float32(0.005)),
            save(f"far-{count}", y=values + np.float32(0.02)),
        )
        assert [compare("m", theirs, ours, allowed)[0].verdict for ours in (near, far)] == [Verdict.PASS, Verdict.FAIL]
        assert [compare("m", theirs, ours, {})[0].verdict for ours in (near, far)] == [Verdict.PASS, Verdict.PASS]


def test_random_outputs_are_not_judged(save: Save) -> None:
    """An output that the reference itself makes anew for each seed cannot be compared with it; a missing one can."""
    reference, ours = save("reference", y=floats(1)), save("ours", y=floats(2))
    output = replace(reference.cases[0].outputs[0], random=True)
    drawn = replace(reference, cases=(replace(reference.cases[0], outputs=(output,)),))
    (parity,) = compare("m", drawn, ours, {})
    assert parity.verdict is Verdict.NOT_JUDGED
    assert "random numbers" in parity.reason
    (missing,) = compare("m", drawn, replace(ours, cases=()), {})
    assert missing.verdict is Verdict.FAIL


def test_missing_outputs_and_cases_fail(save: Save) -> None:
    reference, ours = save("reference", a=floats(1), b=floats(1)), save("ours", a=floats(1), c=floats(1))
    found = {parity.output: parity.reason for parity in compare("m", reference, ours, {})}
    assert found == {"a": "", "b": "the output is missing from ours", "c": "the output is missing from the reference"}
    none = SavedOutputs(folder=ours.folder, cases=())
    assert {parity.verdict for parity in compare("m", reference, none, {})} == {Verdict.FAIL}


def test_tolerances_go_by_type(save: Save) -> None:
    """The buildspec's tolerance for a type replaces the default, also for types that are exact by default."""
    parity = compared(save, np.array([10, 20]), np.array([10, 21]), int64=Tolerance(absolute=1.0))
    assert (parity.verdict, parity.difference, parity.allowed) == (Verdict.PASS, 1.0, 1.0)
    assert bounds_of("int64", {}).absolute == 0
    assert bounds_of("float16", {}).scale > bounds_of("float32", {}).scale


@pytest.mark.parametrize(("kind", "step"), [("float16", 2**-10), ("bfloat16", 2**-7)])
def test_half_precision_goes_by_units_in_the_last_place(kind: str, step: float) -> None:
    """One unit passes and is measured; four, and a wrong sign, do not, in an output whose magnitude allows none."""
    strict = replace(bounds_of(kind, {}, SAME_GRAPH), scale=0.0, rms=INF)

    def held(*values: float) -> Any:
        array = np.array(values, np.float32)
        return narrowed(array) if kind == "bfloat16" else array.astype(np.float16)

    one = difference_of(held(1, 3), held(1 + step, 3), output_of(kind), strict)
    assert (one.reason, one.ulps) == ("", 1)
    assert difference_of(held(1, 3), held(1 + 4 * step, 3), output_of(kind), strict).ulps == 4
    for other in (held(1 + 4 * step, 3), held(-1, 3)):
        assert difference_of(held(1, 3), other, output_of(kind), strict).reason


def test_a_quantized_model_may_jump_between_levels_but_not_as_a_whole(save: Save) -> None:
    """Single elements are off by as much as the range has; half of them, or all by a little too much, are a fault."""
    reference = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    jumped, noisy = reference.copy(), reference + np.float32(0.3) * np.roll(reference, 1)
    jumped[7] = -jumped.max()
    assert difference_of(reference, jumped, output_of("float32"), bounds_of("float32", {}, QUANTIZED)).reason == ""
    assert (
        "root mean square"
        in difference_of(reference, noisy, output_of("float32"), bounds_of("float32", {}, QUANTIZED)).reason
    )
    assert bounds_of("int64", {}, QUANTIZED) == bounds_of("int64", {}), "labels and indices stay exact"


def test_what_the_library_alone_changes_has_bounds_of_its_own(save: Save) -> None:
    """A difference that conversion may make fails where the same converted model gives other numbers."""
    theirs, ours = save("reference", y=floats(1, 2)), save("ours", y=floats(1, 2.0001))
    same = save("same", y=floats(1, 2.0001))
    parity = compare("m", theirs, ours, {})
    good = with_same_graph(parity, compare("m", same, ours, {}, defaults=SAME_GRAPH))
    bad = with_same_graph(parity, compare("m", theirs, ours, {}, defaults=SAME_GRAPH))
    assert [(each.verdict, each.same_graph) for each in good] == [(Verdict.PASS, 0)]
    assert bad[0].verdict is Verdict.FAIL
    assert "with the same converted model has other numbers: 1 of 2 elements" in bad[0].reason


def test_bfloat16_is_compared_by_value(save: Save) -> None:
    one, near = (np.array([bits], np.uint16) for bits in (0x3F80, 0x3F81))
    assert compared(save, (one, "bfloat16"), (near, "bfloat16")).verdict is Verdict.PASS


def test_the_root_mean_square_is_judged() -> None:
    """Differences that are small everywhere, and everywhere, are no noise."""
    reference = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    ours = reference * np.float32(1 + 3e-4)
    found = difference_of(reference, ours, output_of("float32"), Bounds(scale=1e-2, rms=1e-4))
    assert found.rms == pytest.approx(3e-4, rel=1e-2)
    assert "root mean square of the differences is 0.0003 of the reference's, over 0.0001" in found.reason


def test_cosine_is_judged() -> None:
    """An output whose elements all pass but whose direction differs fails."""
    wide = Bounds(absolute=1.0, cosine=0.999)
    found = difference_of(floats(2, 0), floats(2, 1), output_of("float32"), wide)
    assert "cosine" in found.reason
    assert difference_of(floats(0, 0), floats(0, 0), output_of("float32"), wide).cosine is None


def test_the_best_class_is_judged_in_distributions() -> None:
    """Rows that add up to 1 are distributions; whatever differences are allowed, the best class stays the best."""
    wide = Bounds(absolute=0.09)
    one, other = np.array([[0.6, 0.4], [0.2, 0.8]], np.float32), np.array([[0.68, 0.32], [0.2, 0.8]], np.float32)
    assert difference_of(one, other, output_of("float32"), wide).argmax_agreement == 1
    turned = np.array([[0.4, 0.6], [0.2, 0.8]], np.float32)
    found = difference_of(one, turned, output_of("float32"), Bounds(relative=1.0, argmax_agreement=None))
    assert found.argmax_agreement == 1, "both are further off than the classes are apart"
    found = difference_of(one, turned, output_of("float32"), Bounds(absolute=0.05))
    assert found.argmax_agreement == 0.5
    assert "the top-1 agreement 0.5000 is below 1" in found.reason


def test_the_next_best_classes_are_judged_too() -> None:
    """A distribution whose best class is right may have the rest wrong."""
    one = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0]], np.float32)
    other = np.array([[0.5, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1]], np.float32)
    found = difference_of(one, other, output_of("float32"), Bounds(absolute=0.04))
    assert found.argmax_agreement == 1
    assert "the top-5 agreement 0.0000" in found.reason


def test_classes_along_another_axis_are_found() -> None:
    """A segmentation has its classes in the second dimension of four."""
    logits = np.random.default_rng(1).normal(size=(1, 7, 3, 5))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert class_axis(probabilities, "float32") == 1
    assert class_axis(logits, "float32") is None
    assert class_axis(np.ones((3, 1)), "float32") is None, "one class is no choice"


def test_the_agreement_that_a_buildspec_asks_for_is_judged_everywhere() -> None:
    """Logits are no distribution; their best class is compared where the buildspec says so."""
    one, other = np.array([[5.0, 3.0], [1.0, 7.0]], np.float32), np.array([[3.0, 5.0], [1.0, 7.0]], np.float32)
    assert difference_of(one, other, output_of("float32"), Bounds(absolute=9.0)).argmax_agreement is None
    wanted = Bounds(relative=0.0, absolute=0.5, argmax_agreement=0.75)
    assert "top-1 agreement 0.5000 is below 0.75" in difference_of(one, other, output_of("float32"), wanted).reason


def test_boxes_are_judged_by_their_overlap() -> None:
    """A small box may be far off by its own measure where elements are within the tolerance of large ones."""
    boxes = np.array([[0, 0, 600, 400], [10, 10, 14, 14], [0, 0, 0, 0]], np.float32)
    moved = boxes + np.array([[0], [1], [0]], np.float32)
    found = difference_of(boxes, moved, output_of("float32", "boxes"), Bounds(absolute=2, iou=0.95))
    assert found.iou == pytest.approx(9 / 23)
    assert "intersection over union of a box is 0.391, below 0.95" in found.reason
    assert difference_of(boxes, moved, output_of("float32", "logits"), Bounds(absolute=2, iou=0.95)).reason == ""
    assert not holds_boxes(boxes[:, ::-1], "boxes"), "corners are in order"


def test_truncated_outputs_are_a_diagnostic(save: Save) -> None:
    reference, ours = save("reference", y=floats(1, 2)), save("ours", y=floats(1, 2))
    (ours.folder / "case" / "output_000.npy").write_bytes(b"\x93NUMPY")
    assert refused(VerifyError, compare, "m", reference, ours, {}).code == "bad-output"


ELEMENTS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@settings(deadline=None)
@given(pair=st.integers(0, 6).flatmap(lambda n: st.tuples(*[npst.arrays(np.float32, n, elements=ELEMENTS)] * 2)))
def test_numbers_are_never_missing(pair: tuple[Any, Any]) -> None:
    """Whatever the values, what is measured is a number, and what is equal in every bit is within tolerance."""
    bounds = bounds_of("float32", {})
    found = difference_of(*pair, output_of("float32"), bounds)
    numbers = (found.max_absolute, found.max_relative, found.difference, found.allowed, found.rms, found.cosine)
    assert not np.isnan([number for number in numbers if number is not None]).any()
    assert found.max_relative <= 2
    assert difference_of(pair[0], pair[0], output_of("float32"), bounds).reason == ""


@settings(deadline=None)
@given(
    values=npst.arrays(np.float32, st.integers(2, 40), elements=st.floats(-10, 10, width=32)),
    place=st.integers(0, 39),
    factor=st.sampled_from([-30, -2, 2, 30]),
)
def test_no_element_may_be_off_by_more_than_the_output_allows(values: Any, place: int, factor: float) -> None:
    """One element moved by twice its tolerance is found wherever it is; by half of it, it passes by itself."""
    bounds = replace(bounds_of("float32", {}), rms=INF, cosine=-1.0)
    reference = np.where(np.abs(values) < 1e-3, np.float32(1), values)
    allowed = bounds.relative * np.abs(reference).astype(float) + bounds.scale * float(np.abs(reference).max())
    ours = reference.astype(np.float64)
    at = place % len(reference)
    ours[at] += factor * allowed[at]
    found = difference_of(reference, ours.astype(np.float32), output_of("float32"), bounds)
    assert found.reason.startswith("1 of")
    ours[at] = reference[at] + 0.5 * np.sign(factor) * allowed[at]
    assert difference_of(reference, ours.astype(np.float32), output_of("float32"), bounds).reason == ""


def test_elements_that_are_no_number_on_one_side_alone_are_counted(save: Save) -> None:
    """Wherever they are; on both sides they agree."""
    assert compared(save, floats(NAN, 1, NAN, 4), floats(NAN, NAN, 3, 4)).nan_mismatch == 2


def test_where_both_have_the_same_there_is_no_mismatch(save: Save) -> None:
    """Integers and strings are always numbers in that sense."""
    assert compared(save, floats(NAN, 1), floats(NAN, 1)).nan_mismatch == 0
