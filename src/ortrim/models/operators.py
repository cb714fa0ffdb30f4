"""The operators and types that a set of models requires, how two such sets merge, and their configuration. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import reduce
from itertools import groupby
from typing import Any, Final, NoReturn

from ortrim.errors import OperatorsError
from ortrim.models.models import OrtModel


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


FEW_BITS: Final = "MatMulNBits"
"""The operator that multiplies by weights of 2, 4 or 8 bits."""


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

    @property
    def multiplies_by_few_bits(self) -> bool:
        """Whether matrices are multiplied whose elements have 4 bits or so."""
        return self.everything or any(operator.name == FEW_BITS for operator in self.operators)


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


@dataclass(frozen=True, kw_only=True, order=True)
class OperatorUse:
    """An operator with the element types of one node's inputs and outputs, in C++ names as in `OperatorTypes`.

    An input that is left out, and one that is no tensor, has an empty type. `node` names one of the nodes that are
    alike.
    """

    operator: OperatorId
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class ModelUses:
    """What a model in ORT format asks of the runtime that loads it.

    `saved` are the operators that optimizations saved in the model make; a plain minimal build does not apply these.
    `element_types` are those of all its values, in C++ names, of the elements of sequences and maps too, sorted; one
    that is not known is empty. `sparse` says whether it has sparse weights, `tiled` whether it has a convolution that
    `resources/cmake/winograd.h` may compute, `depthwise` whether one that `depthwise_convolutions.h` may. `few_bits`
    are the bits and the accuracy level of each product with weights of few bits (`MatMulNBits`), sorted.
    """

    format_version: str
    uses: tuple[OperatorUse, ...]
    saved: tuple[OperatorId, ...] = ()
    element_types: tuple[str, ...] = ()
    sparse: bool = False
    tiled: bool = False
    depthwise: bool = False
    few_bits: tuple[tuple[int, int], ...] = ()


def uses_of(required: RequiredOperators) -> tuple[OperatorUse, ...]:
    """Return uses that together ask for what a configuration lists: each operator, and of each slot each type."""
    return tuple(
        use
        for operator in required.operators
        for use in _uses(operator, required.types_of(operator.domain, operator.name))
    )


def _uses(operator: OperatorId, types: OperatorTypes) -> Iterator[OperatorUse]:
    yield OperatorUse(operator=operator, inputs=(), outputs=())
    for index, names in types.inputs:
        yield from (OperatorUse(operator=operator, inputs=("",) * index + (name,), outputs=()) for name in names)
    for index, names in types.outputs:
        yield from (OperatorUse(operator=operator, inputs=(), outputs=("",) * index + (name,)) for name in names)


NCHWC: Final = "com.microsoft.nchwc"
"""The domain of operators in NCHWc layout."""
ELEMENT_TYPES: Final = {
    1: "float", 2: "uint8_t", 3: "int8_t", 4: "uint16_t", 5: "int16_t", 6: "int32_t", 7: "int64_t", 8: "std::string",
    9: "bool", 10: "MLFloat16", 11: "double", 12: "uint32_t", 13: "uint64_t", 16: "BFloat16", 17: "Float8E4M3FN",
    18: "Float8E4M3FNUZ", 19: "Float8E5M2", 20: "Float8E5M2FNUZ", 21: "UInt4x2", 22: "Int4x2", 23: "Float4E2M1x2",
    24: "Float8E8M0", 25: "UInt2x4", 26: "Int2x4",
}  # fmt: skip
"""C++ names of element types by the numbers that ONNX and ORT format (`TensorDataType`) have for them: upstream's
`FbsTypeInfo.tensordatatype_to_string`, from 21 on its `data_types.h`. Complex numbers have none: no kernel takes them.
"""

LARGEST: Final = 2**31 - 1
"""The largest opset, and the largest index of an input or output."""


class UnfitTypes(Exception):
    """The text is not a description of types; `offset` says where, when it is not at the start of the types."""

    def __init__(self, what: str, *, code: str = "config-bad-types", hint: str = "", offset: int | None = None) -> None:
        super().__init__(what)
        self.code, self.hint, self.offset = code, hint, offset


def parse_type_name(word: str) -> str:
    """Return the C++ element type that `word` names. Raises `UnfitTypes` (`config-unknown-type`)."""
    known = sorted(ELEMENT_TYPES.values())
    if word not in known:
        near = get_close_matches(word, known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"known types: {', '.join(known)}"
        raise UnfitTypes(f"'{word}' is not an element type", code="config-unknown-type", hint=hint)
    return word


def parse_types(text: str, position: int) -> tuple[OperatorTypes, int]:
    """Read the JSON object at `position`, if there is one; return the types and the offset behind them."""
    if text[position : position + 1] != "{":
        return UNRESTRICTED, position
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise UnfitTypes(f"the types are not JSON: {error.msg}", offset=error.pos) from error
    except RecursionError as error:
        raise UnfitTypes("the types are nested too deeply") from error
    except ValueError as error:
        raise UnfitTypes("the types contain a number that is too long") from error
    return _types(value), end


def render_types(types: OperatorTypes | None) -> str:
    """Return the JSON for an operator's types as upstream writes it; empty when unrestricted."""
    if types is None or types.unrestricted:
        return ""
    parts = {
        "inputs": {str(index): list(names) for index, names in types.inputs},
        "outputs": {str(index): list(names) for index, names in types.outputs},
        "custom": [list(names) for names in types.custom],
    }
    return json.dumps({key: value for key, value in parts.items() if value})


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnfitTypes("a key appears twice")
    return found


