"""The buildspec reference, `docs/buildspec.md`, rendered from the schema."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from ortrim.core.processors import CPUS
from ortrim.core.tolerance_spec import Tolerance
from ortrim.core.tolerances import DEFAULTS, EXACT, LEVELS, Bounds
from ortrim.spec.problems import REFERENCES, listed
from ortrim.spec.schema import PATTERN_WORDS, buildspec_schema, resolved

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

<!-- Rendered from the types in src/ortrim/core/buildspec.py by ortrim.spec.reference; a test compares the two. -->

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
    problems = PROBLEMS + "".join(f"| `{reference}` | {meaning} |\n" for reference, meaning in REFERENCES.items())
    return "\n".join([INTRODUCTION, *sections, problems])


def _tables(table: _Table, root: dict[str, Any]) -> Iterator[_Table]:
    """Yield a table and the tables below it, each behind its parent."""
    yield table
    for key, node in table.node["properties"].items():
        path = f"{table.path}.{key}".removeprefix(".")
        below = (
            _Table(f"`[{path}]`", path, resolved(node, root)),
            _Table(f"`[[{path}]]`", path, resolved(node.get("items", {}), root)),
            _Table(f"`[{path}.<{_entry(key)}>]`", f"{path}.<{_entry(key)}>", _additional(node, root)),
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
    for kind in kinds:
        keys = [key for key in kind["properties"] if key not in shared]
        name = kind["properties"]["use"]["const"]
        yield _Table(f'`[[{path}]]` with `use = "{name}"`', path, _with_keys(kind, keys))


def _with_keys(node: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    return node | {"properties": {key: node["properties"][key] for key in keys}}


def _entry(key: str) -> str:
    """Return the word for a key that the user chooses (or takes from an enumeration) in the table `key`."""
    return {"tolerances": "element type", "inputs": "input"}.get(key, "name")


def _additional(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    return resolved(node.get("additionalProperties") or {}, root)


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
        *((f"`{kind}`", bounds) for kind, bounds in DEFAULTS.items()),
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
    """Return in words what a key takes."""
    if choices := node.get("enum", [node["const"]] if "const" in node else []):
        return listed([f"`{choice}`" for choice in choices])
    if "anyOf" in node:
        return listed([_value(choice, root) for choice in node["anyOf"]])
    if "pattern" in node:
        return PATTERN_WORDS[node["pattern"]]
    if "items" in node:
        items = node["items"]
        plural = "" if {"enum", "const"} & set(items) else "s"
        return "array of tables" if {"$ref", "oneOf"} & set(items) else f"array of {_value(items, root)}{plural}"
    if "additionalProperties" in node and "properties" not in node:
        return f"table by {'element type' if 'propertyNames' in node else 'name'}"
    name = {"object": "table", "path": "path"}.get(node.get("format", resolved(node, root)["type"]))
    bounds = [words.format(node[key]) for key, words in BOUNDS.items() if key in node]
    return ", ".join([name or node["type"], *bounds])
