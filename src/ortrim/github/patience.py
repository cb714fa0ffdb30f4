"""Requests that are repeated where they may be, and that wait when they are told to."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ortrim.github.clock import Clock
from ortrim.github.credentials import Token
from ortrim.github.limits import retry_after, wait_seconds
from ortrim.github.refusals import rate_limited, unreachable
from ortrim.github.traffic import Traffic
from ortrim.github.troubles import Trouble
from ortrim.github.wire import Answer, new_session, opened, whole

ATTEMPTS: Final = 4
LIMITS_IN_A_ROW: Final = 6
PATIENCE_SECONDS: Final = 900.0
"""How long a rate limit is waited for; beyond it, the user is told when it ends."""
LONGEST_PAUSE_SECONDS: Final = 60.0


def _silent(_: str) -> None:
    """Say nothing."""


class PatientSession:
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
        self.http = new_session(token)
        self._announce = announce
        self._patience = patience_seconds

    def answered(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer | None:
        """Return an answer that is no rate limit; for POST also any trouble of the server's, or None for no answer.

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

    def _once(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer | Trouble:
        self.traffic.requests += 1
        try:
            with opened(self.http, method, url, headers=headers, data=data) as response:
                return whole(response, self.clock)
        except Trouble as trouble:
            return trouble

    def _pause_or_give_up(self, outcome: Answer | Trouble, failures: int, where: str) -> None:
        """Rest before the next attempt. Raises `NetworkError` (`github-unreachable`) when there is to be none."""
        if failures == ATTEMPTS or (isinstance(outcome, Trouble) and outcome.hopeless):
            raise unreachable(where, str(outcome) if isinstance(outcome, Trouble) else f"it answered {outcome.status}")
        asked = retry_after(outcome, self.clock.wall()) if isinstance(outcome, Answer) else None
        self.traffic.repeats += 1
        self.rest(min(2.0 ** (failures - 1) if asked is None else asked, LONGEST_PAUSE_SECONDS))
