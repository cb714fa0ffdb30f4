from pathlib import Path

import pytest

from android_samples import sample
from ortrim.binaries.elf import read_library, take_apart
from ortrim.errors import BinaryError

LINKED = sample("unstripped.so")


def taken_apart(folder: Path, data: bytes) -> tuple[Path, Path]:
    """Return what ships of a library, and the library with its symbols."""
    linked, library, symbols = (folder / name for name in ("linked.so", "lib.so", "lib.so.sym"))
    linked.write_bytes(data)
    take_apart(linked, library, symbols)
    return library, symbols


def test_the_table_of_symbols_goes_and_nothing_else(tmp_path: Path) -> None:
    """What ships is smaller and the same to a loader; the symbols stay in the other file."""
    library, symbols = taken_apart(tmp_path, LINKED)
    assert symbols.read_bytes() == LINKED
    assert library.stat().st_size < len(LINKED)
    before, after = read_library(symbols), read_library(library)
    assert (before.stripped, after.stripped) == (False, True)
    assert (after.needed, after.exported, after.soname) == (before.needed, before.exported, before.soname)
    assert after.load_alignment == before.load_alignment


@pytest.mark.parametrize("length", [0, 3, 5, 63, 200, len(LINKED) // 2, len(LINKED) - 1])
def test_a_library_that_was_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    """Neither file is written."""
    with pytest.raises(BinaryError):
        taken_apart(tmp_path, LINKED[:length])
    assert [path.name for path in tmp_path.iterdir()] == ["linked.so"]
