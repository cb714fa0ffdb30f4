"""Several downloads at once."""

import io
import threading
from collections.abc import Callable
from typing import Final

import pytest

from ortrim.base.console import Console
from ortrim.base.http import Clock
from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.credentials import Service
from ortrim.github.downloads import OnBytes
from ortrim.github.fetch.placing import AT_ONCE, Download, GivenUp, download_all
from ortrim.github.transport import RetryingSession

SECONDS: Final = 20.0
"""How long a test waits for another thread before it fails."""


def client_with(sleep: Callable[[float], None] = lambda _: None) -> GitHub:
    """Return a client whose pauses are these."""
    return GitHub(Service(), None, RetryingSession(None, clock=Clock(sleep=sleep)))


def run(downloads: list[Download], client: GitHub | None = None) -> list[tuple[float, float, str]]:
    """Fetch, and return what progress was told."""
    told: list[tuple[float, float, str]] = []
    console = Console(stdout=io.StringIO(), stderr=io.StringIO())
    with console.step("fetch") as step:
        step.progress = lambda done, total, text="": told.append((done, total, text))  # type: ignore[method-assign]
        download_all(downloads, client or client_with(), step)
    return told


def test_nothing_to_fetch_is_nothing() -> None:
    """No connection, no progress."""
    assert run([]) == []


def test_several_are_under_way_at_once() -> None:
    """As many as the limit, each with a client of its own; the progress is that of all of them."""
    together = threading.Barrier(AT_ONCE, timeout=SECONDS)
    clients: list[GitHub] = []

    def fetched(client: GitHub, on_bytes: OnBytes) -> None:
        clients.append(client)
        together.wait()
        on_bytes(5, 10)

    told = run([Download(name=str(n), size_bytes=10, run=fetched) for n in range(2 * AT_ONCE)])
    assert len(set(map(id, clients))) == AT_ONCE
    assert told[-1] == (20.0 * AT_ONCE, 20 * AT_ONCE, f"{2 * AT_ONCE} downloads")
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


def test_a_single_one_is_named() -> None:
    """In the progress."""
    assert run([Download(name="a.aar", size_bytes=10, run=lambda _, on_bytes: on_bytes(4, 10))]) == [
        (4, 10, "a.aar"),
        (10, 10, "a.aar"),
    ]


def test_the_account_is_that_of_all() -> None:
    """Requests, repeats and bytes of every connection."""

    def fetched(client: GitHub, _: OnBytes) -> None:
        client.session.traffic.requests += 1
        client.session.traffic.bytes_received += 7

    with Console(stdout=io.StringIO(), stderr=io.StringIO()).step("fetch") as step:
        traffic = download_all(
            [Download(name=str(n), size_bytes=7, run=fetched) for n in range(9)], client_with(), step
        )
    assert (traffic.requests, traffic.bytes_received) == (9, 63)


def test_one_failure_stops_the_others() -> None:
    """Those that wait for bytes, those that pause, and those that have not begun."""
    begun, ended = threading.Barrier(3, timeout=SECONDS), list[str]()

    def failing(_client: GitHub, _on_bytes: OnBytes) -> None:
        begun.wait()
        raise NetworkError("artifact-expired", "expired")

    def receiving(_client: GitHub, on_bytes: OnBytes) -> None:
        begun.wait()
        with pytest.raises(GivenUp):
            endless(on_bytes)
        ended.append("receiving")

    def pausing(client: GitHub, _on_bytes: OnBytes) -> None:
        begun.wait()
        pause(client)
        ended.append("pausing")

    def late(_client: GitHub, on_bytes: OnBytes) -> None:
        on_bytes(1, 10)
        ended.append("late")

    kinds = [failing, receiving, pausing]
    downloads = [Download(name=kind.__name__, size_bytes=10, run=kind) for kind in kinds]
    blocked = Download(name="blocked", size_bytes=1, run=lambda client, _: pause(client))
    with pytest.raises(NetworkError) as caught:
        run([*downloads, blocked, Download(name="late", size_bytes=1, run=late)])
    assert caught.value.code == "artifact-expired"
    assert sorted(ended) == ["pausing", "receiving"]


def endless(on_bytes: OnBytes) -> None:
    """Receive bytes for ever."""
    while True:
        on_bytes(1, 10)


def pause(client: GitHub) -> None:
    """Pause until everything is given up."""
    with pytest.raises(GivenUp):
        client.session.rest(10**9)


def test_a_long_pause_is_announced() -> None:
    """On the step."""

    def limited(client: GitHub, _: OnBytes) -> None:
        client.session._announce("GitHub's rate limit: waiting 60 s")

    out = io.StringIO()
    with Console(stdout=out, stderr=out).step("fetch") as step:
        download_all([Download(name="a", size_bytes=1, run=limited)], client_with(), step)
    assert "GitHub's rate limit: waiting 60 s" in out.getvalue()
