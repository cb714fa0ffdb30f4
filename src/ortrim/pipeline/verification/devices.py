"""Which devices a target is verified on, and whether a report has what is asked for of each."""

import shutil
from collections.abc import Sequence

from ortrim.core.reports import NOT_FOR_DEVICE, DeviceReport, VerifyReport
from ortrim.core.target_spec import TargetSpec
from ortrim.core.targets import TARGETS, Target
from ortrim.errors import UsageError, VerifyError
from ortrim.pipeline.converted import Request
from ortrim.pipeline.ndks import is_android
from ortrim.pipeline.xcodes import is_apple
from ortrim.tools.base import install_command
from ortrim.verify.devices.names import DeviceName, default_devices, read_names
from ortrim.verify.devices.runnable import emulation_of


def devices_of(target: Target, request: Request, cpu: str = "") -> tuple[DeviceName, ...]:
    """Return the devices that were named for a target, else its defaults, with the cores that were asked for.

    `cpu` is the least processor that its library is compiled for, empty for any. Raises `UsageError` as `read_names`
    does.
    """
    found = read_names(target, request.devices or default_devices(target, cpu), cpu)
    return tuple(device.on(request.cores) for device in found)


def require_devices(targets: Sequence[TargetSpec], request: Request, host: Target) -> None:
    """Refuse, before anything is compiled, what could not be verified.

    Raises `VerifyError` `no-device` for targets that run neither on this machine nor in an emulator that is installed
    here while no device is named (for Android and Apple's systems a package is made all the same, and its report says
    that it was run nowhere); `UsageError` for names that are none, for `--least-memory` without a machine
    whose memory can be lowered, and for `--cores` without one that has cores of its own.
    """
    if not request.devices:
        _require_defaults(targets, host)
    found = [device for target in targets for device in devices_of(TARGETS[target.id], request, target.cpu or "")]
    if request.cores and not any(device.takes_cores for device in found):
        what = "none of the devices has cores that could be chosen"
        hint = "name one that has: --device adb, --device ssh:USER@HOST, or --device host"
        raise UsageError("bad-option", what, where="--cores", hint=hint)
    if request.least_memory and not any(map(has_ceiling, found)):
        what = "none of the devices has a memory that can be lowered"
        hint = "name a qemu-system for a target of ARM: --target linux-arm64 --device qemu-system"
        raise UsageError("bad-option", what, where="--least-memory", hint=hint)


def has_ceiling(device: DeviceName) -> bool:
    """Whether the least memory of a model can be found on a device."""
    return device.kind == "qemu-system"


def answers(report: VerifyReport, target: Target, request: Request, cpu: str = "") -> bool:
    """Whether a report has all that is asked for, so that nothing is left to verify; `cpu` is as for `devices_of`."""
    found = {device.device: device for device in report.devices}
    return all(_answered(found.get(str(device)), device, request) for device in devices_of(target, request, cpu))


def _answered(found: DeviceReport | None, device: DeviceName, request: Request) -> bool:
    if found is None:
        return False
    if found.failure:
        # A device does not become another one.
        return found.failure.reference == NOT_FOR_DEVICE
    if found.host is not None and found.host.pinned_cores != device.cores:
        return False
    least_memory = bool(found.least_memory) or not (request.least_memory and has_ceiling(device))
    return least_memory and (bool(found.traces) or not request.trace)


def _require_defaults(targets: Sequence[TargetSpec], host: Target) -> None:
    machines = tuple(target for target in targets if not (is_android(target) or is_apple(target)))
    needs = {target.id: _missing_emulator(target, host) for target in machines}
    lacking = {identifier: package for identifier, package in needs.items() if package is not None}
    if lacking:
        what = f"a library for another machine cannot be run on {host.identifier}, so nothing would be proved of it"
        commands = " && ".join(install_command(package) for package in dict.fromkeys(lacking.values()) if package)
        emulator = f"install an emulator: {commands}; or " if commands else ""
        hint = (
            f"{emulator}name a device that runs it: --device adb, or --device ssh:USER@HOST; or build it on a host of "
            "its own kind; invoke plan (or --plan-only) shows its plan on any"
        )
        raise VerifyError("no-device", what, where=", ".join(lacking), hint=hint)


def _missing_emulator(spec: TargetSpec, host: Target) -> str | None:
    """Return the package with what runs a target's programs here, empty for none; None when nothing is missing."""
    target = TARGETS[spec.id]
    if (target.system, target.architecture) == (host.system, host.architecture):
        return None
    emulation = emulation_of(target)
    if emulation is None or not default_devices(target, spec.cpu or ""):
        return ""
    return None if shutil.which(emulation.user.name) else emulation.user.package
