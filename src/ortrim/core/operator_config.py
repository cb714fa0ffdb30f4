"""ONNX Runtime's required-operators configuration: the text of `--include_ops_by_config`, read and written. Pure.

The grammar is that of upstream's `tools/python/util/reduced_build_config_parser.py`, read more strictly: what
upstream silently takes for something else is an error here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NoReturn

from ortrim.core.operator_config_types import UnfitTypes, parse_type_name, parse_types, render_types
from ortrim.core.operators import OperatorId, OperatorTypes, RequiredOperators, required_operators, unite_types
from ortrim.errors import OperatorsError

GLOBAL_TYPES: Final = "!globally_allowed_types"
MEANS_ALL: Final = "!no_ops_specified_means_all_ops_are_required"
LARGEST_OPSET: Final = 2**31 - 1

_DOMAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_OPSET: Final = re.compile(r"[0-9]{1,10}")
_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
_SPACE: Final = re.compile(r"\s*")


@dataclass(kw_only=True)
class _Line:
    """One line of the file, able to say where in it something is wrong."""

    where: str
    number: int
    text: str

    def fail(self, reference: str, offset: int, what: str, hint: str = "") -> NoReturn:
        place = f"line {self.number}, column {offset + 1}"
        raise OperatorsError(reference, what, where=f"{self.where}: {place}" if self.where else place, hint=hint)

    @contextmanager
    def types_at(self, offset: int) -> Iterator[None]:
        """Give what is wrong with types a place in the file."""
        try:
            yield
        except UnfitTypes as error:
            self.fail(error.reference, offset if error.offset is None else error.offset, str(error), error.hint)


@dataclass(kw_only=True)
class _Reading:
    """What has been read so far."""

    asked: dict[OperatorId, list[OperatorTypes]] = field(default_factory=dict)
    typed_at: tuple[_Line, int] | None = None
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
        line = _Line(where=where, number=number, text=raw.rstrip())
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


def _read_directive(line: _Line, content: str, reading: _Reading) -> None:
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


def _type_names(line: _Line, offset: int, listing: str) -> Iterator[str]:
    for word in listing.split(","):
        with line.types_at(offset):
            name = parse_type_name(word.strip())
        yield name
        offset += len(word) + 1


def _read_operators(line: _Line, reading: _Reading) -> None:
    """Read `domain;opset,...;operator,...`."""
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
        if not types.unrestricted:
            reading.typed_at = reading.typed_at or (line, offset)
        for opset in opsets:
            reading.asked.setdefault(OperatorId(domain=domain, opset=opset, name=name), []).append(types)


def _opsets(line: _Line, offset: int, listing: str) -> Iterator[int]:
    for word in listing.split(","):
        digits = word.strip()
        if not _OPSET.fullmatch(digits) or not 1 <= int(digits) <= LARGEST_OPSET:
            line.fail("config-bad-opset", offset, f"'{digits}' is not an opset version", "opsets are numbers from 1 up")
        yield int(digits)
        offset += len(word) + 1


def _operators(line: _Line, position: int) -> Iterator[tuple[str, OperatorTypes, int]]:
    """Yield each operator's name, its types and the offset of the types."""
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
