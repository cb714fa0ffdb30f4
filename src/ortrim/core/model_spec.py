"""The models of a buildspec as written: where they come from, how they are converted, tested and loaded."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.spec_words import CONFIG, REQUIREMENT, Dimension, Name, Scalar, Sha256
from ortrim.core.step_specs import Step
from ortrim.core.tolerance_spec import ElementType, Tolerance

Layout = Literal["nchwc8", "nchwc16", "s8s8"]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class InputSpec:
    """How to make one input of a test case."""

    shape: tuple[Dimension, ...] | None = None
    """Shape, when it cannot be derived from the model and `dimensions`."""
    value: Scalar | None = None
    """One value that fills the whole tensor; excludes `low` and `high`."""
    low: float | None = None
    """Smallest random value (default: -1 for floats, 0 for integers)."""
    high: float | None = None
    """Largest random value (default: 1 for floats, 9 for integers)."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CaseSpec:
    """One set of inputs: recorded (`data`) or random from a seed."""

    name: Name
    """Name in logs and reports, unique in the model."""
    data: Path | None = None
    """Recorded inputs, relative to the buildspec: an `.npz` keyed by input name, or an ONNX `test_data_set_*` folder.

    Excludes `seed`, `dimensions` and `inputs`.
    """
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random inputs."""
    dimensions: dict[str, Dimension] = Field(default_factory=dict)
    """Values of the model's dynamic dimensions, by their name in the model."""
    inputs: dict[str, InputSpec] = Field(default_factory=dict)
    """Exceptions for single inputs, by input name."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SessionSpec:
    """How applications create a model's session, see docs/session.md. A model's own key replaces the buildspec's."""

    load: Literal["map", "bytes", "file"] | None = None
    """How the model reaches the runtime: the application maps the file (`map`, by default) or reads it (`bytes`), or
    the runtime reads it (`file`).
    """
    in_place: bool | None = None
    """Leave the weights in the mapped or read bytes, which then outlive the session; by default, if all are aligned."""
    prepacking: bool | None = None
    """Lay weights out for the processor when the model is loaded; by default it is done, for shorter runs."""
    arena: bool | None = None
    """Keep memory for later runs; by default it is kept."""
    memory_pattern: bool | None = None
    """Take the memory of a run in one piece, by what a run of the same shapes took; by default it is done."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads within an operator; by default 1."""
    branches: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Operators that may run at the same time; by default 1, one after the other."""
    spinning: bool | None = None
    """Let threads without work burn time to be quick; by default they sleep, for batteries and for other threads."""

    def replaced_by(self, own: "SessionSpec") -> "SessionSpec":
        """Return these choices with the ones that `own` gives in their place."""
        given = {key: value for key, value in dataclasses.asdict(own).items() if value is not None}
        return dataclasses.replace(self, **given)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ModelSpec:
    """One ONNX model, where it comes from and how it is converted and tested.

    Exactly one of `path`, `url` and `wheel` is given.
    """

    name: Name
    """Name of the model in packages and reports, unique in the buildspec."""
    path: Path | None = None
    """File, relative to the buildspec."""
    url: str | None = None
    """HTTPS address (plain HTTP on loopback only); `sha256` is required."""
    wheel: Annotated[str, Field(pattern=REQUIREMENT)] | None = None
    """A requirement `name==version` whose wheel holds the model; `member` and `sha256` are required."""
    member: str | None = None
    """Path of the model inside the wheel."""
    sha256: Sha256 | None = None
    """Digest of the model file."""
    allow_links: bool = False
    """Follow links that lead from the model's external data out of its folder."""
    style: Literal["fixed", "runtime"] = "fixed"
    """Optimization style of the conversion."""
    level: Literal["disable", "basic", "extended", "all"] = "extended"
    """Optimization level of the conversion."""
    layout: Layout | None = None
    """Write the model for one kind of processor, see docs/session.md: `nchwc8` for x64, where convolutions take their
    channels in blocks of 8, `nchwc16` for x64 with AVX-512 (both need level `all`); `s8s8` for ARM, where quantized
    operators stay signed (needs `extended` or `all`).
    """
    steps: tuple[Step, ...] = ()
    """What is done to the model before it is converted, in order, see docs/prepare.md."""
    cases: tuple[CaseSpec, ...] = ()
    """Test cases; without any, one seeded random case with every dynamic dimension 1."""
    tolerances: dict[ElementType, Tolerance] = Field(default_factory=dict)
    """Tolerances by element type of the output."""
    expect: Literal["empty"] | None = None
    """`empty` for a model of which no case gives an output that could be judged, see docs/parity.md: without it, such a
    model leaves the whole package inconclusive.
    """
    session: SessionSpec | None = None
    """Choices for this model's session; keys given here replace the buildspec's."""
    reference: bool = False
    """Reckon from this model how long the others should take on a device, see docs/cost.md; true for one at most."""
