"""Objects of a static library whose names clash with none of an app."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_samples import archive, load_command, sample
from ortrim.binaries.macho.files import macho_of
from ortrim.binaries.macho.objects import needed_objects, with_own_names
from ortrim.binaries.objects import object_symbols
from ortrim.errors import BinaryError
from refusing import refused

OBJECT = sample("ios-arm64.o")
"""Compiled by zig: it defines `OrtGetApiBase`, which calls `mach_absolute_time`, and `hidden_call`."""
API = {"OrtGetApiBase"}


def renamed(old: bytes, new: bytes, data: bytes = OBJECT) -> bytes:
    """Return the object with another name of the same length in its table."""
    assert len(old) == len(new)
    return data.replace(b"_" + old + b"\0", b"_" + new + b"\0")


CALLED = renamed(b"OrtGetApiBase", b"other_callers", renamed(b"hidden_call", b"system_time"))
CALLING = renamed(b"mach_absolute_time", b"other_callers\0tail", OBJECT)


def test_all_but_the_api_is_renamed_and_hidden() -> None:
    (found,) = with_own_names((OBJECT,), API, ".12ab", "library")
    assert dict(object_symbols(OBJECT)) == {"OrtGetApiBase": True, "hidden_call": True, "mach_absolute_time": False}
    names = {"OrtGetApiBase": True, "hidden_call.12ab": True, "mach_absolute_time": False}
    assert dict(object_symbols(found)) == names
    (image,) = macho_of(found, "object").images
    assert (image.exported, image.undefined) == (("OrtGetApiBase",), ("mach_absolute_time",))


def test_names_of_assembly_are_renamed_as_well() -> None:
    """They may have no underscore."""
    (found,) = with_own_names((OBJECT.replace(b"_hidden_call\0", b"Hidden_call_\0"),), API, ".12ab", "library")
    assert macho_of(found, "object").images[0].exported == ("OrtGetApiBase",)
    assert "Hidden_call_.12ab" in dict(object_symbols(found))


def test_what_one_object_has_of_another_is_renamed_in_both() -> None:
    found = with_own_names((CALLING, CALLED), API, ".12ab", "library")
    calling, called = (dict(object_symbols(each)) for each in found)
    assert calling["other_callers.12ab"] is False
    assert called["other_callers.12ab"] is True
    (image,) = macho_of(archive({"a.o": found[0], "b.o": found[1]}), "library").images
    assert image.exported == ("OrtGetApiBase",)


def test_code_and_relocations_stay_as_they_are() -> None:
    """Symbols keep their numbers, by which relocations go."""
    (found,) = with_own_names((OBJECT,), API, ".12ab", "library")
    commands, symbols = 32 + struct.unpack_from("<I", OBJECT, 20)[0], load_command(OBJECT, 2)
    (start,) = struct.unpack_from("<I", OBJECT, symbols + 8)
    assert found[commands:start] == OBJECT[commands:start]
    assert found[: symbols + 20] == OBJECT[: symbols + 20]


def test_only_members_that_are_needed_are_taken() -> None:
    """Directly or by others; of several that define a name the first is."""
    unrelated = renamed(b"OrtGetApiBase", b"nobodys_names", renamed(b"hidden_call", b"nobody_call"))
    assert needed_objects((CALLING,), (unrelated, CALLED, CALLED)) == (CALLED,)
    assert needed_objects((CALLED,), (unrelated,)) == ()


def test_a_name_that_no_object_defines_is_refused() -> None:
    caught = refused(BinaryError, with_own_names, (OBJECT,), {"OrtMissing"}, ".12ab", "libonnxruntime.a")
    assert (caught.code, caught.where) == ("symbol-missing", "libonnxruntime.a")


@pytest.mark.parametrize("content", [b"", sample("macos-arm64.dylib"), OBJECT[:-20], OBJECT + bytes(16)])
def test_what_is_no_whole_object_is_refused(content: bytes) -> None:
    """A library, a cut one, and one after whose names something follows."""
    assert refused(BinaryError, with_own_names, (content,), API, ".12ab", "a").code == "corrupt-mach-o"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(min_value=0, max_value=len(OBJECT) - 1), st.integers(0, 255)), max_size=9))
def test_damage_gives_an_object_or_a_diagnostic(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(OBJECT)
    for place, value in changes:
        damaged[place] = value
    with contextlib.suppress(BinaryError):
        with_own_names((bytes(damaged),), API, ".12ab", "a")
