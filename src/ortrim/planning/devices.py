"""Which devices a target is verified on, and whether a report has what is asked for of each."""

import platform
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ortrim.base.tools import install_command
from ortrim.buildspec.buildspec import TargetSpec
from ortrim.buildspec.targets import Target
from ortrim.compiling.plan import BuildJob, PlannedTarget
from ortrim.devices import kinds
from ortrim.devices.kinds import DeviceName
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceReport, VerifyReport

if TYPE_CHECKING:
    from ortrim.devices.device import Device


def open_device(
    target: Target,
    name: DeviceName,
    announce: Callable[[str], None] = lambda _: None,
    *,
    job: BuildJob | None = None,
    headers: Path = Path(),
    folder: Path = Path(),
) -> "Device":
    """Return a device that `read_name` found, which runs programs for `target`; nothing is run yet.

    `job`, `headers` and `folder` are those of `Opening`; what needs an app needs all of them. The parts of emulated
    machines are fetched when they are not in the cache, which is reported to `announce`, as is what a device waits for.
    Raises `ToolError` for a program that is missing or too old, `VerifyError` as `require_fitting` does, and what
    fetching or connecting raises. Whoever calls closes the device.
    """
    rules = platform_of(target)
    to = kinds.Opening(target=target, rules=rules, announce=announce, job=job, headers=headers, folder=folder)
    return name.row.open(name, to)


def devices_of(target: Target, request: Request, cpu: str = "") -> tuple[DeviceName, ...]:
    """Return the devices that were named for a target, else its defaults, with the cores that were asked for.

    `cpu` is the least processor that its library is compiled for, empty for any. Raises `UsageError` as `read_names`
    does.
    """
    rules = platform_of(target)
    names = request.devices or rules.default_devices(target, cpu, on_macs=request.on_macs)
    found = kinds.read_names(rules, target, names, cpu)
    return tuple(device.on(request.cores) for device in found)


def require_devices(targets: Sequence[TargetSpec], request: Request, host: Target | None) -> None:
    """Refuse, before anything is compiled, what could not be verified.

    Raises `VerifyError` `no-device` for targets that run neither on this machine nor in an emulator that is installed
    here while no device is named (for Android and Apple's systems a package is made all the same, and its report says
    that it was run nowhere); `UsageError` for names that are none, for `--least-memory` without a machine
    whose memory can be lowered, and for `--cores` without one that has cores of its own.
    """
    if not request.devices:
        _require_defaults(targets, host)
    found = [device for target in targets for device in devices_of(target.target, request, target.cpu or "")]
    if request.cores and not any(device.row.cores for device in found):
        what = "none of the devices can pin runs to cores"
        hint = "name one that has: --device adb, --device ssh:USER@HOST, or --device host"
        raise UsageError("bad-option", what, where="--cores", hint=hint)
    if request.least_memory and not any(device.row.ceiling for device in found):
        what = "none of the devices can limit its memory"
        hint = "name a qemu-system for a target of ARM: --target linux-arm64 --device qemu-system"
        raise UsageError("bad-option", what, where="--least-memory", hint=hint)


def require_ready(targets: Iterable[Target], request: Request) -> None:
    """Refuse, before anything is compiled, a device that was named and is not there: its programs or itself.

    A simulator is started, and a phone on a Mac's cable asked, only when they have something to run. Raises `ToolError`
    for a program that is missing or too old, what `choose` and `SshClient` raise, and `VerifyError` `no-device` for a
    farm that cannot be reached from here.
    """
    if not request.devices:
        return
    for name, target in {name: each for each in targets for name in devices_of(each, request)}.items():
        name.row.ready(name, target)


def make_parts(targets: Iterable[PlannedTarget], request: Request, headers: Path) -> None:
    """Put what the devices of targets are made of into the cache; what fails will fail again when one is opened."""
    for target in targets:
        job = target.job
        for name in devices_of(job.target, request, job.cpu):
            if name.row.parts:
                with suppress(Diagnostic):
                    open_device(job.target, name, job=job, headers=headers).close()


def answers(report: VerifyReport, target: Target, request: Request, cpu: str = "") -> bool:
    """Whether a report has all that is asked for, so that nothing is left to verify; `cpu` is as for `devices_of`."""
    found = {device.device: device for device in report.devices}
    return all(_answered(found.get(str(device)), device, request) for device in devices_of(target, request, cpu))


def _answered(found: DeviceReport | None, device: DeviceName, request: Request) -> bool:
    if found is None:
        return False
    if found.failure:
        # A device does not become another one.
        return found.failure.code == NOT_FOR_DEVICE
    if found.failed_models:
        return False
    if found.host is not None and found.host.pinned_cores != device.cores:
        return False
    least_memory = bool(found.least_memory) or not (request.least_memory and device.row.ceiling)
    return least_memory and (bool(found.traces) or not request.trace)


def _require_defaults(targets: Sequence[TargetSpec], host: Target | None) -> None:
    machines = tuple(target for target in targets if platform_of(target.target).needs_device())
    needs = {target.id: _missing_emulator(target, host) for target in machines}
    lacking = {identifier: package for identifier, package in needs.items() if package is not None}
    if lacking:
        here = host.identifier if host else f"{platform.system()} on {platform.machine()}"
        what = f"a library for another machine cannot be run on {here}, so it could not be verified"
        commands = " && ".join(install_command(package) for package in dict.fromkeys(lacking.values()) if package)
        emulator = f"install an emulator: {commands}; or " if commands else ""
        hint = (
            f"{emulator}name a device that runs it: --device adb, or --device ssh:USER@HOST; or build it on a host of "
            "its own kind; invoke plan (or --plan-only) shows its plan on any"
        )
        raise VerifyError("no-device", what, where=", ".join(lacking), hint=hint)


def _missing_emulator(spec: TargetSpec, host: Target | None) -> str | None:
    """Return the package with what runs a target's programs here, empty for none; None when nothing is missing."""
    target = spec.target
    if host and (target.system, target.architecture) == (host.system, host.architecture):
        return None
    rules = platform_of(target)
    emulation = rules.emulation_of(target)
    if emulation is None or platform.system() != "Linux" or not rules.default_devices(target, spec.cpu or ""):
        return ""  # qemu runs single programs of Linux on Linux alone
    return None if shutil.which(emulation.user.name) else emulation.user.package
