"""What the harness prints into a device's log when results can travel in no other way."""

import binascii
import hashlib
from typing import Final

PART_BYTES: Final = 2250
"""A multiple of three, so that the parts join to one base64 text; 3,000 letters fit into a line of Android's log."""


def encode(payload: bytes) -> tuple[str, ...]:
    """Return the lines that carry a payload, as the harness prints them, without what a log puts before."""
    parts = [payload[start : start + PART_BYTES] for start in range(0, len(payload), PART_BYTES)]
    lines = [
        f"ortrim-result {number}/{len(parts)} {binascii.b2a_base64(part, newline=False).decode()}"
        for number, part in enumerate(parts, start=1)
    ]
    return (*lines, f"ortrim-result-end {hashlib.sha256(payload).hexdigest()} {len(payload)}")
