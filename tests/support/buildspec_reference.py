"""docs/reference/buildspec.md is what the types of a buildspec say of themselves."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from ortrim.buildspec.problems import listed
from ortrim.buildspec.schema import PATTERN_WORDS, buildspec_schema, resolved
from ortrim.buildspec.targets import CPUS
from ortrim.buildspec.tolerances import DEFAULT_TOLERANCES, EXACT, LEVELS, Bounds, Tolerance

ERROR_CODES: Final = {
    "spec-missing": "There is no such file, or it is not a plain file.",
    "spec-unreadable": "The file cannot be read.",
    "spec-too-large": "The file is far too large for a buildspec.",
    "not-utf8": "The file is not UTF-8 text.",
    "not-toml": "The text is not TOML; the line and the column are given.",
    "unknown-key": "The key does not exist there.",
    "missing-key": "A required key is not given.",
    "wrong-type": "The value has the wrong type.",
    "bad-value": "The value has the right type but is not one of the possible values.",
    "stray-key": "The key has no meaning together with the other keys.",
    "duplicate-name": "Two models, cases or targets have the same name.",
    "second-reference": "Two models are marked as the reference of the others' latency.",
    "model-source": "A model has no source, or more than one.",
    "unsafe-url": "The address is neither HTTPS nor on loopback, or it holds a password.",
    "unsafe-member": "The path inside the wheel is not a plain relative path.",
    "unknown-target": "No such target exists.",
    "unknown-cpu": "No such processor is known for the target's architecture; the names are given.",
    "model-missing": "The model's file does not exist.",
    "data-missing": "The recorded inputs of a case do not exist.",
    "unknown-case": "No such case of the model exists.",
    "case-circle": "Cases come after each other in a circle, so that none is the first.",
    "step-file-missing": "A file that a step names does not exist.",
    "idle-step": "A step of a model's preparation has nothing to do.",
    "source-missing": "The checkout of ONNX Runtime does not exist.",
}

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

<!-- Rendered from src/ortrim/buildspec/buildspec.py by tests/support/buildspec_reference.py; ORTRIM_WRITE_DOCS=1 writes
it anew. -->

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
class KeyTable:
    """A table of the buildspec: its heading, its keys as a path, and its schema."""

    heading: str
    path: str
    node: dict[str, Any]


def render_reference() -> str:
    """Return the reference as Markdown that ends with a newline."""
    root = buildspec_schema()
    tables = list(_tables(KeyTable("Top level", "", root), root))
    first = {table.node["title"]: table for table in reversed(tables)}
    sections = [_section(table, first[table.node["title"]], root) for table in tables]
    problems = PROBLEMS + "".join(f"| `{reference}` | {meaning} |\n" for reference, meaning in ERROR_CODES.items())
    return PAGE.sub(r"[\2](../\1/\2.md)", "\n".join([INTRODUCTION, *sections, problems]))


def _tables(table: KeyTable, root: dict[str, Any]) -> Iterator[KeyTable]:
    yield table
    for key, node in table.node["properties"].items():
        path = f"{table.path}.{key}".removeprefix(".")
        below = (
            KeyTable(f"`[{path}]`", path, resolved(node, root)),
            KeyTable(f"`[[{path}]]`", path, resolved(node.get("items", {}), root)),
            KeyTable(
                f"`[{path}.<{_entry(key)}>]`",
                f"{path}.<{_entry(key)}>",
                resolved(node.get("additionalProperties") or {}, root),
            ),
        )
        for candidate in below:
            if "properties" in candidate.node:
                yield from _tables(candidate, root)
        yield from _kinds(path, node.get("items", {}), root)


def _kinds(path: str, node: dict[str, Any], root: dict[str, Any]) -> Iterator[KeyTable]:
    """Yield a table that is of several kinds: the keys that all have, then those of each kind."""
    kinds = [resolved(each, root) for each in node.get("oneOf", ())]
    if kinds:
        shared = [key for key in kinds[0]["properties"] if all(key in kind["properties"] for kind in kinds)]
        yield KeyTable(f"`[[{path}]]`", path, _with_keys(kinds[0], [key for key in shared if key != "use"]) | SHARED)
    for variant in kinds:
        keys = [key for key in variant["properties"] if key not in shared]
        name = variant["properties"]["use"]["const"]
        yield KeyTable(f'`[[{path}]]` with `use = "{name}"`', path, _with_keys(variant, keys))


def _with_keys(node: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    return node | {"properties": {key: node["properties"][key] for key in keys}}


def _entry(key: str) -> str:
    """Return the word for a key that the user chooses (or takes from an enumeration) in the table `key`."""
    return {"tolerances": "element type", "inputs": "input"}.get(key, "name")


def _section(table: KeyTable, first: KeyTable, root: dict[str, Any]) -> str:
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
