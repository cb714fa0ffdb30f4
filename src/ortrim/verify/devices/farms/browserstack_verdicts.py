"""What the end of a build at BrowserStack means. Pure.

Statuses: https://www.browserstack.com/docs/app-automate/espresso/view-test-results. `error` stands for trouble of the
farm's, an app that cannot be installed, a queue that took too long and a build that somebody stopped: the words tell.
"""

import re
from typing import Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.browserstack_errors import clean

Meaning = tuple[str, str]

TROUBLE: Final[Meaning] = ("farm-trouble", "BrowserStack could not carry out the build")
UNSUPPORTED: Final[Meaning] = ("farm-unsupported", "the device cannot run the app")
QUEUED: Final[Meaning] = ("farm-timeout", "no device became free in time")
TOO_LONG: Final[Meaning] = ("farm-timeout", "the build took too long, and BrowserStack ended it")
STOPPED: Final[Meaning] = ("farm-cancelled", "the build was stopped by somebody else")
INCONCLUSIVE: Final[Meaning] = ("farm-inconclusive", "the build ended without a verdict on the app")
WORDS: Final[tuple[tuple[re.Pattern[str], Meaning], ...]] = (
    (re.compile(r"INSTALL_FAILED|incompatible|unsupported", re.IGNORECASE), UNSUPPORTED),
    (re.compile(r"queue|waiting for (?:a )?device", re.IGNORECASE), QUEUED),
    (re.compile(r"stopped|aborted|cancell?ed|terminated", re.IGNORECASE), STOPPED),
    (re.compile(r"timed? ?out", re.IGNORECASE), TOO_LONG),
)
"""The first that fits counts."""
STATUSES: Final[dict[str, Meaning]] = {
    "timedout": TOO_LONG,
    "timeout": TOO_LONG,
    "stopped": STOPPED,
    "aborted": STOPPED,
    "cancelled": STOPPED,
    "skipped": ("farm-inconclusive", "the tests were never run"),
}


def passed(status: str, words: str, url: str, where: str, *, ran: bool) -> bool:
    """Return whether the instrumentation passed, from an ended build's status and what its sessions say in words.

    Raises `VerifyError` when nothing is known of it: `farm-trouble`, `farm-timeout`, `farm-cancelled`,
    `farm-unsupported`, `farm-inconclusive`.
    """
    if status in {"passed", "failed"}:
        return status == "passed"
    reference, what = _of_error(words, ran=ran) if status == "error" else STATUSES.get(status, INCONCLUSIVE)
    why = f"{status}: {clean(words)}" if words else f"the build's status is {clean(status)!r}"
    raise VerifyError(reference, what, where=where, why=why, hint=f"see {url}")


def _of_error(words: str, *, ran: bool) -> Meaning:
    meaning = next((meaning for pattern, meaning in WORDS if pattern.search(words)), TROUBLE)
    return TROUBLE if ran and meaning is QUEUED else meaning
