"""The least that has to be added to a runtime so that it runs a model, as operator configuration. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from ortrim.advise.compatibility import Judgement, lacking_slots, type_at
from ortrim.advise.installed import InstalledRuntime
from ortrim.advise.type_limits import ONE_HOT, SLOTS, Slot, one_hot_triple
from ortrim.core.operator_uses import ModelUses, OperatorUse
from ortrim.core.operators import OperatorId, OperatorTypes, RequiredOperators, required_operators, unite_types

_DOMAINS: Final = frozenset({"ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"})
Lacking = list[tuple[OperatorId, tuple[OperatorUse, ...]]]
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def can_be_built_in(operator: OperatorId) -> bool:
    """Whether a build of ONNX Runtime can have an operator at all: one of a custom library it cannot."""
    return operator.domain in _DOMAINS and _NAME.fullmatch(operator.name) is not None


def smallest_change(
    runtime: InstalledRuntime, judged: Iterable[tuple[ModelUses, Judgement]]
) -> RequiredOperators | None:
    """Return what to add to the runtime's operators so that it runs models; None when nothing of that kind is missing.

    Each operator has all the types that it then needs, the old ones too: upstream takes a later line in place of an
    earlier one. Operators that no build can have are left out.
    """
    lacking = [
        (each.operator, tuple(use for use in model.uses if use.operator == each.operator))
        for model, judgement in judged
        for each in judgement.missing
        if can_be_built_in(each.operator)
    ]
    if not lacking:
        return None
    if runtime.operators.globally_allowed_types:
        return _with_global_types(runtime, lacking)
    return _with_own_types(runtime, lacking)


def _with_global_types(runtime: InstalledRuntime, lacking: Lacking) -> RequiredOperators:
    """Return the operators, and the whole list of types: there is one line for all."""
    types = {type_at(use, slot) for _, uses in lacking for use in uses for slot in lacking_slots(runtime, use)}
    triples = {name for _, uses in lacking for use in uses for name in _triple(use)}
    everywhere = {*runtime.operators.globally_allowed_types, *types, *triples}
    operators = [] if runtime.operators.everything else [operator for operator, _ in lacking]
    return required_operators(
        operators, globally_allowed_types=everywhere, no_operators_means_all=runtime.operators.everything
    )


def _with_own_types(runtime: InstalledRuntime, lacking: Lacking) -> RequiredOperators:
    types: dict[tuple[str, str], OperatorTypes] = {}
    there = {(each.domain, each.name) for each in runtime.operators.operators}
    for operator, uses in lacking:
        key = (operator.domain, operator.name)
        before = [types[key]] if key in types else [runtime.operators.types_of(*key)] if key in there else []
        types[key] = unite_types([*before, *map(_types_of, uses)])
    return required_operators([operator for operator, _ in lacking], types)


def _types_of(use: OperatorUse) -> OperatorTypes:
    """Return the types of one use that a configuration can limit."""
    if triple := _triple(use):
        return OperatorTypes(custom=(triple,))
    slots = SLOTS.get((use.operator.domain, use.operator.name), ())
    return OperatorTypes(inputs=_slots(use, slots, "input"), outputs=_slots(use, slots, "output"))


def _slots(use: OperatorUse, slots: tuple[Slot, ...], direction: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    found = ((slot[1], type_at(use, slot)) for slot in slots if slot[0] == direction)
    return tuple((index, (name,)) for index, name in found if name)


def _triple(use: OperatorUse) -> tuple[str, ...]:
    return one_hot_triple(use.inputs) if (use.operator.domain, use.operator.name) == ONE_HOT else ()
