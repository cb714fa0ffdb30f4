"""The steps of a model's preparation as a buildspec writes them; `number_steps` has those that change its numbers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.number_steps import NumberStep
from ortrim.core.spec_words import CONFIG, Text
from ortrim.core.step_choices import StepChoices

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
