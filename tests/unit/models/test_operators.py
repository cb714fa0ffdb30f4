"""Required operators and how two sets merge."""

from hypothesis import given

from operator_strategies import TYPES, required_sets
from ortrim.models.operators import (
    EMPTY,
    UNRESTRICTED,
    OperatorId,
    OperatorTypes,
    RequiredOperators,
    merge,
    required_operators,
    unite_types,
)


def allowed(required: RequiredOperators, domain: str, name: str, slot: int, element_type: str) -> bool:
    if required.globally_allowed_types:
        return element_type in required.globally_allowed_types
    limits = dict(required.types_of(domain, name).inputs)
    return slot not in limits or element_type in limits[slot]


@given(required_sets, required_sets)
def test_merge_is_commutative(one: RequiredOperators, other: RequiredOperators) -> None:
    """The order of two sets does not matter."""
    assert merge(one, other) == merge(other, one)


@given(required_sets, required_sets, required_sets)
def test_merge_is_associative(one: RequiredOperators, other: RequiredOperators, third: RequiredOperators) -> None:
    """How many models are merged in which grouping does not matter."""
    assert merge(merge(one, other), third) == merge(one, merge(other, third))


@given(required_sets)
def test_merging_with_itself_or_nothing_changes_nothing(one: RequiredOperators) -> None:
    """Merging is idempotent, and the empty set is neutral."""
    assert merge(one, one) == one
    assert merge(one, EMPTY) == one


@given(required_sets, required_sets)
def test_the_merged_set_has_all_that_either_side_has(one: RequiredOperators, other: RequiredOperators) -> None:
    """No operator and no type is lost: the fault of concatenated configuration files (upstream's issue 16742)."""
    merged = merge(one, other)
    for side in (one, other):
        assert merged.everything or set(side.operators) <= set(merged.operators)
        for operator in side.operators:
            for slot in range(3):
                for element_type in TYPES:
                    if allowed(side, operator.domain, operator.name, slot, element_type):
                        assert allowed(merged, operator.domain, operator.name, slot, element_type)


def test_types_are_united_per_operator() -> None:
    add = OperatorId(domain="ai.onnx", opset=14, name="Add")
    key = ("ai.onnx", "Add")
    floats = required_operators([add], {key: OperatorTypes(inputs=((0, ("float",)),))})
    integers = required_operators([add], {key: OperatorTypes(inputs=((0, ("int64_t",)),))})
    assert merge(floats, integers).types_of(*key).inputs == ((0, ("float", "int64_t")),)


def test_an_unrestricted_side_wins() -> None:
    """An operator that one model needs with all types keeps all types."""
    add = OperatorId(domain="ai.onnx", opset=14, name="Add")
    floats = required_operators([add], {("ai.onnx", "Add"): OperatorTypes(inputs=((0, ("float",)),))})
    assert merge(floats, required_operators([add])).types == ()


def test_types_are_left_alone_when_the_other_side_lacks_the_operator() -> None:
    """A model without Add does not lift the limit on Add."""
    add = OperatorId(domain="ai.onnx", opset=14, name="Add")
    floats = required_operators([add], {("ai.onnx", "Add"): OperatorTypes(inputs=((0, ("float",)),))})
    relu = required_operators([OperatorId(domain="ai.onnx", opset=14, name="Relu")])
    assert merge(floats, relu).types == floats.types


def test_an_input_that_one_side_does_not_limit_stays_unlimited() -> None:
    both = OperatorTypes(inputs=((0, ("float",)), (1, ("int32_t",))))
    first = OperatorTypes(inputs=((0, ("double",)),))
    assert unite_types([both, first]).inputs == ((0, ("double", "float")),)


def test_uniting_nothing_or_anything_with_unrestricted_is_unrestricted() -> None:
    assert unite_types([OperatorTypes(custom=(("float",),)), UNRESTRICTED]) == UNRESTRICTED


def test_global_limits_unite() -> None:
    add = [OperatorId(domain="ai.onnx", opset=14, name="Add")]
    merged = merge(
        required_operators(add, globally_allowed_types=["float"]),
        required_operators(add, globally_allowed_types=["int64_t"]),
    )
    assert merged.globally_allowed_types == ("float", "int64_t")


def test_all_operators_absorb_any_set() -> None:
    """A side that needs everything makes the result everything."""
    everything = required_operators((), no_operators_means_all=True)
    add = required_operators([OperatorId(domain="ai.onnx", opset=14, name="Add")])
    assert merge(everything, add).everything


def test_the_canonical_value_leaves_out_what_says_nothing() -> None:
    """Types of operators that are not required, and flags without meaning, do not make two equal sets differ."""
    add = OperatorId(domain="ai.onnx", opset=14, name="Add")
    types = {("ai.onnx", "Gone"): OperatorTypes(inputs=((0, ("float",)),)), ("ai.onnx", "Add"): UNRESTRICTED}
    assert required_operators([add, add], types, no_operators_means_all=True) == required_operators([add])
    assert required_operators([], globally_allowed_types=["float"]) == EMPTY
