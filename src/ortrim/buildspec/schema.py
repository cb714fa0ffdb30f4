"""The JSON Schema of buildspecs, made from the types in `buildspec.buildspec`."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ortrim.buildspec.buildspec import BuildSpec
from ortrim.buildspec.problems import (
    APPLE_VERSION,
    ERROR_CODES,
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
    listed,
)
from ortrim.buildspec.targets import CPUS, TARGETS
from ortrim.buildspec.tolerances import DEFAULT_TOLERANCES, EXACT, LEVELS, Bounds, Tolerance

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


EXAMPLE: Final = """\
budgets = { library_ratio = 0.09, peak_rss_ratio = 0.4 }

[[models]]
name = "keyword"
path = "keyword.onnx"

[[models.cases]]
name = "one-second"
dimensions = { batch = 1, samples = 16000 }
"""

INTRODUCTION: Final = f"""\
# Buildspec reference

<!-- Rendered from src/ortrim/buildspec/buildspec.py by ortrim.buildspec.schema; a test compares the two. -->

A buildspec is a TOML file that says which models share a trimmed ONNX Runtime, for which targets and within which
budgets. This is a whole one:

```toml
{EXAMPLE}```

Paths are relative to the buildspec's folder. A key without a default may be left out unless it is marked *required*.
`invoke schema` prints the same as JSON Schema, for editors that complete and check TOML.
"""

PROBLEMS: Final = """\
## What can be wrong

Everything that is wrong with a buildspec is said at once, each problem with its file and dotted path; the exit code is
10 and nothing is written.

