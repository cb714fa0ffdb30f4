"""ONNX Runtime's required-operators configuration: the text of `--include_ops_by_config`, read and written. Pure.

The grammar is that of upstream's `tools/python/util/reduced_build_config_parser.py`, read more strictly: what
upstream silently takes for something else is an error here.
"""

from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from ortrim.core.operator_config_lines import Line, operators_of, type_names
from ortrim.core.operator_config_types import render_types
from ortrim.core.operators import OperatorId, OperatorTypes, RequiredOperators, required_operators, unite_types

GLOBAL_TYPES: Final = "!globally_allowed_types"
MEANS_ALL: Final = "!no_ops_specified_means_all_ops_are_required"


@dataclass(kw_only=True)
class _Reading:
    """What has been read so far."""

    asked: dict[OperatorId, list[OperatorTypes]] = field(default_factory=dict)
    typed_at: tuple[Line, int] | None = None
    global_types: tuple[str, ...] = ()
    means_all: bool = False


def parse_config(text: str, where: str = "") -> RequiredOperators:
    """Read a configuration; `where` names the file in errors.

    An operator named on several lines keeps the types of all of them, and all types if one line names it
    without any (upstream lets the last line win). Raises `OperatorsError` with line and column: `config-syntax`,
    `config-bad-opset`, `config-unknown-type`, `config-bad-types`, `config-mixed-types`,
    `config-repeated-global-types`, `config-unknown-directive`.
    """
    reading = _Reading()
    for number, raw in enumerate(text.split("\n"), start=1):
        line = Line(where=where, number=number, text=raw.rstrip())
        content = line.text.lstrip()
        if content.startswith("!"):
            _read_directive(line, content, reading)
        elif content and not content.startswith("#"):
            _read_operators(line, reading)
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


def _read_directive(line: Line, content: str, reading: _Reading) -> None:
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
        reading.global_types = tuple(type_names(line, offset, listing))


def _read_operators(line: Line, reading: _Reading) -> None:
    for domain, opset, name, types, offset in operators_of(line):
        if not types.unrestricted:
            reading.typed_at = reading.typed_at or (line, offset)
        reading.asked.setdefault(OperatorId(domain=domain, opset=opset, name=name), []).append(types)
