"""Mach-O files: what is read of real ones, and what damaged and foreign ones end with."""

import struct
from pathlib import Path

import lief
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from apple_samples import archive, device_library, load_command, sample, with_build
from apple_slices import TRIPLES, install_name, recorded
from ortrim.binaries.macho import files as macho
from ortrim.errors import BinaryError, ExitCode
from refusing import refused

MAC = sample("macos-arm64.dylib")
SIMULATOR = sample("simulator-x86_64.dylib")
OBJECT = sample("ios-arm64.o")
ELF = Path(__file__).with_name("data") / "tiny.so"
SYMTAB, SEGMENT, SIGNATURE = 0x2, 0x19, 0x1D
FAT = macho.universal_file({"x86_64": SIMULATOR, "arm64": sample("simulator-arm64.dylib")})
ARCHIVE = archive({"onnxruntime_session.o": OBJECT, "debug.o": sample("debug.o")})


def reference_of(data: bytes) -> str:
    """Return the reference of the diagnostic that reading ends with, empty when it ends well, `vague` if it says less.

    It has to name the file and the cause.
    """
    try:
        macho.macho_of(data, "library")
    except BinaryError as error:
        return error.code if error.where.startswith("library") and error.why else "vague"
    return ""


def patched(data: bytes, place: int, form: str, *values: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, place, *values)
    return bytes(changed)


def more_commands(data: bytes, command: bytes, count: int) -> bytes:
    """Return a thin file with a load command many times behind its own; what lay there is pushed away."""
    commands, size = struct.unpack_from("<II", data, 16)
    longer = patched(data, 16, "<II", commands + count, size + count * len(command))
    return longer[: 32 + size] + command * count + longer[32 + size :]


def test_library_is_read_in_full(tmp_path: Path) -> None:
    (tmp_path / "library").write_bytes(MAC)
    (image,) = macho.read_macho(tmp_path / "library").images
    assert (image.architecture, image.kind, image.size_bytes) == ("arm64", macho.MachKind.LIBRARY, len(MAC))
    assert image.install_name == "@rpath/onnxruntime.framework/Versions/A/onnxruntime"
    assert (image.version, image.unmarked, image.objects) == ("1.0.0", 0, 1)
    assert [(each.platform, each.variant, each.minimum_os) for each in image.builds] == [("macos", "", "13.4")]
    assert {"OrtGetApiBase"} <= set(image.exported) <= {"OrtGetApiBase", "_mh_dylib_header", "__dso_handle"}
    assert "mach_absolute_time" in image.undefined
    assert image.needed == (macho.MachNeed(name="/usr/lib/libSystem.B.dylib", weak=False),)
    assert (image.bitcode, image.debug, image.signature) == (False, False, macho.MachSignature.AD_HOC)
    assert len(image.uuid) == 32
    assert [segment.name for segment in image.segments] == ["__TEXT", "__DATA_CONST", "__DATA", "__LINKEDIT"]


def test_several_architectures_are_read_each_by_itself() -> None:
    found = macho.macho_of(FAT, "library")
    assert (found.architectures, found.size_bytes) == (("arm64", "x86_64"), len(FAT))
    assert [image.architecture for image in found.images] == ["x86_64", "arm64"]
    assert {build.variant for image in found.images for build in image.builds} == {"simulator"}


def test_static_library_is_read_as_one() -> None:
    (image,) = macho.macho_of(ARCHIVE, "library").images
    assert (image.kind, image.architecture, image.objects) == (macho.MachKind.ARCHIVE, "arm64", 2)
    assert (image.exported, image.undefined) == (("OrtGetApiBase",), ("mach_absolute_time",))
    assert image.builds == (macho.MachBuild(platform="ios", variant="", minimum_os="15.1", sdk=""),)
    assert (image.debug, image.bitcode, image.size_bytes) == (True, False, len(ARCHIVE))


