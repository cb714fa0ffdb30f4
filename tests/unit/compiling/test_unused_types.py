"""What a library can be compiled without, told by what its models have."""

from dataclasses import replace

import pytest

from ortrim.compiling.dead_kernels import FLOAT8, FLOAT16, KINDS, OPTIONAL, SPARSE, unused_types
from ortrim.models.operators import EMPTY, ModelUses, OperatorId, OperatorUse, RequiredOperators, required_operators

PLAIN = ModelUses(format_version="6", uses=(), element_types=("float", "int64_t", "std::string"))


def using(name: str, domain: str = "ai.onnx") -> OperatorUse:
    """Return a use of an operator."""
    return OperatorUse(operator=OperatorId(domain=domain, opset=18, name=name), inputs=("float",), outputs=("bool",))


def test_models_of_plain_tensors_need_none_of_the_kinds() -> None:
    """Strings among them: they cannot be left out."""
    assert unused_types(EMPTY, (PLAIN, PLAIN)) == KINDS == ("float16", "float8", "optional", "sparsetensor")


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (replace(PLAIN, element_types=("MLFloat16", "float")), FLOAT16),
        (replace(PLAIN, element_types=("Float8E4M3FN", "float")), FLOAT8),
        (replace(PLAIN, element_types=("Float8E5M2FNUZ",)), FLOAT8),
        (replace(PLAIN, uses=(using("OptionalHasElement"),)), OPTIONAL),
        (replace(PLAIN, uses=(using("Relu"), using("OptionalGetElement"))), OPTIONAL),
        (replace(PLAIN, saved=(OperatorId(domain="ai.onnx", opset=15, name="Optional"),)), OPTIONAL),
        (replace(PLAIN, sparse=True), SPARSE),
        (replace(PLAIN, uses=(using("SparseToDenseMatMul", "com.microsoft"),)), SPARSE),
    ],
)
def test_what_one_model_has_is_kept_for_all(model: ModelUses, kept: str) -> None:
    """Whichever of them it is."""
    expected = tuple(kind for kind in KINDS if kind != kept)
    assert unused_types(EMPTY, (model,)) == unused_types(EMPTY, (PLAIN, model)) == expected


def test_an_operator_of_the_configuration_alone_counts_too() -> None:
    """The converter lists operators that a saved optimization takes the place of."""
    operators = required_operators([OperatorId(domain="ai.onnx", opset=18, name="OptionalHasElement")])
    assert unused_types(operators, (PLAIN,)) == (FLOAT16, FLOAT8, SPARSE)


def test_a_value_whose_type_is_not_known_may_be_anything() -> None:
    """Of a newer format, say: floats of 8 and 16 bits stay, and what no type can be stays out."""
    assert unused_types(EMPTY, (replace(PLAIN, element_types=("", "float")),)) == (OPTIONAL, SPARSE)


ALL = RequiredOperators(no_operators_means_all=True)


@pytest.mark.parametrize(("operators", "models"), [(ALL, (PLAIN,)), (EMPTY, ())])
def test_nothing_is_left_out_when_models_do_not_tell(
    operators: RequiredOperators, models: tuple[ModelUses, ...]
) -> None:
    """All operators are for models that nobody has seen."""
    assert unused_types(operators, models) == ()
