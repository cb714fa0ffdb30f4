"""Results that travel in a device's log, for farms that bring back nothing else. Pure.

The harness on the device packs its results into one zip archive, cuts its base64 into parts and prints lines of
`ortrim-result <n>/<total> <base64>`, counted from 1, then `ortrim-result-end <sha256> <bytes>`; when the archive is too
large for that, `ortrim-result-too-large <bytes>`. Before each the log puts what it puts before every line. A log may
lose lines, repeat them, and mix them with those of others; the digest says whether all is there.
"""

import binascii
import hashlib
import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

PART: Final = re.compile(r"\bortrim-result ([0-9]{1,6})/([0-9]{1,6}) ([A-Za-z0-9+/]*={0,2})[ \t\r]*$")
END: Final = re.compile(r"\bortrim-result-end ([0-9a-f]{64}) ([0-9]{1,12})[ \t\r]*$")
TOO_LARGE: Final = re.compile(r"\bortrim-result-too-large ([0-9]{1,12})[ \t\r]*$")
PART_BYTES: Final = 2250
"""A multiple of three, so that the parts join to one base64 text; 3,000 letters fit into a line of Android's log."""
MOST_BYTES: Final = 64 << 20
MOST_NAMED: Final = 5

Parts = dict[int, dict[int, str]]
"""Of each total that was announced, the parts by their numbers."""


class BrokenTransport(Exception):
    """A log holds parts of results, but not all of them; the words say what is missing."""


def encode(payload: bytes) -> tuple[str, ...]:
    """Return the lines that carry a payload, as the harness prints them, without what a log puts before."""
    parts = [payload[start : start + PART_BYTES] for start in range(0, len(payload), PART_BYTES)]
    lines = [
        f"ortrim-result {number}/{len(parts)} {binascii.b2a_base64(part, newline=False).decode()}"
        for number, part in enumerate(parts, start=1)
    ]
    return (*lines, f"ortrim-result-end {hashlib.sha256(payload).hexdigest()} {len(payload)}")


def decode(lines: Iterable[str]) -> bytes | None:
    """Return the payload that a log carries, None when there is no trace of one.

    Of several the last that is whole counts. Raises `BrokenTransport` when none is.
    """
    parts: Parts = {}
    found: bytes | None = None
    broken = ""
    for line in lines:
        if part := PART.search(line):
            _take(parts, int(part[1]), int(part[2]), part[3])
        elif end := END.search(line):
            payload = _joined(parts, int(end[2]), end[1])
            found, broken = (payload, "") if isinstance(payload, bytes) else (found, payload)
        elif large := TOO_LARGE.search(line):
            broken = f"the results are too large to travel in the log: {int(large[1]):,} bytes"
    if found is None and (broken or parts):
        raise BrokenTransport(broken or "the log ends in the midst of the results")
    return found


def _take(parts: Parts, number: int, total: int, text: str) -> None:
    """Keep a part under its total: other payloads' parts mostly have other totals."""
    if 1 <= number <= total:
        parts.setdefault(total, {})[number] = text


def _joined(parts: Parts, size: int, digest: str) -> bytes | str:
    """Return the payload of that size and digest, or what is wrong with what there is."""
    if size > MOST_BYTES:
        return f"the log announces {size:,} bytes of results, more than the {MOST_BYTES:,} that are taken"
    if hashlib.sha256(b"").hexdigest() == digest:
        return b""
    for total, texts in parts.items():
        payload = _decoded(texts, total) if len(texts) == total else b""
        if len(payload) == size and hashlib.sha256(payload).hexdigest() == digest:
            return payload
    return _lack(parts)


def _decoded(texts: dict[int, str], total: int) -> bytes:
    try:
        return binascii.a2b_base64("".join(texts[number] for number in range(1, total + 1)), strict_mode=True)
    except binascii.Error:
        return b""


def _lack(parts: Parts) -> str:
    """Say what is missing of the payload that was begun last."""
    total, texts = next(reversed(parts.items()), (0, {}))
    lost = total - len(texts)
    if not lost:
        return "the results in the log do not have the digest that the device gave them"
    missing = islice((number for number in range(1, total + 1) if number not in texts), MOST_NAMED)
    named = ", ".join(str(number) for number in missing)
    more = f" and {lost - MOST_NAMED:,} more" if lost > MOST_NAMED else ""
    return f"the log lost {lost:,} of the {total:,} lines that carry the results: {named}{more}"
