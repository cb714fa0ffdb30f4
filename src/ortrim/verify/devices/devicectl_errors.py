"""What `devicectl` says when something is wrong, and how an app on a phone ended. Pure.

Its error document nests errors in errors; what a person needs is told apart by words, wherever they stand. The texts
are those of Xcode 15 to 26 (`tests/unit/verify/data/devicectl`).
"""

import re
from typing import Final

from ortrim.errors import VerifyError

Fault = tuple[str, str, str]
"""A diagnostic's reference, what happened, and a hint."""
TERMINATED: Final = re.compile(r"\bApp terminated due to signal (\d{1,2})\b")
"""What `devicectl device process launch --console` prints at the end of an app that a signal ended."""
LOST: Final[Fault] = (
    "device-lost",
    "the phone went away while it was used",
    "connect it again by cable, and run the same command again",
)
FAULTS: Final[tuple[tuple[str, Fault], ...]] = (
    ("Unknown option '--console'", (
        "xcode-too-old", "this Xcode's devicectl cannot wait for an app to end",
        "choose Xcode 16 or newer: sudo xcode-select -s /Applications/Xcode.app",
    )),
    ("device was not, or could not be, unlocked", (
        "device-locked", "the phone is locked", "unlock it, and keep its display on meanwhile"
    )),
    ("device is locked", ("device-locked", "the phone is locked", "unlock it, and keep its display on meanwhile")),
    ("not been explicitly trusted by the user", (
        "app-not-trusted", "the phone does not trust the app's developer",
        "say so there: Settings, General, VPN & Device Management",
    )),
    ("Developer Mode", (
        "device-not-ready", "the phone has its developer mode switched off",
        "switch it on: Settings, Privacy & Security, Developer Mode",
    )),
    ("No space left", ("device-full", "the phone has no room", "remove something from it")),
    ("not enough available storage", ("device-full", "the phone has no room", "remove something from it")),
    ("MIInstallerErrorDomain", (
        "app-refused", "the phone does not take the app",
        "sign it for this phone: open the project in Xcode, choose your team, and build it again",
    )),
    ("The specified device was not found", LOST),
    ("tunnel connection failed", LOST),
    ("RemotePairingError", LOST),
    ("is not connected", LOST),
)  # fmt: skip
"""What each of devicectl's words means; the first that fits counts."""
MOST_LINES: Final = 6


def devicectl_error(said: str, where: str) -> VerifyError:
    """Return the diagnostic of a command that failed, by what it printed and wrote; `phone-trouble` when none fits."""
    why = "\n".join(line.strip() for line in said.strip().splitlines()[-MOST_LINES:])
    for words, (reference, what, hint) in FAULTS:
        if words in said:
            return VerifyError(reference, what, where=where, why=why, hint=hint)
    hint = "try it by hand: xcrun devicectl list devices"
    return VerifyError("phone-trouble", "devicectl failed", where=where, why=why, hint=hint)


def signal_of(printed: str) -> int | None:
    """Return the number of the signal that ended an app, None when it ended by itself."""
    found = TERMINATED.search(printed)
    return int(found[1]) if found else None
