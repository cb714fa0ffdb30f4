"""Property lists that nobody vouches for: what is read of them stays small, and damage is told."""

import plistlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.binaries.xcframework import LARGEST, MOST_DEPTH, MOST_VALUES, read_plist
from ortrim.errors import BinaryError, ExitCode
from refusing import refused

WHERE = "x/Info.plist"


def unfolding(doublings: int) -> Any:
    """Return a list in a list, each twice: a few bytes of a binary property list, and two to that power when told."""
    value: Any = ["x"]
    for _ in range(doublings):
        value = [value, value]
    return value


def require_damaged(data: bytes, why: str) -> None:
    caught = refused(BinaryError, read_plist, data, WHERE)
    error = caught
    assert (error.code, error.where, error.exit_code) == ("plist-damaged", WHERE, ExitCode.BINARY)
    assert why in error.why
    assert error.hint


@pytest.mark.parametrize("form", [plistlib.FMT_XML, plistlib.FMT_BINARY])
def test_both_forms_are_read(form: plistlib.PlistFormat) -> None:
    content = {"CFBundleName": "onnxruntime", "AvailableLibraries": [{"SupportedArchitectures": ["arm64"]}]}
    assert read_plist(plistlib.dumps(content, fmt=form), WHERE) == content


def test_what_unfolds_to_very_much_is_refused() -> None:
    """A few hundred bytes whose text would fill the memory: it is told of before anybody writes that text."""
    data = plistlib.dumps({"MinimumOSVersion": unfolding(30)}, fmt=plistlib.FMT_BINARY)
    assert len(data) < 1000
    require_damaged(data, f"more than {MOST_VALUES:,} values")


def test_what_is_nested_too_deeply_is_refused() -> None:
    inside = b"<array>" * 5_000 + b"</array>" * 5_000
    data = plistlib.dumps({"MinimumOSVersion": ["here"]}).replace(b"<string>here</string>", inside)
    require_damaged(data, f"more than {MOST_DEPTH} levels")


def test_what_holds_itself_is_refused() -> None:
    """A binary list may name itself as one of its own members."""
    inner: list[Any] = []
    inner.append(inner)
    require_damaged(plistlib.dumps({"a": inner}, fmt=plistlib.FMT_BINARY), "levels")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", ""),
        (b"bplist00", ""),
        (plistlib.dumps(["no table"]), "it holds a list"),
        (b"x" * (LARGEST + 1), f"it has {LARGEST + 1:,} bytes"),
        (b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "x">]><plist><dict/></plist>', ""),
    ],
)
def test_what_is_no_property_list_is_refused(data: bytes, why: str) -> None:
    require_damaged(data, why)


@given(st.binary(max_size=200), st.sampled_from([b"", b"bplist00", b"<?xml version='1.0'?><plist>"]))
def test_anything_is_read_or_refused(data: bytes, start: bytes) -> None:
    with suppress(BinaryError):
        assert isinstance(read_plist(start + data, WHERE), dict)
