"""How far outputs may differ: the default of each element type, and what a buildspec changes of it. Pure."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ortrim.core.tolerance_spec import Tolerance


@dataclass(frozen=True, kw_only=True)
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

DEFAULTS: Final[Mapping[str, Bounds]] = {
    "float64": Bounds(rounding=2**-52, relative=1e-7, scale=1e-8, rms=1e-8, cosine=0.9999, iou=0.95),
    "float32": Bounds(rounding=2**-23, relative=1e-4, scale=1e-4, rms=1e-4, cosine=0.9999, iou=0.95),
    "float16": Bounds(relative=1e-2, scale=8e-2, rms=6e-2, cosine=0.999, iou=0.9),
    "bfloat16": Bounds(relative=2e-2, scale=3e-2, rms=2e-2, cosine=0.999, iou=0.9),
}
"""Bounds of the types that may differ at all from the original model's outputs."""

LEVELS: Final = Bounds(scale=2.0, rms=0.2, cosine=0.98)
"""A quantized model's numbers lie on few levels: an element may jump by the whole range, the output as a whole not."""

QUANTIZED: Final[Mapping[str, Bounds]] = dict.fromkeys((*DEFAULTS, "int8", "uint8"), LEVELS)
"""The same bounds for models that compute with quantized numbers."""

SAME_GRAPH: Final[Mapping[str, Bounds]] = {
    "float64": DEFAULTS["float64"],
    "float32": Bounds(relative=1e-5, scale=2e-5, rms=2e-5, cosine=0.9999, iou=0.95),
    "float16": Bounds(ulps=2, scale=2e-3, rms=2e-3, cosine=0.9999, iou=0.95),
    "bfloat16": Bounds(ulps=2, scale=8e-3, rms=8e-3, cosine=0.9999, iou=0.95),
}
"""Bounds of differences from the full runtime with the same converted model on the same machine: the same kernels."""

SAME_GRAPH_ELSEWHERE: Final[Mapping[str, Bounds]] = {
    "float64": DEFAULTS["float64"],
    "float32": DEFAULTS["float32"],
    "float16": Bounds(ulps=2, scale=5e-3, rms=5e-3, cosine=0.9999, iou=0.95),
    "bfloat16": Bounds(ulps=2, scale=1e-2, rms=1e-2, cosine=0.9999, iou=0.95),
}
"""The same bounds for devices with other instructions: the same graph, by other kernels.

docs/parity.md has the measurements that all of these rest on.
"""


def bounds_of(
    element_type: str, tolerances: Mapping[Any, Tolerance], defaults: Mapping[str, Bounds] = DEFAULTS
) -> Bounds:
    """Return the bounds of an element type: key by key the buildspec's, else the type's default.

    A buildspec's `absolute` takes the place of `rounding`, too.
    """
    default = defaults.get(element_type, EXACT)
    own = tolerances.get(element_type)
    given = {key: value for key, value in asdict(own).items() if value is not None} if own else {}
    return replace(default, **({"rounding": 0.0} if "absolute" in given else {}), **given)
