"""Which devices run programs for Linux, and what a library for it is compared with."""

import platform
from collections.abc import Sequence

from ortrim.base.emulators import EMULATIONS, Emulation
from ortrim.binaries.libraries import LibrarySize
from ortrim.build.plan import BuildJob
from ortrim.models.full_runtime import FullRuntime, foreign_library
from ortrim.platforms.delivery import NOWHERE
from ortrim.size.library import library_size
from ortrim.spec.targets import Target
from ortrim.verify.devices.device import Device
from ortrim.verify.devices.emulators import DARWIN, default_emulators, emulator_kinds, has_processor_of
from ortrim.verify.devices.host import Host
from ortrim.verify.measure import NO_SIZE, Baseline, own_baseline


def runs_here(target: Target) -> bool:
    """Whether this is a Linux machine with such a processor."""
    return platform.system() != DARWIN and has_processor_of(target)


def emulation_of(target: Target) -> Emulation | None:
    """Return the emulation of the target's architecture."""
    return EMULATIONS.get(target.architecture.value)


def kinds_for(target: Target, cpu: str = "") -> str:
    """Name this machine, emulators and real devices, as far as they run the target's programs."""
    here = ("host",) if runs_here(target) else ()
    return ", ".join((*here, *emulator_kinds(emulation_of(target), cpu), "adb")) + " or ssh:[USER@]HOST[:PORT]"


def refusal(target: Target, kind: str) -> str:
    """Refuse this machine where it is another, and phones, which run apps."""
    match kind:
        case "host":
            return "" if runs_here(target) else f"this machine does not run programs for {target.identifier}"
        case "adb" | "ssh":
            return ""
        case "simctl" | "devicectl":
            return f"{kind} runs no programs for {target.identifier}"
        case _:
            return f"a device farm runs apps, which {target.identifier} is not for"


def default_devices(target: Target, cpu: str = "") -> tuple[str, ...]:
    """Return this machine, else emulators."""
    emulation = emulation_of(target)
    if runs_here(target):
        return ("host",)
    return default_emulators(emulation, cpu) if emulation else ()


def needs_device() -> bool:
    """Return True: nothing would be proved of a library that was run nowhere, and an emulator is soon installed."""
    return True


def nowhere(_target: Target) -> str:
    """Say that the library was run nowhere."""
    return NOWHERE


def open_host(_target: Target, cores: Sequence[int]) -> Device:
    """Return this machine. Raises as `Host` does."""
    return Host(tuple(cores))


def require_fitting(_device: Device, _target: Target, _job: BuildJob | None) -> None:
    """Refuse nothing: the runner says when it cannot be started."""


def baseline(job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
    """Return the official library for the target's own machine, without one where there is no such wheel."""
    if runs_here(job.target):
        found = own_baseline(runtime)
    else:
        architecture = job.target.architecture.value
        library = foreign_library(runtime.version, requirements, architecture)
        name = f"onnxruntime {runtime.version} (official wheel for {architecture})"
        none = f"none: there is no official wheel for {architecture}"
        found = Baseline(library=library, name=name if library else none)
    return found, NO_SIZE if found.library is None else library_size(found.library, None)
