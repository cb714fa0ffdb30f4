"""The devices that adb sees, and which of them is meant. Pure.

The states are those of `ConnectionStateIsOnline` and `to_string(ConnectionState)` in Android's adb.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.verify.devices.adb_errors import state_error

ONLINE: Final = "device"
STATES: Final = (
    "device|offline|unauthorized|authorizing|connecting|no permissions|bootloader|recovery|rescue|sideload|host|unknown"
)
LINE: Final = re.compile(rf"(?P<serial>\S.*?)\s+(?P<state>{STATES})\b(?P<rest>.*)")
FIELD: Final = re.compile(r"(?:^|\s)(?P<key>usb|product|model|device|transport_id):(?P<value>\S+)")
CONNECT_HINT: Final = (
    "connect one, with USB debugging on, or: adb connect ADDRESS; then look at what this prints: adb devices -l"
)


@dataclass(frozen=True, kw_only=True)
class AdbListing:
    """One line of `adb devices -l`. `model` is empty for a device that says nothing of itself yet."""

    serial: str
    state: str
    model: str

    @property
    def online(self) -> bool:
        """Whether commands can be run on it."""
        return self.state == ONLINE


def read_listing(printed: str) -> tuple[AdbListing, ...]:
    """Return the devices that `adb devices -l` printed; whatever else is printed among them is left out."""
    _, _, lines = f"\n{printed}".partition("\nList of devices attached")
    found = (LINE.fullmatch(line.strip()) for line in lines.splitlines()[1:] if not line.startswith("*"))
    return tuple(_listing(match) for match in found if match)


def _listing(match: re.Match[str]) -> AdbListing:
    fields = {field["key"]: field["value"] for field in FIELD.finditer(match["rest"])}
    # adb writes an underscore for what is not a letter or a digit.
    return AdbListing(serial=match["serial"], state=match["state"], model=fields.get("model", "").replace("_", " "))


def choose(devices: Sequence[AdbListing], serial: str | None) -> AdbListing:
    """Return the device of a serial number, or the only one there is.

    A single device that is online is taken even when there are others that are not. Raises `UsageError`
    (`several-devices`, `unknown-device`) or `VerifyError` (`no-device`, `device-unauthorized`, `device-offline`,
    `device-no-permission`, `device-not-ready`).
    """
    if serial is not None:
        return _ready(_named(devices, serial))
    online = [device for device in devices if device.online]
    if len(online) > 1:
        raise _several(online)
    if not devices:
        raise VerifyError("no-device", "adb sees no device", where="adb", hint=CONNECT_HINT)
    return online[0] if online else _ready(devices[0])


def _named(devices: Sequence[AdbListing], serial: str) -> AdbListing:
    for device in devices:
        if device.serial == serial:
            return device
    hint = f"adb sees: {', '.join(device.serial for device in devices)}" if devices else CONNECT_HINT
    raise UsageError("unknown-device", "adb sees no device of this serial number", where=serial, hint=hint)


def _ready(device: AdbListing) -> AdbListing:
    if not device.online:
        raise state_error(device.state, device.serial)
    return device


def _several(devices: Sequence[AdbListing]) -> Diagnostic:
    names = ", ".join(f"adb:{device.serial}" for device in devices)
    what = f"adb sees {len(devices)} devices, and none was chosen"
    return UsageError("several-devices", what, where="adb", hint=f"name one or more of them: {names}")
