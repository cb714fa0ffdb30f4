"""What tests of the GitHub client look at after each case: that no secret got where it does not belong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import refusing
from github_blobs import SIGNATURE
from github_service import TOKEN, GitHubService
from github_state import VirtualClock
from ortrim.base.http import Clock
from ortrim.errors import DiagnosticGroup
from ortrim.github.client import GitHub, RetryingSession
from ortrim.github.repositories import Repository, Service, Site, Token
from refusing import Refusal, Words

OCTO = Repository(owner="octo", name="ort")


@dataclass(frozen=True, kw_only=True)
class Remote:
    """The stand-in, a client of it, and their clock; `said` is what the client announced."""

    service: GitHubService
    client: GitHub
    clock: VirtualClock
    said: list[str]


@contextmanager
def running_remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """Run the stand-in and give a client that knows its token; at the end look where the token went."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    virtual, said = VirtualClock(), list[str]()
    with GitHubService(virtual).running() as service:
        yield Remote(service=service, client=new_client(service, virtual, said), clock=virtual, said=said)
        check_requests(service)


def new_client(service: GitHubService, virtual: VirtualClock, said: list[str], secret: str = TOKEN) -> GitHub:
    """Return a client of the stand-in that lives in its time; an empty `secret` is no token."""
    clock = Clock(monotonic=virtual.read, wall=virtual.read, sleep=virtual.sleep)
    token = Token(secret) if secret else None
    session = RetryingSession(token, clock=clock, announce=said.append)
    return GitHub(Site(service=Service(api=service.url, host="github.invalid"), repository=OCTO), token, session)


def check_requests(service: GitHubService) -> None:
    assert not service.objections, sorted(set(service.objections))[:5]
    for seen in service.seen:
        authorization = seen.headers.get("authorization", "")
        assert seen.server == "api" or not authorization
        assert authorization in {"", f"Bearer {service.token}"} or seen.status == 401
        rest = {name: value for name, value in seen.headers.items() if name != "authorization"}
        assert service.token not in f"{seen.path}?{seen.query} {rest} {seen.body!r}"
        assert seen.headers["user-agent"].startswith("ortrim/")


def check_secrets(error: BaseException) -> None:
    """Neither the error nor anything that hangs on it holds the token or the signature of an address."""
    todo, done = [error], set[int]()
    while todo:
        current = todo.pop()
        if id(current) in done:
            continue
        done.add(id(current))
        text = f"{current!r} {current} {current.args} {vars(current)}"
        assert TOKEN not in text
        assert SIGNATURE not in text
        todo += [each for each in (current.__cause__, current.__context__) if each is not None]
        todo += list(current.diagnostics) if isinstance(current, DiagnosticGroup) else []


def refused(
    code: str, kind: type[Refusal], act: Callable[Words, object], /, *words: Words.args, **options: Words.kwargs
) -> Refusal:
    """Call what has to end with this diagnostic, which gives no secret away, and return the diagnostic."""
    error = refusing.refused(kind, act, *words, **options)
    assert error.code == code
    check_secrets(error)
    return error
