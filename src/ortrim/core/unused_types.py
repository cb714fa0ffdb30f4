"""Kinds of values that a library can be compiled without, because no model that it is built for has them. Pure.

Facts about the kinds: `--disable_types` of upstream's `tools/ci_build/build.py`, 1.21.0, which takes no others (strings
stay). ORT format has no type for optional values or sparse tensors (`TypeInfoValue` of `ort.fbs`): the operators of the
first, and weights that are stored sparse, are all that is left of them in a model.
"""

from collections.abc import Sequence
from typing import Final

from ortrim.core.operator_uses import ModelUses
from ortrim.core.operators import OperatorId, RequiredOperators

FLOAT8: Final = "float8"
OPTIONAL: Final = "optional"
SPARSE: Final = "sparsetensor"
KINDS: Final = (FLOAT8, OPTIONAL, SPARSE)
"""What upstream calls them."""

OPTIONAL_OPERATORS: Final = frozenset({"Optional", "OptionalGetElement", "OptionalHasElement"})
SPARSE_OPERATORS: Final = frozenset({"SparseToDenseMatMul"})
FLOAT8_PREFIX: Final = "Float8"


def unused_types(operators: RequiredOperators, models: Sequence[ModelUses]) -> tuple[str, ...]:
    """Return the kinds in `KINDS`, in order, that a library with these operators for these models can do without.

    None when all operators are required, when there is no model to tell by, and no 8-bit floats as soon as the type of
    a single value is not known.
    """
    if operators.everything or not models:
        return ()
    asked = (operator for model in models for operator in _asked(model))
    names = {operator.name for operator in (*operators.operators, *asked)}
    used = {
        FLOAT8: any(_may_be_float8(model) for model in models),
        OPTIONAL: not names.isdisjoint(OPTIONAL_OPERATORS),
        SPARSE: not names.isdisjoint(SPARSE_OPERATORS) or any(model.sparse for model in models),
    }
    return tuple(kind for kind in KINDS if not used[kind])


def _asked(model: ModelUses) -> tuple[OperatorId, ...]:
    return (*(use.operator for use in model.uses), *model.saved)


def _may_be_float8(model: ModelUses) -> bool:
    return any(not kind or kind.startswith(FLOAT8_PREFIX) for kind in model.element_types)
