"""How long an answer of GitHub's asks us to wait."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.http import Answer
from ortrim.github.client import LONGEST_UNNAMED_SECONDS, retry_after, wait_seconds

NOW = 1_795_262_400.0
DATE = "Sat, 21 Nov 2026 12:00:00 GMT"


def limited(status: int = 403, body: bytes = b"", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=body)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (limited(retry_after="30"), 30),
        (limited(429, retry_after="0"), 1),
        (limited(retry_after="Sat, 21 Nov 2026 12:00:40 GMT", date=DATE), 40),
        (limited(retry_after="Sat, 21 Nov 2026 11:00:00 GMT", date=DATE), 1),
        (limited(retry_after="later"), 60),
        (limited(retry_after="-5"), 60),
        (limited(retry_after="1e9"), 60),
        (limited(retry_after="٣"), 60),
        (limited(retry_after="9" * 400), 60),
        (limited(retry_after=f"Sat, 21 Nov 2026 12:00:40 +{20 * '9'}"), 60),
        (limited(retry_after="30", date=f"Sat, 21 Nov 2026 12:00:00 -{20 * '9'}"), 30),
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 100), date=DATE), 101),
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) - 100), date=DATE), 1),
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset="soon", date=DATE), 60),
        (limited(x_ratelimit_remaining="0"), 60),
        (limited(x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 100)), 101),
        (limited(body=b'{"message": "You have exceeded a secondary Rate Limit"}'), 60),
        (limited(body=b"You have triggered an abuse detection mechanism"), 60),
        (limited(429), 60),
        (limited(body=b"Must have admin rights"), None),
        (limited(x_ratelimit_remaining="4999", x_ratelimit_reset="1"), None),
        (limited(200, x_ratelimit_remaining="0"), None),
        (limited(500, retry_after="30"), None),
    ],
)
def test_each_kind_of_limit_has_its_time(answer: Answer, seconds: float | None) -> None:
    """What the answer names comes first, then the reset, then a minute; what is no limit is not waited for."""
    assert wait_seconds(answer, 0, NOW) == seconds


def test_a_limit_without_a_time_takes_longer_each_time() -> None:
    """Up to a quarter of an hour."""
    assert [wait_seconds(limited(429), earlier, NOW) for earlier in (0, 1, 2, 3, 4, 5000)] == [
        60,
        120,
        240,
        480,
        900,
        900,
    ]


def test_the_servers_clock_counts() -> None:
    """Ours may be a day off."""
    answer = limited(x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 100), date=DATE)
    assert wait_seconds(answer, 0, NOW - 86_400) == wait_seconds(answer, 0, NOW + 86_400) == 101


def test_a_server_error_may_name_a_time() -> None:
    """Or not."""
    assert retry_after(limited(503, retry_after="7"), NOW) == 7
    assert retry_after(limited(503), NOW) is None


ZONES = st.from_regex(r"[+-][0-9]{1,30}", fullmatch=True)
DATES = st.builds(
    "Sat, {:02} Nov {:04} {:02}:00:00 {}".format, st.integers(0, 40), st.integers(0, 10_000), st.integers(0, 30), ZONES
)
"""Dates of HTTP, most of them none that ever was."""


@given(
    st.dictionaries(st.sampled_from(["retry-after", "date", "x-ratelimit-reset"]), st.text(max_size=30) | DATES),
    st.integers(0, 99),
)
def test_no_header_makes_us_wait_for_ever(headers: dict[str, str], earlier: int) -> None:
    """Whatever a server sends comes to a finite time of at least a second."""
    answer = Answer(status=403, headers={**headers, "x-ratelimit-remaining": "0"}, body=b"")
    seconds = wait_seconds(answer, earlier, NOW)
    assert seconds is not None
    assert math.isfinite(seconds)
    assert seconds >= 1
    assert headers or seconds <= LONGEST_UNNAMED_SECONDS
