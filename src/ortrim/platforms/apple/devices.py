"""Which devices run programs for Apple's systems, and what a library for them is compared with."""

import platform
from collections.abc import Sequence

from ortrim.binaries.elf import LibrarySize
from ortrim.buildspec.targets import APPLE_ARCHITECTURES, CATALYST, Architecture, OperatingSystem, Target
from ortrim.compiling.plan import BuildJob
from ortrim.devices import kinds
from ortrim.devices.device import ProgramDevice
from ortrim.devices.emulators import DARWIN, has_processor_of
from ortrim.devices.kinds import Kind
from ortrim.devices.mac import MacHost
from ortrim.devices.simctl import is_simulated, simulated_here
from ortrim.errors import ToolError
from ortrim.models.full_runtime import MAC_PLATFORMS, FullRuntime, mac_library
from ortrim.platforms.delivery import Verifying
from ortrim.verify.measure import NO_SIZE, Baseline


class AppleDevices(Verifying):
    """Macs run programs for Macs, simulators and phones those for phones; nothing emulates Apple's systems."""

    def runs_here(self, target: Target) -> bool:
        """Whether this is a Mac that runs a target's programs, those that Rosetta 2 translates among them."""
        return target.system is OperatingSystem.MACOS and (_on_mac_of(target) or translated_here(target))

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        """Name the one kind of device that runs a target's programs."""
        if is_simulated(target):
            return f"{kinds.SIMCTL.form}, on a Mac with such a processor"
        if target.system is OperatingSystem.MACOS:
            return "the Mac itself: run the same command on one"
        return f"{kinds.DEVICECTL.form}, on a Mac"

    def refusal(self, target: Target, kind: Kind) -> str:
        """Refuse all but that kind; a simulator has to be this Mac's, a phone may be one of a farm of Macs."""
        match kind.reach:
            case "apple":
                return _phone_refusal(target, kind)
            case "remote":
                return f"{kind} reaches Linux and Android, which {target.identifier} is not for"
            case _:
                return super().refusal(target, kind)

    def default_devices(self, target: Target, cpu: str = "") -> tuple[str, ...]:
        """Return the simulator, or this Mac, where one runs a target's programs."""
        if simulated_here(target):
            return (kinds.SIMCTL.name,)
        return (kinds.HOST.name,) if self.runs_here(target) else ()

    def nowhere(self, target: Target) -> str:
        """Say that the library was run nowhere."""
        if target.system is OperatingSystem.MACOS:
            return "its library was not run: not verified, needs a Mac"
        return super().nowhere(target)

    def open_host(self, target: Target, cores: Sequence[int]) -> ProgramDevice:
        """Return this Mac. Raises as `MacHost` does."""
        return MacHost(tuple(cores), translated=translated_here(target))

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        """Return those of the wheel for Macs."""
        return MAC_PLATFORMS.get(target.architecture.value, ()) if _is_mac(target) else ()

    def baseline(self, job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
        """Return for Macs the official library, none to be run, and its sizes; there is none for phones and Catalyst.

        Not every version has a wheel for either kind of Mac, nor its digest among the pins; the name then says so.
        Raises as `mac_library` and `architecture_size` do.
        """
        target = job.target
        if not _is_mac(target):
            name = "none: no official package for Apple's phones is pinned"
            return Baseline(library=None, name=name), NO_SIZE
        return mac_baseline(runtime.version, requirements, target.architecture)


def _is_mac(target: Target) -> bool:
    return target.system is OperatingSystem.MACOS and target.identifier != CATALYST


def translated_here(target: Target) -> bool:
    """Whether this is a Mac with Apple's processor, and a target is for Macs with Intel's."""
    apple = platform.system() == DARWIN and platform.machine() == "arm64"
    return apple and target.system is OperatingSystem.MACOS and target.architecture is Architecture.X64


def _on_mac_of(target: Target) -> bool:
    return platform.system() == DARWIN and has_processor_of(target)


def _phone_refusal(target: Target, kind: Kind) -> str:
    simulator = kind is kinds.SIMCTL
    if target.system is not OperatingSystem.IOS or is_simulated(target) is not simulator:
        return f"{kind} runs no programs for {target.identifier}"
    if simulator and not simulated_here(target):
        return f"this machine has no simulator that runs {target.identifier}"
    return ""


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> tuple[Baseline, LibrarySize]:
    """Return the official library for one kind of Mac, for its size alone; see `baseline`."""
    try:
        library = mac_library(version, requirements, architecture.value)
    except ToolError as error:
        if error.code not in {"bundle-lacks", "install-failed"}:
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    from ortrim.binaries.macho import architecture_size  # noqa: PLC0415 - imports lief

    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])