def test_static_libraries_of_several_architectures_are_read() -> None:
    fat = macho.universal_file({"arm64": ARCHIVE})
    assert macho.macho_of(fat, "library").images[0].objects == 2


def test_hidden_symbols_of_an_object_are_not_offered() -> None:
    (image,) = macho.macho_of(OBJECT, "library").images
    assert image.kind is macho.MachKind.OBJECT
    assert image.exported == ("OrtGetApiBase",)


@pytest.mark.parametrize(
    ("number", "platform", "variant"),
    [(2, "ios", ""), (6, "ios", "maccatalyst"), (7, "ios", "simulator"), (11, "xros", ""), (99, "99", "")],
)
def test_platforms_have_an_xcframeworks_words(number: int, platform: str, variant: str) -> None:
    """Those that have none keep Apple's number."""
    (image,) = macho.macho_of(with_build(MAC, platform=number), "library").images
    assert (image.builds[0].platform, image.builds[0].variant) == (platform, variant)


@pytest.mark.parametrize(
    ("data", "command", "platform", "variant"),
    [(MAC, 0x24, "macos", ""), (MAC, 0x25, "ios", ""), (SIMULATOR, 0x25, "ios", "simulator")],
)
def test_the_older_load_commands_are_understood(data: bytes, command: int, platform: str, variant: str) -> None:
    """LC_VERSION_MIN_* do not tell a simulator from a device: of Intel's processors there is no device."""
    place = load_command(data, 0x32)
    changed = patched(data, place, "<IIII", command, 32, 0x000F0102, 0x00100000)
    (image,) = macho.macho_of(changed, "library").images
    assert image.builds == (macho.MachBuild(platform=platform, variant=variant, minimum_os="15.1.2", sdk="16.0"),)


def test_a_weak_need_is_told_from_one_that_has_to_be_there() -> None:
    changed = patched(MAC, load_command(MAC, 0xC), "<I", 0x80000018)
    assert macho.macho_of(changed, "library").images[0].needed[0].weak


def test_signature_of_a_certificate_is_told_from_a_linkers() -> None:
    place = load_command(MAC, SIGNATURE)
    (start,) = struct.unpack_from("<I", MAC, place + 8)
    signed = patched(MAC, start + 12, ">I", 0x10000)  # its only part becomes the CMS one
    assert macho.macho_of(signed, "library").images[0].signature is macho.MachSignature.CERTIFICATE
    assert macho.macho_of(SIMULATOR, "library").images[0].signature is macho.MachSignature.NONE


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (ELF.read_bytes(), "it is an ELF file, of Linux or Android"),
        (b"MZ\x90\0", "it is a program or library of Windows"),
        (b"\xfe\xed\xfa\xce\0\0\0\x12", "it is for PowerPC"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34", "it is a class file of Java"),
        (b"text", "it begins with b'text'"),
        (archive({"linux.o": ELF.read_bytes()}), "it is an ELF file, of Linux or Android"),
        (archive({}), "it holds no object"),
    ],
)
def test_other_files_are_told_for_what_they_are(data: bytes, why: str) -> None:
    with pytest.raises(BinaryError, match="not") as caught:
        macho.macho_of(data, "library")
    assert (caught.value.code, caught.value.why) == ("not-mach-o", why)
    assert caught.value.exit_code is ExitCode.BINARY


def test_a_static_library_of_several_processors_is_refused() -> None:
    intel = patched(OBJECT, 4, "<II", 0x01000007, 3)
    assert reference_of(archive({"a.o": OBJECT, "b.o": intel})) == "objects-differ"


def test_missing_file_is_reported(tmp_path: Path) -> None:
    caught = refused(BinaryError, macho.read_macho, tmp_path / "absent.dylib")
    assert caught.code == "library-missing"


