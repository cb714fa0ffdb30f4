"""How far several devices are together, whichever thread says so."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[int, int, str], None]
"""Is told how many runs are done, of how many, and what is done next."""


class Together:
    """Sums up what each of `devices` says of itself, and names the one that speaks when there are several.

    Those that have not begun are taken to be like the others, so that the sum does not fall back when they do.
    """

    def __init__(self, show: OnProgress, devices: int) -> None:
        self._show = show
        self._devices = devices
        self._states: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> OnProgress:
        """Return what one device tells its progress."""

        def tell(done: int, total: int, text: str) -> None:
            with self._lock:
                self._states[name] = (done, total)
                all_done, known = (sum(numbers) for numbers in zip(*self._states.values(), strict=True))
                all_there_is = round(known * self._devices / len(self._states))
                self._show(all_done, all_there_is, f"{name}: {text}" if self._devices > 1 else text)

        return tell


class Runs:
    """Counts the runs of one device."""

    def __init__(self, total: int, tell: OnProgress) -> None:
        self._done = 0
        self._total = total
        self._tell = tell

    def doing(self, text: str) -> None:
        """Say what comes next."""
        self._tell(self._done, self._total, text)

    def done(self, text: str) -> None:
        """Say that a run of this has ended."""
        self._done += 1
        self._tell(self._done, self._total, text)

    @contextmanager
    def one(self, text: str) -> Iterator[None]:
        """Say what the run inside is about, and count it."""
        self.doing(text)
        yield
        self.done(text)
