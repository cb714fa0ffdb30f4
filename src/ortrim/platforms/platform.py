"""What a platform provides: the one base class of all, with what is the same on each."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ortrim.base.console import Step
from ortrim.buildspec.buildspec import IN_PLACE, BuildSpec, ExtraPackage, TargetSpec
from ortrim.buildspec.problems import Location, Problem
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.plan import AssemblyJob, BuildJob, JobResult, Toolchain
from ortrim.compiling.workspace import JobPaths
from ortrim.devices.kinds import DeviceRules
from ortrim.pins.runtime import CommitPin, RuntimePins

if TYPE_CHECKING:  # slow to import, and planning needs none of it
    from ortrim.binaries.elf import LibrarySize
    from ortrim.compiling.containers import Images
    from ortrim.compiling.executor import Executor
    from ortrim.models.full_runtime import FullRuntime
    from ortrim.package.manifest import PackageInputs
    from ortrim.package.unity import UnityPlugin
    from ortrim.parity.measurements import Gate
    from ortrim.verify.measure import Baseline
    from ortrim.verify.target import Delivery


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """Where targets are to be compiled.

    `ndk` is the folder of Android's NDK; without it, the environment says where that is. `container` says how to build
    in one; None for building on this machine itself. `elsewhere` says that another machine compiles, so that this one
    needs no NDK; `on_macs` that GitHub's do: Macs what Apple's tools compile, others with the NDK that the plan names.
    """

    ndk: Path | None = None
    container: ContainerOptions | None = None
    elsewhere: bool = False
    on_macs: bool = False


@dataclass(frozen=True, kw_only=True)
class Packaging:
    """What one package is made of and where: a part for each of its targets, in the order of the plan.

    `sources` is the folder of the source tree, `folder` the package's; `assembly` joins the parts, None where a target
    is packaged by itself. `executor_of` gives what compiles for a job.
    """

    parts: "tuple[PackageInputs, ...]"
    sources: Path
    folder: Path
    assembly: AssemblyJob | None
    executor_of: "Callable[[BuildJob], Executor]"
    step: Step


class Platform(DeviceRules):
    """All that depends on the operating system for which a library is built, and how it is run and compared.

    What a platform leaves out is as here: nothing of its own, and nothing to refuse. What is slow to import is imported
    where it is called, since planning needs none of it.
    """

    NAME: ClassVar[str]
    """What its packages and artifacts are called after."""
    SDK: ClassVar[str] = ""
    """The kind of toolchain that somebody else's SDK brings and that a machine may lack; empty without one."""
    TYPES_LEFT_OUT: ClassVar[tuple[str, ...]] = ()
    """The kinds of types that upstream's `build.py` compiles into no library for the platform."""
    KEPT: ClassVar[Mapping[str, Any]] = {}
    """Build options that ortrim's own profiles have otherwise than elsewhere, for crash reporters."""
    IN_AN_APP: ClassVar[tuple[str, ...]] = ()
    """The lines that take a package into an app; `{package}` is its path, `{folder}` that of its folder."""

    # Targets

    @abstractmethod
    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield what is wrong with a target whose keys and types are right; see `buildspec.rules.TargetRules`."""

    def linkage(self, spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
        """Return how applications link the runtime of a target."""
        return target.linkage or spec.linkage

    def with_defaults(self, spec: BuildSpec, target: TargetSpec) -> TargetSpec:
        """Return a target with what it leaves open decided. Raises `PlanError` for what cannot be."""
        return target

    def with_options(self, job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
        """Return a job with the platform's own options."""
        return job

    def described(self, job: BuildJob) -> tuple[tuple[str, str], ...]:
        """Return what a plan's table says of a job's own options: lines of a heading and a text."""
        return ()

    # Toolchain

    @abstractmethod
    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return what compiles for a target, which need not be installed; `host` is this machine's own.

        Raises `PlanError` where none can be named.
        """

    def require_tools(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
        """Refuse, before any work, what cannot be compiled or packaged here; `targets` are the platform's own, or none.

        Raises `ToolError`, and `UsageError` for an option that means nothing to these targets.
        """

    def warnings(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> tuple[str, ...]:
        """Return what should be said aloud of choices that are possible and not wise."""
        return ()

    def sysroot_sources(
        self, spec: BuildSpec, target: TargetSpec, announce: Callable[[str], None]
    ) -> tuple[tuple[CommitPin, Path], ...]:
        """Return the commits that a target's sysroot is made of, with folders of their files, fetched if need be."""
        return ()

    def installed(self, toolchain: Toolchain, named: Path | None) -> Mapping[str, Path]:
        """Return the folders of this machine that a toolchain's symbolic paths mean; `named` is where the user has it.

        Raises `ToolError` for one that is not here.
        """
        return {}

    @abstractmethod
    def build_machine(self, target: Target) -> str:
        """Return the target whose machines compile `target` best."""

    def require_sdk(self, version: str, targets: Sequence[Target]) -> None:
        """Refuse a machine without a version of the SDK, or without its parts for `targets`. Raises `ToolError`."""

    def sdk_package(self, version: str) -> str:
        """Return what `sdkmanager` calls a version of the SDK; empty for one that it cannot install."""
        return ""

    def require_package_tools(self, targets: Sequence[Target]) -> None:
        """Refuse a machine that cannot make a package of `targets`, which are the platform's, or none."""

    def pinned_sdk(self, pins: RuntimePins) -> str | None:
        """Return the version of the SDK that is pinned for a version of ONNX Runtime."""
        return None

    def images(self) -> "Images":
        """Return the images of containers that its toolchains run in."""
        from ortrim.compiling.containers import Images  # noqa: PLC0415 - see `Platform`

        return Images()

    # Build

    @abstractmethod
    def build_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return upstream's `build.py` arguments, paths symbolic as `compiling.plan` describes."""

    @abstractmethod
    def runner_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return the compiler's arguments that make the runner of a job's library."""

    def finishing(self, job: BuildJob) -> tuple[tuple[str, ...], ...]:
        """Return the commands that follow upstream's build, each its words."""
        return ()

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Do to the linked library what no command of the toolchain does, in place; done again it changes nothing."""

    def made_of(self, job: BuildJob) -> tuple[BuildJob, Callable[[Path], None]] | None:
        """Return the job whose library a job's is made of, and what does so in place; None for one that is compiled."""
        return None

    @abstractmethod
    def expected_outputs(self, job: BuildJob) -> tuple[PurePosixPath, ...]:
        """Return the files that are in the build folder in the end, the library first."""

    def start_files(self, job: BuildJob) -> tuple[tuple[str, str, Path, str], ...]:
        """Return the C library's parts that a toolchain links into every library: name, licence, notice, version."""
        return ()

    def compile_beside(self, job: BuildJob, result: JobResult, executor: "Executor") -> None:
        """Compile what a package needs beside the library; see `beside`."""

    def beside(self, job: BuildJob) -> Mapping[str, Path]:
        """Return the cache's folders of what is compiled beside a job's library, by names of their own."""
        return {}

    def check_beside(self, folder: Path) -> None:
        """Refuse a folder that is not what `beside` wants. Raises `StorageError`."""

    # Package

    def assembly(self, jobs: Sequence[BuildJob]) -> AssemblyJob | None:
        """Return the job that joins the outputs of a plan's jobs for the platform into one package, if it has such."""
        return None

    def extra_packages(self, target: Target, linkage: str) -> frozenset[ExtraPackage]:
        """Return what can be made beside the package of a target."""
        return frozenset()

    @abstractmethod
    def package(self, packaging: Packaging) -> "list[Delivery]":
        """Make the package, pass it through every gate, and return what it holds for each target."""

    def unity_plugins(self, parts: "Sequence[PackageInputs]", archive: Path) -> "Iterator[UnityPlugin]":
        """Yield what Unity loads of targets that `extra_packages` names it for, whose package is `archive`."""
        yield from ()

    # Devices

    def needs_device(self) -> bool:
        """Whether a build is refused when no device would run its library, rather than its report saying so."""
        return False

    def nowhere(self, target: Target) -> str:
        """Say that a library was run nowhere, and why."""
        return "its library was not run: no device was given, such as --device adb or --device devicectl"

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        """Return the platforms of the wheel that `baseline` takes the library from, beside the converter's own."""
        return ()

    @abstractmethod
    def baseline(
        self, job: BuildJob, runtime: "FullRuntime", requirements: str | None
    ) -> "tuple[Baseline, LibrarySize]":
        """Return the official library for a target, and its size; `requirements` are those of the pinned converter."""


def tensor_gates(part: "PackageInputs") -> "tuple[Gate, ...]":
    """Return the gate of the tensors' places for processors that fault where others are only slower."""
    from ortrim.models.ort_format import misaligned_tensors  # noqa: PLC0415 - see `Platform`
    from ortrim.verify.gates import check_tensors  # noqa: PLC0415 - see `Platform`

    if part.job.target.architecture is not Architecture.ARM:
        return ()
    return tuple(
        check_tensors(model.name, misaligned_tensors(model.path), in_place=IN_PLACE in plan.session.configuration)
        for model, plan in zip(part.models, part.plan.models_for(part.job.target), strict=True)
    )
