"""Files of several architectures."""

import struct

import lief
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apple_slices import recorded
from ortrim.binaries.macho import LARGEST, fat_parts, macho_of, universal_file


class Huge(bytes):
    """Bytes that claim to be more than a file of this format can hold."""

    def __len__(self) -> int:
        """Return what is claimed."""
        return LARGEST


def both() -> dict[str, bytes]:
    """Return libraries for Macs of both kinds."""
    return {"arm64": recorded("macos-arm64"), "x86_64": recorded("macos-x86_64")}


def test_both_architectures_are_read_back_by_us_and_by_lief() -> None:
    """Each as it was, on a page of its own, the smaller pages first."""
    parts = both()
    joined = universal_file(parts)
    assert macho_of(joined, "joined").architectures == ("arm64", "x86_64")
    assert dict(fat_parts(joined)) == parts
    places = [struct.unpack_from(">IIIII", joined, 8 + 20 * number) for number in range(2)]
    assert [(place[2] % (1 << place[4]), place[4]) for place in places] == [(0, 12), (0, 14)]
    read = lief.MachO.parse(joined)
    assert read is not None
    assert [binary.header.cpu_type.name for binary in read] == ["X86_64", "ARM64"]


def test_the_order_in_which_parts_come_does_not_matter() -> None:
    """As for the same bytes it must not."""
    assert universal_file(both()) == universal_file(dict(reversed(both().items())))


def test_one_architecture_stays_thin() -> None:
    """Older tools do not take a file of several that has one."""
    assert universal_file({"arm64": b"thin"}) == b"thin"


@given(st.binary(min_size=1, max_size=50_000), st.binary(min_size=1, max_size=50_000))
def test_whatever_is_joined_comes_back(arm64: bytes, x86_64: bytes) -> None:
    """Contents are not looked at."""
    assert dict(fat_parts(universal_file({"arm64": arm64, "x86_64": x86_64}))) == {"arm64": arm64, "x86_64": x86_64}


def test_an_architecture_of_the_past_is_refused() -> None:
    """Nobody builds for it."""
    with pytest.raises(KeyError):
        universal_file({"arm64": b"a", "ppc": b"b"})


def test_what_does_not_fit_into_the_format_is_refused() -> None:
    """Offsets have 32 bits."""
    with pytest.raises(ValueError, match="beyond 4 GiB"):
        universal_file({"arm64": Huge(b"a"), "x86_64": b"b"})
