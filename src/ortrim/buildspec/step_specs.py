"""The steps of a model's preparation as a buildspec writes them."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.buildspec.problems import CONFIG, PROVIDER, Text
from ortrim.buildspec.tolerances import ElementType, Tolerance

OPTIONAL: Final = "Leave the step out, and say so, when it cannot be done or outputs then differ, instead of ending."
TOLERANCES: Final = (
    "Tolerances for this step and those behind it, by element type of the output; others stay the model's."
)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class StepChoices:
    """The keys that all steps share."""

    # Descriptions, not docstrings: pydantic reads these in the class alone that has the field itself.
    optional: Annotated[bool, Field(description=OPTIONAL)] = False
    tolerances: Annotated[dict[ElementType, Tolerance], Field(description=TOLERANCES)] = Field(default_factory=dict)


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
    docs/guides/prepare.md.
    """

    use: Literal["conv1d-to-2d"]
    """The step."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ExpandRecurrent(StepChoices):
    """GRU and LSTM as the matrix products and activations that they are, one time step after the other.

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


Size = Annotated[int, Field(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Simplify(StepChoices):
    """Fold constants and fuse or remove nodes, by onnxslim or onnxsim."""

    use: Literal["simplify"]
    """The step."""
    by: Literal["onnxslim", "onnxsim"] = "onnxslim"
    """The program that does it."""
    most_growth: Annotated[float, Field(ge=1, le=100)] = 1.5
    """Largest result, as a multiple of the model before: folded constants can swell it."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class InferShapes(StepChoices):
    """Write the shapes of the values inside into the model."""

    use: Literal["infer-shapes"]
    """The step."""
    symbolic: bool = False
    """Take ONNX Runtime's symbolic inference, which follows named dimensions, instead of onnx's own."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FixDimensions(StepChoices):
    """Give dimensions of the inputs a fixed size."""

    use: Literal["fix-dimensions"]
    """The step."""
    sizes: Annotated[dict[str, Size], Field(min_length=1)]
    """Sizes by the dimension's name, or by `INPUT:AXIS` for one without."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class NameDimensions(StepChoices):
    """Give dynamic dimensions other names; two that get the same name are then taken to be equal."""

    use: Literal["name-dimensions"]
    """The step."""
    names: Annotated[dict[str, Text], Field(min_length=1)]
    """New names by the present name, or by `INPUT:AXIS` or `OUTPUT:AXIS`."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Batch(StepChoices):
    """Set the first dimension of every input and output."""

    use: Literal["batch"]
    """The step."""
    size: Size | Text
    """A number, or a name that makes it dynamic."""
    of: tuple[Text, ...] = ()
    """The inputs and outputs that it is about; by default all."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Opset(StepChoices):
    """Convert the model to another opset of `ai.onnx`, up or down."""

    use: Literal["opset"]
    """The step."""
    version: Annotated[int, Field(ge=7, le=100)]
    """The opset."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Strip(StepChoices):
    """Remove what no runtime reads."""

    use: Literal["strip"]
    """The step."""
    metadata: bool = True
    """Properties of the model, its graphs and its nodes, exporters' traces of source files among them."""
    keep: tuple[Text, ...] = ()
    """Keys of properties of the model that stay, since the application reads them."""
    documentation: bool = True
    """Doc strings."""
    producer: bool = True
    """The exporter's name and version, and the model's domain."""
    shapes: bool = False
    """Shapes of the values inside, which a runtime infers anew."""
    node_names: bool = False
    """Names of nodes, which profiles and error messages show."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Rename(StepChoices):
    """Rename inputs, outputs and nodes; cases go on with the new names."""

    use: Literal["rename"]
    """The step."""
    inputs: dict[str, Text] = Field(default_factory=dict)
    """New names of inputs by the present ones."""
    outputs: dict[str, Text] = Field(default_factory=dict)
    """New names of outputs by the present ones."""
    nodes: dict[str, Text] = Field(default_factory=dict)
    """New names of nodes by the present ones."""
    number_nodes: bool = False
    """Name every node by its operator and a number, such as `Conv_3`."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ShareConstants(StepChoices):
    """Keep one of constants that are equal."""

    use: Literal["share-constants"]
    """The step."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RemoveDead(StepChoices):
    """Remove nodes, initializers and functions that no output needs."""

    use: Literal["remove-dead"]
    """The step."""
    inputs: bool = False
    """Remove inputs that no node reads, too."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Extract(StepChoices):
    """Keep the part of the model between some of its values."""

    use: Literal["extract"]
    """The step."""
    inputs: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Values that become the inputs."""
    outputs: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Values that become the outputs."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Outputs(StepChoices):
    """Add or drop outputs; what only a dropped one needed goes with it."""

    use: Literal["outputs"]
    """The step."""
    add: tuple[Text, ...] = ()
    """Values inside the model that become outputs."""
    drop: tuple[Text, ...] = ()
    """Outputs that are removed."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Merge(StepChoices):
    """Append another model, which is fed with outputs of this one."""

    use: Literal["merge"]
    """The step."""
    path: Path
    """The other model's file, relative to the buildspec."""
    connect: Annotated[dict[str, Text], Field(min_length=1)]
    """Inputs of the other model by the outputs that feed them, one input for each."""
    prefix: str = ""
    """Put before all names of the other model, when they clash with this one's; `connect` has them without it."""


StructuralStep = (
    Simplify
    | InferShapes
    | FixDimensions
    | NameDimensions
    | Batch
    | Opset
    | Strip
    | Rename
    | ShareConstants
    | RemoveDead
    | Extract
    | Outputs
    | Merge
)
Step = Annotated[StructuralStep | NumberStep, Field(discriminator="use")]
"""Any step."""
WITHOUT_KEYS: Final = (
    "simplify", "infer-shapes", "strip", "share-constants", "remove-dead", "float16", "quantize", "optimize",
    "conv1d-to-2d", "expand-recurrent", "fold-batch-norm",
)  # fmt: skip
"""Those that have something to do when no other key is given."""
