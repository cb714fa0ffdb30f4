"""What GitHub's refusals mean for the user."""

import json
from collections.abc import Mapping
from typing import Final

from ortrim.errors import NetworkError
from ortrim.github.wire import Answer

LONGEST_MESSAGE: Final = 500
PERMISSIONS: Final = "x-accepted-github-permissions"
INVALID: Final = ("github-invalid-request", "GitHub did not take the request", "")
MEANINGS: Final = {
    400: INVALID,
    401: (
        "github-refused",
        "GitHub does not know the token",
        "it is wrong, expired or revoked: make a new one, or run: gh auth login",
    ),
    404: (
        "github-not-found",
        "is not there",
        "GitHub answers so too when the token may not see a private repository",
    ),
    409: INVALID,
    410: ("github-gone", "is not there any more", ""),
    422: INVALID,
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
    `github-unreachable` (its own trouble) and `github-unexpected-answer`.
    """
    status, why = answer.status, message_of(answer)
    if status in {401, 403, 404} and not has_token:
        return no_token(where, f"it answered {status}" + (f": {why}" if why else ""))
    if status in {403, 451}:
        hint = _permission_hint(answer)
        return NetworkError("github-refused", "the token may not do this", where=where, why=why, hint=hint)
    if status in MEANINGS:
        reference, what, hint = MEANINGS[status]
        return NetworkError(reference, what, where=where, why=why, hint=hint)
    return unreachable(where, f"it answered {status}") if status >= 500 else unexpected(where, f"status {status}")


def no_token(where: str, why: str = "") -> NetworkError:
    """Return the diagnostic for something that cannot be done without a token."""
    hint = "set GH_TOKEN (for a GitHub Enterprise Server: GH_ENTERPRISE_TOKEN), or run: gh auth login"
    return NetworkError("github-no-token", "this needs a token of GitHub's", where=where, why=why, hint=hint)


def moved(where: str) -> NetworkError:
    """Return the diagnostic of a request that was not carried out since the repository has another name now."""
    what, hint = "the repository has another name at GitHub now", "say which: --repo owner/name"
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
    hint = "is a proxy in between, or GITHUB_API_URL wrong?"
    what = "the answer is not what GitHub's API gives"
    return NetworkError("github-unexpected-answer", what, where=where, why=why, hint=hint)


def _permission_hint(answer: Answer) -> str:
    """Return what would help: single sign-on, or the permissions that GitHub names."""
    sign_on = answer.headers.get("x-github-sso", "")
    if "url=" in sign_on:
        return f"let the token through single sign-on: {sign_on.partition('url=')[2][:LONGEST_MESSAGE]}"
    needed = answer.headers.get(PERMISSIONS, "")[:LONGEST_MESSAGE]
    return f"it needs: {needed}" if needed else "give the token the rights on this repository, Actions among them"
