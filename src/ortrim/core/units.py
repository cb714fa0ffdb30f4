"""The index of units: which translation unit of ONNX Runtime defines what others need, which holds kernels. Pure.

A unit is named by its source's symbolic path: `${sources}/onnxruntime/onnxruntime/core/graph/graph.cc`, or
`${build}/MinSizeRel/...` for what the build generates. An index comes from one full build and serves every later one:
what it says too much costs time, what it says too little is found by the linker.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, FailFast, Field, ValidationError
from pydantic.dataclasses import dataclass

from ortrim.core.serialization import from_json, to_canonical_json, to_data
from ortrim.core.spec_words import VERSION
from ortrim.errors import SourcesError

CONFIG: Final = ConfigDict(extra="forbid", strict=True)
LARGEST_INDEX: Final = 8 << 20
"""Characters that an index may have; that of 1.21.0 has a third of a million."""

WORD: Final = r"^[a-z0-9][a-z0-9_-]{0,63}$"
UNIT: Final = r"^\$\{(sources|build)\}(/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)+$"
"""No part begins with a dot, and nothing stands in it that CMake, a shell or ninja would read as anything else."""
SYMBOL: Final = r"^[!-~]+$"
KERNEL: Final = r"^[A-Za-z0-9_.-]+:[A-Za-z_][A-Za-z0-9_]*$"

Word = Annotated[str, Field(pattern=WORD)]
UnitPath = Annotated[str, Field(pattern=UNIT, max_length=1000)]
Symbol = Annotated[str, Field(pattern=SYMBOL, max_length=10_000)]
KernelKey = Annotated[str, Field(pattern=KERNEL, max_length=200)]
UnitNumber = Annotated[int, Field(ge=0)]
UnitNumbers = Annotated[tuple[UnitNumber, ...], FailFast()]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Variant:
    """What an index was made with: `target` is an identifier, `toolchain` a kind (`zig`).

    Upstream's ML operators are in every index, and the minimum glibc changes none, so that neither is part of this.
    """

    ort_version: Annotated[str, Field(pattern=VERSION)]
    target: Word
    toolchain: Word
    exceptions: bool

    @property
    def stem(self) -> str:
        """The name of the index's file, without its suffix."""
        words = f"onnxruntime-{self.ort_version}-{self.target}-{self.toolchain}"
        return f"{words}-exceptions" if self.exceptions else words


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Unit:
    """One translation unit: the symbols it defines that others need, kernels aside, and the units that it needs."""

    path: UnitPath
    provides: Annotated[tuple[Symbol, ...], FailFast()]
    needs: UnitNumbers


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class UnitIndex:
    """The units in the order of their paths; all else names them by their numbers in that order.

    `roots` are in every library; `kernels` says for each operator (`ai.onnx:Add`) which units hold kernels of it, of
    whatever version and type. Every tuple is sorted and without duplicates, so that equal indices have equal bytes.
    """

    schema: Literal["ortrim-units/1"] = "ortrim-units/1"
    variant: Variant
    roots: UnitNumbers
    units: Annotated[tuple[Unit, ...], FailFast()]
    kernels: Annotated[tuple[tuple[KernelKey, UnitNumbers], ...], FailFast()]

    def __post_init__(self) -> None:
        """Refuse what is not sorted, repeated or out of range."""
        numbers = (self.roots, *(unit.needs for unit in self.units), *(numbers for _, numbers in self.kernels))
        if any(number >= len(self.units) for number in chain.from_iterable(numbers)):
            raise ValueError("it names a unit that it does not have")
        names = (tuple(unit.path for unit in self.units), tuple(key for key, _ in self.kernels))
        if not all(map(_ascending, chain(numbers, names, (unit.provides for unit in self.units)))):
            raise ValueError("something in it is repeated or not sorted")
        if not self.roots:
            raise ValueError("it has no roots")


def read_index(text: str | bytes, where: str = "") -> UnitIndex:
    """Read an index; `where` names the file in errors. Raises `SourcesError` (`bad-unit-index`)."""
    if len(text) > LARGEST_INDEX:
        raise bad_index(where, f"it is larger than {LARGEST_INDEX:,} bytes")
    with index_errors(where):
        return from_json(UnitIndex, text)


def render_index(index: UnitIndex) -> str:
    """Write an index as JSON: one line for each unit and each operator; the same index gives the same bytes."""
    fields = ",\n".join(f'"{name}":{_rendered(value)}' for name, value in to_data(index).items())
    return f"{{{fields}}}\n"


@contextmanager
def index_errors(where: str) -> Iterator[None]:
    """Turn pydantic's finding that something is not an index into the diagnostic."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise bad_index(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")) from error


def bad_index(where: str, why: str) -> SourcesError:
    """Make the diagnostic of what is not an index."""
    hint = "restore the file, or make it anew: invoke pins.index"
    return SourcesError("bad-unit-index", "is not a valid index of units", where=where, why=why, hint=hint)


def _ascending(values: tuple[Any, ...]) -> bool:
    return all(one < other for one, other in pairwise(values))


def _rendered(value: Any) -> str:
    if not isinstance(value, list) or not any(isinstance(entry, dict | list) for entry in value):
        return to_canonical_json(value)
    lines = ",\n".join(map(to_canonical_json, value))
    return f"[\n{lines}\n]"
