"""How far outputs may differ, as a buildspec says it."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.spec_words import CONFIG

ElementType = Literal[
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "string",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Tolerance:
    """The largest differences from the full runtime that count as parity, for one element type.

    An element passes when its absolute *or* its relative difference is within bounds. A key that is left out has the
    element type's own default.
    """

    absolute: Annotated[float, Field(ge=0)] | None = None
    """Largest absolute difference of an element."""
    relative: Annotated[float, Field(ge=0)] | None = None
    """Largest relative difference of an element."""
    cosine: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Smallest cosine similarity of a whole output."""
    argmax_agreement: Annotated[float, Field(ge=0, le=1)] | None = None
    """Smallest share of rows (last axis) whose largest element is the same."""
