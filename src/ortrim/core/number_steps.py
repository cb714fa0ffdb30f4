"""Steps that change a model's numbers, or how they are worked out, as written in a buildspec."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.spec_words import CONFIG, PROVIDER, Text
from ortrim.core.step_choices import StepChoices

OptimizationLevel = Literal["basic", "extended", "layout", "all"]
Numbers = tuple[float, ...]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Float16(StepChoices):
    """Numbers of 16 bits in the place of those of 32, by ONNX Runtime's own converter."""

    use: Literal["float16"]
    """The step."""
    keep_io_types: bool = True
    """Leave the model's inputs and outputs as they are, with casts behind and before them."""
    blocked_operators: tuple[Text, ...] | None = None
    """Kinds of operators that stay at 32 bits; by default those that the converter itself leaves."""
    blocked_nodes: tuple[Text, ...] = ()
    """Names of nodes that stay at 32 bits."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Quantize(StepChoices):
    """Numbers of 8 bits in the place of those of 32, by ONNX Runtime's own quantizer."""

    use: Literal["quantize"]
    """The step."""
    mode: Literal["dynamic", "static"] = "dynamic"
    """Find the ranges of activations in every run (`dynamic`), or once, from data (`static`, written as pairs of
    QuantizeLinear and DequantizeLinear).
    """
    data: tuple[Path, ...] = ()
    """Calibration data for `static`: `.npz` files keyed by input name, relative to the buildspec; by default the
    inputs of the model's cases.
    """
    method: Literal["minmax", "entropy", "percentile"] = "minmax"
    """How `static` finds ranges from the data."""
    weights: Literal["int8", "uint8"] = "int8"
    """Type of the weights."""
    activations: Literal["int8", "uint8"] = "uint8"
    """Type of the activations of `static`; in `dynamic` they are uint8."""
    per_channel: bool = False
    """Give each channel of a weight a range of its own."""
    reduce_range: bool | None = None
    """Take 7 bits of the weights' 8: the products of x64 processors with AVX2 and without VNNI do not overflow then. By
    default that is done for signed weights with unsigned activations.
    """
    operators: tuple[Text, ...] = ()
    """Kinds of operators to quantize; by default all that the quantizer knows."""
    exclude: tuple[Text, ...] = ()
    """Names of nodes to leave as they are."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Optimize(StepChoices):
    """Graph optimisation before any conversion, written back as ONNX."""

    use: Literal["optimize"]
    """The step."""
    level: OptimizationLevel = "basic"
    """Level; `layout` is there from ONNX Runtime 1.23, `extended` and above are for one execution provider and `layout`
    and `all` for processors like the one that does it.
    """
    provider: Annotated[str, Field(pattern=PROVIDER)] = "CPUExecutionProvider"
    """Execution provider that the model is optimised for; ONNX Runtime's wheel has to have it."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FoldInput(StepChoices):
    """Pre-processing put into the model: it then takes what a camera or a decoder gives.

    What the model took before is `(input * scale - mean) / std`, with channels and axes in the order that it had.
    """

    use: Literal["fold-input"]
    """The step."""
    input: Text | None = None
    """Name of the input; may be left out where there is one alone."""
    scale: Annotated[float, Field(gt=0)] = 1.0
    """Factor before all else, such as 0.00392156862745098 for bytes to numbers up to 1."""
    mean: Numbers = ()
    """What is subtracted then: one number, or one for each channel in the order that the model had."""
    std: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """What is divided by then: one number, or one for each channel in the order that the model had."""
    swap_channels: bool = False
    """The new input has its channels in reverse: RGB for a model of BGR, or the other way."""
    channels_last: bool = False
    """The new input has its channels last (NHWC) for a model that has them second (NCHW)."""
    uint8: bool = False
    """The new input is of bytes."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Conv1dTo2d(StepChoices):
    """Convolutions and pooling along one axis as such along two, of which one has size 1.

    ONNX Runtime's optimised layouts (NCHWc, XNNPACK's) know two axes alone. Measure before and after: see
    docs/prepare-numbers.md.
    """

    use: Literal["conv1d-to-2d"]
    """The step."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ExpandRecurrent(StepChoices):
    """GRU and LSTM as the matrix products and activations that they are, one turn after the other.

    For runtimes and execution providers without these operators: the model becomes larger and rarely quicker. The
    sequence's length has to be fixed.
    """

    use: Literal["expand-recurrent"]
    """The step."""
    operators: tuple[Literal["GRU", "LSTM"], ...] = ("GRU", "LSTM")
    """Which of them."""
    longest: Annotated[int, Field(ge=1, le=4096)] = 64
    """The longest sequence that is expanded."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FoldBatchNorm(StepChoices):
    """Normalisation by running mean and variance put into the weights of the operator before it.

    The conversion does so for Conv, and leaves ConvTranspose, Gemm and MatMul.
    """

    use: Literal["fold-batch-norm"]
    """The step."""


NumberStep = Float16 | Quantize | Optimize | FoldInput | Conv1dTo2d | ExpandRecurrent | FoldBatchNorm
