"""Objects of a library without the code that its API does not need, and with equal code once."""

import contextlib
import struct
from io import BytesIO
from itertools import pairwise

import pytest
from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_samples import load_command, sample
from ortrim.binaries.macho.atoms import COMPACT, FRAMES, MachObject, Section, read_object
from ortrim.binaries.macho.dead_code import without_dead_code
from ortrim.binaries.macho.files import macho_of
from ortrim.binaries.objects import object_symbols
from ortrim.errors import BinaryError
from refusing import refused

API = {"OrtGetApiBase"}
BOTH = {*API, "OrtGetApiBas2"}
PLAIN = sample("ios-arm64.o")
"""`OrtGetApiBase`, which calls `mach_absolute_time`, and `hidden_call`."""
HANDLERS = {each: sample(f"handlers-{each}.o") for each in ("arm64", "x86_64")}
LEFT = {"__ZL6throwni": "", "_OrtGetApiBase": "GCC_except_table2", "__GLOBAL__sub_I_handlers.cc": ""}
"""The functions of these that are needed, each with its table of handlers."""


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_what_the_api_does_not_need_is_left_out_with_its_imports(data: bytes) -> None:
    (cut,) = without_dead_code((data,), API, "library")
    assert dict(object_symbols(data)).keys() - dict(object_symbols(cut)).keys() == {"dead", "statvfs"}
    assert macho_of(cut, "object").images[0].exported == ("OrtGetApiBase",)
    assert [each.content for each in read_object(data).sections if each.name == b"__cstring"] == [b"dead\0"]
    assert b"__cstring" not in {each.name for each in read_object(cut).sections}
    assert len(cut) < len(data)


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_code_is_the_same_elsewhere(data: bytes) -> None:
    (cut,) = without_dead_code((data,), API, "library")
    before, after = contents(data), contents(cut)
    assert before.keys() - after.keys() == {"_dead", "GCC_except_table0", "l_.str"} & before.keys()
    assert after == {name: before[name] for name in after}


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_calls_are_unwound_as_before(data: bytes) -> None:
    """By DWARF, which the test reads with a reader of others, and by what Apple's systems read instead."""
    (cut,) = without_dead_code((data,), API, "library")
    assert frames(data) == {**LEFT, "_dead": "GCC_except_table0"}
    assert frames(cut) == LEFT
    before, after = compact(data), compact(cut)
    assert {name: before[name] for name in LEFT} == after
    assert before.keys() - after.keys() == {"_dead"}


def test_functions_that_are_unwound_alike_lie_side_by_side() -> None:
    """A linker describes them together. Where code may lie anywhere, nothing is between them."""
    (cut,) = without_dead_code((HANDLERS["x86_64"],), {*API, "dead"}, "library")
    before, after = (
        [(atom.start, read.unwinding(number).hex()) for number, atom in enumerate(read.atoms) if atom.section == 0]
        for read in map(read_object, (HANDLERS["x86_64"], cut))
    )
    assert before == [(0, "01000141"), (0x37, "01000101"), (0x61, "01000141")]
    assert after == [(0, "01000101"), (0x2A, "01000141"), (0x61, "01000141")]


def test_what_runs_when_a_library_starts_stays() -> None:
    (cut,) = without_dead_code((HANDLERS["arm64"],), (), "library")
    assert [name for name, here in object_symbols(cut) if not here] == ["mach_absolute_time"]
    assert contents(cut).keys() == {"__GLOBAL__sub_I_handlers.cc", "__ZL7started"}


def test_of_two_definitions_the_first_that_is_not_weak_stays() -> None:
    weak = noted(PLAIN, b"_hidden_call", 0x80)
    asking = PLAIN.replace(b"_mach_absolute_time\0", b"_hidden_call\0______\0")
    asking = asking.replace(b"_hidden_call\0_OrtG", b"_another_one\0_OrtG")
    found = without_dead_code((asking, weak, PLAIN, PLAIN), API, "library")
    assert [dict(object_symbols(each)) for each in found] == [
        {"OrtGetApiBase": True, "hidden_call": False},
        {"hidden_call": True},
    ]
    assert found[1] == without_dead_code((PLAIN,), {"hidden_call"}, "library")[0]


