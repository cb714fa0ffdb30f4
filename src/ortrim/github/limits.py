"""GitHub's rate limits: how long an answer asks us to wait. Pure.

https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from ortrim.github.wire import Answer

SHORTEST_SECONDS: Final = 1.0
UNNAMED_SECONDS: Final = 60.0
"""What GitHub asks for when it names no time; twice as long each further time."""
LONGEST_UNNAMED_SECONDS: Final = 900.0
WORDS: Final = (b"rate limit", b"abuse detection")


def wait_seconds(answer: Answer, earlier: int, local_time: float) -> float | None:
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


def retry_after(answer: Answer, local_time: float) -> float | None:
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
