"""Models as ortrim holds them: its own copies and what is known of them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class TensorInfo:
    """One input or output of a model.

    `element_type` is in NumPy's words (`float32`, `int64`, `bool`, `string`; `bfloat16`); an output can be more than
    a tensor: `sequence(float32)`, `map(int64, float32)`, `sequence(map(string, float32))`, or `no type` when
    the model leaves that open.
    `shape` holds a number, the name of a dynamic dimension, or None for a dimension without a name; it is None
    itself when the model does not say how many dimensions there are, and for what is not a tensor.
    """

    name: str
    element_type: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What an ONNX model says of itself: `opsets` by domain, IR version, inputs and outputs in order.

    `least_ir_version` is the lowest that has all that the model uses; older ones than any runtime needs are not told
    apart. `convolution_share` is the share of its float32 weights that convolutions along two axes have, 0 to 1, and
    `one_axis_share` that of those along one, ConvTranspose among them.
    """

    sha256: str
    size_bytes: int
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    node_count: int
    least_ir_version: int = 0
    convolution_share: float = 0.0
    one_axis_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PreparedModel:
    """Our own copy of a user's model, checked. `path` lies in an artifacts folder, never in the user's."""

    name: str
    path: Path
    facts: ModelFacts


@dataclass(frozen=True, kw_only=True)
class OrtModel:
    """A converted model: the ORT format file, its digest, and the operators it requires as configuration text.

    `reads_in_place` says whether its weights can stay in the application's bytes: every tensor lies where any processor
    can read it, and the full runtime loads the model so. `two_axes` is that of the conversion.
    """

    name: str
    path: Path
    sha256: str
    size_bytes: int
    ort_version: str
    style: str
    level: str
    config: str
    reads_in_place: bool = True
    two_axes: tuple[str, ...] = ()
