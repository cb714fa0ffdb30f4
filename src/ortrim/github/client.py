"""Talking to GitHub's API: what is asked for, what is refused, and what the token may be sent to.

- Lists that come in pages.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from ortrim.base.http import Answer, Response, link_to, opened, same_origin
from ortrim.errors import NetworkError
from ortrim.github.credentials import Service, Token
from ortrim.github.records import parsed
from ortrim.github.transport import RetryingSession, moved, no_token, refusal, unexpected

REMEMBERED: Final = 64
REDIRECTS: Final = 4
MOVED: Final = frozenset({301, 302, 307, 308})
VERSION: Final = {"X-GitHub-Api-Version": "2022-11-28"}
"""The version in which a dispatch may ask for the run's number, and may be answered without."""


class GitHub:
    """A connection to one GitHub; `token` is the one that `session` sends."""

    def __init__(self, service: Service, token: Token | None, session: RetryingSession | None = None) -> None:
        self.service = service
        self.token = token
        self.session = session or RetryingSession(token)
        self._seen: dict[str, Answer] = {}

    def get(self, path: str, **parameters: str) -> Answer:
        """Return what is at `path` (or at an address of the API), asking only whether it changed where possible.

        Raises `NetworkError`: `github-rate-limited`, `github-unreachable`, or as `refusal`.
        """
        url = self.url(path) + ("?" + urlencode(parameters) if parameters else "")
        for _ in range(REDIRECTS):
            answer = self._current(url)
            if answer.status not in MOVED:
                self.require(answer, path, 200)
                return answer
            url = self.url(answer.headers.get("location", ""))
        raise unexpected(path, "its redirects form a loop")

    def post(self, path: str, data: Mapping[str, Any] | None = None) -> Answer | None:
        """Send `data`, if any, and return the answer, whatever its status; None when nobody knows if it was done.

        Raises `NetworkError` (`github-no-token`, `github-rate-limited`, `github-unreachable`): then it was not done.
        """
        self.require_token(path)
        headers = VERSION if data is None else {**VERSION, "Content-Type": "application/json"}
        body = b"" if data is None else json.dumps(data).encode()
        answer = self.session.answered("POST", self.url(path), headers, body)
        return None if answer is None or answer.status >= 500 else answer

    @contextmanager
    def open(self, path: str, headers: Mapping[str, str]) -> Iterator[Response]:
        """Give the answer to one GET, whatever its status, its body still to be read. Raises `TransportError`."""
        self.session.traffic.requests += 1
        with opened(self.session.http, "GET", self.url(path), headers={**VERSION, **headers}) as response:
            yield response

    def require(self, answer: Answer, where: str, *statuses: int) -> None:
        """Raise the diagnostic of an answer whose status is none of these."""
        if answer.status not in statuses:
            raise self.refused(answer, where)

    def refused(self, answer: Answer, where: str) -> NetworkError:
        """Return the diagnostic of an answer that is no success; whatever the server says, the token is not in it.

        References: `repository-moved` for what only readers are sent on for, otherwise as `refusal`.
        """
        if answer.status in MOVED and same_origin(answer.headers.get("location", ""), self.service.api):
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
        if not same_origin(path, self.service.api):
            raise unexpected(self.service.api, "its next page is at another host")
        return path

    def _current(self, url: str) -> Answer:
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


P = TypeVar("P")
T = TypeVar("T")

PAGE_SIZE: Final = "100"
MOST_PAGES: Final = 100


def everything(
    client: GitHub, path: str, page: type[P], members: Callable[[P], tuple[T, ...]], **parameters: str
) -> tuple[T, ...]:
    """Return the members of all pages of a list, by following the links that the service gives.

    Raises `NetworkError` as `GitHub.get` does, and `github-unexpected-answer` for a list without an end.
    """
    found: list[T] = []
    answer = client.get(path, per_page=PAGE_SIZE, **parameters)
    for _ in range(MOST_PAGES):
        found.extend(members(parsed(page, answer, path)))
        following = link_to(answer, "next")
        if not following:
            return tuple(found)
        answer = client.get(following)
    raise unexpected(path, f"a list of more than {MOST_PAGES} pages")
