"""The operators and types that a set of models requires, and how two such sets merge. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OperatorTypes:
    """Required element types of one operator, in ONNX Runtime's C++ names (`float`, `int64_t`, `std::string`).

    `inputs` and `outputs` map an index to types; `custom` holds the tuples of operators with their own rule,
    such as OneHot. Without any entry the operator has no type reduction and keeps all its types.
    """

    inputs: tuple[tuple[int, tuple[str, ...]], ...] = ()
    outputs: tuple[tuple[int, tuple[str, ...]], ...] = ()
    custom: tuple[tuple[str, ...], ...] = ()

    @property
    def unrestricted(self) -> bool:
        """Whether the operator keeps all types."""
        return not (self.inputs or self.outputs or self.custom)


UNRESTRICTED = OperatorTypes()


@dataclass(frozen=True, kw_only=True, order=True)
class OperatorId:
    """One operator at one opset, for example `ai.onnx` 13 `Gemm`. The empty ONNX domain is `ai.onnx`."""

    domain: str
    opset: int
    name: str


@dataclass(frozen=True, kw_only=True)
class RequiredOperators:
    """What a runtime must contain: operators in order, and types by domain and name.

    ONNX Runtime applies an operator's types to all of its opsets together, so `types` is keyed without the
    opset. An operator that is absent from `types` is unrestricted.
    """

    operators: tuple[OperatorId, ...] = ()
    types: tuple[tuple[tuple[str, str], OperatorTypes], ...] = ()
    globally_allowed_types: tuple[str, ...] = ()
    no_operators_means_all: bool = False

    def types_of(self, domain: str, name: str) -> OperatorTypes:
        """Return the types of an operator; unrestricted when none are recorded."""
        return dict(self.types).get((domain, name), UNRESTRICTED)

    @property
    def everything(self) -> bool:
        """Whether all operators are required."""
        return self.no_operators_means_all and not self.operators

    @property
    def nothing(self) -> bool:
        """Whether no operator is required."""
        return not self.operators and not self.everything

    @property
    def domains(self) -> frozenset[str]:
        """Domains of all required operators."""
        return frozenset(operator.domain for operator in self.operators)


EMPTY = RequiredOperators()


def required_operators(
    operators: Iterable[OperatorId],
    types: Mapping[tuple[str, str], OperatorTypes] | None = None,
    *,
    globally_allowed_types: Iterable[str] = (),
    no_operators_means_all: bool = False,
) -> RequiredOperators:
    """Make the canonical value: sorted, without duplicates, and without what says nothing.

    Left out are entries that restrict nothing, types of operators that are not required, the meaning of "no
    operators" when there are some, and globally allowed types when nothing is required.
    """
    unique = tuple(sorted(set(operators)))
    everything = no_operators_means_all and not unique
    present = {(operator.domain, operator.name) for operator in unique}
    restricted = {key: value for key, value in (types or {}).items() if key in present and not value.unrestricted}
    return RequiredOperators(
        operators=unique,
        types=tuple((key, restricted[key]) for key in sorted(restricted)),
        globally_allowed_types=tuple(sorted(set(globally_allowed_types))) if unique or everything else (),
        no_operators_means_all=everything,
    )


def merge(one: RequiredOperators, other: RequiredOperators) -> RequiredOperators:
    """Return a set that satisfies both: every operator and every type that either side asks for.

    Types are united per operator; an operator that either side requires without restriction keeps all its
    types. (Concatenating two configuration files instead makes the later line replace the earlier types:
    upstream's issue 16742.) When only one side limits types globally, its operators become unrestricted, since
    the file format cannot mix the two kinds of limit. The order of merging does not matter.
    """
    if one.nothing or other.nothing:
        return other if one.nothing else one
    everything = one.everything or other.everything
    operators = () if everything else one.operators + other.operators
    both_limited = bool(one.globally_allowed_types and other.globally_allowed_types)
    return required_operators(
        operators,
        {} if both_limited or everything else _merged_types(one, other),
        globally_allowed_types=one.globally_allowed_types + other.globally_allowed_types if both_limited else (),
        no_operators_means_all=everything,
    )


def unite_types(sides: Iterable[OperatorTypes]) -> OperatorTypes:
    """Return the types that satisfy every side; unrestricted as soon as one side is.

    An input or output that some side does not limit is not limited in the result either.
    """
    asked = tuple(sides)
    if any(side.unrestricted for side in asked):
        return UNRESTRICTED
    return OperatorTypes(
        inputs=_united_slots([side.inputs for side in asked]),
        outputs=_united_slots([side.outputs for side in asked]),
        custom=tuple(sorted({entry for side in asked for entry in side.custom})),
    )


def _merged_types(one: RequiredOperators, other: RequiredOperators) -> dict[tuple[str, str], OperatorTypes]:
    asked: dict[tuple[str, str], list[OperatorTypes]] = {}
    for side in (one, other):
        types = dict(side.types)
        for key in {(operator.domain, operator.name) for operator in side.operators}:
            asked.setdefault(key, []).append(types.get(key, UNRESTRICTED))
    return {key: unite_types(sides) for key, sides in asked.items()}


def _united_slots(sides: list[tuple[tuple[int, tuple[str, ...]], ...]]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    slots: dict[int, set[str]] = {}
    for side in sides:
        for index, types in side:
            slots.setdefault(index, set()).update(types)
    limited = [index for index in sorted(slots) if all(index in dict(side) for side in sides)]
    return tuple((index, tuple(sorted(slots[index]))) for index in limited)


def needs_wide_characters(operators: RequiredOperators) -> bool:
    """Whether a kernel works on text in wide characters; upstream: core/providers/cpu/text/string_normalizer.cc."""
    return operators.everything or any(each.name == "StringNormalizer" for each in operators.operators)