def test_an_object_that_cannot_be_divided_is_whole() -> None:
    whole = bytearray(PLAIN)
    struct.pack_into("<I", whole, 24, 0)
    (cut,) = without_dead_code((bytes(whole),), API, "library")
    assert dict(object_symbols(cut)) == dict(object_symbols(PLAIN))


def test_a_function_that_no_object_defines_is_refused() -> None:
    caught = refused(BinaryError, without_dead_code, (PLAIN,), {"OrtMissing"}, "library")
    assert (caught.code, caught.where) == ("symbol-missing", "library")


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([PLAIN, *HANDLERS.values()]), st.data())
def test_damage_gives_objects_or_a_diagnostic(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 9))):
        damaged[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with contextlib.suppress(BinaryError):
        without_dead_code((bytes(damaged),), API, "library")


def copied(data: bytes, *changes: tuple[bytes, bytes]) -> bytes:
    """Return another object that differs in names, which are as long."""
    for old, new in ((b"_OrtGetApiBase\0", b"_OrtGetApiBas2\0"), *changes):
        assert data.count(old) == 1
        data = data.replace(old, new)
    return data


def local(objects: tuple[bytes, ...]) -> list[list[str]]:
    return [[name for name in contents(each) if name.startswith("__ZL6thrown")] for each in objects]


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_one_of_equal_functions_stays_under_a_name_that_the_other_object_refers_to(data: bytes) -> None:
    objects = data, copied(data)
    plain, folded = (without_dead_code(objects, BOTH, "library", folded=each) for each in (False, True))
    assert local(plain) == [["__ZL6throwni"], ["__ZL6throwni"]]
    ((name,), other) = local(folded)
    assert (name.startswith("__ZL6throwni.folded"), other) == (True, [])
    assert name in {found for _, (_, names) in contents(folded[1]).items() for _, found in map(as_text, names)}
    assert dict(object_symbols(folded[0]))[name.removeprefix("_")] is True
    assert dict(object_symbols(folded[1]))[name.removeprefix("_")] is False
    assert sum(map(len, folded)) < sum(map(len, plain))


def as_text(relocated: tuple[int, bytes]) -> tuple[int, str]:
    return relocated[0], relocated[1].decode()


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_calls_of_what_stays_are_unwound_as_before(data: bytes) -> None:
    """Of a function that gives way, nothing is left that says how its calls are unwound."""
    first, second = without_dead_code((data, copied(data)), BOTH, "library", folded=True)
    before = compact(data)
    assert {name.partition(".folded")[0]: before[name.partition(".folded")[0]] for name in compact(first)} == {
        name.partition(".folded")[0]: entry for name, entry in compact(first).items()
    }
    assert sorted(name.partition(".folded")[0] for name in frames(first)) == sorted(
        {"__ZL6throwni", "_OrtGetApiBase", "__GLOBAL__sub_I_handlers.cc"}
    )
    assert "_OrtGetApiBas2" in compact(second)
    assert not [name for name in (*compact(second), *frames(second)) if name.startswith("__ZL6thrown")]


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_what_the_api_has_stays_under_each_of_its_names(data: bytes) -> None:
    folded = without_dead_code((data, copied(data)), BOTH, "library", folded=True)
    assert [name for each in folded for name, here in object_symbols(each) if here and name.startswith("Ort")] == [
        "OrtGetApiBase",
        "OrtGetApiBas2",
    ]


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
@pytest.mark.parametrize(
    "change",
    [(b"___cxa_throw\0", b"___cxa_thro2\0"), (b"___cxa_allocate_exception\0", b"___cxa_allocate_exceptio2\0")],
    ids=["throw", "allocate"],
)
def test_functions_that_call_others_are_not_equal(data: bytes, change: tuple[bytes, bytes]) -> None:
    assert local(without_dead_code((data, copied(data, change)), BOTH, "library", folded=True)) == [
        ["__ZL6throwni"],
        ["__ZL6throwni"],
    ]


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_functions_of_other_bytes_are_not_equal(data: bytes) -> None:
    """One byte, in the code itself."""
    read = read_object(data)
    symbol = next(each for each in read.symbols if each.name == b"__ZL6throwni")
    section = read.sections[symbol.section - 1]
    there = data.index(section.content) + symbol.value - section.start
    changed = bytearray(copied(data))
    changed[there] ^= 1
    assert local(without_dead_code((data, bytes(changed)), BOTH, "library", folded=True)) == [
        ["__ZL6throwni"],
        ["__ZL6throwni"],
    ]


@pytest.mark.parametrize("data", HANDLERS.values(), ids=HANDLERS)
def test_variables_are_never_folded(data: bytes) -> None:
    folded = without_dead_code((data, copied(data)), BOTH, "library", folded=True)
    assert ["__ZL7started" in contents(each) for each in folded] == [True, True]


def section(read: MachObject, name: bytes) -> Section:
    return next(each for each in read.sections if each.name == name)


def contents(data: bytes) -> dict[str, tuple[bytes, tuple[tuple[int, bytes], ...]]]:
    """Return the bytes that each name has, and the names that they are relocated by."""
    read, found = read_object(data), {}
    for symbol in read.symbols:
        if symbol.here and not symbol.name.startswith(b"ltmp"):
            atom = read.atoms[read.atom_of(symbol)]
            there = read.sections[atom.section]
            relocations = read.relocations(*atom)
            names = (
                (each.place + there.start - atom.start, read.symbols[each.number].name if each.named else b"")
                for each in relocations
            )
            found[symbol.name.decode()] = there.content[atom.start - there.start : atom.end - there.start], tuple(names)
    return found


def named(read: MachObject, address: int) -> str:
    names = [each.name.decode() for each in read.symbols if each.here and each.value == address % (1 << 64)]
    return next((each for each in names if not each.startswith("ltmp")), "")


def frames(data: bytes) -> dict[str, str]:
    """Return the functions whose calls DWARF describes, and their tables of handlers, with relocations applied."""
    read = read_object(data)
    there = section(read, FRAMES)
    content = bytearray(there.content)
    for first, second in pairwise(there.relocations):
        if first.place == second.place:
            (value,) = struct.unpack_from("<q", content, first.place)
            by = read.symbols[second.number].value - read.symbols[first.number].value
            struct.pack_into("<q", content, first.place, value + by)
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    entries = CallFrameInfo(
        stream=BytesIO(content), size=len(content), address=there.start, base_structs=structs, for_eh_frame=True
    ).get_entries()
    functions = (each for each in entries if isinstance(each, FDE))
    return {
        named(read, each["initial_location"]): named(read, each.lsda_pointer) if each.lsda_pointer else ""
        for each in functions
    }


def compact(data: bytes) -> dict[str, tuple[int, int, str, str]]:
    """Return length, encoding, who finds handlers and their table of each function that compact descriptions name."""
    read, found = read_object(data), {}
    there = section(read, COMPACT)
    names = {each.place: read.symbols[each.number].name.decode() for each in there.relocations if each.named}
    for place in range(0, len(there.content), 32):
        function, length, encoding, _, table = struct.unpack_from("<QIIQQ", there.content, place)
        handlers = named(read, table) if table else ""
        found[named(read, function)] = length, encoding, names.get(place + 16, ""), handlers
    return found


def noted(data: bytes, name: bytes, note: int) -> bytes:
    """Return an object in which a symbol has another description."""
    start, count, names, _ = struct.unpack_from("<4I", data, load_command(data, 2) + 8)
    changed = bytearray(data)
    for entry in range(start, start + count * 16, 16):
        (place,) = struct.unpack_from("<I", data, entry)
        if data[names + place :].startswith(name + b"\0"):
            struct.pack_into("<H", changed, entry + 6, note)
    return bytes(changed)
