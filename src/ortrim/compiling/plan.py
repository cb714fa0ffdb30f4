"""The plan: every decision made from a buildspec, as plain data that prints, serialises and has a digest.

Paths in a plan are symbolic, so that the same inputs give the same plan on every machine: `${sources}` (the
unpacked sources), `${build}` (the job's build folder), `${tools}` (the tool environment), `${wrappers}` (the
toolchain's entry points), `${config}` (the operator configuration), `${runner}` (the runner's source), `${hooks}`
(ortrim's own CMake files), `${archive}` (the static library that a runner links), `${ndk}` (Android's NDK),
`${ndk_prebuilt}` (the folder in it that is for this kind of machine), `${xcode}` (the `Contents/Developer` folder of
Xcode), `${bionic}` and `${apple}` (the sysroots with which zig compiles for Android and for Apple's systems).
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from ortrim.base.checksums import FileEntry
from ortrim.base.json import to_canonical_json
from ortrim.buildspec.build_options import BuildOptions
from ortrim.buildspec.buildspec import Budgets, ExtraPackage, Provider, SessionSettings, provider_names
from ortrim.buildspec.targets import Target
from ortrim.models.operators import RequiredOperators
from ortrim.pins.runtime import SourcePin

ARCHIVE: Final = "libonnxruntime.a"
SYMBOLS: Final = "libonnxruntime.so.sym"
"""The library with its symbols and unwind tables, for who reads crashes: named as Android's own build tools have it."""


@dataclass(frozen=True, kw_only=True)
class PlannedModel:
    """A model of the plan: digests of the original, of the converted file, and of its cases and tolerances.

    `layout` is the kind of processor that it is written for, empty for any; `session` are the settings to load it with.
    `steps` are those of its preparation that were done, and `given_sha256` is then the model before them, while
    `onnx_sha256` is the one after them.
    """

    name: str
    onnx_sha256: str
    ort_sha256: str
    tests_sha256: str
    style: str
    level: str
    layout: str = ""
    session: SessionSettings = field(default_factory=SessionSettings)
    steps: tuple[str, ...] = ()
    given_sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """What compiles for a target: its `kind` and version, and the target triple (zig, NDK and Xcode only).

    `environment` is what the compiler and build.py see beside a minimal environment: names of programs, which the
    executor finds on `PATH`, or symbolic paths; `wrappers` are the small executable files through which the build
    reaches the compiler, as (name, text).
    """

    kind: Literal["zig", "gcc", "clang", "ndk", "xcode"]
    version: str
    triple: str
    environment: tuple[tuple[str, str], ...]
    wrappers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class AndroidBuild:
    """What an Android library is built for: the API level that it needs, and its C++ library."""

    api: int
    stl: Literal["c++_static", "c++_shared"]


@dataclass(frozen=True, kw_only=True)
class AppleBuild:
    """What a library for Apple's systems is built for: the oldest that it runs on.

    `deployment_target` is a version of iOS, for Mac Catalyst too, or of macOS. `binaries.apple.slice_of` says which
    slice the job's target is.
    """

    deployment_target: str


@dataclass(frozen=True, kw_only=True)
class BuildJob:
    """Everything an executor needs to build one target's library.

    `build_options` are those of the profile and the buildspec, as far as the toolchain has them. `tools` are names and
    versions; `hooks_sha256` is the digest of ortrim's own CMake files and of its code that decides what is compiled and
    linked. `cpu` is the least processor that the library runs on, empty for any of the architecture; `minimum_glibc` is
    empty when none is promised; `android` and `apple` are None for every other system. `linkage` says for Apple's
    systems whether the framework is dynamic (`shared`) or static. `providers` are the execution providers beside the
    CPU's, sorted.

    `without_types` are the kinds of values that are left out, as `compiling.dead_kernels` names them. `hot_operators`
    are those (`domain:OpType`, sorted) whose kernels are compiled as what is hot; every kernel is when there are none.

    `nchwc_block_size` is that of the models in NCHWc layout: 8, or 16, which upstream's minimal builds do not run; 0
    without such models. `tiled` says whether one of their convolutions may take Winograd's products, and `depthwise`
    whether a depthwise one in plain layout may take kernels of ours. `few_bits` are the bits and
    accuracy levels of their products with weights of few bits, none when not all are known.

    `arguments` are those of upstream's `build.py`; `finishing` are the commands that follow it, run one after the other
    in the build folder. `expected_outputs` is what is there in the end, the library first.
    """

    target: Target
    ort_version: str
    profile: str
    build_options: BuildOptions
    exceptions: bool
    minimum_glibc: str
    cpu: str = ""
    linkage: Literal["shared", "static"] = "shared"
    android: AndroidBuild | None = None
    apple: AppleBuild | None = None
    providers: tuple[Provider, ...] = ()
    operator_config: str
    without_types: tuple[str, ...] = ()
    hot_operators: tuple[str, ...] = ()
    nchwc_block_size: Literal[0, 8, 16] = 0
    tiled: bool = False
    depthwise: bool = False
    few_bits: tuple[tuple[int, int], ...] = ()
    toolchain: Toolchain
    tools: tuple[tuple[str, str], ...]
    hooks_sha256: str
    sources: tuple[SourcePin, ...]
    arguments: tuple[str, ...] = ()
    finishing: tuple[tuple[str, ...], ...] = ()
    expected_outputs: tuple[PurePosixPath, ...] = ()

    @property
    def provider_names(self) -> tuple[str, ...]:
        """The execution providers beside the CPU's as the C API calls them, for a session's settings."""
        return provider_names(self.providers)

    @property
    def is_linked_anew(self) -> bool:
        """Whether a link of our own, of objects that are cut down, follows upstream's: zig's for Apple's systems."""
        zig = self.toolchain.kind == "zig" and not self.target.is_elf
        return zig and (self.build_options.icf or self.linkage == "static")

    @property
    def types_for_optimizers(self) -> bool:
        """Whether kernels stay that upstream keeps for what its optimizers may add to a model at load.

        These are kernels for integers, and a few more, of operators that have them for none of the models. Nothing is
        added in a minimal build without execution providers.
        """
        return bool(self.providers) or not self.build_options.type_reduction


