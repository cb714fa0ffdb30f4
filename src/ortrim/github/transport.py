"""Requests to GitHub that are repeated where they may be, and that wait when they are told to.

- GitHub's rate limits: how long an answer asks us to wait. Pure.
- The account of what talking to GitHub took.
- What GitHub's refusals mean for the user.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from ortrim.base.certificates import untrusted
from ortrim.base.http import Answer, Clock, Request, TransportError, UntrustedCertificate, new_session, opened, whole
from ortrim.errors import NetworkError
from ortrim.github.credentials import Token

ACCEPT: Final = "application/vnd.github+json"


class Bearer:
    """Adds the token, if any; being there at all, it keeps logins from `.netrc` out of the request."""

    def __init__(self, token: Token | None) -> None:
        self._token = token

    def __call__(self, request: Request) -> Request:
        """Add it."""
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        return request


SHORTEST_SECONDS: Final = 1.0
UNNAMED_SECONDS: Final = 60.0
"""The pause when GitHub names none; twice as long each further time."""
LONGEST_UNNAMED_SECONDS: Final = 900.0
WORDS: Final = (b"rate limit", b"abuse detection")


def wait_seconds(answer: Answer, earlier: int, local_time: float) -> float | None:
    """Return how long to wait before asking again; None when the answer has nothing to do with a rate limit.

    `earlier` counts the limits met in a row. Times are reckoned from the server's own clock, as its `Date` says it:
    `local_time` counts only when there is none.
    """
    if answer.status not in {403, 429}:
        return None
    now = _date(answer.headers.get("date", ""), local_time)
    if "retry-after" in answer.headers:
        asked = retry_after(answer, local_time)
        return _unnamed(earlier) if asked is None else asked
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = _number(answer.headers.get("x-ratelimit-reset", ""))
        return _unnamed(earlier) if reset is None else max(reset - now + 1, SHORTEST_SECONDS)
    if answer.status == 429 or any(word in answer.body.lower() for word in WORDS):
        return _unnamed(earlier)
    return None


def retry_after(answer: Answer, local_time: float) -> float | None:
    """Return the seconds of `Retry-After`, which may be a number or a date; None when it is absent or neither."""
    text = answer.headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is None:
        date = _date(text, math.nan)
        seconds = None if math.isnan(date) else date - _date(answer.headers.get("date", ""), local_time)
    return None if seconds is None else max(seconds, SHORTEST_SECONDS)


def _unnamed(earlier: int) -> float:
    return min(UNNAMED_SECONDS * 2.0 ** min(earlier, 10), LONGEST_UNNAMED_SECONDS)


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _date(text: str, otherwise: float) -> float:
    """Return a date of HTTP in seconds since 1970; for what is none (zones of years), the other."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return otherwise
    return (date if date.tzinfo else datetime.combine(date.date(), date.time(), UTC)).timestamp()


@dataclass(kw_only=True)
class Traffic:
    """Requests sent, how many of them were repeats, how many answers said that nothing had changed; seconds waited.

    `bytes_received` are those of downloads, `bytes_again` those among them that had come before.
    """

    requests: int = 0
    repeats: int = 0
    unchanged: int = 0
    waited_seconds: float = 0.0
    bytes_received: int = 0
    bytes_again: int = 0

    @property
    def words(self) -> str:
        """The account in one line: `12 requests, 1 of them repeated, 7 unchanged; 1,234 bytes, 0 of them twice`."""
        asked = f"{self.requests:,} requests, {self.repeats:,} of them repeated, {self.unchanged:,} unchanged"
        return f"{asked}; {self.bytes_received:,} bytes fetched, {self.bytes_again:,} of them twice"


LONGEST_MESSAGE: Final = 500
PERMISSIONS: Final = "x-accepted-github-permissions"
UNPROCESSABLE: Final = ("github-invalid-request", "GitHub refused the request", "")
MEANINGS: Final = {
    400: UNPROCESSABLE,
    401: (
        "github-refused",
        "GitHub does not accept the token",
        "it is wrong, expired or revoked: make a new one, or run: gh auth login",
    ),
    404: (
        "github-not-found",
        "is not there",
        "GitHub also gives this answer if the token has no access to a private repository",
    ),
    409: UNPROCESSABLE,
    410: ("github-gone", "is not there any more", ""),
    422: UNPROCESSABLE,
}
"""Reference, what and hint by status; 403 has several meanings."""


def message_of(answer: Answer) -> str:
    """Return what GitHub says in words, cut to a readable length; empty when it says nothing."""
    try:
        data = json.loads(answer.body)
    except (ValueError, RecursionError):
        return ""
    message = data.get("message") if isinstance(data, Mapping) else None
    return message[:LONGEST_MESSAGE] if isinstance(message, str) else ""


def refusal(answer: Answer, where: str, *, has_token: bool) -> NetworkError:
    """Return the diagnostic for an answer that is neither a success nor a rate limit.

    References: `github-no-token`, `github-refused`, `github-not-found`, `github-gone`, `github-invalid-request`,
    `github-unreachable` (its own failed) and `github-unexpected-answer`.
    """
    status, why = answer.status, message_of(answer)
    if status in {401, 403, 404} and not has_token:
        return no_token(where, f"it answered {status}" + (f": {why}" if why else ""))
    if status in {403, 451}:
        hint = _permission_hint(answer)
        return NetworkError("github-refused", "the token has no permission for this", where=where, why=why, hint=hint)
    if status in MEANINGS:
        code, what, hint = MEANINGS[status]
        return NetworkError(code, what, where=where, why=why, hint=hint)
    return unreachable(where, f"it answered {status}") if status >= 500 else unexpected(where, f"status {status}")


