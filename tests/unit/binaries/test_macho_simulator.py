"""A phone's library as that of simulators on Macs with Apple's processors, beside what zig links for them."""

from pathlib import Path

import pytest

from apple_slices import is_truly_signed, recorded
from ortrim.binaries.macho.exports import SIGNATURE_MAGIC, with_digests
from ortrim.binaries.macho.files import MachImage, MachSignature, load_commands, macho_of
from ortrim.binaries.macho.simulator import for_simulator, make_simulators, unhashed_signature
from ortrim.errors import BinaryError
from ortrim.platforms.apple import loading
from refusing import refused

NAME = "ios-simulator-arm64.dylib"


def image(library: bytes) -> MachImage:
    return macho_of(library, "library").images[0]


def test_it_is_what_zig_links_for_simulators_but_for_its_place_in_memory() -> None:
    """It has the same code and data in the same order, of the same system, and is signed as zig signs."""
    phone, made, linked = (
        image(each) for each in (recorded("ios-arm64"), simulators(), recorded("ios-simulator-arm64"))
    )
    assert made.segments[:-1] == phone.segments[:-1]
    assert (made.builds, made.signature) == (linked.builds, MachSignature.AD_HOC)
    assert (made.exported, made.undefined, made.needed) == (linked.exported, linked.undefined, linked.needed)
    assert made.uuid not in {phone.uuid, linked.uuid}
    commands = [[kind for kind, _ in load_commands(each)] for each in (simulators(), recorded("ios-simulator-arm64"))]
    assert commands[0] == commands[1]


def simulators() -> bytes:
    return for_simulator(recorded("ios-arm64"), NAME)


def test_nothing_is_wrong_with_it() -> None:
    """No gate finds anything, and the signature is that of what is there."""
    checks = (
        loading.disordered_linkedit, loading.misaligned_linkedit, loading.disordered_symbols, loading.wrong_rights,
        loading.misplaced_segments, loading.not_encryptable,
    )  # fmt: skip
    assert [check(image(simulators())) for check in checks] == [""] * len(checks)
    assert is_truly_signed(simulators())


def test_the_signature_has_zigs_bytes() -> None:
    """Of the same library it is the one that zig's linker writes."""
    linked = recorded("ios-simulator-arm64")
    start, code = linked.index(SIGNATURE_MAGIC.to_bytes(4)), image(linked).segments[0].file.stop
    assert with_digests(bytearray(linked[:start] + unhashed_signature(start, code, NAME)), start) == linked


@pytest.mark.parametrize(
    "library", [recorded("macos-arm64"), recorded("ios-simulator-arm64"), recorded("ios-arm64")[:900]]
)
def test_what_is_no_phones_library_is_refused(library: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(library)
    assert refused(BinaryError, make_simulators, tmp_path / NAME).code == "corrupt-mach-o"
    assert (tmp_path / NAME).read_bytes() == library
