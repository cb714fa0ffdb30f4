"""Packages for Apple's systems: the manifest of those that ortrim makes.

- What a package for Apple's systems is made from, and the checks that its slices belong together.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ortrim.base.checksums import FileEntry
from ortrim.binaries.apple import Slice, slice_of, slices_of
from ortrim.compiling.plan import AppleBuild, PlannedModel
from ortrim.errors import PackageError
from ortrim.models.operators import RequiredOperators
from ortrim.package.manifest import PackageInputs, check_inputs, joined_inputs
from ortrim.pins.runtime import SourcePin
from ortrim.platforms.apple.arguments import frameworks


@dataclass(frozen=True, kw_only=True)
class AppleTarget:
    """One architecture of a slice: its target, how its library was built, and the UUID that crash reports name.

    `cross_built` says that it was not compiled on a Mac with Apple's own tools and SDK. `cpuinfo` says whether the
    library pytorch/cpuinfo is compiled in; `providers` are the execution providers beside the CPU's; `arguments` are
    those of upstream's build script.
    """

    target: str
    architecture: str
    uuid: str
    cross_built: bool
    cpuinfo: bool
    providers: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AppleSlice:
    """One entry of the xcframework: `platform` and `variant` are its words; `minimum_os` is the oldest it runs on."""

    identifier: str
    platform: str
    variant: str
    minimum_os: str
    targets: tuple[AppleTarget, ...]


@dataclass(frozen=True, kw_only=True)
class RequiredReason:
    """A category of Apple's required reason API that the library uses: which of its symbols, and for what reasons."""

    category: str
    reasons: tuple[str, ...]
    symbols: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AppleManifest:
    """`manifest.json` of a package for Apple's systems: what is in it and what it was made from."""

    schema: Literal["ortrim-apple/1"] = "ortrim-apple/1"
    name: str
    bundle_identifier: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    linkage: Literal["shared", "static"]
    profile: str
    exceptions: bool
    compiler: str
    tools: tuple[tuple[str, str], ...]
    slices: tuple[AppleSlice, ...]
    required_reasons: tuple[RequiredReason, ...]
    operators: RequiredOperators
    models: tuple[PlannedModel, ...]
    sources: tuple[SourcePin, ...]
    files: tuple[FileEntry, ...]


OBJECTIVE_C: Final = "objectivec"
"""The folder of upstream's Objective-C API, in its sources and in ours."""


@dataclass(frozen=True, kw_only=True)
class ApplePart:
    """One target of the package: the inputs that its own package would have, and what a dSYM of its library holds."""

    inputs: PackageInputs
    symbols: Path | None = None

    @property
    def slice(self) -> Slice:
        """The slice that the target is or is a part of; it has one architecture."""
        return slice_of(self.inputs.job.target)

    @property
    def architecture(self) -> str:
        """The architecture, as Apple's tools call it."""
        return self.slice.architectures[0]

    @property
    def library(self) -> Path:
        """What goes into the framework: the dynamic library, or the static one if that was planned."""
        result = self.inputs.result
        if self.inputs.job.linkage == "shared":
            return result.library
        return result.archive or result.folder / "libonnxruntime.a"

    @property
    def apple(self) -> AppleBuild:
        """What the library is built for."""
        assert self.inputs.job.apple is not None
        return self.inputs.job.apple


@dataclass(frozen=True, kw_only=True)
class AppleSliceInputs:
    """One slice of the xcframework, and its parts: one for each architecture."""

    slice: Slice
    parts: tuple[ApplePart, ...]

    @property
    def minimum_os(self) -> str:
        """The oldest iOS or macOS that the slice runs on; for Mac Catalyst it is iOS's number."""
        return self.parts[0].apple.deployment_target


@dataclass(frozen=True, kw_only=True)
class AppleInputs:
    """All that a package for Apple's systems is made from; `objective_c` is the folder of upstream's Objective-C API.

    The sources of that API are compiled in the app; without the folder there are none, as nothing else needs them.
    """

    parts: tuple[ApplePart, ...]
    objective_c: Path

    @property
    def first(self) -> PackageInputs:
        """The inputs of the first target, for what is the same in all, with the sources and licences of all."""
        return joined_inputs(part.inputs for part in self.parts)

    @property
    def name(self) -> str:
        """Name of the package: of its folder and of the file of symbols in it."""
        return f"ortrim-{self.first.plan.spec_name}-apple-{self.first.plan.ort_version}"

    @property
    def static(self) -> bool:
        """Whether the framework's library is linked into the app's own program."""
        return self.first.job.linkage == "static"

    @property
    def slices(self) -> tuple[AppleSliceInputs, ...]:
        """The slices of the xcframework, in the order of the targets; the parts of each in that of their names."""
        found = slices_of(part.inputs.job.target for part in self.parts)
        return tuple(
            AppleSliceInputs(
                slice=each,
                parts=tuple(
                    sorted((part for part in self.parts if _belongs(part, each)), key=lambda p: p.architecture)
                ),
            )
            for each in found
        )

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The system's frameworks that any of the libraries needs, sorted."""
        return tuple(sorted({name for part in self.parts for name in frameworks(part.inputs.job)}))


def check_apple_inputs(inputs: AppleInputs) -> None:
    """Refuse inputs that are absent or do not belong together.

    Raises `PackageError`.
    """
    if not inputs.parts:
        raise PackageError("no-slice", "an xcframework needs at least one slice", hint="build an ios target first")
    for part in inputs.parts:
        if part.inputs.job.apple is None:
            what, hint = "this target is not one for Apple's systems", "it takes the targets ios-* and macos-*"
            raise PackageError("not-apple", what, where=part.inputs.job.target.identifier, hint=hint)
        check_inputs(part.inputs)
        _require(part.library)
        if part.symbols is not None:
            _require(part.symbols)
    _require(inputs.objective_c / "include" / "onnxruntime.h")
    _check_agreement(inputs)


def _belongs(part: ApplePart, whole: Slice) -> bool:
    return (part.slice.platform, part.slice.variant) == (whole.platform, whole.variant)


def _require(path: Path) -> None:
    if not path.is_file():
        what, hint = "a file of the package does not exist", "build the target again"
        raise PackageError("package-input-missing", what, where=str(path), hint=hint)


def _check_agreement(inputs: AppleInputs) -> None:
    plan, linkage = inputs.first.plan, inputs.first.job.linkage
    seen: dict[tuple[str, str], str] = {}
    for part in inputs.parts:
        minimum = seen.setdefault((part.slice.platform, part.slice.variant), part.apple.deployment_target)
        same = (part.inputs.plan, part.inputs.job.linkage) == (plan, linkage)
        twice = sum(other.slice == part.slice for other in inputs.parts) > 1
        if not same or twice or minimum != part.apple.deployment_target:
            what = "the slices must come from one plan, with one linkage and minimum system version, each once"
            hint = "run: invoke build --target 'ios*'"
            raise PackageError("mixed-builds", what, where=part.inputs.job.target.identifier, hint=hint)
