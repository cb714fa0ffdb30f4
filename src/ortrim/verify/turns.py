"""Which devices may be at work at the same time without spoiling each other's measurements. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from ortrim.verify.devices.names import DeviceName

EMULATED: Final = re.compile(r"emulator-[0-9]+")
"""How `adb` names Android's emulators, which run on this machine."""
LOOPBACK: Final = re.compile(r"(?:ssh://)?(?:[^@]*@)?(?:localhost|127\.[0-9.]+|\[?::1\]?)(?::[0-9]+)?")


def turns(devices: Sequence[DeviceName], cores: int) -> tuple[tuple[DeviceName, ...], ...]:
    """Return groups of devices that may run side by side, one group after the other.

    A device that measures time on this machine runs alone, first, while nothing else does. Emulators take this
    machine's processor and measure no time: no more of them run at once than there are `cores`, since one that gets
    no processor reaches its time limits. Other machines do not feel each other, nor emulators here.
    """
    alone = [device for device in devices if _times_this_machine(device)]
    emulated = [device for device in devices if _is_emulated_here(device)]
    elsewhere = [device for device in devices if device not in (*alone, *emulated)]
    size = max(1, cores)
    together = [emulated[start : start + size] for start in range(0, len(emulated), size)] or [[]]
    first, *rest = [[*elsewhere, *together[0]], *together[1:]]
    groups = [*([device] for device in alone), first, *rest]
    return tuple(tuple(group) for group in groups if group)


def _is_emulated_here(device: DeviceName) -> bool:
    return device.kind in {"qemu-user", "qemu-system", "simctl"} or _is_android_emulator(device)


def _is_android_emulator(device: DeviceName) -> bool:
    return device.kind == "adb" and bool(EMULATED.fullmatch(device.detail))


def _times_this_machine(device: DeviceName) -> bool:
    """Whether it is this machine, which a network address may lead back to."""
    return device.kind == "host" or (device.kind in {"adb", "ssh"} and bool(LOOPBACK.fullmatch(device.detail)))
