"""Hypothesis strategies for required operators."""

from hypothesis import strategies as st

from ortrim.models.operators import OperatorId, OperatorTypes, required_operators

DOMAINS = ("ai.onnx", "com.microsoft")
NAMES = ("Add", "Cast", "OneHot")
TYPES = ("float", "int32_t", "int64_t", "std::string")

slots = st.dictionaries(st.integers(0, 2), st.sets(st.sampled_from(TYPES), min_size=1), max_size=2).map(
    lambda found: tuple((index, tuple(sorted(names))) for index, names in sorted(found.items()))
)
operator_types = st.builds(
    OperatorTypes,
    inputs=slots,
    outputs=slots,
    custom=st.sets(st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)), max_size=2).map(
        lambda found: tuple(sorted(found))
    ),
)
operators = st.sets(
    st.builds(OperatorId, domain=st.sampled_from(DOMAINS), opset=st.integers(1, 3), name=st.sampled_from(NAMES)),
    max_size=5,
)
typed_sets = st.builds(
    required_operators,
    operators,
    st.dictionaries(st.tuples(st.sampled_from(DOMAINS), st.sampled_from(NAMES)), operator_types, max_size=4),
    no_operators_means_all=st.booleans(),
)
globally_limited_sets = st.builds(
    lambda found, types, everything: required_operators(
        found, globally_allowed_types=types, no_operators_means_all=everything
    ),
    operators,
    st.sets(st.sampled_from(TYPES), min_size=1),
    st.booleans(),
)
required_sets = st.one_of(typed_sets, globally_limited_sets)
