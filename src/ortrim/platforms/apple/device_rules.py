"""Which devices run programs for Apple's systems, and what a library for them is compared with."""

import platform
from collections.abc import Sequence

from ortrim.base.emulators import Emulation
from ortrim.binaries.apple import SIMULATOR
from ortrim.binaries.libraries import LibrarySize
from ortrim.binaries.macho_image import architecture_size
from ortrim.build.plan import BuildJob
from ortrim.errors import ToolError
from ortrim.models.full_runtime import FullRuntime, mac_library
from ortrim.platforms.apple.mac import MacHost
from ortrim.platforms.delivery import NOWHERE
from ortrim.spec.targets import APPLE_ARCHITECTURES, CATALYST, Architecture, OperatingSystem, Target
from ortrim.verify.devices.device import Device
from ortrim.verify.devices.emulators import DARWIN, has_processor_of
from ortrim.verify.measure import NO_SIZE, Baseline


def runs_here(target: Target) -> bool:
    """Whether this is a Mac that runs a target's programs, those that Rosetta 2 translates among them."""
    return target.system is OperatingSystem.MACOS and (_on_mac_of(target) or translated_here(target))


def translated_here(target: Target) -> bool:
    """Whether this is a Mac with Apple's processor, and a target is for Macs with Intel's."""
    apple = platform.system() == DARWIN and platform.machine() == "arm64"
    return apple and target.system is OperatingSystem.MACOS and target.architecture is Architecture.X64


def is_simulated(target: Target) -> bool:
    """Whether a target's programs run in a simulator of a phone, and on no phone."""
    return target.identifier.startswith(SIMULATOR)


def simulated_here(target: Target) -> bool:
    """Whether this is a Mac whose simulators run programs for a target."""
    return is_simulated(target) and _on_mac_of(target)


def _on_mac_of(target: Target) -> bool:
    return platform.system() == DARWIN and has_processor_of(target)


def emulation_of(_target: Target) -> Emulation | None:
    """Return None: nothing emulates Apple's systems."""
    return None


def kinds_for(target: Target, _cpu: str = "") -> str:
    """Name the one kind of device that runs a target's programs."""
    if is_simulated(target):
        return "simctl[:NAME], on a Mac with such a processor"
    if target.system is OperatingSystem.MACOS:
        return "the Mac itself: run the same command on one"
    return "devicectl[:NAME], on a Mac"


def refusal(target: Target, kind: str) -> str:
    """Refuse all but that kind; a simulator has to be this Mac's, a phone may be one of a farm of Macs."""
    match kind:
        case "host":
            return "" if runs_here(target) else f"this machine does not run programs for {target.identifier}"
        case "simctl" | "devicectl":
            return _phone_refusal(target, kind)
        case "adb" | "ssh":
            return f"{kind} reaches Linux and Android, which {target.identifier} is not for"
        case _:
            return f"a device farm runs apps, which {target.identifier} is not for"


def _phone_refusal(target: Target, kind: str) -> str:
    simulator = kind == "simctl"
    if target.system is not OperatingSystem.IOS or is_simulated(target) is not simulator:
        return f"{kind} runs no programs for {target.identifier}"
    if simulator and not simulated_here(target):
        return f"this machine has no simulator that runs {target.identifier}"
    return ""


def default_devices(target: Target, _cpu: str = "") -> tuple[str, ...]:
    """Return the simulator, or this Mac, where one runs a target's programs."""
    if simulated_here(target):
        return ("simctl",)
    return ("host",) if runs_here(target) else ()


def needs_device() -> bool:
    """Return False: an xcframework is made without a phone, and its report says that it was run nowhere."""
    return False


def nowhere(target: Target) -> str:
    """Say that the library was run nowhere."""
    if target.system is OperatingSystem.MACOS:
        return "its library was not run: not verified, needs a Mac"
    return NOWHERE


def open_host(target: Target, cores: Sequence[int]) -> Device:
    """Return this Mac. Raises as `MacHost` does."""
    return MacHost(tuple(cores), translated=translated_here(target))


def require_fitting(_device: Device, _target: Target, _job: BuildJob | None) -> None:
    """Refuse nothing: opening a simulator or a phone says whether it fits."""


def baseline(job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
    """Return for Macs the official library, none to be run, and its sizes; there is none for phones and Catalyst.

    Not every version has a wheel for either kind of Mac, nor its digest among the pins; the name then says so. Raises
    as `mac_library` and `architecture_size` do.
    """
    target = job.target
    if target.system is not OperatingSystem.MACOS or target.identifier == CATALYST:
        name = "none: no official package for Apple's phones is pinned"
        return Baseline(library=None, name=name), NO_SIZE
    return mac_baseline(runtime.version, requirements, target.architecture)


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> tuple[Baseline, LibrarySize]:
    """Return the official library for one kind of Mac, for its size alone; see `baseline`."""
    try:
        library = mac_library(version, requirements, architecture.value)
    except ToolError as error:
        if error.code != "install-failed":
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])
