"""Downloads that the API hands over to another server: that one never gets our token, nor a login of `.netrc`."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final
from urllib.parse import urljoin

import requests

from ortrim.github.addresses import is_protected, same_origin
from ortrim.github.client import MOVED, REDIRECTS, GitHub
from ortrim.github.refusals import unexpected
from ortrim.github.wire import new_session, opened

RENAMED: Final = frozenset({301, 308})
"""How the API says that a repository has another name now; to stored files it sends with 302."""


@contextmanager
def opened_download(client: GitHub, path: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
    """Give the answer to one GET at the end of all redirects, whatever its status, its body still to be read.

    The addresses that the API gives are good for a minute: each attempt asks for a new one. Raises `Trouble`, and
    `NetworkError` (`github-unexpected-answer`) for a redirect to where others could listen.
    """
    with ExitStack() as stack:
        response = stack.enter_context(client.open(path, headers))
        for _ in range(REDIRECTS):
            if response.status_code not in MOVED:
                yield response
                return
            target = _target(response, path)
            if response.status_code in RENAMED and same_origin(target, client.service.api):
                response = stack.enter_context(client.open(target, headers))
                continue
            _check(client, path, target)
            session = stack.enter_context(new_session(None))
            client.session.traffic.requests += 1
            response = stack.enter_context(opened(session, "GET", target, headers={**headers, "Accept": "*/*"}))
    raise unexpected(path, "it sends us in circles")


def _target(response: requests.Response, path: str) -> str:
    try:
        return urljoin(response.url, response.headers.get("Location", ""))
    except ValueError:
        raise unexpected(path, "it sends us to what is no address") from None


def _check(client: GitHub, path: str, target: str) -> None:
    secure = target.lower().startswith("https:") or client.service.api.startswith("http:")
    if not (secure and is_protected(target)):
        raise unexpected(path, "it sends us to an address that is not https")
