"""Time, as far as talking to a remote service needs it; a value, so that tests let an hour pass at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Clock:
    """`monotonic` measures durations in seconds, `wall` is in seconds since 1970, `sleep` takes seconds."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
