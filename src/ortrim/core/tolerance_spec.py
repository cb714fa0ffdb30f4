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

    An element may differ by `absolute` + `relative` x its own magnitude + `scale` x the largest magnitude of the output
    + `ulps` units in its last place. A key that is left out has the element type's own default.
    """

    absolute: Annotated[float, Field(ge=0)] | None = None
    """Difference that every element is allowed, whatever its value; by default what rounding changes (parity.md)."""
    relative: Annotated[float, Field(ge=0)] | None = None
    """Difference as a share of the reference's element."""
    scale: Annotated[float, Field(ge=0)] | None = None
    """Difference as a share of the largest magnitude in the output; of the row's, in a distribution over classes."""
    ulps: Annotated[float, Field(ge=0)] | None = None
    """Difference in units in the last place of the reference's element; for float16 and bfloat16 alone."""
    rms: Annotated[float, Field(ge=0)] | None = None
    """Largest root mean square of an output's differences, as a share of that of the reference."""
    cosine: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Smallest cosine similarity of a whole output."""
    argmax_agreement: Annotated[float, Field(ge=0, le=1)] | None = None
    """Smallest share of rows with the same largest element, ties aside; by default judged where an output is a
    distribution over classes.
    """
    iou: Annotated[float, Field(ge=0, le=1)] | None = None
    """Smallest intersection over union of two boxes, judged where an output holds boxes."""
