import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.binaries.elf import ComponentSize, SymbolSize
from ortrim.compiling.size.library import library_size
from ortrim.errors import BinaryError

DATA = Path(__file__).with_name("data")
TINY = DATA / "tiny.so"
MAP = DATA / "tiny.map"


def rewritten_map(tmp_path: Path, old: str, new: str) -> Path:
    """Return a copy of the small map with one text replaced."""
    text = MAP.read_text()
    assert old in text
    path = tmp_path / "other.map"
    path.write_text(text.replace(old, new))
    return path


def test_components_sum_to_the_loadable_bytes() -> None:
    """Every loadable byte has an owner: a component, something the linker made, or padding."""
    size = library_size(TINY, MAP)
    by_name = {component.component: component.size_bytes for component in size.components}
    assert sum(by_name.values()) == size.loadable_bytes
    assert by_name["mlas"] == 0x140 + 0xAD + 0x18
    assert by_name["session"] == 0x43 + 0x12C
    assert by_name["padding"] == 0x160 - 0x1B - 0x140
    assert set(by_name) == {
        "mlas", "session", "padding", "relocation tables", "dynamic symbols", "dynamic linking", "string literals",
    }  # fmt: skip


def test_padding_for_relro_and_sections_out_of_memory_are_not_counted() -> None:
    """As in upstream's size check `.relro_padding` is left out; `.comment` and `.shstrtab` are never loaded."""
    by_name = {component.component: component.size_bytes for component in library_size(TINY, None).components}
    assert by_name[".text"] == 0xF0
    assert by_name[".bss"] == 0x12C
    assert not {".relro_padding", ".comment", ".shstrtab", ""} & set(by_name)


def test_without_a_map_components_are_sections() -> None:
    """A foreign library is reported by section, with the same total and without symbols."""
    mapped, plain = library_size(TINY, MAP), library_size(TINY, None)
    assert plain.loadable_bytes == mapped.loadable_bytes == sum(each.size_bytes for each in plain.components)
    assert plain.largest_symbols == ()


def test_largest_come_first() -> None:
    """Components and symbols are in order of size; the linker's own tables stand among the symbols."""
    size = library_size(TINY, MAP)
    assert [each.size_bytes for each in size.components] == sorted(
        (each.size_bytes for each in size.components), reverse=True
    )
    assert size.components[0] == ComponentSize(component="mlas", size_bytes=517)
    assert size.largest_symbols[:3] == (
        SymbolSize(name=".dynamic", component="dynamic linking", size_bytes=384),
        SymbolSize(name="table", component="mlas", size_bytes=320),
        SymbolSize(name="state", component="session", size_bytes=300),
    )


def test_object_files_have_their_share_of_a_component() -> None:
    """The largest come first, without archive and folder; the linker's own tables are in none."""
    files = library_size(TINY, MAP).largest_files
    assert [(each.name, each.component, each.size_bytes) for each in files] == [
        ("mlas.o", "mlas", 517),
        ("session.o", "session", 0x43 + 0x12C),
    ]
    assert library_size(TINY, None).largest_files == ()


def test_file_and_compressed_bytes() -> None:
    """The file is measured as it is, and through gzip at its best level."""
    size = library_size(TINY, None)
    assert size.file_bytes == TINY.stat().st_size
    assert len(gzip.compress(b"", 9)) < size.compressed_bytes < size.file_bytes
    assert size == library_size(TINY, None)


def test_folded_functions_count_once(tmp_path: Path) -> None:
    """Two names at one address, as identical code folding leaves them, are one entry."""
    line = "            15b3             15b3       ad     1                 kernel\n"
    twice = rewritten_map(tmp_path, line, line + line.replace("kernel", "double"))
    names = [symbol.name for symbol in library_size(TINY, twice).largest_symbols]
    assert len({"kernel", "double"} & set(names)) == 1


def test_assembly_stands_as_a_section_without_folders(tmp_path: Path) -> None:
    """An input section whose symbols have no size is named by object and section, not by the machine's folders."""
    row = "             430              430      140     1                 table\n"
    unsized = rewritten_map(tmp_path, row, row.replace("140", "  0"))
    unsized.write_text(
        unsized.read_text().replace("libonnxruntime_mlas.a(", "/home/me/libonnxruntime_mlas.a(/home/me/")
    )
    (symbol,) = (each for each in library_size(TINY, unsized).largest_symbols if "table" in each.name)
    assert symbol == SymbolSize(name="mlas.o: .rodata.table", component="mlas", size_bytes=320)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f0     1 .text", "f1     1 .text"),
        (" .text\n", " .tixt\n"),
        ("ad     1         libonnx", "adad     1         libonnx"),
        ("12c    16 .bss", "ffffffffffff    16 .bss"),
    ],
)
def test_map_of_another_link_is_refused(tmp_path: Path, old: str, new: str) -> None:
    """A section of another size, an absent one, and inputs larger than their section each mean a wrong map."""
    with pytest.raises(BinaryError) as caught:
        library_size(TINY, rewritten_map(tmp_path, old, new))
    assert caught.value.code == "link-map-mismatch"
    assert "build again" in caught.value.hint


def test_missing_map_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    """A map that was asked for and is not there is reported."""
    with pytest.raises(BinaryError) as caught:
        library_size(TINY, tmp_path / "absent.map")
    assert caught.value.code == "link-map-missing"


@given(length=st.integers(min_value=0, max_value=TINY.stat().st_size - 1))
@settings(deadline=None, max_examples=30)
def test_truncated_library_has_no_size(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    """No size is reported of a file that is not whole."""
    path = tmp_path_factory.mktemp("cut") / "library.so"
    path.write_bytes(TINY.read_bytes()[:length])
    with pytest.raises(BinaryError) as caught:
        library_size(path, None)
    assert caught.value.code in {"not-elf", "corrupt-elf"}