FORGED = {
    "commands that reach beyond the file": patched(MAC, 20, "<I", 0x7FFFFFFF),
    "more commands than there are": patched(MAC, 16, "<I", 0xFFFFFFFF),
    "a command without a size": patched(MAC, 36, "<I", 0),
    "a segment beyond the file": patched(MAC, load_command(MAC, SEGMENT) + 48, "<Q", 1 << 40),
    "more sections than there is room for": patched(MAC, load_command(MAC, SEGMENT) + 64, "<I", 0x0FFFFFFF),
    "a section beyond the file": patched(MAC, load_command(MAC, SEGMENT) + 72 + 40, "<Q", 1 << 62),
    "symbols without end": patched(MAC, load_command(MAC, SYMTAB) + 12, "<I", 0xFFFFFFFF),
    "strings beyond the file": patched(MAC, load_command(MAC, SYMTAB) + 20, "<I", 0x7FFFFFFF),
    "a signature beyond the file": patched(MAC, load_command(MAC, SIGNATURE) + 12, "<I", 0x7FFFFFFF),
    "no architecture": b"\xca\xfe\xba\xbe\0\0\0\0",
    "an architecture beyond the file": patched(FAT, 8 + 12, ">I", 0x7FFFFFFF),
    "architectures in each other": patched(FAT, 8 + 20 + 8, ">I", 0x1000),
    "an architecture twice": patched(FAT, 8 + 20, ">II", 0x01000007, 3),
    "an architecture by another's name": patched(FAT, 8, ">II", 7, 3),
    "segments of the whole file": more_commands(
        MAC, struct.pack("<II16sQQQQIIII", SEGMENT, 72, b"__MANY", 0, 0, 0, len(MAC), 7, 1, 0, 0), 50
    ),
    "many tables of symbols": more_commands(MAC, struct.pack("<IIIIII", SYMTAB, 24, 0, 3_000, 0, 40_000), 50),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_sizes_are_damage(forged: str) -> None:
    assert reference_of(FORGED[forged]) == "corrupt-mach-o"


@pytest.mark.parametrize("size", [b"-1", b"99999999", b"x"])
def test_forged_members_of_an_archive_are_damage(size: bytes) -> None:
    place = ARCHIVE.index(b"`\n") - 10
    assert reference_of(ARCHIVE[:place] + size.ljust(10) + ARCHIVE[place + 10 :]) == "not-an-archive"
    assert reference_of(ARCHIVE.replace(b"#1/", b"#1/9", 1).replace(b" ", b"", 1)) == "not-an-archive"


@given(data=st.sampled_from([MAC, FAT, ARCHIVE, OBJECT]), part=st.floats(min_value=0, max_value=0.999))
@settings(deadline=20_000, max_examples=80)
def test_what_is_cut_off_is_always_a_diagnostic(data: bytes, part: float) -> None:
    kept, cut = data[: int(len(data) * part)], data[int(len(data) * part) :]
    assume(not cut.startswith(b"#1/"))  # between two members: an archive of fewer
    assert reference_of(kept) in {"corrupt-mach-o", "not-mach-o", "not-an-archive"}


@given(
    data=st.sampled_from([MAC, SIMULATOR, FAT, ARCHIVE, OBJECT]),
    changes=st.lists(
        st.tuples(st.integers(min_value=0, max_value=1 << 20), st.sampled_from([1, 0x80, 0x7F, 0xFF, 0x20])),
        min_size=1,
        max_size=12,
    ),
    everywhere=st.booleans(),
)
@settings(deadline=20_000, max_examples=300)
def test_flipped_bytes_give_facts_or_a_diagnostic(
    data: bytes,
    changes: list[tuple[int, int]],
    everywhere: bool,  # noqa: FBT001 - a case
) -> None:
    changed = bytearray(data)
    for place, mask in changes:
        changed[place % (len(data) if everywhere else min(len(data), 2048))] ^= mask
    known = {"", "corrupt-mach-o", "not-mach-o", "not-an-archive", "objects-differ"}
    assert reference_of(bytes(changed)) in known


@given(data=st.binary(max_size=200))
@settings(deadline=20_000, max_examples=200)
def test_any_bytes_behind_a_magic_number_are_read_or_refused(data: bytes) -> None:
    for magic in (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe\0\0\0\1", b"\xca\xfe\xba\xbf\0\0\0\2"):
        assert macho.is_macho(magic + bytes(4))
        assert reference_of(magic + data) in {"corrupt-mach-o", "not-mach-o"}


def test_a_device_library_is_what_the_gates_take_it_for() -> None:
    """The sample whose platform the tests rewrite, as Apple's vtool does."""
    (image,) = macho.macho_of(device_library(), "library").images
    assert [(each.platform, each.variant) for each in image.builds] == [("ios", "")]


class Huge(bytes):
    def __len__(self) -> int:
        return macho.LARGEST


def both() -> dict[str, bytes]:
    return {"arm64": recorded("macos-arm64"), "x86_64": recorded("macos-x86_64")}


def test_both_architectures_are_read_back_by_us_and_by_lief() -> None:
    parts = both()
    joined = macho.universal_file(parts)
    assert macho.macho_of(joined, "joined").architectures == ("arm64", "x86_64")
    assert dict(macho.fat_parts(joined)) == parts
    places = [struct.unpack_from(">IIIII", joined, 8 + 20 * number) for number in range(2)]
    assert [(place[2] % (1 << place[4]), place[4]) for place in places] == [(0, 12), (0, 14)]
    read = lief.MachO.parse(joined)
    assert read is not None
    assert [binary.header.cpu_type.name for binary in read] == ["X86_64", "ARM64"]


def test_the_order_in_which_parts_come_does_not_matter() -> None:
    assert macho.universal_file(both()) == macho.universal_file(dict(reversed(both().items())))


def test_one_architecture_stays_thin() -> None:
    """Older tools do not take a file of several that has one."""
    assert macho.universal_file({"arm64": b"thin"}) == b"thin"


@given(st.binary(min_size=1, max_size=50_000), st.binary(min_size=1, max_size=50_000))
def test_whatever_is_joined_comes_back(arm64: bytes, x86_64: bytes) -> None:
    assert dict(macho.fat_parts(macho.universal_file({"arm64": arm64, "x86_64": x86_64}))) == {
        "arm64": arm64,
        "x86_64": x86_64,
    }


def test_an_architecture_of_the_past_is_refused() -> None:
    with pytest.raises(KeyError):
        macho.universal_file({"arm64": b"a", "ppc": b"b"})


def test_what_does_not_fit_into_the_format_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond 4 GiB"):
        macho.universal_file({"arm64": Huge(b"a"), "x86_64": b"b"})


@pytest.mark.parametrize("target", TRIPLES)
def test_a_library_is_told_as_those_of_other_systems(tmp_path: Path, target: str) -> None:
    """Its name, its needs and exports; sizes by segment, that of names and signatures left out."""
    (tmp_path / "a.dylib").write_bytes(recorded(target))
    facts, size = macho.read_apple_library(tmp_path / "a.dylib")
    assert facts.soname == install_name(target)
    assert facts.machine in {"arm64", "x86_64"}
    assert set(facts.needed) == {"/usr/lib/libSystem.B.dylib", "/usr/lib/system/libsystem_kernel.dylib"}
    assert "OrtGetApiBase" in facts.exported
    assert facts.load_alignment == (16384 if facts.machine == "arm64" else 4096)
    assert size.file_bytes == len(recorded(target))
    assert size.loadable_bytes == sum(part.size_bytes for part in size.components) > 0
    assert {part.component for part in size.components} <= {"__TEXT", "__DATA_CONST", "__DATA"}
    assert 0 < size.compressed_bytes < size.file_bytes


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.dylib").write_bytes(b"text")
    caught = refused(BinaryError, macho.read_apple_library, tmp_path / "a.dylib")
    assert caught.code == "not-mach-o"
