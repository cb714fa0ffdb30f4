"""What gcloud says when Test Lab refuses, fails or cannot be reached, as diagnostics. Pure.

gcloud has exit codes of its own for what became of a test, and 1 for everything else, so causes are told apart by its
words: those of gcloud 528, recorded in `tests/unit/verify/data/gcloud`.
"""

import re
from dataclasses import dataclass
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, StorageError, VerifyError

MOST_LINES: Final = 4
NO_NETWORK: Final = re.compile(
    r"ConnectionError|ConnectionResetError|ConnectTimeout|ReadTimeout|Connection (?:aborted|refused|reset)|BrokenPipe"
    r"|Max retries exceeded|NameResolution|ServerNotFound|Unable to find the server|SSLError|ProxyError|TransportError"
    r"|Network is unreachable|ChunkedEncodingError|IncompleteRead|socket\.timeout|crashed \(TimeoutError\)"
    r"|Cloud storage upload failure"
)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause: the words it is told by, and what is said of it."""

    words: re.Pattern[str]
    reference: str
    what: str
    hint: str


CAUSES: Final = (
    Cause(
        words=re.compile(
            r"not currently have an active account|valid credentials|auth tokens|invalid authentication credentials"
            r"|[Rr]eauthentication|invalid_grant|[Ee]rror 401|UNAUTHENTICATED"
        ),
        reference="farm-credentials",
        what="gcloud has no account that Google accepts",
        hint="run: gcloud auth login; on CI: gcloud auth activate-service-account, or google-github-actions/auth",
    ),
    Cause(
        words=re.compile(
            r"[Qq]uota exceeded|test quota|TEST_QUOTA|RESOURCE_EXHAUSTED|[Ee]rror 429|(?:rate|daily)LimitExceeded"
        ),
        reference="farm-quota",
        what="the project has used up what it may of Test Lab",
        hint="wait until tomorrow, or take a plan with more: https://firebase.google.com/docs/test-lab/usage-quotas-pricing",
    ),
    Cause(
        words=re.compile(r"has not been used in project|SERVICE_DISABLED|SERVICE_NOT_ACTIVATED|api is not activated"),
        reference="farm-project",
        what="a service that Test Lab needs is not enabled in the project",
        hint="run: gcloud services enable testing.googleapis.com toolresults.googleapis.com",
    ),
    Cause(
        words=re.compile(r"No project specified"),
        reference="farm-project",
        what="gcloud has no project",
        hint="run: gcloud config set project PROJECT, or set CLOUDSDK_CORE_PROJECT",
    ),
    Cause(
        words=re.compile(r"is not a valid (?:model|OS version|locale|device orientation)"),
        reference="farm-device-unknown",
        what="Test Lab does not have such a device",
        hint="gcloud firebase test android models list; ... locales list",
    ),
    Cause(
        words=re.compile(r"Device dimensions are not compatible"),
        reference="farm-unsupported",
        what="the device and the Android version do not go together",
        hint="gcloud firebase test android models list has the versions of each model",
    ),
    Cause(
        words=re.compile(r"failed during validation|Invalid path|not found or not accessible"),
        reference="farm-refused",
        what="Test Lab does not take the app or its test",
        hint="build both anew; Test Lab takes signed APKs, the test with an instrumentation in its manifest",
    ),
    Cause(
        words=re.compile(r"[Ee]rror 40[34]|PERMISSION_DENIED|Permission denied|billing|does not have|quota project"),
        reference="farm-project",
        what="the project is unknown, or the account may not use it",
        hint="see docs/farms-firebase.md for the roles; for a bucket of your own billing must be enabled",
    ),
)
"""The first that fits counts."""


def gcloud_error(printed: str, where: str, *, uploading: bool = False, url: str = "") -> Diagnostic:
    """Return the diagnostic of a gcloud command that failed, by what it printed on its standard error.

    `uploading` says that it was about to send files, and `url` where a test can be seen that goes on without it.
    """
    why = said(printed)
    if "No space left on device" in why:
        return StorageError("disk-full", "no space left for the results", where=where, why=why)
    if NO_NETWORK.search(why):
        return unreachable(why, where, uploading=uploading, url=url)
    cause = next((cause for cause in CAUSES if cause.words.search(why)), None)
    if cause is not None:
        return VerifyError(cause.reference, cause.what, where=where, why=why, hint=cause.hint)
    hint = "run the same command again later; https://status.firebase.google.com has known trouble"
    hint = f"{hint}; the test: {url}" if url else hint
    return VerifyError("farm-trouble", "Test Lab or gcloud failed", where=where, why=why, hint=hint)


def unreachable(why: str, where: str, *, uploading: bool = False, url: str = "") -> NetworkError:
    """Return the diagnostic of a connection that was lost, or never came about."""
    if uploading:
        what = "the connection to Google was lost in an upload; no test was started"
        return NetworkError("farm-upload-lost", what, where=where, why=why, hint="run the same command again")
    if url:
        what = "the connection to Google was lost; the test may go on"
        return NetworkError("farm-unreachable", what, where=where, why=why, hint=f"see, or cancel it, at {url}")
    hint = "check the network and the proxy that gcloud uses (gcloud config list proxy/), then run it again"
    return NetworkError("farm-unreachable", "Google cannot be reached", where=where, why=why, hint=hint)


def said(printed: str) -> str:
    """Return what gcloud calls its error, without its address of the command and its advice."""
    lines = [line.rstrip() for line in printed.splitlines()]
    first = next(
        (number for number, line in enumerate(lines) if line.startswith("ERROR:")), max(len(lines) - MOST_LINES, 0)
    )
    told: list[str] = []
    for line in lines[first:]:
        if line.startswith(("If you would like to report", "To search the help text")):
            break
        if line:
            told.append(re.sub(r"^ERROR: (?:\(gcloud[\w.-]*\) )?", "", line).strip())
    return "\n".join(told[:MOST_LINES])
