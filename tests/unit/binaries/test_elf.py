import importlib.util
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.binaries.elf import LibraryFacts, read_library
from ortrim.errors import BinaryError, ExitCode

TINY = Path(__file__).with_name("data") / "tiny.so"
PROGRAM_HEADERS = 64
PROGRAM_HEADER_BYTES = 56
GNU_STACK = 0x6474E551
DYNAMIC = 2


def patched(tmp_path: Path, *changes: tuple[int, bytes]) -> Path:
    """Return a copy of the small library with bytes replaced."""
    data = bytearray(TINY.read_bytes())
    for offset, replacement in changes:
        data[offset : offset + len(replacement)] = replacement
    path = tmp_path / "patched.so"
    path.write_bytes(data)
    return path


def program_header(kind: int) -> int:
    """Return the file offset of the first program header of a kind."""
    data = TINY.read_bytes()
    offsets = range(PROGRAM_HEADERS, PROGRAM_HEADERS + 16 * PROGRAM_HEADER_BYTES, PROGRAM_HEADER_BYTES)
    return next(offset for offset in offsets if struct.unpack_from("<I", data, offset)[0] == kind)


def last_dynamic_entry() -> int:
    """Return the file offset of the terminating entry of the dynamic section."""
    data = TINY.read_bytes()
    offset = int(struct.unpack_from("<Q", data, program_header(DYNAMIC) + 8)[0])
    while struct.unpack_from("<Q", data, offset)[0]:
        offset += 16
    return offset


def outcome(path: Path) -> str:
    """Return the reference of the diagnostic that reading ends with, empty when it ends well."""
    try:
        read_library(path)
    except BinaryError as error:
        return error.code
    return ""


def test_small_library_is_read_in_full() -> None:
    """Every fact of a library that zig's linker made is what its link line asked for."""
    assert read_library(TINY) == LibraryFacts(
        soname="libonnxruntime.so.1",
        machine="x64",
        needed=("libm.so.6", "libc.so.6"),
        symbol_versions=("GLIBC_2.2.5",),
        exported=("OrtGetApiBase",),
        executable_stack=False,
        text_relocations=False,
        stripped=True,
        load_alignment=4096,
    )


def test_official_library_exports_only_the_public_interface() -> None:
    """The wheel's library, made by GNU ld, is read as well: the versions it defines are not counted as exports."""
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    (library,) = (Path(spec.origin).parent / "capi").glob("libonnxruntime.so.*")
    facts = read_library(library)
    assert facts.soname == "libonnxruntime.so.1"
    assert facts.exported == ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU")
    assert "libstdc++.so.6" in facts.needed
    ordered = facts.symbol_versions
    assert ordered.index("GLIBC_2.4") < ordered.index("GLIBC_2.14") < ordered.index("GLIBC_2.27")


def test_stack_header_with_execute_flag_means_executable_stack(tmp_path: Path) -> None:
    """PF_X in PT_GNU_STACK is reported."""
    flags = program_header(GNU_STACK) + 4
    assert read_library(patched(tmp_path, (flags, struct.pack("<I", 7)))).executable_stack


def test_absent_stack_header_means_executable_stack(tmp_path: Path) -> None:
    """The kernel gives an executable stack to a library that says nothing about it."""
    header = program_header(GNU_STACK)
    assert read_library(patched(tmp_path, (header, struct.pack("<I", 0)))).executable_stack


@pytest.mark.parametrize(("tag", "value"), [(22, 0), (30, 0x4)])
def test_text_relocations_are_reported(tmp_path: Path, tag: int, value: int) -> None:
    """Both ways of announcing them count: the tag DT_TEXTREL and the flag DF_TEXTREL in DT_FLAGS."""
    patch = (last_dynamic_entry(), struct.pack("<QQ", tag, value) + struct.pack("<QQ", 0, 0))
    assert read_library(patched(tmp_path, patch)).text_relocations


