"""How programs that another thread runs are stopped: only the main thread hears of Ctrl-C and of signals."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_REQUEST: ContextVar["StopRequest | None"] = ContextVar("stop request", default=None)


class StopRequest:
    """Asks one thread once; what it runs afterwards, to clean up, is left alone."""

    def __init__(self, asked: threading.Event) -> None:
        self._asked = asked
        self._told = False

    def check(self) -> None:
        """Raise `KeyboardInterrupt` when the thread is asked to stop and was not told before."""
        if self._asked.is_set() and not self._told:
            self._told = True
            raise KeyboardInterrupt


@contextmanager
def stopped_by(asked: threading.Event) -> Iterator[None]:
    """Let whatever this thread runs be stopped, as on Ctrl-C, once `asked` is set."""
    token = _REQUEST.set(StopRequest(asked))
    try:
        yield
    finally:
        _REQUEST.reset(token)


def stop_request() -> StopRequest | None:
    """Return how this thread is asked to stop; None when nobody else can ask it."""
    return _REQUEST.get()