| reference | meaning |
|---|---|
"""

PAGE: Final = re.compile(r"docs/([a-z]+)/([a-z-]+)\.md")
"""A page as docstrings name it, from the root of the checkout; the reference links to it."""
BOUNDS: Final = {
    "exclusiveMinimum": "over {}",
    "minimum": "at least {}",
    "exclusiveMaximum": "under {}",
    "maximum": "at most {}",
}


SHARED: Final = {
    "title": "Step",
    "description": "The keys of every step; `use` says which step it is, and each has keys of its own, below.",
}


@dataclass(frozen=True)
class _Table:
    """A table of the buildspec: its heading, its keys as a path, and its schema."""

    heading: str
    path: str
    node: dict[str, Any]


def render_reference() -> str:
    """Return the reference as Markdown that ends with a newline."""
    root = buildspec_schema()
    tables = list(_tables(_Table("Top level", "", root), root))
    first = {table.node["title"]: table for table in reversed(tables)}
    sections = [_section(table, first[table.node["title"]], root) for table in tables]
    problems = PROBLEMS + "".join(f"| `{reference}` | {meaning} |\n" for reference, meaning in ERROR_CODES.items())
    return PAGE.sub(r"[\2](../\1/\2.md)", "\n".join([INTRODUCTION, *sections, problems]))


def _tables(table: _Table, root: dict[str, Any]) -> Iterator[_Table]:
    yield table
    for key, node in table.node["properties"].items():
        path = f"{table.path}.{key}".removeprefix(".")
        below = (
            _Table(f"`[{path}]`", path, resolved(node, root)),
            _Table(f"`[[{path}]]`", path, resolved(node.get("items", {}), root)),
            _Table(
                f"`[{path}.<{_entry(key)}>]`",
                f"{path}.<{_entry(key)}>",
                resolved(node.get("additionalProperties") or {}, root),
            ),
        )
        for candidate in below:
            if "properties" in candidate.node:
                yield from _tables(candidate, root)
        yield from _kinds(path, node.get("items", {}), root)


def _kinds(path: str, node: dict[str, Any], root: dict[str, Any]) -> Iterator[_Table]:
    """Yield a table that is of several kinds: the keys that all have, then those of each kind."""
    kinds = [resolved(each, root) for each in node.get("oneOf", ())]
    if kinds:
        shared = [key for key in kinds[0]["properties"] if all(key in kind["properties"] for kind in kinds)]
        yield _Table(f"`[[{path}]]`", path, _with_keys(kinds[0], [key for key in shared if key != "use"]) | SHARED)
    for variant in kinds:
        keys = [key for key in variant["properties"] if key not in shared]
        name = variant["properties"]["use"]["const"]
        yield _Table(f'`[[{path}]]` with `use = "{name}"`', path, _with_keys(variant, keys))


def _with_keys(node: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    return node | {"properties": {key: node["properties"][key] for key in keys}}


def _entry(key: str) -> str:
    """Return the word for a key that the user chooses (or takes from an enumeration) in the table `key`."""
    return {"tolerances": "element type", "inputs": "input"}.get(key, "name")


def _section(table: _Table, first: _Table, root: dict[str, Any]) -> str:
    """Return the section of a table; `first` is the first table of the same kind, which may be this one."""
    if table is not first:
        return f"## {table.heading}\n\nThe same keys as {first.heading}.\n"
    required = table.node.get("required", ())
    rows = (_row(key, node, key in required, root) for key, node in table.node["properties"].items())
    if not table.node["properties"]:
        return f"## {table.heading}\n\n{table.node['description']}\n"
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    more = MORE.get(table.node["title"], lambda: "")()
    return f"## {table.heading}\n\n{table.node['description']}\n\n{head}{''.join(rows)}{more}"


def _tolerances() -> str:
    """Return the defaults that depend on the element type, for which the schema has no words."""
    names = [field.name for field in fields(Tolerance)]
    rows = [
        *((f"`{kind}`", bounds) for kind, bounds in DEFAULT_TOLERANCES.items()),
        ("floats, `int8` and `uint8` of a quantized model", LEVELS),
        ("all others", EXACT),
    ]
    lines = [f"| {kind} | {' | '.join(_bound(bounds, name) for name in names)} |\n" for kind, bounds in rows]
    head = f"| element type | {' | '.join(f'`{name}`' for name in names)} |\n|---|{'---|' * len(names)}\n"
    return f"\nThe defaults:\n\n{head}{''.join(lines)}"


def _bound(bounds: Bounds, name: str) -> str:
    value: float | None = getattr(bounds, name)
    if name == "absolute" and bounds.rounding:
        return f"at most {bounds.rounding:.1e}"
    return "in distributions: 1" if value is None else "any" if math.isinf(value) else f"{value:g}"


def _processors() -> str:
    """Return the names that `cpu` takes, which depend on the target."""
    rows = (f"| `{kind}` | {', '.join(f'`{name}`' for name in names)} |\n" for kind, names in CPUS.items())
    return f"\nThe processors, by architecture:\n\n| architecture | `cpu` |\n|---|---|\n{''.join(rows)}"


MORE: Final = {"Tolerance": _tolerances, "TargetSpec": _processors}
"""What is said below a table of keys, by the title of its type."""


def _row(key: str, node: dict[str, Any], is_required: bool, root: dict[str, Any]) -> str:  # noqa: FBT001 - private
    default = "*required*" if is_required else _literal(node["default"]) if "default" in node else ""
    meaning = " ".join(node["description"].split())
    return f"| `{key}` | {_value(node, root)} | {default} | {meaning} |\n"


def _literal(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _value(node: dict[str, Any], root: dict[str, Any]) -> str:
    if choices := node.get("enum", [node["const"]] if "const" in node else []):
        return listed([f"`{choice}`" for choice in choices])
    if "anyOf" in node:
        return listed([_value(choice, root) for choice in node["anyOf"]])
    if "pattern" in node:
        return PATTERN_WORDS[node["pattern"]]
    if "items" in node:
        items = node["items"]
        plural = "" if {"enum", "const", "anyOf"} & set(items) else "s"
        return "array of tables" if {"$ref", "oneOf"} & set(items) else f"array of {_value(items, root)}{plural}"
    if "additionalProperties" in node and "properties" not in node:
        return f"table by {'element type' if 'propertyNames' in node else 'name'}"
    name = {"object": "table", "path": "path"}.get(node.get("format", resolved(node, root)["type"]))
    bounds = [words.format(node[key]) for key, words in BOUNDS.items() if key in node]
    return ", ".join([name or node["type"], *bounds])
