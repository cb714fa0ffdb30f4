"""What adb and devices say when something is wrong, as diagnostics. Pure.

adb has one exit code for all failures, so causes are told apart by its words: those of adb 29 to 36, recorded in
`tests/unit/verify/data/adb`.
"""

from collections.abc import Mapping
from typing import Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.base_folders import other_folder

Fault = tuple[str, str, str]
"""A diagnostic's reference, what happened, and a hint."""
STATES: Final[Mapping[str, Fault]] = {
    "unauthorized": (
        "device-unauthorized",
        "the device does not trust this computer",
        "unlock it and accept 'Allow USB debugging'; if it does not ask: adb kill-server, then connect it anew",
    ),
    "authorizing": (
        "device-unauthorized",
        "the device has not yet said whether it trusts this computer",
        "unlock it and accept 'Allow USB debugging', then run the same command again",
    ),
    "offline": (
        "device-offline",
        "the device is known to adb but does not answer",
        "disconnect it and connect it again, or: adb reconnect offline",
    ),
    "no permissions": (
        "device-no-permission",
        "this user may not open the device's USB connection",
        "install the udev rules (Debian: android-sdk-platform-tools-common), join the group plugdev, connect it anew",
    ),
}
"""Of a device in `adb devices` that is not online."""
NOT_READY: Final[Fault] = (
    "device-not-ready",
    "the device is not in the state in which commands can be run",
    "start it into Android: adb reboot",
)
LOST: Final[Fault] = (
    "device-lost",
    "the device went away while it was used",
    "connect it again (adb devices -l lists it as 'device' then), and run the same command again",
)
"""Also of a device that adb cannot reach."""
FULL: Final[Fault] = (
    "device-full",
    "the device has no room",
    "remove files from it; what ortrim left behind is called /data/local/tmp/ortrim-*",
)
NOT_PERMITTED: Final[Fault] = (
    "device-not-permitted",
    "the device's shell may not write there",
    other_folder("adb:"),
)
COPY_FAILED: Final[Fault] = (
    "copy-failed",
    "adb could not copy a file",
    "try it by hand: adb push FILE /data/local/tmp",
)
"""For a reason that adb did not name, with the device still there."""
WORDS: Final[tuple[tuple[str, Fault | str], ...]] = (
    ("No space left on device", FULL),
    ("Disk quota exceeded", FULL),
    ("device unauthorized", "unauthorized"),
    ("device still authorizing", "unauthorized"),
    ("insufficient permissions for device", "no permissions"),
    ("device offline", LOST),
    ("' not found", LOST),
    ("no devices/emulators found", LOST),
    ("Permission denied", NOT_PERMITTED),
    ("Read-only file system", NOT_PERMITTED),
)
"""What each of adb's words means, or the state that they tell of. The first that fits counts. A device that was online
when it was opened and is offline now has gone away."""


def device_error(fault: Fault, serial: str, why: str) -> VerifyError:
    """Return a fault of a device as a diagnostic."""
    reference, what, hint = fault
    return VerifyError(reference, what, where=f"adb:{serial}", why=why, hint=hint)


def state_error(state: str, serial: str) -> VerifyError:
    """Return the diagnostic of a device that is not online, by its state in `adb devices`."""
    return device_error(STATES.get(state, NOT_READY), serial, f"its state is: {state}")


def known_error(printed: str, serial: str) -> VerifyError | None:
    """Return the diagnostic of an adb command that failed, by what it printed; None when nothing fits."""
    meaning = next((meaning for words, meaning in WORDS if words in printed), None)
    if isinstance(meaning, str):
        return state_error(meaning, serial)
    return device_error(meaning, serial, _last_lines(printed)) if meaning else None


def adb_error(printed: str, serial: str) -> VerifyError:
    """Return the diagnostic of a command whose end did not come back: `device-lost` unless adb says otherwise."""
    return known_error(printed, serial) or device_error(LOST, serial, _last_lines(printed))


def _last_lines(printed: str) -> str:
    return "\n".join(printed.strip().splitlines()[-4:])
