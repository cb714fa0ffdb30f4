"""The parts of one line of a required-operators configuration, and where in it something is wrong. Pure."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

from ortrim.core.operator_config_types import UnfitTypes, parse_type_name, parse_types
from ortrim.core.operators import OperatorTypes
from ortrim.errors import OperatorsError

LARGEST_OPSET: Final = 2**31 - 1

_DOMAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
_OPSET: Final = re.compile(r"[0-9]{1,10}")
_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
_SPACE: Final = re.compile(r"\s*")


@dataclass(kw_only=True)
class Line:
    """One line of the file, able to say where in it something is wrong."""

    where: str
    number: int
    text: str

    def fail(self, reference: str, offset: int, what: str, hint: str = "") -> NoReturn:
        """Raise `OperatorsError` with the file, line and column."""
        place = f"line {self.number}, column {offset + 1}"
        raise OperatorsError(reference, what, where=f"{self.where}: {place}" if self.where else place, hint=hint)

    @contextmanager
    def types_at(self, offset: int) -> Iterator[None]:
        """Give what is wrong with types a place in the file."""
        try:
            yield
        except UnfitTypes as error:
            self.fail(error.reference, offset if error.offset is None else error.offset, str(error), error.hint)


def type_names(line: Line, offset: int, listing: str) -> Iterator[str]:
    """Yield the element types of a list that starts at `offset`. Raises `OperatorsError`."""
    for word in listing.split(","):
        with line.types_at(offset):
            name = parse_type_name(word.strip())
        yield name
        offset += len(word) + 1


def operators_of(line: Line) -> Iterator[tuple[str, int, str, OperatorTypes, int]]:
    """Read `domain;opset,...;operator,...`; yield domain, opset, name, types and the types' offset of each.

    Raises `OperatorsError`.
    """
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


def _opsets(line: Line, offset: int, listing: str) -> Iterator[int]:
    for word in listing.split(","):
        digits = word.strip()
        if not _OPSET.fullmatch(digits) or not 1 <= int(digits) <= LARGEST_OPSET:
            line.fail("config-bad-opset", offset, f"'{digits}' is not an opset version", "opsets are numbers from 1 up")
        yield int(digits)
        offset += len(word) + 1


def _operators(line: Line, position: int) -> Iterator[tuple[str, OperatorTypes, int]]:
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
