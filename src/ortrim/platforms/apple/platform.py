"""Apple's systems: one library for each architecture of a platform, and one xcframework of all."""

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from ortrim.base.tools import install_command
from ortrim.binaries.apple import EXPORTS, is_simulated, slice_of
from ortrim.binaries.macho.layout import require_lief
from ortrim.buildspec.buildspec import FRAMEWORK_LINKAGE, AppleSpec, BuildSpec, ExtraPackage, TargetSpec, providers_of
from ortrim.buildspec.problems import Location, Problem
from ortrim.buildspec.rules import DEFAULT_GLIBC, stray_keys
from ortrim.buildspec.targets import (
    APPLE_ARCHITECTURES,
    CATALYST,
    TARGETS,
    Architecture,
    OperatingSystem,
    Target,
    version_numbers,
)
from ortrim.compiling.plan import AppleBuild, BuildJob, Toolchain
from ortrim.compiling.workspace import LINKED_ANEW, JobPaths
from ortrim.devices import kinds
from ortrim.errors import PlanError, ToolError, VerifyError
from ortrim.models import full_runtime
from ortrim.pins.runtime import ApplePins, RuntimePins, runtime_pins
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.apple import arguments
from ortrim.platforms.apple.arguments import is_cross_built, zig_apple_toolchain
from ortrim.platforms.apple.sysroot import sysroot_of
from ortrim.platforms.apple.xcode import find_xcode, on_a_mac, require_sdks, sdk_folder, xcode_toolchain
from ortrim.platforms.platform import Compilation, Packaging, Platform

if TYPE_CHECKING:
    from ortrim.binaries.elf import LibrarySize
    from ortrim.devices.device import ProgramDevice
    from ortrim.package.manifest import PackageInputs
    from ortrim.package.unity import UnityPlugin
    from ortrim.verify.measure import Baseline
    from ortrim.verify.target import Delivery

PHONE: Final = TARGETS["ios-arm64"]
MAC: Final = "build on a Mac that has Xcode, or with --executor github"


def apple_of(spec: BuildSpec, target: TargetSpec) -> AppleSpec:
    """Return the choices for one Apple target; None where the default depends on more than the buildspec."""
    return spec.apple.replaced_by(target.apple) if target.apple else spec.apple


def deployment_key(target: Target) -> Literal["ios_deployment_target", "macos_deployment_target"]:
    """Return the key that holds an Apple target's deployment target; Mac Catalyst goes by versions of iOS."""
    return "macos_deployment_target" if _is_mac(target) else "ios_deployment_target"


def deployment_target_of(spec: BuildSpec, target: TargetSpec) -> str | None:
    """Return the oldest system that is asked for of an Apple target; None when nothing is asked."""
    chosen = apple_of(spec, target)
    asked: str | None = getattr(chosen, deployment_key(target.target))
    return asked


