"""What dyld, codesign and the store refuse, made from a library that zig linked by moving one thing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apple_samples import device_library, sample
from ortrim.binaries.macho.files import MachImage, macho_of
from ortrim.binaries.macho.layout import MachLayout
from ortrim.platforms.apple import loading

(PHONE,) = macho_of(device_library(), "device").images
(INTEL,) = macho_of(sample("simulator-x86_64.dylib"), "simulator").images
RULES = (
    loading.disordered_linkedit, loading.misaligned_linkedit, loading.disordered_symbols, loading.mixed_fixups,
    loading.wrong_rights, loading.misplaced_segments, loading.needed_twice, loading.not_encryptable,
)  # fmt: skip


def layout_of(image: MachImage) -> MachLayout:
    assert image.layout is not None
    return image.layout


def with_segment(segment: str, /, **changes: Any) -> MachImage:
    changed = (replace(each, **changes) if each.name == segment else each for each in PHONE.segments)
    return replace(PHONE, segments=tuple(changed))


def with_part(name: str, move: Callable[[range], range]) -> MachImage:
    layout = layout_of(INTEL)
    parts = tuple(replace(part, file=move(part.file)) if part.name == name else part for part in layout.parts)
    return replace(INTEL, layout=replace(layout, parts=parts))


def test_what_zig_links_has_every_property() -> None:
    assert [rule(image) for rule in RULES for image in (PHONE, INTEL)] == [""] * 2 * len(RULES)


@pytest.mark.parametrize(
    ("name", "move", "why"),
    [
        ("names", lambda file: range(file.start + 8, file.stop), "names at byte"),
        ("symbol table", lambda file: range(file.start - 8, file.stop - 8), "data in code ends at"),
        ("rebase opcodes", lambda file: range(file.start + 8, file.stop + 8), "the start of __LINKEDIT ends at"),
        ("names", lambda file: range(file.start, file.stop - 1), "names ends at"),
        ("function starts", lambda file: range(file.start + 8, file.stop + 8), "exports trie ends at"),
    ],
)
def test_parts_of_linkedit_follow_each_other(name: str, move: Callable[[range], range], why: str) -> None:
    assert why in loading.disordered_linkedit(with_part(name, move))


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (with_segment("__DATA", memory=range(0x8000, 0x9000)), "overlap"),
        (with_segment("__DATA", memory=range(0x4000, 0x4018)), "__DATA lies before __DATA_CONST"),
        (with_segment("__DATA", file=range(0xC000, 0xC800)), "more bytes in the file than in memory"),
        (with_segment("__DATA", name="__TEXT"), "__TEXT is there twice"),
        (with_segment("__TEXT", name="__CODE"), "__TEXT is not first"),
        (with_segment("__DATA", memory=range(0xD000, 0xD018)), "does not start on a page of 16,384 bytes"),
        (with_segment("__TEXT", file=range(0x4000), memory=range(0x4000)), "__text lies outside of __TEXT"),
    ],
)
def test_segments_lie_as_they_are_mapped(image: MachImage, why: str) -> None:
    assert why in loading.misplaced_segments(image)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (with_segment("__TEXT", rights="rwx"), "__TEXT is rwx, not r-x"),
        (with_segment("__LINKEDIT", rights="rw-"), "__LINKEDIT is rw-, not r--"),
        (with_segment("__DATA_CONST", read_only=False), "__DATA_CONST is not marked as read-only (SG_READ_ONLY)"),
    ],
)
def test_segments_have_no_other_rights(image: MachImage, why: str) -> None:
    assert loading.wrong_rights(image) == why


def test_constants_of_the_shared_cache_may_be_unmarked() -> None:
    image = with_segment("__DATA_CONST", read_only=False)
    assert loading.wrong_rights(replace(image, layout=replace(layout_of(image), shareable=True))) == ""


@pytest.mark.parametrize(
    "encrypted", [range(0x4000, 0x4000), range(0x4000, 0x8000), range(0x4008, 0x4100), range(0x100), None]
)
def test_the_store_encrypts_pages_of_code_alone(encrypted: range | None) -> None:
    image = replace(PHONE, layout=replace(layout_of(PHONE), encrypted=encrypted))
    assert loading.not_encryptable(image) != ""
    assert loading.not_encryptable(replace(image, builds=INTEL.builds)) == ""


def test_fixups_are_in_one_encoding() -> None:
    layout = layout_of(PHONE)
    chained = replace(PHONE, layout=replace(layout, chained_fixups=True))
    assert loading.mixed_fixups(chained) == "it has LC_DYLD_INFO, LC_DYLD_CHAINED_FIXUPS"
    assert loading.mixed_fixups(replace(chained, layout=replace(layout_of(chained), dyld_info=False))) == ""