def test_machine_of_another_architecture_is_named(tmp_path: Path) -> None:
    """Known machines have ortrim's words, all others those of pyelftools."""
    assert read_library(patched(tmp_path, (18, struct.pack("<H", 183)))).machine == "arm64"
    assert read_library(patched(tmp_path, (18, struct.pack("<H", 40)))).machine == "EM_ARM"


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"PK\x03\x04", b"#!/bin/sh\n", b"INPUT(libonnxruntime.so.1)\n"])
def test_other_files_are_not_elf(tmp_path: Path, content: bytes) -> None:
    """An empty file, an archive, a script and a linker script are told from a library."""
    path = tmp_path / "library.so"
    path.write_bytes(content)
    with pytest.raises(BinaryError) as caught:
        read_library(path)
    assert caught.value.code == "not-elf"
    assert caught.value.exit_code == ExitCode.BINARY


@pytest.mark.parametrize("kind", [1, 2, 4])
def test_objects_programs_and_core_dumps_are_not_libraries(tmp_path: Path, kind: int) -> None:
    """Only ET_DYN can be loaded by an application."""
    with pytest.raises(BinaryError) as caught:
        read_library(patched(tmp_path, (16, struct.pack("<H", kind))))
    assert caught.value.code == "not-a-library"


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    """A path that cannot be read is a diagnostic that names it."""
    for path in (tmp_path / "absent.so", tmp_path):
        with pytest.raises(BinaryError) as caught:
            read_library(path)
        assert caught.value.code == "library-missing"
        assert str(path) in str(caught.value)


def test_library_without_section_headers_is_refused(tmp_path: Path) -> None:
    """Without section headers nothing can be said of its size."""
    with pytest.raises(BinaryError, match="damaged") as caught:
        read_library(patched(tmp_path, (40, bytes(8)), (58, bytes(6))))
    assert caught.value.code == "corrupt-elf"


def test_segment_beyond_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    """The loader would refuse to map it too."""
    file_size = program_header(1) + 32
    with pytest.raises(BinaryError) as caught:
        read_library(patched(tmp_path, (file_size, struct.pack("<Q", 1 << 40))))
    assert caught.value.code == "corrupt-elf"
    assert "beyond the end" in caught.value.why


def test_forged_count_of_versions_ends_in_bounded_time(tmp_path: Path) -> None:
    """A chain of version entries that leads back to itself does not keep the reader busy for ever."""
    table = struct.unpack_from("<Q", TINY.read_bytes(), 40)[0]
    versions_needed = table + 4 * 64  # .gnu.version_r is the fourth section; sh_info counts its entries
    started = time.monotonic()
    with pytest.raises(BinaryError) as caught:
        read_library(patched(tmp_path, (versions_needed + 44, b"\xff\xff\xff\xff")))
    assert caught.value.code == "corrupt-elf"
    assert "more tables" in caught.value.why
    assert time.monotonic() - started < 60


@given(length=st.integers(min_value=4, max_value=TINY.stat().st_size - 1))
@settings(deadline=20_000, max_examples=60)
def test_truncated_library_is_always_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    """However much is missing at the end, the reader says that the file is damaged."""
    path = tmp_path_factory.mktemp("truncated") / "library.so"
    path.write_bytes(TINY.read_bytes()[:length])
    with pytest.raises(BinaryError) as caught:
        read_library(path)
    assert caught.value.code == "corrupt-elf"


flips = st.lists(
    st.tuples(st.integers(min_value=4, max_value=TINY.stat().st_size - 1), st.integers(min_value=1, max_value=255)),
    min_size=1,
    max_size=12,
)


@given(changes=flips)
@settings(deadline=20_000, max_examples=200)
def test_flipped_bytes_give_facts_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    """No damage makes anything but a `BinaryError` escape, and none takes long."""
    data = bytearray(TINY.read_bytes())
    for offset, mask in changes:
        data[offset] ^= mask
    path = tmp_path_factory.mktemp("flipped") / "library.so"
    path.write_bytes(data)
    assert outcome(path) in {"", "corrupt-elf", "not-a-library"}
