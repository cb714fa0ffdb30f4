"""Core types to JSON and back, with pydantic doing the work."""

import json
import math
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from ortrim.errors import Diagnostic

T = TypeVar("T")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type; kept, since making one is slow and using it is fast."""
    return TypeAdapter(kind)


def to_data(value: Any) -> Any:
    """Return `value` as JSON-ready data; `NaN` and infinities become strings, which `from_json` takes for a float."""
    kind: Any = type(value)
    return _strict(_adapter(kind).dump_python(value, mode="json"))


def to_json(value: Any) -> str:
    """Return `value` as indented JSON that ends with a newline; the order of keys is that of the fields."""
    return json.dumps(to_data(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_canonical_json(value: Any) -> str:
    """Return `value` as JSON whose bytes depend on nothing but the value: sorted keys, no spaces."""
    return json.dumps(to_data(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def from_json(kind: type[T], text: str | bytes) -> T:
    """Read a value of type `kind` back. Raises `pydantic.ValidationError` when the text does not fit."""
    value: T = _adapter(cast(Any, kind)).validate_json(text)
    return value


def from_data(kind: type[T], data: object) -> T:
    """Do what `from_json` does with data in memory."""
    value: T = _adapter(cast(Any, kind)).validate_python(data)
    return value


def read_json(kind: type[T], text: str | bytes, damaged: Diagnostic) -> T:
    """Read a value of type `kind`; raises `damaged`, with the first place that does not fit as its reason."""
    try:
        return from_json(kind, text)
    except ValidationError as error:
        damaged.why = damaged.why or first_fault(error)
        raise damaged from error


def first_fault(error: ValidationError) -> str:
    """Name the first place that does not fit its type, by its dotted path, and say why."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"


def _strict(data: Any) -> Any:
    """Return data in which every number is one that JSON has."""
    if isinstance(data, dict):
        return {key: _strict(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_strict(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    return data
