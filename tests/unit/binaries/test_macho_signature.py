import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_slices import recorded
from ortrim.binaries.macho_exports import signed_anew

LIBRARY = recorded("macos-arm64")
PAGE_BYTES = 0x4000


@pytest.mark.parametrize("place", [100, PAGE_BYTES + 5, 2 * PAGE_BYTES + 1])
def test_a_changed_page_is_signed_anew(place: int) -> None:
    """The signature of a changed library is false until it is made anew, on whatever page the change is."""
    changed = bytearray(LIBRARY)
    changed[place] ^= 0xFF
    signed = signed_anew(bytes(changed))
    assert signed != changed
    assert signed_anew(signed) == signed
    assert len(signed) == len(LIBRARY)


def test_a_true_signature_stays() -> None:
    """What was not changed gets the bytes that it has."""
    assert signed_anew(LIBRARY) == LIBRARY


def test_a_file_without_signature_stays_without() -> None:
    """Intel's processors ask for none, and zig gives them none."""
    plain = recorded("macos-x86_64")
    assert signed_anew(plain) == plain


@pytest.mark.parametrize(
    ("field", "value"), [(0, 0), (20, 0), (20 + 37, 1), (20 + 32, 0xFFFFFFFF), (20 + 16, 0xFFFFFFF)]
)
def test_a_damaged_signature_is_refused(field: int, value: int) -> None:
    """A magic number of nothing, another kind of digest, more bytes than there are, digests beyond the end."""
    damaged = bytearray(LIBRARY)
    start = LIBRARY.index(b"\xfa\xde\x0c\xc0")
    form = ">B" if field == 20 + 37 else ">I"
    struct.pack_into(form, damaged, start + field, value)
    with pytest.raises((ValueError, struct.error)):
        signed_anew(bytes(damaged))


@settings(deadline=None, max_examples=60)
@given(st.integers(min_value=0, max_value=400), st.integers(min_value=0, max_value=255))
def test_damage_is_refused_or_signed(place: int, value: int) -> None:
    """Nothing in a signature makes it write outside of its place."""
    damaged = bytearray(LIBRARY)
    start = LIBRARY.index(b"\xfa\xde\x0c\xc0")
    damaged[min(start + place, len(damaged) - 1)] = value
    with contextlib.suppress(ValueError, struct.error):
        assert len(signed_anew(bytes(damaged))) == len(LIBRARY)
