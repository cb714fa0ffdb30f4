"""Which devices run programs for Android, and what a library for it is compared with."""

from collections.abc import Sequence

from ortrim.base.emulators import Emulation
from ortrim.binaries.libraries import LibrarySize
from ortrim.build.plan import BuildJob
from ortrim.models.full_runtime import FullRuntime
from ortrim.platforms.android import adb
from ortrim.platforms.delivery import NOWHERE
from ortrim.spec.targets import Target
from ortrim.verify.devices.device import Device
from ortrim.verify.devices.emulators import FARM_FORMS
from ortrim.verify.measure import NO_SIZE, Baseline


def runs_here(_target: Target) -> bool:
    """Return False: nothing is compiled on a phone."""
    return False


def emulation_of(_target: Target) -> Emulation | None:
    """Return None: Android's emulator is reached as a phone is."""
    return None


def kinds_for(_target: Target, _cpu: str = "") -> str:
    """Name phones."""
    return f"adb, or a device farm's: {', '.join(FARM_FORMS)}"


def refusal(target: Target, kind: str) -> str:
    """Refuse this machine, and Apple's devices."""
    match kind:
        case "host":
            return f"this machine does not run programs for {target.identifier}"
        case "simctl" | "devicectl":
            return f"{kind} runs no programs for {target.identifier}"
        case _:
            return ""


def default_devices(_target: Target, _cpu: str = "") -> tuple[str, ...]:
    """Return none: nobody's phone is used unasked."""
    return ()


def needs_device() -> bool:
    """Return False: an AAR is made without a phone, and its report says that it was run nowhere."""
    return False


def nowhere(_target: Target) -> str:
    """Say that the library was run nowhere."""
    return NOWHERE


def open_host(target: Target, _cores: Sequence[int]) -> Device:
    """Raise `LookupError`: `refusal` comes before."""
    raise LookupError(f"this machine does not run {target.identifier}")


def require_fitting(device: Device, target: Target, job: BuildJob | None) -> None:
    """Refuse a phone of another ABI, or older than the job's API level. Raises as `adb.require_fitting` does."""
    api = job.android.api if job and job.android else None
    adb.require_fitting(device.facts(), device.name, target, api)


def baseline(_job: BuildJob, _runtime: FullRuntime, _requirements: str | None) -> tuple[Baseline, LibrarySize]:
    """Return none, and say why."""
    return Baseline(library=None, name="none: no official package for Android is pinned"), NO_SIZE
