"""What builds and packages leave behind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import PlannedModel, SourcePin
from ortrim.core.sums import FileEntry


@dataclass(frozen=True, kw_only=True)
class CompilerCacheUse:
    """How far the compiler cache helped: compilations answered from it, and all that were asked."""

    hits: int
    requests: int


@dataclass(frozen=True, kw_only=True)
class CompiledUnits:
    """How many source files a build compiled, and how many upstream compiles for the same library."""

    compiled: int
    total: int


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """A finished build, in `folder`: `seconds` is the wall time that it took.

    `library` is the shared one; `archive` is the static one of the same objects, None when it was not asked for.
    `units` is None when everything was compiled.
    """

    folder: Path
    library: Path
    link_map: Path | None
    headers: Path
    log: Path
    seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None
    archive: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """`manifest.json`: what is in a package and what it was made from."""

    schema: Literal["ortrim-manifest/1"] = "ortrim-manifest/1"
    name: str
    target: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    profile: str
    exceptions: bool
    minimum_glibc: str
    cpu: str = ""
    linkage: Literal["shared", "static"] = "shared"
    cpuinfo: bool
    compiler: str
    tools: tuple[tuple[str, str], ...]
    arguments: tuple[str, ...]
    operators: RequiredOperators
    models: tuple[PlannedModel, ...]
    sources: tuple[SourcePin, ...]
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, kw_only=True)
class Package:
    """A finished package: the archive and the folder it was made from."""

    archive: Path
    folder: Path
    manifest: Manifest