def _types(value: dict[str, Any]) -> OperatorTypes:
    unknown = set(value) - {"inputs", "outputs", "custom"}
    if unknown:
        raise UnfitTypes(f"'{min(unknown)}' is not a known key", hint="known keys: inputs, outputs, custom")
    custom = value.get("custom", [])
    if not isinstance(custom, list):
        raise UnfitTypes("custom is a list of lists of types")
    types = OperatorTypes(
        inputs=_slots(value.get("inputs", {})),
        outputs=_slots(value.get("outputs", {})),
        custom=tuple(sorted({_names(names) for names in custom})),
    )
    if types.unrestricted:
        raise UnfitTypes("no types are given", hint="leave the braces out to keep all types")
    return types


def _slots(value: Any) -> tuple[tuple[int, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise UnfitTypes("inputs and outputs map an index to a list of types")
    for key in value:
        if not _INDEX.fullmatch(key) or int(key) > LARGEST:
            raise UnfitTypes(f"'{key}' is not the index of an input or output")
    return tuple(sorted((int(key), tuple(sorted(set(_names(names))))) for key, names in value.items()))


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise UnfitTypes("a list with at least one type is expected")
    return tuple(parse_type_name(name) for name in value)


_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_OPSET: Final = re.compile(r"[0-9]{1,10}")
_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
_SPACE: Final = re.compile(r"\s*")


@dataclass(kw_only=True)
class ConfigLine:
    """One line of the file, able to say where in it something is wrong."""

    where: str
    number: int
    text: str

    def fail(self, code: str, offset: int, what: str, hint: str = "") -> NoReturn:
        """Raise `OperatorsError` with the file, line and column."""
        place = f"line {self.number}, column {offset + 1}"
        raise OperatorsError(code, what, where=f"{self.where}: {place}" if self.where else place, hint=hint)

    @contextmanager
    def types_at(self, offset: int) -> Iterator[None]:
        """Give what is wrong with types a place in the file."""
        try:
            yield
        except UnfitTypes as error:
            self.fail(error.code, offset if error.offset is None else error.offset, str(error), error.hint)


def _type_names(line: ConfigLine, offset: int, listing: str) -> Iterator[str]:
    for word in listing.split(","):
        with line.types_at(offset):
            yield parse_type_name(word.strip())
        offset += len(word) + 1


def _read_operators(line: ConfigLine) -> Iterator[tuple[str, int, str, OperatorTypes, int]]:
    """Read `domain;opset,...;operator,...`; yield domain, opset, name, types and the types' offset of each."""
    fields = line.text.split(";", 2)
    if len(fields) != 3:
        hint = "write: domain;opset,...;operator,... (for example ai.onnx;13;Add,Gemm)"
        line.fail("config-syntax", 0, f"expected three fields separated by ';', found {len(fields)}", hint)
    domain = fields[0].strip()
    if not _DOMAIN.fullmatch(domain):
        hint = "the domain of ONNX's own operators is written ai.onnx"
        line.fail("config-syntax", 0, f"'{domain}' is not an operator domain", hint)
    opsets = tuple(_opsets(line, len(fields[0]) + 1, fields[1]))
    for name, types, offset in _operators(line, len(fields[0]) + len(fields[1]) + 2):
        yield from ((domain, opset, name, types, offset) for opset in opsets)


def _opsets(line: ConfigLine, offset: int, listing: str) -> Iterator[int]:
    for word in listing.split(","):
        digits = word.strip()
        if not _OPSET.fullmatch(digits) or not 1 <= int(digits) <= LARGEST:
            line.fail("config-bad-opset", offset, f"'{digits}' is not an opset version", "opsets are numbers from 1 up")
        yield int(digits)
        offset += len(word) + 1


def _operators(line: ConfigLine, position: int) -> Iterator[tuple[str, OperatorTypes, int]]:
    while True:
        name = _NAME.match(line.text, position)
        if not name:
            line.fail("config-syntax", position, "an operator's name is expected here")
        with line.types_at(name.end()):
            types, end = parse_types(line.text, name.end())
        yield name[1], types, name.end()
        space = _SPACE.match(line.text, end)
        position = space.end() if space else end
        if position == len(line.text):
            return
        if line.text[position] != ",":
            line.fail("config-syntax", position, f"',' is expected here, not '{line.text[position]}'")
        position += 1


GLOBAL_TYPES: Final = "!globally_allowed_types"
MEANS_ALL: Final = "!no_ops_specified_means_all_ops_are_required"


@dataclass(kw_only=True)
class _Reading:
    """What has been read so far."""

    asked: dict[OperatorId, list[OperatorTypes]] = field(default_factory=dict)
    typed_at: tuple[ConfigLine, int] | None = None
    global_types: tuple[str, ...] = ()
    means_all: bool = False


def parse_config(text: str, where: str = "") -> RequiredOperators:
    """Read a configuration; `where` names the file in errors.

    An operator named on several lines keeps the types of all of them, and all types if one line names it
    without any (upstream lets the last line win). Raises `OperatorsError` with line and column.
    """
    reading = _Reading()
    for number, raw in enumerate(text.split("\n"), start=1):
        line = ConfigLine(where=where, number=number, text=raw.rstrip())
        content = line.text.lstrip()
        if content.startswith("!"):
            _read_directive(line, content, reading)
        elif content and not content.startswith("#"):
            for domain, opset, name, types, offset in _read_operators(line):
                if not types.unrestricted:
                    reading.typed_at = reading.typed_at or (line, offset)
                reading.asked.setdefault(OperatorId(domain=domain, opset=opset, name=name), []).append(types)
    return _finished(reading)


def render_config(required: RequiredOperators) -> str:
    """Write a configuration: one line per domain and opset, sorted; the same value gives the same bytes.

    The text holds no comments, ends with a newline unless it is empty, and reads back as the same value.
    """
    lines = [MEANS_ALL] if required.everything else []
    if required.globally_allowed_types:
        lines.append(f"{GLOBAL_TYPES};{','.join(required.globally_allowed_types)}")
    types = dict(required.types)
    for (domain, opset), group in groupby(required.operators, key=lambda operator: (operator.domain, operator.opset)):
        names = [name + render_types(types.get((domain, name))) for name in (operator.name for operator in group)]
        lines.append(f"{domain};{opset};{','.join(names)}")
    return "".join(line + "\n" for line in lines)


def _finished(reading: _Reading) -> RequiredOperators:
    if reading.global_types and reading.typed_at:
        line, offset = reading.typed_at
        what = "types of single operators cannot be combined with globally allowed types"
        line.fail("config-mixed-types", offset, what, f"remove the types in braces, or the line '{GLOBAL_TYPES}'")
    sides: dict[tuple[str, str], list[OperatorTypes]] = {}
    for operator, types in reading.asked.items():
        sides.setdefault((operator.domain, operator.name), []).extend(types)
    return required_operators(
        reading.asked,
        {key: unite_types(types) for key, types in sides.items()},
        globally_allowed_types=reading.global_types,
        no_operators_means_all=reading.means_all,
    )


def _read_directive(line: ConfigLine, content: str, reading: _Reading) -> None:
    start = line.text.index("!")
    name, semicolon, listing = content.partition(";")
    if content == MEANS_ALL:
        reading.means_all = True
    elif name != GLOBAL_TYPES or not semicolon:
        hint = f"known directives: '{GLOBAL_TYPES};type,...' and '{MEANS_ALL}'"
        line.fail("config-unknown-directive", start, f"'{name}' is not a directive", hint)
    elif reading.global_types:
        line.fail("config-repeated-global-types", start, "globally allowed types were given before")
    else:
        offset = start + len(name) + 1
        reading.global_types = tuple(_type_names(line, offset, listing))


def reduce_operators(models: Iterable[OrtModel]) -> RequiredOperators:
    """Return the operators and types that the models require together; the order of models does not matter.

    They come from the converted models: optimizing makes operators that the originals do not show (upstream's
    issue 23018). Raises `OperatorsError` for a configuration that cannot be read.
    """
    configs = (parse_config(model.config, f"required operators of {model.name}") for model in models)
    return reduce(merge, configs, EMPTY)
