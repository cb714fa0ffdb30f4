"""Packages for Apple's systems: the manifest of those that ortrim makes."""

from dataclasses import dataclass
from typing import Literal

from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import PlannedModel, SourcePin
from ortrim.core.sums import FileEntry


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