def no_token(where: str, why: str = "") -> NetworkError:
    """Return the diagnostic for something that cannot be done without a token."""
    hint = "set GH_TOKEN (for a GitHub Enterprise Server: GH_ENTERPRISE_TOKEN), or run: gh auth login"
    return NetworkError("github-no-token", "this needs a GitHub token", where=where, why=why, hint=hint)


def moved(where: str) -> NetworkError:
    """Return the diagnostic of a request that was not carried out since the repository has another name now."""
    what, hint = "the repository was renamed at GitHub", "say which: --repo owner/name"
    return NetworkError("repository-moved", what, where=where, hint=hint)


def rate_limited(where: str, seconds: float) -> NetworkError:
    """Return the diagnostic for a rate limit that ends too late to be waited for."""
    span = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
    what, hint = f"GitHub's rate limit is used up for {span}", f"run the same command again in {span}"
    return NetworkError("github-rate-limited", what, where=where, hint=hint)


def unreachable(where: str, why: str) -> NetworkError:
    """Return the diagnostic for a service that does not answer, or with its own errors."""
    hint = "check the network or the proxy settings and https://www.githubstatus.com, then run the same command again"
    return NetworkError("github-unreachable", "GitHub could not be reached", where=where, why=why, hint=hint)


def unexpected(where: str, why: str) -> NetworkError:
    """Return the diagnostic for an answer that GitHub's API does not give."""
    hint = "is there a proxy in between, or is GITHUB_API_URL wrong?"
    what = "the answer is not one of GitHub's API"
    return NetworkError("github-unexpected-answer", what, where=where, why=why, hint=hint)


def _permission_hint(answer: Answer) -> str:
    """Return what would help: single sign-on, or the permissions that GitHub names."""
    sign_on = answer.headers.get("x-github-sso", "")
    if "url=" in sign_on:
        return f"authorize the token for single sign-on: {sign_on.partition('url=')[2][:LONGEST_MESSAGE]}"
    needed = answer.headers.get(PERMISSIONS, "")[:LONGEST_MESSAGE]
    return f"it needs: {needed}" if needed else "give the token permissions on this repository, including Actions"


ATTEMPTS: Final = 4
LIMITS_IN_A_ROW: Final = 6
PATIENCE_SECONDS: Final = 900.0
"""How long ortrim waits for a rate limit; if it lasts longer, the error says when it ends."""
LONGEST_PAUSE_SECONDS: Final = 60.0


def _silent(_: str) -> None:
    """Say nothing."""


class RetryingSession:
    """Requests with one token or none; `announce` is told of each longer wait, `traffic` keeps account."""

    def __init__(
        self,
        token: Token | None,
        *,
        clock: Clock | None = None,
        announce: Callable[[str], None] = _silent,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.clock = clock or Clock()
        self.traffic = Traffic()
        self.http = new_session(Bearer(token), Accept=ACCEPT)
        self._announce = announce
        self._patience = patience_seconds

    def answered(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer | None:
        """Return an answer that is no rate limit; for POST also any failed of the server's, or None for no answer.

        POST is repeated only where the server did not do it: no connection came about, or a rate limit was met.
        Raises `NetworkError` (`github-rate-limited`, `github-unreachable`).
        """
        where, failures, limits = f"{method} {url.partition('?')[0]}", 0, 0
        while True:
            outcome = self._once(method, url, headers, data)
            if isinstance(outcome, Answer):
                if self.waited_for_limit(outcome, limits, where):
                    limits += 1
                    continue
                if outcome.status < 500 or method == "POST":
                    return outcome
            elif method == "POST" and outcome.sent:
                return None
            failures += 1
            self._pause_or_give_up(outcome, failures, where)

    @contextmanager
    def patient(self, seconds: float) -> Iterator[None]:
        """Wait for rate limits of up to so many seconds within the block."""
        before, self._patience = self._patience, seconds
        try:
            yield
        finally:
            self._patience = before

    def rest(self, seconds: float) -> None:
        """Let time pass, and account for it."""
        self.clock.sleep(seconds)
        self.traffic.waited_seconds += seconds

    def waited_for_limit(self, answer: Answer, earlier: int, where: str) -> bool:
        """Wait if `answer` is a rate limit, and say whether it was one; `earlier` counts those met in a row.

        Raises `NetworkError` (`github-rate-limited`) when that would take too long.
        """
        seconds = wait_seconds(answer, earlier, self.clock.wall())
        if seconds is None:
            return False
        if seconds > self._patience or earlier >= LIMITS_IN_A_ROW:
            raise rate_limited(where, seconds)
        self._announce(f"GitHub's rate limit: waiting {seconds:.0f} s")
        self.rest(seconds)
        return True

    def _once(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer | TransportError:
        self.traffic.requests += 1
        try:
            with opened(self.http, method, url, headers=headers, data=data) as response:
                return whole(response, self.clock)
        except TransportError as failed:
            return failed

    def _pause_or_give_up(self, outcome: Answer | TransportError, failures: int, where: str) -> None:
        """Rest before the next attempt.

        Raises `NetworkError` (`github-unreachable`, `untrusted-certificate`) when there is to be none.
        """
        if isinstance(outcome, UntrustedCertificate):
            raise untrusted(where, str(outcome))
        if failures == ATTEMPTS or (isinstance(outcome, TransportError) and outcome.permanent):
            raise unreachable(
                where, str(outcome) if isinstance(outcome, TransportError) else f"it answered {outcome.status}"
            )
        asked = retry_after(outcome, self.clock.wall()) if isinstance(outcome, Answer) else None
        self.traffic.repeats += 1
        self.rest(min(2.0 ** (failures - 1) if asked is None else asked, LONGEST_PAUSE_SECONDS))
