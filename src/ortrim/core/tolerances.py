"""How far outputs may differ: the default of each element type, and what a buildspec changes of it. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ortrim.core.tolerance_spec import Tolerance


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds that an output of one element type is held to; the fields are those of `Tolerance`."""

    absolute: float = 0.0
    relative: float = 0.0
    cosine: float = -1.0
    argmax_agreement: float = 0.0


EXACT: Final = Bounds()
"""No difference at all; the cosine similarity of what is equal needs no bound."""

DEFAULTS: Final[Mapping[str, Bounds]] = {
    "float64": Bounds(absolute=1e-6, relative=1e-5, cosine=0.9999),
    "float32": Bounds(absolute=1e-4, relative=1e-3, cosine=0.999),
    "float16": Bounds(absolute=5e-3, relative=1e-2, cosine=0.999),
    "bfloat16": Bounds(absolute=2e-2, relative=5e-2, cosine=0.99),
}
"""Bounds of the types that may differ at all: some units in the last place of each, piled up over the layers."""


def bounds_of(element_type: str, tolerances: Mapping[Any, Tolerance]) -> Bounds:
    """Return the bounds of an element type: key by key the buildspec's, else the type's default."""
    default = DEFAULTS.get(element_type, EXACT)
    own = tolerances.get(element_type)
    given = {key: value for key, value in asdict(own).items() if value is not None} if own else {}
    return replace(default, **given)
