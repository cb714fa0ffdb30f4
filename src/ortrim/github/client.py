"""GitHub's API: the records that it answers with, sessions with retries, and the requests that ortrim makes."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from pydantic import Field, ValidationError

from ortrim.base import http
from ortrim.base.console import Console
from ortrim.base.json import from_data, from_json
from ortrim.base.tools import untrusted
from ortrim.errors import NetworkError
from ortrim.github.repositories import Site, Token, find_site, find_token, own_branch, own_repository
from ortrim.package.manifest import WORKFLOW

T = TypeVar("T")

Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Text = Annotated[str, Field(max_length=4096)]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
SHA256: Final = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """The answer to a dispatch."""

    workflow_run_id: Number
    html_url: Text


@dataclass(frozen=True, kw_only=True)
class RepositoryName:
    """A repository as others mention it: `owner/name`."""

    full_name: Text


@dataclass(frozen=True, kw_only=True)
class ReferencedWorkflow:
    """A reusable workflow that a run calls: `owner/name/.github/workflows/file.yml@ref`."""

    path: Text


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a workflow; `conclusion` is there once `status` is `completed`. Times are UTC, as GitHub writes them.

    `path` is that of the workflow's file, in some answers with `@` and a ref behind it. `head_repository` has the
    commit that was run: another one than the run's own for a pull request of a fork, None for one that is gone.
    """

    id: Number
    status: Text | None
    conclusion: Text | None
    html_url: Text
    display_title: Text = ""
    head_branch: Text | None = None
    created_at: Text = ""
    run_attempt: Number = 1
    path: Text = ""
    head_repository: RepositoryName | None = None
    referenced_workflows: tuple[ReferencedWorkflow, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowStep:
    """One step of a job."""

    name: Text
    status: Text
    conclusion: Text | None
    started_at: Text | None = None
    completed_at: Text | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowJob:
    """One job of a run."""

    id: Number
    name: Text
    status: Text
    conclusion: Text | None
    html_url: Text | None = None
    steps: tuple[WorkflowStep, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """What a run left; `digest` is that of the archive as stored, absent from what old actions uploaded."""

    id: Number
    name: Text
    size_in_bytes: Annotated[int, Field(ge=0)]
    expired: bool
    digest: Text | None = None
    expires_at: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file of a release."""

    id: Number
    name: Text
    state: Text
    size: Annotated[int, Field(ge=0)]
    digest: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release."""

    id: Number
    tag_name: Text
    html_url: Text
    draft: bool = False
    prerelease: bool = False


def sha256_in(digest: str | None) -> str:
    """Return the SHA-256 of a `digest`, empty when there is none or it is of another kind."""
    match = SHA256.fullmatch(digest or "")
    return match[1] if match else ""


def parsed(kind: type[T], answer: http.Answer, where: str, member: str = "") -> T:
    """Read an answer, or one member of it."""
    try:
        if not member:
            return from_json(kind, answer.body)
        return from_data(kind, from_json(dict[str, Any], answer.body).get(member))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in (member, *first["loc"]) if part != "")
        words = f"{place}: {first['type']}" if place else str(first["type"])
    # Raised where no exception is handled: pydantic's own holds what was read.
    raise unexpected(where, words)


ACCEPT: Final = "application/vnd.github+json"


class Bearer:
    """Adds the token, if any; being there at all, it keeps logins from `.netrc` out of the request."""

    def __init__(self, token: Token | None) -> None:
        self._token = token

    def __call__(self, request: http.Request) -> http.Request:
        """Add it."""
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        return request


SHORTEST_SECONDS: Final = 1.0
UNNAMED_SECONDS: Final = 60.0
"""The pause when GitHub names none; twice as long each further time."""
LONGEST_UNNAMED_SECONDS: Final = 900.0
WORDS: Final = (b"rate limit", b"abuse detection")


def wait_seconds(answer: http.Answer, earlier: int, local_time: float) -> float | None:
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


def retry_after(answer: http.Answer, local_time: float) -> float | None:
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


def message_of(answer: http.Answer) -> str:
    """Return what GitHub says in words, cut to a readable length; empty when it says nothing."""
    try:
        data = json.loads(answer.body)
    except (ValueError, RecursionError):
        return ""
    message = data.get("message") if isinstance(data, Mapping) else None
    return message[:LONGEST_MESSAGE] if isinstance(message, str) else ""


def refusal(answer: http.Answer, where: str, *, has_token: bool) -> NetworkError:
    """Return the diagnostic for an answer that is neither a success nor a rate limit."""
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


def _permission_hint(answer: http.Answer) -> str:
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


class RetryingSession:
    """Requests with one token or none; `announce` is told of each longer wait, `traffic` keeps account."""

    def __init__(
        self,
        token: Token | None,
        *,
        clock: http.Clock | None = None,
        announce: Callable[[str], None] = lambda _: None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.clock = clock or http.Clock()
        self.traffic = Traffic()
        self.http = http.new_session(Bearer(token), Accept=ACCEPT)
        self._announce = announce
        self._patience = patience_seconds

    def answered(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> http.Answer | None:
        """Return an answer that is no rate limit; for POST also any failed of the server's, or None for no answer.

        POST is repeated only where the server did not do it: no connection came about, or a rate limit was met.
        """
        where, failures, limits = f"{method} {url.partition('?')[0]}", 0, 0
        while True:
            outcome = self._once(method, url, headers, data)
            if isinstance(outcome, http.Answer):
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

    def waited_for_limit(self, answer: http.Answer, earlier: int, where: str) -> bool:
        """Wait if `answer` is a rate limit, and say whether it was one; `earlier` counts those met in a row."""
        seconds = wait_seconds(answer, earlier, self.clock.wall())
        if seconds is None:
            return False
        if seconds > self._patience or earlier >= LIMITS_IN_A_ROW:
            raise rate_limited(where, seconds)
        self._announce(f"GitHub's rate limit: waiting {seconds:.0f} s")
        self.rest(seconds)
        return True

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | None
    ) -> http.Answer | http.TransportError:
        self.traffic.requests += 1
        try:
            with http.opened(self.http, method, url, headers=headers, data=data) as response:
                return http.whole(response, self.clock)
        except http.TransportError as failed:
            return failed

    def _pause_or_give_up(self, outcome: http.Answer | http.TransportError, failures: int, where: str) -> None:
        """Rest before the next attempt."""
        if isinstance(outcome, http.UntrustedCertificate):
            raise untrusted(where, str(outcome))
        if failures == ATTEMPTS or (isinstance(outcome, http.TransportError) and outcome.permanent):
            raise unreachable(
                where, str(outcome) if isinstance(outcome, http.TransportError) else f"it answered {outcome.status}"
            )
        asked = retry_after(outcome, self.clock.wall()) if isinstance(outcome, http.Answer) else None
        self.traffic.repeats += 1
        self.rest(min(2.0 ** (failures - 1) if asked is None else asked, LONGEST_PAUSE_SECONDS))


REMEMBERED: Final = 64
REDIRECTS: Final = 4
MOVED: Final = frozenset({301, 302, 307, 308})
VERSION: Final = {"X-GitHub-Api-Version": "2022-11-28"}
"""The version in which a dispatch may ask for the run's number, and may be answered without."""


class GitHub:
    """A connection to the API of a repository's GitHub; `token` is the one that `session` sends."""

    def __init__(self, site: Site, token: Token | None, session: RetryingSession | None = None) -> None:
        self.site = site
        self.service, self.repository = site.service, site.repository
        self.token = token
        self.session = session or RetryingSession(token)
        self._seen: dict[str, http.Answer] = {}

    def get(self, path: str, **parameters: str) -> http.Answer:
        """Return what is at `path` (or at an address of the API), asking only whether it changed where possible."""
        url = self.url(path) + ("?" + urlencode(parameters) if parameters else "")
        for _ in range(REDIRECTS):
            answer = self._current(url)
            if answer.status not in MOVED:
                self.require(answer, path, 200)
                return answer
            url = self.url(answer.headers.get("location", ""))
        raise unexpected(path, "its redirects form a loop")

    def post(self, path: str, data: Mapping[str, Any] | None = None) -> http.Answer | None:
        """Send `data`, if any, and return the answer, whatever its status; None when nobody knows if it was done."""
        self.require_token(path)
        headers = VERSION if data is None else {**VERSION, "Content-Type": "application/json"}
        body = b"" if data is None else json.dumps(data).encode()
        answer = self.session.answered("POST", self.url(path), headers, body)
        return None if answer is None or answer.status >= 500 else answer

    @contextmanager
    def open(self, path: str, headers: Mapping[str, str]) -> Iterator[http.Response]:
        """Give the answer to one GET, whatever its status, its body still to be read. Raises `TransportError`."""
        self.session.traffic.requests += 1
        with http.opened(self.session.http, "GET", self.url(path), headers={**VERSION, **headers}) as response:
            yield response

    def require(self, answer: http.Answer, where: str, *statuses: int) -> None:
        """Raise the diagnostic of an answer whose status is none of these."""
        if answer.status not in statuses:
            raise self.refused(answer, where)

    def refused(self, answer: http.Answer, where: str) -> NetworkError:
        """Return the diagnostic of an answer that is no success; whatever the server says, the token is not in it."""
        if answer.status in MOVED and http.same_origin(answer.headers.get("location", ""), self.service.api):
            return moved(where)
        error = refusal(answer, where, has_token=self.token is not None)
        error.why, error.hint = self.redacted(error.why), self.redacted(error.hint)
        return error

    def require_token(self, where: str) -> None:
        """Raise `NetworkError` (`github-no-token`) when there is none."""
        if self.token is None:
            raise no_token(where)

    def redacted(self, text: str) -> str:
        """Return what the server said, without the token should it be in there."""
        return text if self.token is None else self.token.redacted(text)

    def url(self, path: str) -> str:
        """Return an address of the API. Raises `NetworkError` for one elsewhere: it must not see the token."""
        if path.startswith("/"):
            return self.service.api + path
        if not http.same_origin(path, self.service.api):
            raise unexpected(self.service.api, "its next page is at another host")
        return path

    def _current(self, url: str) -> http.Answer:
        """Return what is at an address, from memory when the server says that it has not changed since."""
        seen = self._seen.get(url)
        condition = {"If-None-Match": seen.headers["etag"]} if seen else {}
        answer = self.session.answered("GET", url, {**VERSION, **condition}, None)
        assert answer is not None
        if seen and answer.status == 304:
            self.session.traffic.unchanged += 1
            return seen
        if "etag" in answer.headers and answer.status == 200:
            self._seen[url] = answer
            if len(self._seen) > REMEMBERED:
                del self._seen[next(iter(self._seen))]
        return answer


PAGE_SIZE: Final = "100"
MOST_PAGES: Final = 100


def everything(client: GitHub, path: str, kind: type[T], member: str = "", **parameters: str) -> tuple[T, ...]:
    """Return all that is listed, or is so in a member of the pages, by following the links that the service gives."""
    found: list[T] = []
    answer = client.get(path, per_page=PAGE_SIZE, **parameters)
    for _ in range(MOST_PAGES):
        found.extend(parsed(tuple[kind, ...], answer, path, member))  # type: ignore[valid-type]
        following = http.link_to(answer, "next")
        if not following:
            return tuple(found)
        answer = client.get(following)
    raise unexpected(path, f"a list of more than {MOST_PAGES} pages")


@dataclass(frozen=True, kw_only=True)
class Remote:
    """What the command line says of where a run is: the repository, the branch or tag, the file that has the token.

    Without `repository` and `ref` they are found out; see `find_site` and `choose_ref`. `workflow` is the file's name
    of the one that is dispatched and listed: `build.yml`, or one that calls it.
    """

    repository: str = ""
    ref: str = ""
    token_file: Path | None = None
    workflow: str = WORKFLOW


def connect(remote: Remote, console: Console) -> GitHub:
    """Find out which repository is meant, and the token for it; asks nothing of GitHub yet."""
    site = find_site(remote.repository, Path.cwd())
    token = find_token(site.service.host, file=remote.token_file)
    return GitHub(site, token, RetryingSession(token, announce=console.note))


def choose_ref(client: GitHub, folder: Path) -> str:
    """Return the branch that is checked out in `folder` if GitHub has it, otherwise the repository's default branch.

    The branch counts only when the checkout came from that very repository.
    """
    origin = own_repository(folder, client.service.host)
    if origin is not None and str(origin).lower() == str(client.repository).lower():
        branch = own_branch(folder)
        if branch and has_branch(client, branch):
            return branch
    return default_branch(client)


def has_branch(client: GitHub, branch: str) -> bool:
    """Whether GitHub has a branch of this name."""
    try:
        client.get(f"{client.repository.path}/branches/{quote(branch, safe='')}")
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        return False
    return True


def default_branch(client: GitHub) -> str:
    """Return the default branch of the repository, which is looked at."""
    path = client.repository.path
    try:
        return parsed(str, client.get(path), path, "default_branch")
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        what = f"there is no {client.repository} at {client.service.host}, or the token may not see it"
        hint = "say which repository has the workflow: --repo owner/name"
        raise NetworkError("repository-not-found", what, where=path, why=error.why, hint=hint) from None


def commit_of_tag(client: GitHub, tag: str) -> str:
    """Return the commit of a tag."""
    path = f"{client.repository.path}/commits/{quote(f'tags/{tag}', safe='')}"
    try:
        # Pages are of the files that the commit changed, which nobody wants here.
        return parsed(Commit, client.get(path, per_page="1"), path, "sha")
    except NetworkError as error:
        if error.code not in {"github-not-found", "github-invalid-request"}:
            raise
        what = f"{client.repository} has no tag {tag[:200]!r}"
        raise NetworkError("tag-not-found", what, where=path, why=error.why, hint=error.hint) from None
