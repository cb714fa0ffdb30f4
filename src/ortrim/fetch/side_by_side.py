"""Several downloads at once, with their progress added up; when one fails, the others are given up."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from ortrim.console import Step
from ortrim.github.client import GitHub
from ortrim.github.clock import Clock
from ortrim.github.patience import PatientSession
from ortrim.github.resuming import OnBytes
from ortrim.github.traffic import Traffic

AT_ONCE: Final = 4


@dataclass(frozen=True, kw_only=True)
class Download:
    """Something to fetch: its name, about how many bytes it has, and how it is fetched."""

    name: str
    size_bytes: int
    run: Callable[[GitHub, OnBytes], None]


class GivenUp(Exception):
    """A download was stopped because another one failed, or by Ctrl-C."""


def download_all(downloads: Sequence[Download], client: GitHub, step: Step) -> Traffic:
    """Fetch everything, a few at a time, each over a connection of its own; return the account of all of them.

    Raises the first thing that goes wrong, once the other downloads have stopped; what was finished stays.
    """
    tally = _Tally(downloads, step)
    clients = [_another(client, tally) for _ in range(min(AT_ONCE, len(downloads)))]
    idle: SimpleQueue[GitHub] = SimpleQueue()
    for each in clients:
        idle.put(each)
    if downloads:
        _run_all(downloads, idle, tally)
    return _sum(each.session.traffic for each in clients)


def _run_all(downloads: Sequence[Download], idle: "SimpleQueue[GitHub]", tally: "_Tally") -> None:
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        try:
            for future in as_completed([pool.submit(_fetch, each, idle, tally) for each in downloads]):
                future.result()
        except BaseException as error:
            tally.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, GivenUp) and tally.failure is not None:
                raise tally.failure from None
            raise


def _fetch(download: Download, idle: "SimpleQueue[GitHub]", tally: "_Tally") -> None:
    client = idle.get()
    try:
        download.run(client, lambda done, _: tally.there(download, done))
        tally.there(download, download.size_bytes)
    except GivenUp:
        raise
    except BaseException as error:
        tally.fail(error)
        raise
    finally:
        idle.put(client)


def _another(client: GitHub, tally: "_Tally") -> GitHub:
    """Return a further client like this one, whose pauses end when everything is given up."""
    clock = client.session.clock
    own = Clock(monotonic=clock.monotonic, wall=clock.wall, sleep=lambda seconds: tally.sleep(clock.sleep, seconds))
    session = PatientSession(client.token, clock=own, announce=tally.say)
    return GitHub(client.service, client.token, session)


class _Tally:
    """How far all downloads are together; told of by their threads."""

    def __init__(self, downloads: Sequence[Download], step: Step) -> None:
        self.stopped = threading.Event()
        self.failure: BaseException | None = None
        self._there = dict.fromkeys((each.name for each in downloads), 0)
        self._total = sum(each.size_bytes for each in downloads)
        self._step = step
        self._lock = threading.Lock()

    def there(self, download: Download, done: int) -> None:
        """Take note of the bytes that there are of one download. Raises `GivenUp`."""
        self._check()
        with self._lock:
            self._there[download.name] = done
            words = download.name if len(self._there) == 1 else f"{len(self._there)} downloads"
            self._step.progress(sum(self._there.values()), self._total, words)

    def fail(self, error: BaseException) -> None:
        """Stop all downloads because of what went wrong with one."""
        with self._lock:
            self.failure = self.failure or error
        self.stopped.set()

    def say(self, text: str) -> None:
        """Tell the user of a longer wait."""
        with self._lock:
            self._step.note(text)

    def sleep(self, sleep: Callable[[float], None], seconds: float) -> None:
        """Let time pass, a second at a time. Raises `GivenUp`."""
        while seconds > 0:
            self._check()
            sleep(min(seconds, 1.0))
            seconds -= 1.0

    def _check(self) -> None:
        if self.stopped.is_set():
            raise GivenUp


def _sum(accounts: Iterable[Traffic]) -> Traffic:
    total = Traffic()
    for account in accounts:
        for name, value in vars(account).items():
            setattr(total, name, getattr(total, name) + value)
    return total
