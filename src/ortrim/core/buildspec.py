"""What the user asks for: a buildspec as written, checked but not interpreted."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.model_spec import ModelSpec, SessionSpec
from ortrim.core.profiles import ProfileName
from ortrim.core.spec_words import CONFIG, VERSION, Name
from ortrim.core.target_spec import AndroidSpec, AppleSpec, Budgets, LeverChoices, TargetSpec


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RuntimeSpec:
    """Which ONNX Runtime to build and where its sources come from."""

    version: Annotated[str, Field(pattern=VERSION)] = "1.21.0"
    """ONNX Runtime version; models are converted by the full runtime of exactly this version."""
    source: Literal["auto", "archive", "git", "debian", "path"] = "auto"
    """Kind of source; `auto` takes the first that is pinned and can be reached here."""
    path: Path | None = None
    """Checkout to build from when `source` is `path`, relative to the buildspec."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class BuildSpec:
    """A buildspec: which models, for which targets, within which budgets."""

    name: Name
    """Name of the product in packages and reports; by default the file's stem."""
    onnxruntime: RuntimeSpec = Field(default_factory=RuntimeSpec)
    """ONNX Runtime version and source."""
    profile: ProfileName = "balanced"
    """Set of levers; see docs/profiles.md."""
    levers: LeverChoices = Field(default_factory=LeverChoices)
    """Single levers that are to stand otherwise than the profile has them."""
    exceptions: bool = False
    """Compile with C++ exceptions: errors become a status instead of an abort, for a larger library."""
    linkage: Literal["shared", "static"] = "shared"
    """How applications link the runtime, for every target that does not say it itself."""
    android: AndroidSpec = Field(default_factory=AndroidSpec)
    """Choices for every Android target."""
    apple: AppleSpec = Field(default_factory=AppleSpec)
    """Choices for every Apple target."""
    budgets: Budgets = Field(default_factory=Budgets)
    """Budgets for every target."""
    session: SessionSpec = Field(default_factory=SessionSpec)
    """Choices for the session of every model."""
    models: Annotated[tuple[ModelSpec, ...], Field(min_length=1)]
    """Models that share the runtime."""
    targets: tuple[TargetSpec, ...] = ()
    """Targets; without any, the host's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedSpec:
    """A valid buildspec and the file that it was read from; `notes` say what in it was read as something else."""

    spec: BuildSpec
    file: Path
    notes: tuple[str, ...] = ()

    def resolve(self, path: Path) -> Path:
        """Return `path`, as written in the buildspec, seen from where the program runs."""
        return self.file.parent / path
