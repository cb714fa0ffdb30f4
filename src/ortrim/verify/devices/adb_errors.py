"""What adb and devices say when something is wrong, as diagnostics. Pure.

adb has one exit code for all failures, so causes are told apart by its words: those of adb 29 to 36, recorded in
`tests/unit/verify/data/adb`.
"""

from collections.abc import Callable
from typing import Final

from ortrim.errors import VerifyError

State = tuple[str, str, str]
STATES: Final[dict[str, State]] = {
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
NOT_READY: Final[State] = (
    "device-not-ready",
    "the device is not in the state in which commands can be run",
    "start it into Android: adb reboot",
)


def state_error(state: str, serial: str) -> VerifyError:
    """Return the diagnostic of a device that is not online, by its state in `adb devices`."""
    reference, what, hint = STATES.get(state, NOT_READY)
    return VerifyError(reference, what, where=f"adb:{serial}", why=f"its state is: {state}", hint=hint)


def lost(serial: str, why: str) -> VerifyError:
    """Return the diagnostic of a device that went away, or that adb cannot reach, while it was used."""
    hint = "connect it again (adb devices -l lists it as 'device' then), and run the same command again"
    what = "the device went away while it was used"
    return VerifyError("device-lost", what, where=f"adb:{serial}", why=why, hint=hint)


def full(serial: str, why: str) -> VerifyError:
    """Return the diagnostic of a device without room."""
    hint = "remove files from it; what ortrim left behind is called /data/local/tmp/ortrim-*"
    return VerifyError("device-full", "the device has no room", where=f"adb:{serial}", why=why, hint=hint)


def refused(serial: str, why: str) -> VerifyError:
    """Return the diagnostic of a folder that cannot be written on the device."""
    hint = "name another base folder, one that the device's shell user can write to"
    what = "the device's shell may not write there"
    return VerifyError("device-not-permitted", what, where=f"adb:{serial}", why=why, hint=hint)


def copy_failed(serial: str, why: str) -> VerifyError:
    """Return the diagnostic of a copy that failed for a reason that adb did not name, with the device still there."""
    hint = "try it by hand: adb push FILE /data/local/tmp"
    return VerifyError("copy-failed", "adb could not copy a file", where=f"adb:{serial}", why=why, hint=hint)


def no_permission(serial: str, _: str) -> VerifyError:
    """Return the diagnostic of a USB device that this user may not open."""
    return state_error("no permissions", serial)


def unauthorized(serial: str, _: str) -> VerifyError:
    """Return the diagnostic of a device that does not trust this computer, or no longer."""
    return state_error("unauthorized", serial)


WORDS: Final[tuple[tuple[str, Callable[[str, str], VerifyError]], ...]] = (
    ("No space left on device", full),
    ("Disk quota exceeded", full),
    ("device unauthorized", unauthorized),
    ("device still authorizing", unauthorized),
    ("insufficient permissions for device", no_permission),
    ("device offline", lost),
    ("' not found", lost),
    ("no devices/emulators found", lost),
    ("Permission denied", refused),
    ("Read-only file system", refused),
)
"""The first that fits counts. A device that was online when it was opened and is offline now has gone away."""


def known_error(printed: str, serial: str) -> VerifyError | None:
    """Return the diagnostic of an adb command that failed, by what it printed; None when nothing fits."""
    why = "\n".join(printed.strip().splitlines()[-4:])
    return next((diagnostic(serial, why) for words, diagnostic in WORDS if words in printed), None)


def adb_error(printed: str, serial: str) -> VerifyError:
    """Return the diagnostic of a command whose end did not come back: `device-lost` unless adb says otherwise."""
    return known_error(printed, serial) or lost(serial, "\n".join(printed.strip().splitlines()[-4:]))
