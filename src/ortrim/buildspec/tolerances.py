"""How far outputs may differ, as a buildspec says it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from dataclasses import dataclass as plain_dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.buildspec.problems import CONFIG

ElementType = Literal[
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "string",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Tolerance:
    """The largest differences from the full runtime that count as parity, for one element type.

    An element may differ by `absolute` + `relative` x its own magnitude + `scale` x the largest magnitude of the output
    + `ulps` units in its last place. A key that is left out has the element type's own default; an int8 model's default
    of `scale`, which lets an element jump by the whole range, gives way to whatever else is said of elements.
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


@plain_dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds that an output of one element type is compared with: the fields of `Tolerance`, and `rounding`.

    Without `argmax_agreement`, only a distribution over classes is judged by it. `rounding` is what rounding numbers
    near 1 may change, whatever becomes of them: a Sigmoid's 0.0002 is 0.5 less 0.4998. A distribution over classes has
    none, for a Softmax subtracts nothing; others have at most 1 % of the output's largest magnitude in any case, so
    that outputs of tiny numbers are compared, too.
    """

    absolute: float = 0.0
    rounding: float = 0.0
    relative: float = 0.0
    scale: float = 0.0
    ulps: float = 0.0
    rms: float = math.inf
    cosine: float = -1.0
    argmax_agreement: float | None = None
    iou: float = 0.0


EXACT: Final = Bounds()
"""No difference at all; what is equal needs no other bound."""

DEFAULT_TOLERANCES: Final[Mapping[str, Bounds]] = {
    "float64": Bounds(rounding=2**-52, relative=1e-7, scale=1e-8, rms=1e-8, cosine=0.9999, iou=0.95),
    "float32": Bounds(rounding=2**-23, relative=1e-4, scale=1e-4, rms=1e-4, cosine=0.9999, iou=0.95),
    "float16": Bounds(relative=1e-2, scale=8e-2, rms=6e-2, cosine=0.999, iou=0.9),
    "bfloat16": Bounds(relative=2e-2, scale=3e-2, rms=2e-2, cosine=0.999, iou=0.9),
}
"""Bounds of the types that may differ at all from the original model's outputs."""

CONVERSION: Final[Mapping[str, Bounds]] = {
    **DEFAULT_TOLERANCES,
    "float32": replace(DEFAULT_TOLERANCES["float32"], relative=1e-3, scale=1e-3, rms=1e-3),
}
"""Bounds where the full runtime computes the same of the converted model: conversion alone makes the difference.

Some models are that sensitive: basic-pitch's logarithms differ by 1.4e-4 from those of the official library without
optimizations, and by 1e-6 from those with them.
"""

LEVELS: Final = Bounds(scale=2.0, rms=0.2, cosine=0.98)
"""A quantized model's numbers lie on few levels: an element may jump by the whole range, the output as a whole not."""

FEW_VALUES: Final = 16
"""An output of no more values is judged value by value in a quantized model, too."""
FEW_SHARE: Final = 0.1
"""How far each of few values may be off, as a share of the output's largest magnitude in any case.

Twice what levels of optimization and other processors change of correct runs (benchmarks/results/parity.md). A share of
the value itself would be too little for small ones: a probability of 0.03 that is off by 0.014 is no damage.
"""

QUANTIZED: Final[Mapping[str, Bounds]] = dict.fromkeys((*DEFAULT_TOLERANCES, "int8", "uint8"), LEVELS)
"""The same bounds for models that compute with quantized numbers."""

SAME_GRAPH: Final[Mapping[str, Bounds]] = {
    "float64": DEFAULT_TOLERANCES["float64"],
    "float32": Bounds(relative=1e-5, scale=2e-5, rms=2e-5, cosine=0.9999, iou=0.95),
    "float16": Bounds(ulps=2, scale=2e-3, rms=2e-3, cosine=0.9999, iou=0.95),
    "bfloat16": Bounds(ulps=2, scale=8e-3, rms=8e-3, cosine=0.9999, iou=0.95),
}
"""Bounds of differences from the full runtime with the same converted model on the same machine: the same kernels."""

SAME_GRAPH_CONVOLVED: Final[Mapping[str, Bounds]] = {
    **SAME_GRAPH,
    "float32": replace(SAME_GRAPH["float32"], rounding=2**-24),
}
"""The same where `resources/cmake/direct_convolutions.h` adds in another order: the last bit of a number near 0.5 may
be another one, of which 0.00017 is left."""

SAME_GRAPH_BY_FOURS: Final[Mapping[str, Bounds]] = {
    **SAME_GRAPH,
    "float32": replace(SAME_GRAPH_CONVOLVED["float32"], scale=3e-5),
}
"""The same where it adds four products at a time and not eight or more, as on ARM64.

The demo's state after silence is 1.2e-5 of its magnitude from float64's in MLAS's order, 1.6e-5 in that, and not in the
same direction.
"""

SAME_GRAPH_ELSEWHERE: Final[Mapping[str, Bounds]] = {
    "float64": DEFAULT_TOLERANCES["float64"],
    "float32": DEFAULT_TOLERANCES["float32"],
    "float16": Bounds(ulps=2, scale=5e-3, rms=5e-3, cosine=0.9999, iou=0.95),
    "bfloat16": Bounds(ulps=2, scale=1e-2, rms=1e-2, cosine=0.9999, iou=0.95),
}
"""The same bounds for devices with other instructions: the same graph, by other kernels."""


def for_float32_weights(bounds: Mapping[str, Bounds]) -> Mapping[str, Bounds]:
    """Return the same bounds for a model with float32 weights: float64 made of them are no more exact than they are."""
    return {**bounds, "float64": bounds["float32"]}


OF_ELEMENTS: Final = frozenset({"absolute", "relative", "scale", "ulps"})
"""The keys that bound each element by itself."""

QUANTIZED_ELSEWHERE: Final[Mapping[str, Bounds]] = dict.fromkeys(QUANTIZED, replace(LEVELS, rms=5e-3))
"""The same for quantized models: a number near the middle of two levels takes the other one on another processor.

benchmarks/results/parity.md has the measurements that all of these rest on; `turn-detection` on 32-bit ARM differs by
2.2e-3.
"""


def bounds_of(
    element_type: str,
    tolerances: Mapping[Any, Tolerance],
    defaults: Mapping[str, Bounds] = DEFAULT_TOLERANCES,
    few: float | None = None,
) -> Bounds:
    """Return the bounds of an element type: key by key the buildspec's, else the type's default.

    `few` is the largest magnitude of an output of no more than `FEW_VALUES`, None for another one. A buildspec's
    `absolute` takes the place of `rounding`, too.
    """
    default = defaults.get(element_type, EXACT)
    if default == LEVELS and few is not None:
        default = Bounds(absolute=FEW_SHARE * few, cosine=LEVELS.cosine)
    own = tolerances.get(element_type)
    given = {key: value for key, value in asdict(own).items() if value is not None} if own else {}
    if given.keys() & OF_ELEMENTS and default.scale == LEVELS.scale:
        default = replace(default, scale=0.0)
    return replace(default, **({"rounding": 0.0} if "absolute" in given else {}), **given)