class Apple(Platform):
    """Macs, phones, their simulators and Mac Catalyst: Xcode compiles for them, or zig.

    Macs run programs for Macs, simulators and phones those for phones. Nothing emulates Apple's systems, but on Linux
    ortrim runs a cross-built library's code.
    """

    NAME = "apple"
    SDK = "xcode"
    IN_AN_APP = ("cp -r {folder} MY-APP/    # a Swift package; a pod as well",)
    KEPT: ClassVar[Mapping[str, Any]] = {"unwind_tables": True, "frame_pointers": True}

    build_arguments = staticmethod(arguments.build_arguments)
    runner_arguments = staticmethod(arguments.runner_arguments)
    finishing = staticmethod(arguments.finishing)
    expected_outputs = staticmethod(arguments.expected_outputs)
    assembly = staticmethod(arguments.assembly)

    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield the keys that Xcode decides, and the deployment target of another system."""
        key, compiled = deployment_key(target.target), "its libraries are compiled by Xcode, or by zig"
        stray = (
            ("compiler", target.compiler != "zig", compiled, "apple.xcode"),
            ("glibc", target.glibc != DEFAULT_GLIBC, "its C library is the system's", f"apple.{key}"),
            ("cpu", target.cpu is not None, "it has few processors; better ones are detected at run time", ""),
            ("linkage", target.linkage is not None, "an xcframework holds frameworks", "apple.framework"),
        )
        yield from stray_keys(stray, location, "Apple's systems")
        (other,) = {"ios_deployment_target", "macos_deployment_target"} - {key}
        if target.apple is not None and getattr(target.apple, other) is not None:
            what = f"has no meaning for {target.id}, which goes by '{key}'"
            yield Problem(code="stray-key", location=(*location, "apple", other), what=what)

    def linkage(self, spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
        framework = apple_of(spec, target).framework
        return target.linkage or (FRAMEWORK_LINKAGE[framework] if framework else spec.linkage)

    def with_defaults(self, spec: BuildSpec, target: TargetSpec) -> TargetSpec:
        """Return a target with its deployment target: the one that is asked for, or the lowest there is."""
        key, asked = deployment_key(target.target), deployment_target_of(spec, target)
        pins = runtime_pins(spec.onnxruntime.version).apple
        lowest = _lowest(pins, target) if pins else None
        if asked is None and lowest is None:
            what = f"the lowest that ONNX Runtime {spec.onnxruntime.version} is made for is not known"
            hint = f"set one in the buildspec, as apple.{key}"
            raise PlanError("no-deployment-target", what, where=target.id, hint=hint)
        if asked is not None and lowest is not None and version_numbers(asked) < version_numbers(lowest):
            what = f"apple.{key} is {asked}, and ONNX Runtime {spec.onnxruntime.version} is made for {lowest} and newer"
            why = "on older systems the C++ library lacks what it uses"
            hint = f'say apple.{key} = "{lowest}", or leave it out'
            raise PlanError("deployment-target-too-low", what, where=target.id, why=why, hint=hint)
        minimum, chosen = asked or lowest, target.apple or AppleSpec()
        if key == "ios_deployment_target":
            return replace(target, apple=replace(chosen, ios_deployment_target=minimum))
        return replace(target, apple=replace(chosen, macos_deployment_target=minimum))

    def with_options(self, job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
        minimum = deployment_target_of(spec, target)
        assert minimum is not None
        return replace(job, apple=AppleBuild(deployment_target=minimum))

    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return Xcode, which need not be installed, or the hermetic toolchain; see `with_defaults`.

        Xcode's version is the buildspec's, or else this Mac's own, or the one that GitHub's machines are told to take.
        """
        minimum = deployment_target_of(spec, target)
        assert minimum is not None
        if not (asked.on_macs or on_a_mac() or self._why_xcode(spec, target)):
            return zig_apple_toolchain(target.target, minimum, dict(tool_versions())["ziglang"])
        return xcode_toolchain(target.target, minimum, self._xcodes_version(spec, target, asked))

    def require_tools(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
        """Refuse what cannot be compiled or packaged here; `needs-mac` is what only Xcode compiles."""
        if targets:
            require_lief()
        if asked.elsewhere or asked.on_macs:
            return
        for target in targets:
            why = self._why_xcode(spec, target)
            if not on_a_mac():
                if why:
                    raise _needs_mac(target, why)
            elif asked.container is not None:
                raise _needs_mac(target, "a Mac compiles with Xcode, which runs in no container")
            else:
                require_sdks(find_xcode(apple_of(spec, target).xcode), (sdk_folder(slice_of(target.target)),))

    def installed(self, toolchain: Toolchain, named: Path | None) -> Mapping[str, Path]:
        """Return the folder of Xcode, or the sysroot that zig compiles with, made if it is not there."""
        if toolchain.kind == "zig":
            return {"apple": sysroot_of(toolchain)}
        return {"xcode": find_xcode(toolchain.version).folder}

    def build_machine(self, target: Target) -> str:
        return "macos-arm64"

    def require_sdk(self, version: str, targets: Sequence[Target]) -> None:
        require_sdks(find_xcode(version), tuple(sdk_folder(slice_of(target)) for target in targets))

    def pinned_sdk(self, pins: RuntimePins) -> str | None:
        return pins.apple.xcode if pins.apple else None

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Leave a cross-built library the names that upstream has it export: zig's linker adds others."""
        if is_cross_built(job):
            from ortrim.binaries.macho.exports import take_apart  # noqa: PLC0415 - see `Platform`

            last = LINKED_ANEW if job.is_linked_anew else arguments.LINKED
            linked, library, symbols = (paths.build / name for name in (last, arguments.LIBRARY, arguments.SYMBOLS))
            take_apart(linked, Path(paths.resolve(EXPORTS)), library, symbols)

    def made_of(self, job: BuildJob) -> tuple[BuildJob, Callable[[Path], None]] | None:
        """Make the simulators' library for Apple's processors of the phones', which is compiled to the same code."""
        simulated = is_simulated(job.target) and job.target.architecture is PHONE.architecture
        if not (simulated and is_cross_built(job) and job.linkage == "shared"):
            return None
        from ortrim.binaries.macho.simulator import make_simulators  # noqa: PLC0415 - see `Platform`

        minimum = arguments.apple_build(job).deployment_target
        toolchain = zig_apple_toolchain(PHONE, minimum, job.toolchain.version)
        return replace(job, target=PHONE, toolchain=toolchain), make_simulators

    def extra_packages(self, target: Target, linkage: str) -> frozenset[ExtraPackage]:
        """Return Unity's, whose C# is linked with the library on iOS, and opens it on a Mac."""
        is_linked = linkage == "static" and not _is_mac(target) and target.identifier != CATALYST
        return frozenset(("unity",)) if is_linked or _is_mac(target) else frozenset()

    def package(self, packaging: Packaging) -> "list[Delivery]":
        from ortrim.platforms.apple.package import deliver  # noqa: PLC0415 - see `Platform`

        return deliver(packaging)

    def unity_plugins(self, parts: "Sequence[PackageInputs]", archive: Path) -> "Iterator[UnityPlugin]":
        from ortrim.platforms.apple.package import unity_plugins  # noqa: PLC0415 - see `Platform`

        return unity_plugins(parts, archive)

    def runs_here(self, target: Target) -> bool:
        """Whether this is a Mac that runs a target's programs, those that Rosetta 2 translates among them."""
        return target.system is OperatingSystem.MACOS and (kinds.on_mac_of(target) or translated_here(target))

    def translates(self, target: Target) -> bool:
        return translated_here(target)

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        return f"{kinds.MACHO}, or {self._on_apple(target)}" if on_linux() else self._on_apple(target)

    def refusal(self, target: Target, kind: kinds.Kind) -> str:
        """Refuse all but those kinds; a simulator has to be this Mac's, a phone may be one of a farm of Macs."""
        if kind is kinds.MACHO:
            return "" if on_linux() else f"{kind} runs Apple's libraries on Linux alone"
        if kind.reach == "remote":
            return f"{kind} reaches Linux and Android, which {target.identifier} is not for"
        if kind.reach != "apple":
            return super().refusal(target, kind)
        simulator = kind is kinds.SIMCTL
        if target.system is not OperatingSystem.IOS or is_simulated(target) is not simulator:
            return f"{kind} runs no programs for {target.identifier}"
        if simulator and not kinds.on_mac_of(target):
            return f"this machine has no simulator that runs {target.identifier}"
        return ""

    def default_devices(self, target: Target, cpu: str = "", *, on_macs: bool = False) -> tuple[str, ...]:
        """Return what runs a target on this Mac, or on Linux the code of what is cross-built, if it is installed."""
        if is_simulated(target) and kinds.on_mac_of(target):
            return (kinds.SIMCTL.name,)
        if self.runs_here(target):
            return (kinds.HOST.name,)
        return (kinds.MACHO.name,) if on_linux() and not on_macs and not _missing_emulator(target) else ()

    def nowhere(self, target: Target) -> str:
        if on_linux() and (package := _missing_emulator(target)):
            return (
                f"its library was not run; an emulator runs the code of what is cross-built: {install_command(package)}"
            )
        if target.system is OperatingSystem.MACOS:
            return "its library was not run: not verified, needs a Mac"
        return super().nowhere(target)

    def require_fitting(self, device: "ProgramDevice", target: Target, job: BuildJob | None) -> None:
        """Refuse to run on Linux what was not cross-built: it needs libraries that only an Apple system has."""
        from ortrim.verify.reports import NOT_FOR_DEVICE  # noqa: PLC0415 - see `Platform`

        if job is None or is_cross_built(job):
            return
        what = "this library was linked by Xcode, and needs libraries that only an Apple system has"
        raise VerifyError(NOT_FOR_DEVICE, what, where=device.name, hint=f"choose {self._on_apple(target)}")

    def open_host(self, target: Target, cores: Sequence[int]) -> "ProgramDevice":
        from ortrim.devices.host import MacHost  # noqa: PLC0415 - see `Platform`

        return MacHost(tuple(cores), translated=translated_here(target))

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        return full_runtime.MAC_PLATFORMS.get(target.architecture.value, ()) if _is_mac(target) else ()

    def baseline(
        self, job: BuildJob, runtime: full_runtime.FullRuntime, requirements: str | None
    ) -> "tuple[Baseline, LibrarySize]":
        """Return for Macs the official library, none to be run, and its sizes; there is none for phones and Catalyst.

        Not every version has a wheel for either kind of Mac, nor its digest among the pins; the name then says so.
        """
        from ortrim.verify.measure import NO_SIZE, Baseline  # noqa: PLC0415 - see `Platform`

        if _is_mac(job.target):
            return mac_baseline(runtime.version, requirements, job.target.architecture)
        return Baseline(library=None, name="none: no official package for Apple's phones is pinned"), NO_SIZE

    def _on_apple(self, target: Target) -> str:
        if is_simulated(target):
            return f"{kinds.SIMCTL.form}, on a Mac with such a processor"
        if target.system is OperatingSystem.MACOS:
            return "the Mac itself: run the same command on one"
        return f"{kinds.DEVICECTL.form}, on a Mac"

    def _why_xcode(self, spec: BuildSpec, target: TargetSpec) -> str:
        """Return why zig cannot compile a target, empty if it can."""
        wanted = "coreml" in providers_of(spec, target)
        return "CoreML is a framework of Apple's, which comes only with Xcode" if wanted else ""

    def _xcodes_version(self, spec: BuildSpec, target: TargetSpec, asked: Compilation) -> str:
        named = apple_of(spec, target).xcode
        if named is None and on_a_mac() and not asked.on_macs:
            with suppress(ToolError):  # A plan can be shown without it; `require_tools` says what is wrong.
                named = find_xcode().version
        version = named or self.pinned_sdk(runtime_pins(spec.onnxruntime.version))
        if version is None:
            what = f"no version of Xcode is pinned for ONNX Runtime {spec.onnxruntime.version}"
            hint = 'set one in the buildspec, as apple.xcode = "16.4"'
            raise PlanError("no-xcode-version", what, where=target.id, hint=hint)
        return version


def _lowest(pins: ApplePins, target: TargetSpec) -> str:
    if target.id == CATALYST:
        return pins.maccatalyst
    return pins.macos if target.target.system is OperatingSystem.MACOS else pins.ios


def _needs_mac(target: TargetSpec, why: str) -> ToolError:
    return ToolError("needs-mac", "cannot be compiled on this machine", where=target.id, why=why, hint=MAC)


def _is_mac(target: Target) -> bool:
    return target.system is OperatingSystem.MACOS and target.identifier != CATALYST


def on_linux() -> bool:
    """Whether ortrim runs Apple libraries' code on this machine."""
    return platform.system() == "Linux"


def _missing_emulator(target: Target) -> str:
    """Return the package of what would run a target's code here and is not installed; empty when nothing is missing."""
    tool = kinds.macho_emulator(target)
    return "" if tool is None or shutil.which(tool.name) else tool.package


def translated_here(target: Target) -> bool:
    """Whether this is a Mac with Apple's processor, and a target is for Macs with Intel's."""
    apple = platform.system() == kinds.DARWIN and platform.machine() == "arm64"
    return apple and target.system is OperatingSystem.MACOS and target.architecture is Architecture.X64


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> "tuple[Baseline, LibrarySize]":
    """Return the official library for one kind of Mac, for its size alone; see `Apple.baseline`."""
    from ortrim.verify.measure import NO_SIZE, Baseline  # noqa: PLC0415 - see `Platform`

    try:
        library = full_runtime.foreign_library(version, requirements, architecture.value, "Darwin")
    except ToolError as error:
        if error.code not in {"bundle-lacks", "install-failed"}:
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    from ortrim.binaries.macho.files import architecture_size  # noqa: PLC0415 - see `Platform`

    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])
