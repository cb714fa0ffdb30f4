import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_slices import recorded
from ortrim.binaries.objects import own_references, read_object
from ortrim.errors import BinaryError, ExitCode

DATA = Path(__file__).with_name("data")
TINY = DATA / "tiny.o"
TINY_32 = DATA / "tiny-32.o"
"""Both made by zig 0.17 (`zig cc -g0 -Os -fcommon -ffunction-sections -c tiny.c`, targets `x86_64-linux-gnu.2.28` and
`arm-linux-gnueabihf.2.28`) of a file with functions `offered_function`, `offered_hidden` (hidden), `offered_weakly`
(weak) and the static `kept_inside`, variables `offered_value` and `offered_tentatively` (common), that calls
`needed_function` and, if it is there, `needed_perhaps` (weak)."""
TINY_MACHO = DATA / "tiny-mach.o"
"""Made of the same source for `aarch64-macos.13.3`, where what may be missing is imported weakly."""
DEFINED = frozenset({"offered_function", "offered_hidden", "offered_weakly", "offered_value", "offered_tentatively"})
UNDEFINED = frozenset({"needed_function", "needed_perhaps"})


def refused(path: Path) -> BinaryError:
    """Read an object that must be refused."""
    with pytest.raises(BinaryError) as caught:
        read_object(path)
    assert caught.value.exit_code == ExitCode.BINARY
    assert caught.value.where == str(path)
    return caught.value


def patched(tmp_path: Path, offset: int, replacement: bytes) -> Path:
    """Return a copy of the object with bytes replaced."""
    data = bytearray(TINY.read_bytes())
    data[offset : offset + len(replacement)] = replacement
    path = tmp_path / "patched.o"
    path.write_bytes(data)
    return path


def test_object_offers_and_needs_what_others_can_see() -> None:
    """Global, hidden, weak and common symbols are offered; weak needs count as needs; static ones stay inside."""
    assert read_object(TINY) == (DEFINED, UNDEFINED)


def test_object_of_a_32_bit_target_is_read() -> None:
    """The same source for 32-bit ARM needs the unwinder's routine besides."""
    assert read_object(TINY_32) == (DEFINED, UNDEFINED | {"__aeabi_unwind_cpp_pr0"})


@pytest.mark.parametrize("path", [TINY, TINY_32])
def test_what_an_object_names_of_its_own_is_reported(path: Path) -> None:
    """Functions and variables, by relocations of any kind; not what only others may ask for."""
    assert own_references(path) == DEFINED - {"offered_function", "offered_hidden"}


def test_own_references_of_what_is_no_object_are_refused(tmp_path: Path) -> None:
    """As its symbols are: another kind of file, and none at all."""
    (tmp_path / "a.o").write_bytes(b"BC\xc0\xde")
    with pytest.raises(BinaryError) as caught:
        own_references(tmp_path / "a.o")
    assert caught.value.code == "not-elf"
    with pytest.raises(BinaryError) as caught:
        own_references(tmp_path / "none.o")
    assert caught.value.code == "object-missing"


def test_object_of_apples_is_read() -> None:
    """What the finished library will hide is offered to the link; no name has the underscore that Mach-O adds."""
    assert read_object(TINY_MACHO) == (DEFINED, UNDEFINED)


@pytest.mark.parametrize("target", ["macos-arm64", "macos-x86_64"])
def test_library_of_apples_is_no_object(tmp_path: Path, target: str) -> None:
    """A finished library is not taken for an object of a build."""
    path = tmp_path / "library.o"
    path.write_bytes(recorded(target))
    assert refused(path).code == "corrupt-mach-o"


@settings(deadline=None, max_examples=60)
@given(
    length=st.integers(min_value=4, max_value=TINY_MACHO.stat().st_size),
    changes=st.lists(st.tuples(st.integers(4, TINY_MACHO.stat().st_size - 1), st.integers(0, 255)), max_size=9),
)
def test_damaged_object_of_apples_gives_symbols_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, length: int, changes: list[tuple[int, int]]
) -> None:
    """Cut off anywhere, changed anywhere."""
    data = bytearray(TINY_MACHO.read_bytes())
    for place, value in changes:
        data[place] = value
    path = tmp_path_factory.mktemp("damaged") / "damaged.o"
    path.write_bytes(data[:length])
    with contextlib.suppress(BinaryError):
        read_object(path)


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"!<arch>\n", b"BC\xc0\xde", b"/* GNU ld script */\n"])
def test_other_files_are_not_elf(tmp_path: Path, content: bytes) -> None:
    """An empty file, an archive, LLVM's bitcode and a script are told from an object."""
    path = tmp_path / "object.o"
    path.write_bytes(content)
    assert refused(path).code == "not-elf"


def test_library_is_not_an_object() -> None:
    """Only ET_REL is what a compiler makes of one unit."""
    error = refused(DATA / "tiny.so")
    assert (error.code, error.why) == ("not-an-object", "ET_DYN")


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    """A path that cannot be read is a diagnostic that names it."""
    for path in (tmp_path / "absent.o", tmp_path):
        assert refused(path).code == "object-missing"


def test_object_without_section_headers_is_refused(tmp_path: Path) -> None:
    """Without them it would seem to need nothing."""
    cut = patched(tmp_path, 40, bytes(8))
    data = bytearray(cut.read_bytes())
    data[58:64] = bytes(6)
    cut.write_bytes(data)
    assert refused(cut).code == "corrupt-elf"


def test_symbols_without_names_are_refused(tmp_path: Path) -> None:
    """Names that were wiped out of the string table are missed."""
    name = b"\0offered_tentatively\0"
    error = refused(patched(tmp_path, TINY.read_bytes().index(name), bytes(len(name))))
    assert error.code == "corrupt-elf"
    assert "no name" in error.why


@given(length=st.integers(min_value=4, max_value=TINY.stat().st_size - 1))
@settings(deadline=None, max_examples=60)
def test_truncated_object_is_always_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    """However much is missing at the end, the reader says that the file is damaged."""
    path = tmp_path_factory.mktemp("truncated") / "object.o"
    path.write_bytes(TINY.read_bytes()[:length])
    assert refused(path).code == "corrupt-elf"


flips = st.lists(
    st.tuples(st.integers(min_value=4, max_value=TINY.stat().st_size - 1), st.integers(min_value=1, max_value=255)),
    min_size=1,
    max_size=12,
)


@given(changes=flips)
@settings(deadline=None, max_examples=150)
def test_flipped_bytes_give_symbols_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    """No damage makes anything but a `BinaryError` escape."""
    data = bytearray(TINY.read_bytes())
    for offset, mask in changes:
        data[offset] ^= mask
    path = tmp_path_factory.mktemp("flipped") / "object.o"
    path.write_bytes(data)
    try:
        defined, undefined = read_object(path)
    except BinaryError as error:
        assert error.code in {"corrupt-elf", "not-an-object"}  # noqa: PT017 - both outcomes are right
    else:
        assert not defined & undefined