@dataclass(frozen=True, kw_only=True)
class RunnerJob:
    """Compiles the runner for a target; `runner_sha256` is the digest of its source.

    A job of its own, so that a change of the runner compiles no library anew. `links` is the digest of the build whose
    archive it links; empty when it opens a library by path.
    """

    target: Target
    toolchain: Toolchain
    headers: SourcePin
    runner_sha256: str
    arguments: tuple[str, ...]
    links: str = ""


@dataclass(frozen=True, kw_only=True)
class AssemblyJob:
    """Joins the outputs of several targets into one package, such as an AAR, under a name of its own.

    `targets` are identifiers, in the order of the plan; `models_as_assets` says whether an AAR has the models inside,
    and `java` whether it has the Java API, None if that hangs on whether there is a JDK.
    """

    identifier: str
    targets: tuple[str, ...]
    models_as_assets: bool = False
    java: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedTarget:
    """One target of the plan: its jobs and its budgets."""

    job: BuildJob
    runner: RunnerJob
    budgets: Budgets

    @property
    def identifier(self) -> str:
        """Name of the target."""
        return self.job.target.identifier


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """The jobs that a buildspec comes to, and the models they are for.

    `nchwc_models` are the same models in NCHWc layout, for the targets that run it, when others of the plan do not.
    """

    schema: Literal["ortrim-plan/1"] = "ortrim-plan/1"
    ortrim_version: str
    spec_name: str
    ort_version: str
    models: tuple[PlannedModel, ...]
    targets: tuple[PlannedTarget, ...]
    assemblies: tuple[AssemblyJob, ...] = ()
    nchwc_models: tuple[PlannedModel, ...] = ()
    packages: tuple[ExtraPackage, ...] = ()

    def models_for(self, target: Target) -> tuple[PlannedModel, ...]:
        """Return the models as they are for a target."""
        return self.nchwc_models if self.nchwc_models and target.runs_nchwc else self.models


def digest(part: BuildPlan | BuildJob | RunnerJob) -> str:
    """SHA-256 of a plan or of one of its jobs: the name of the folder that holds its output."""
    return hashlib.sha256(to_canonical_json(part).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class CompilerCacheUse:
    """How far the compiler cache helped: cache hits, and all compilations."""

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

    `library` is the shared one; `archive` is the static one of the same objects, None when it was not requested.
    `units` is None when everything was compiled. `left_out` has a line for each of ortrim's mechanisms that does not
    fit the version, with what it costs. `symbols` is the ELF library as it was linked; None when none was kept.
    """

    folder: Path
    library: Path
    link_map: Path | None
    headers: Path
    log: Path
    seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None
    left_out: tuple[str, ...] = ()
    archive: Path | None = None
    symbols: Path | None = None


@dataclass(frozen=True, kw_only=True)
class PackageManifest:
    """What `manifest.json` says of every kind of package: what is in it and what it was made from."""

    schema: str
    name: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    profile: str
    exceptions: bool
    linkage: Literal["shared", "static"] = "shared"
    compiler: str
    tools: tuple[tuple[str, str], ...]
    operators: RequiredOperators
    models: tuple[PlannedModel, ...]
    sources: tuple[SourcePin, ...]
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, kw_only=True)
class PackagedLibrary:
    """What a manifest says of a target's library: how it was built, and whether pytorch/cpuinfo is compiled in.

    `providers` are the execution providers beside the CPU's. `types_for_optimizers` is as in `BuildJob`; the packages
    that do not say it have these types.
    """

    target: str
    cpuinfo: bool
    providers: tuple[str, ...] = ()
    types_for_optimizers: bool = True
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Manifest(PackagedLibrary, PackageManifest):
    """`manifest.json` of a package for Linux; `symbols` lie in an archive of their own."""

    schema: Literal["ortrim-manifest/1"] = "ortrim-manifest/1"
    minimum_glibc: str
    cpu: str = ""
    symbols: FileEntry | None = None


@dataclass(frozen=True, kw_only=True)
class Package:
    """A finished package: the archive and the folder it was made from."""

    archive: Path
    folder: Path
    manifest: Manifest
