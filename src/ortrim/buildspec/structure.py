"""Keys, types and simple bounds: pydantic's findings in the words of buildspecs."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ortrim.buildspec.problems import Location, Problem, kind, listed, nearest, renamed, shown
from ortrim.buildspec.schema import PATTERN_WORDS, known_keys

WANTED: Final = {
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "path_type": "a string",
    "tuple_type": "an array",
    "dict_type": "a table",
    "dataclass_type": "a table",
}
"""What pydantic wanted when it reports a wrong type, by the type of its finding."""

BOUNDS: Final = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}

KIND_KEY: Final = "use"
"""The key that says what kind a table is of, where there are several."""
KIND_KEY_FINDINGS: Final = ("union_tag_invalid", "union_tag_not_found")

Finding = Mapping[str, Any]


def parse(kind_of_value: Any, data: Any) -> Any:
    """Return JSON data as a value of one of the types in `spec.buildspec`.

    Raises `pydantic.ValidationError`. JSON rather than Python data is handed over, since strict validation takes
    a list for a tuple and a string for a path only there.
    """
    return _adapter(kind_of_value).validate_json(json.dumps(data))


def structure_problems(kind_of_value: Any, data: Any) -> tuple[Problem, ...]:
    """Return what keeps JSON data from being a value of the type."""
    try:
        parse(kind_of_value, data)
    except ValidationError as error:
        found: dict[Location, list[Finding]] = {}
        for finding in error.errors():
            found.setdefault(_located(finding, data), []).append(finding)
        problems = (_problem(location, findings) for location, findings in found.items())
        return tuple(problem for problem in problems if problem)
    return ()


@cache
def _adapter(kind_of_value: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind_of_value)


def _located(finding: Finding, data: Any) -> Location:
    """Return where in the document a finding is; pydantic adds union members and `[key]` to the way."""
    location = _without_kinds(finding["loc"], data)
    if finding["type"] in KIND_KEY_FINDINGS:
        return (*location, KIND_KEY)
    if finding["type"] == "missing":
        return location
    for depth, part in enumerate(location):
        if data == finding["input"] or not _holds(data, part):
            return location[:depth]
        data = data[part]
    return location


def _without_kinds(location: Location, data: Any) -> Location:
    """Leave out the kinds of tables, the values of their key `use`, which pydantic puts behind their numbers."""
    kept: list[str | int] = []
    for part in location:
        if kept and isinstance(kept[-1], int) and isinstance(data, dict) and data.get(KIND_KEY) == part:
            continue
        kept.append(part)
        data = data[part] if _holds(data, part) else None
    return tuple(kept)


def _holds(data: Any, part: str | int) -> bool:
    return isinstance(data, list) if isinstance(part, int) else isinstance(data, dict) and part in data


def _is_about_key(finding: Finding) -> bool:
    """Whether the key is wrong: one that a type lacks, or one outside the enumeration of a table's keys."""
    if finding["type"] == "literal_error":
        return bool(finding["loc"][-1] == "[key]")
    return bool(finding["type"] == "unexpected_keyword_argument")


def _problem(location: Location, findings: list[Finding]) -> Problem | None:
    """Return the problem that the findings at one place come to."""
    first = findings[0]
    if any(_is_about_key(finding) for finding in findings):
        return _unknown_key(location, first)
    if first["type"] in {"missing", "union_tag_not_found"}:
        return Problem(code="missing-key", location=location, what="is missing")
    if all(finding["type"] in WANTED for finding in findings):
        return _wrong_type(location, [WANTED[finding["type"]] for finding in findings], first["input"])
    return _bad_value(location, first)


def _unknown_key(location: Location, finding: Finding) -> Problem:
    known = known_keys(finding["loc"][:-1] if finding["type"] == "unexpected_keyword_argument" else location[:-1])
    hint = renamed(str(location[-1]), known) or nearest(
        location[-1], known, otherwise=f"the keys here are {listed(known, 'and')}"
    )
    return Problem(code="unknown-key", location=location, what="is not a known key", hint=hint)


def _wrong_type(location: Location, wanted: list[str], value: Any) -> Problem:
    table_for_array = wanted == ["an array"] and isinstance(value, dict)
    hint = f"each one begins with [[{location[-1]}]]" if table_for_array and len(location) == 1 else ""
    what = f"must be {listed(wanted)}, not {kind(value)}"
    return Problem(code="wrong-type", location=location, what=what, hint=hint)


def _bad_value(location: Location, finding: Finding) -> Problem | None:
    what, hint = _words(finding)
    if finding["type"] == "too_short":
        what, hint = "is empty", f"add a [[{location[-1]}]] table" if len(location) == 1 else ""
        # pydantic counts only the sound items, so that a list of one unsound model is "too short" as well
        if finding["input"]:
            return None
    of_other_type = finding["type"] == "literal_error" and not isinstance(finding["input"], str)
    code = "wrong-type" if of_other_type else "bad-value"
    return Problem(code=code, location=location, what=what, hint=hint)


def _words(finding: Finding) -> tuple[str, str]:
    """Return what is wrong with a value, and a hint."""
    value, context = finding["input"], finding.get("ctx", {})
    if finding["type"] == "union_tag_invalid":
        kinds = context["expected_tags"].split("'")[1::2]
        quoted = listed([repr(kind) for kind in kinds])
        return f"must be {quoted}, not {shown(context['tag'])}", nearest(context["tag"], kinds)
    if finding["type"] == "literal_error":
        return f"must be {context['expected']}, not {shown(value)}", nearest(
            value, context["expected"].split("'")[1::2]
        )
    if finding["type"] == "string_too_short":
        return "is empty", ""
    if finding["type"] == "string_pattern_mismatch":
        return f"must be {PATTERN_WORDS[context['pattern']]}, not {shown(value)}", ""
    if finding["type"] in BOUNDS:
        words, key = BOUNDS[finding["type"]]
        return f"must be {words} {context[key]:.10g}, not {shown(value)}", ""
    return f"is refused: {finding['msg']}", ""
