"""What became of a test: the outcome that gcloud prints as JSON. Pure."""

import json
from typing import Final

from ortrim.errors import Diagnostic, VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.farms.firebase_errors import gcloud_error

CANCELLED: Final = 19
ENDED: Final = (0, 10, 15, 18)
"""Exit codes with which gcloud prints an outcome: passed or flaky, failed, inconclusive, skipped."""
NO_OUTCOME: Final = "Tool Results service did not provide a roll-up test outcome"


def verdict(done: Completed, where: str, *, uploading: bool = False, url: str = "") -> tuple[bool, str]:
    """Return whether the instrumentation passed, and the details that Test Lab gives.

    A flaky test, which passed in one attempt alone, counts as failed. `uploading` and `url` are for `gcloud_error`.
    Raises `VerifyError` or `NetworkError` when there is no such verdict: see `Farm.run`.
    """
    if done.returncode == CANCELLED:
        raise cancelled(where, "gcloud was told to end")
    if NO_OUTCOME in done.stderr:
        raise _without_verdict("no outcome", NO_OUTCOME, where, url)
    if done.returncode not in ENDED or (not done.stdout.strip() and "ERROR:" in done.stderr):
        raise gcloud_error(done.stderr, where, uploading=uploading, url=url)
    outcome, details = _outcome(done, where, url)
    if outcome in {"Passed", "Failed", "Flaky"} and details not in ENDS:
        return outcome == "Passed", details
    raise _without_verdict(outcome, details, where, url)


ENDS: Final[dict[str, tuple[str, str, str]]] = {
    "Test timed out": (
        "farm-timeout",
        "the test did not end within its time limit and was stopped",
        "ask for more time, or verify fewer cases or runs at once",
    ),
    "App failed to install": (
        "farm-unsupported",
        "the app cannot be installed on the device",
        "it may lack the device's ABI, or need a newer Android",
    ),
    "Infrastructure failure": (
        "farm-trouble",
        "Test Lab's own machines failed",
        "run the same command again; nothing is charged for such a test",
    ),
    "Test run aborted by user": ("farm-cancelled", "the test was cancelled", "run the same command again"),
}
"""Details that say more than the outcome, in gcloud's words."""


def _without_verdict(outcome: str, details: str, where: str, url: str) -> Diagnostic:
    if details in ENDS:
        reference, what, hint = ENDS[details]
    elif outcome == "Skipped":
        reference, what = "farm-unsupported", "the device cannot run the app, so nothing was run"
        hint = "build the app for the device's ABI and Android version"
    else:
        reference, what = "farm-inconclusive", "Test Lab does not know whether the test passed"
        hint = f"see {url}, and run the same command again" if url else "run the same command again"
    return VerifyError(reference, what, where=where, why=f"{outcome}: {details}", hint=hint)


def cancelled(where: str, why: str) -> VerifyError:
    """Return the diagnostic of a test that somebody cancelled."""
    reference, what, hint = ENDS["Test run aborted by user"]
    return VerifyError(reference, what, where=where, why=why, hint=hint)


def _outcome(done: Completed, where: str, url: str) -> tuple[str, str]:
    """Return the outcome on the one device and its details, in gcloud's words."""
    try:
        (row,) = json.loads(done.stdout)
        return str(row["outcome"]), str(row["test_details"])
    except (ValueError, TypeError, KeyError) as error:
        what = "Test Lab gives no outcome of the test"
        why = f"gcloud ended with {done.returncode} and printed: {done.stdout[:200].strip() or 'nothing'}"
        hint = f"see {url}, and run the same command again" if url else "run the same command again"
        raise VerifyError("farm-inconclusive", what, where=where, why=why, hint=hint) from error
