"""The JSON Schema of buildspecs, made from the types in `buildspec.buildspec`."""

import math
from dataclasses import fields
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ortrim.buildspec.buildspec import BuildSpec
from ortrim.buildspec.problems import (
    APPLE_VERSION,
    GLIBC,
    NAME,
    NDK,
    PROVIDER,
    REQUIREMENT,
    SHA256,
    VERSION,
    XCODE,
    Location,
    Problem,
    kind,
)
from ortrim.buildspec.targets import TARGETS

PATTERN_WORDS: Final = {
    NAME: "1 to 64 lower-case letters, digits, '.', '_' or '-', beginning with a letter or a digit",
    SHA256: "64 lower-case hexadecimal digits",
    VERSION: "a version such as 1.30.0 or 1.30, or 'newest'",
    GLIBC: "a glibc version, such as 2.17",
    NDK: "the version of an NDK, such as 27.2.12479018, or its major",
    APPLE_VERSION: "a version of iOS or macOS, such as 15.1",
    XCODE: "a version of Xcode, such as 16.4",
    PROVIDER: "an execution provider's name, such as CPUExecutionProvider",
    REQUIREMENT: "a package and its exact version, such as silero-vad==6.2.3",
}
"""What the patterns of strings mean."""


class _TomlSchema(GenerateJsonSchema):
    """Keeps the order of the fields; leaves out what TOML cannot say (null) and titles that repeat the key."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        made = super().dataclass_schema(schema)
        properties = made["properties"]
        return made | {"properties": {field.name: properties[field.name] for field in fields(schema["cls"])}}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if key != "default" or value not in (None, [])}

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def buildspec_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a buildspec's TOML data."""
    schema = TypeAdapter(BuildSpec).json_schema(schema_generator=_TomlSchema)
    schema["required"].remove("name")  # the file's stem by default
    schema["$defs"]["TargetSpec"]["properties"]["id"]["enum"] = list(TARGETS)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def known_keys(location: Location) -> tuple[str, ...]:
    """Return the keys that the table at `location` takes; none when any key goes.

    Where tables are of several kinds, the location has the kind behind the number, as pydantic writes it.
    """
    node = _node(location)
    return tuple(node.get("properties", ())) or tuple(node.get("propertyNames", {}).get("enum", ()))


def resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return the definition that a schema node refers to, or the node itself."""
    reference = node.get("$ref")
    definition: dict[str, Any] = root["$defs"][reference.rpartition("/")[2]] if reference else node
    return definition


@cache
def _schema() -> dict[str, Any]:
    return buildspec_schema()


def _node(location: Location) -> dict[str, Any]:
    node = _schema()
    for part in location:
        if isinstance(part, int):
            node = node.get("items", {})
        elif "discriminator" in node:
            node = _of_kind(node, part)
        else:
            node = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
        node = resolved(node, _schema())
    return node


def _of_kind(node: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the kind of a table that is of several, or, without its name, the property of the first that has it."""
    kinds = node["discriminator"]["mapping"]
    if part in kinds:
        return {"$ref": kinds[part]}
    properties = (resolved(each, _schema())["properties"] for each in node["oneOf"])
    return next((each[part] for each in properties if part in each), {})


DEEPEST: Final = 32
"""Levels of nesting that are followed; a buildspec needs six."""


def plain_copy(value: Any, location: Location, problems: list[Problem]) -> Any:
    """Return a copy of TOML data in which None stands for each value that is reported in `problems`."""
    if len(location) > DEEPEST:
        problems.append(Problem("bad-value", location[:8], "is nested too deeply"))
        return None
    if isinstance(value, dict):
        return {key: plain_copy(below, (*location, key), problems) for key, below in value.items()}
    if isinstance(value, list):
        return [plain_copy(below, (*location, index), problems) for index, below in enumerate(value)]
    if (reference_and_what := _unfit(value)) is None:
        return value
    problems.append(Problem(code=reference_and_what[0], location=location, what=reference_and_what[1]))
    return None


def _unfit(value: Any) -> tuple[str, str] | None:
    """Return the reference and the words for a value that no key takes."""
    if not isinstance(value, str | int | float):
        return "wrong-type", f"is {kind(value)}, which is not a type of any key"
    if isinstance(value, float) and not math.isfinite(value):
        return "bad-value", f"must be a finite number, not {value}"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "bad-value", "does not fit into the 64 bits of a TOML integer"
    return None
