"""The element types that follow an operator's name in a required-operators configuration, as JSON. Pure."""

import json
from difflib import get_close_matches
from typing import Any, Final

from ortrim.core.operators import UNRESTRICTED, OperatorTypes

ELEMENT_TYPES: Final = (
    "BFloat16", "Float4E2M1x2", "Float8E4M3FN", "Float8E4M3FNUZ", "Float8E5M2", "Float8E5M2FNUZ", "Int4x2",
    "MLFloat16", "UInt4x2", "bool", "double", "float", "int16_t", "int32_t", "int64_t", "int8_t", "std::string",
    "uint16_t", "uint32_t", "uint64_t", "uint8_t",
)  # fmt: skip
"""C++ names of element types: upstream's `FbsTypeInfo.tensordatatype_to_string`, and those of newer versions."""

LARGEST_SLOT: Final = 2**31 - 1


class UnfitTypes(Exception):
    """The text is not a description of types; `offset` says where, when it is not at the start of the types."""

    def __init__(
        self, what: str, *, reference: str = "config-bad-types", hint: str = "", offset: int | None = None
    ) -> None:
        super().__init__(what)
        self.reference = reference
        self.hint = hint
        self.offset = offset


def parse_type_name(word: str) -> str:
    """Return the C++ element type that `word` names. Raises `UnfitTypes` (`config-unknown-type`)."""
    if word not in ELEMENT_TYPES:
        near = get_close_matches(word, ELEMENT_TYPES, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"known types: {', '.join(ELEMENT_TYPES)}"
        raise UnfitTypes(f"'{word}' is not an element type", reference="config-unknown-type", hint=hint)
    return word


def parse_types(text: str, position: int) -> tuple[OperatorTypes, int]:
    """Read the JSON object at `position`, if there is one; return the types and the offset behind them.

    Raises `UnfitTypes` (`config-bad-types`, `config-unknown-type`).
    """
    if text[position : position + 1] != "{":
        return UNRESTRICTED, position
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise UnfitTypes(f"the types are not JSON: {error.msg}", offset=error.pos) from error
    except RecursionError as error:
        raise UnfitTypes("the types are nested too deeply") from error
    except ValueError as error:
        raise UnfitTypes("the types hold a number that is too long") from error
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
    types = OperatorTypes(
        inputs=_slots(value.get("inputs", {})),
        outputs=_slots(value.get("outputs", {})),
        custom=_tuples(value.get("custom", [])),
    )
    if types.unrestricted:
        raise UnfitTypes("no types are given", hint="leave the braces out to keep all types")
    return types


def _slots(value: Any) -> tuple[tuple[int, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise UnfitTypes("inputs and outputs map an index to a list of types")
    return tuple(sorted((_index(key), tuple(sorted(set(_names(names))))) for key, names in value.items()))


def _index(key: str) -> int:
    canonical = key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and len(key) <= 10
    if not canonical or int(key) > LARGEST_SLOT:
        raise UnfitTypes(f"'{key}' is not the index of an input or output")
    return int(key)


def _tuples(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise UnfitTypes("custom is a list of lists of types")
    return tuple(sorted({_names(names) for names in value}))


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise UnfitTypes("a list with at least one type is expected")
    return tuple(parse_type_name(name) for name in value)
