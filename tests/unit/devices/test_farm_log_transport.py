import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.harness import MOST_BYTES, PART_BYTES, BrokenTransport, decode, encode

BEFORE = "11-21 13:20:32.123  1234  1240 I ORTRIM  : "
"""What Android's log puts before a line."""
NINE = b"x" * PART_BYTES * 9
payloads = st.one_of(st.binary(max_size=300), st.integers(1, 4).map(lambda parts: bytes(range(250)) * 9 * parts))
noise = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=60)


@given(payloads)
def test_what_goes_in_comes_out(payload: bytes) -> None:
    """Any payload survives, with or without what a log puts before a line and a carriage return after it."""
    assert decode(encode(payload)) == payload
    assert decode(f"{BEFORE}{line}\r\n" for line in encode(payload)) == payload


@given(payloads, st.lists(noise, max_size=20), st.randoms(use_true_random=False))
def test_lines_of_others_and_repeated_lines_do_no_harm(
    payload: bytes, others: list[str], chance: random.Random
) -> None:
    """Parts may come twice, in any order and between any other lines, as long as the end comes last."""
    *parts, end = encode(payload)
    lines = [*parts, *parts, *others]
    chance.shuffle(lines)
    assert decode([*lines, end]) == payload


@given(st.lists(noise, max_size=20))
def test_a_log_without_results(lines: list[str]) -> None:
    assert decode(lines) is None


@given(payloads.filter(bool), st.data())
def test_a_lost_line_is_noticed(payload: bytes, data: st.DataObject) -> None:
    lines = list(encode(payload))
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    with pytest.raises(BrokenTransport):
        decode(lines)


@given(payloads.filter(bool), st.data())
def test_a_damaged_line_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """A letter that changed on the way is found by the digest, or makes the line one of others."""
    lines = list(encode(payload))
    number = data.draw(st.integers(0, len(lines) - 2))
    start = lines[number].rindex(" ") + 1
    place = data.draw(st.integers(start, len(lines[number]) - 1))
    letter = "A" if lines[number][place] != "A" else "B"
    lines[number] = lines[number][:place] + letter + lines[number][place + 1 :]
    if decode_or_none(lines) is not None:
        # base64 has letters whose last bits say nothing.
        assert decode(lines) == payload


def decode_or_none(lines: list[str]) -> bytes | None:
    try:
        return decode(lines)
    except BrokenTransport:
        return None


def test_the_last_whole_payload_counts() -> None:
    """A program that ran twice has printed twice; what broke after a whole one does not matter."""
    old, new = b"old" * 2000, b"new" * 3000
    assert decode([*encode(old), *encode(new)]) == new
    assert decode([*encode(old), *encode(new)[:-1]]) == old
    assert decode([*encode(old), *encode(new)[1:]]) == old
    assert decode([*encode(b"a" * 9), *encode(b"b" * 9)]) == b"b" * 9


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*encode(NINE)[:1], *encode(NINE)[2:4], *encode(NINE)[5:]], "2 of the 9 lines that carry the results: 2, 5"),
        ([encode(NINE)[0], encode(NINE)[-1]], "2, 3, 4, 5, 6 and 3 more"),
        (encode(b"x")[:-1], "ends in the middle"),
        (encode(b"x")[1:], "do not have the digest"),
        ([encode(b"x")[0], encode(b"y")[-1]], "do not have the digest"),
        ([f"ortrim-result-end {hashlib.sha256(b'').hexdigest()} {MOST_BYTES + 1}"], "announces"),
        (["ortrim-result-too-large 40000000"], "40,000,000 bytes"),
        (["ortrim-result 1/1 A", encode(b"x")[-1]], "do not have the digest"),
        (["ortrim-result 1/1 ====", encode(b"x")[-1]], "ends in|digest"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(lines: list[str], words: str) -> None:
    """A log that holds less than all says what it lacks."""
    with pytest.raises(BrokenTransport, match=words):
        decode(lines)


def test_a_line_fits_into_a_log() -> None:
    """Android cuts lines of the log after some 4,000 bytes."""
    assert max(len(line) for line in encode(bytes(PART_BYTES * 3))) < 3100


def test_nothing_is_taken_from_a_claim() -> None:
    """A log that claims a million parts costs no memory for them."""
    with pytest.raises(BrokenTransport, match="lost 999,998 of the 999,999 lines"):
        decode(["ortrim-result 7/999999 QUJD", f"ortrim-result-end {'0' * 64} 3"])
