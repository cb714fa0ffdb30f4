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
    """Make the canonical value: sorted, without duplicates, unrestricted entries left out."""
    restricted = {key: value for key, value in (types or {}).items() if not value.unrestricted}
    return RequiredOperators(
        operators=tuple(sorted(set(operators))),
        types=tuple(sorted(restricted.items())) if restricted else (),
        globally_allowed_types=tuple(sorted(set(globally_allowed_types))),
        no_operators_means_all=no_operators_means_all,
    )


def merge(one: RequiredOperators, other: RequiredOperators) -> RequiredOperators:
    """Return the smallest representable set that satisfies both.

    Types are united per operator; an operator that either side requires without restriction keeps all its
    types. (Concatenating two configuration files instead makes the later line replace the earlier types:
    upstream's issue 16742.) When only one side limits types globally, its operators become unrestricted, since
    the file format cannot mix the two kinds of limit.
    """
    if _means_all(one) or _means_all(other):
        return required_operators((), no_operators_means_all=True)
    if one.globally_allowed_types and other.globally_allowed_types:
        return required_operators(
            one.operators + other.operators,
            globally_allowed_types=one.globally_allowed_types + other.globally_allowed_types,
        )
    return required_operators(one.operators + other.operators, _merged_types(one, other))


def _means_all(required: RequiredOperators) -> bool:
    return required.no_operators_means_all and not required.operators


def _merged_types(one: RequiredOperators, other: RequiredOperators) -> dict[tuple[str, str], OperatorTypes]:
    names = [{(op.domain, op.name) for op in side.operators} for side in (one, other)]
    types = [dict(side.types) for side in (one, other)]
    merged = {}
    for key in names[0] | names[1]:
        sides = [types[n].get(key, UNRESTRICTED) for n in (0, 1) if key in names[n]]
        if not any(side.unrestricted for side in sides):
            merged[key] = _united(sides)
    return merged


def _united(sides: list[OperatorTypes]) -> OperatorTypes:
    return OperatorTypes(
        inputs=_united_slots([side.inputs for side in sides]),
        outputs=_united_slots([side.outputs for side in sides]),
        custom=tuple(sorted({entry for side in sides for entry in side.custom})),
    )


def _united_slots(sides: list[tuple[tuple[int, tuple[str, ...]], ...]]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    slots: dict[int, set[str]] = {}
    for side in sides:
        for index, types in side:
            slots.setdefault(index, set()).update(types)
    return tuple((index, tuple(sorted(types))) for index, types in sorted(slots.items()))
