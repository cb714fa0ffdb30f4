"""What reports tell of a library for Apple's systems."""

from pathlib import Path

import pytest

from apple_slices import TRIPLES, install_name, recorded
from ortrim.binaries.macho import read_apple_library
from ortrim.errors import BinaryError


@pytest.mark.parametrize("target", TRIPLES)
def test_a_library_is_told_as_those_of_other_systems(tmp_path: Path, target: str) -> None:
    """Its name, its needs and exports; sizes by segment, that of names and signatures left out."""
    (tmp_path / "a.dylib").write_bytes(recorded(target))
    facts, size = read_apple_library(tmp_path / "a.dylib")
    assert facts.soname == install_name(target)
    assert facts.machine in {"arm64", "x86_64"}
    assert set(facts.needed) == {"/usr/lib/libSystem.B.dylib"}
    assert "OrtGetApiBase" in facts.exported
    assert facts.load_alignment == (16384 if facts.machine == "arm64" else 4096)
    assert size.file_bytes == len(recorded(target))
    assert size.loadable_bytes == sum(part.size_bytes for part in size.components) > 0
    assert {part.component for part in size.components} <= {"__TEXT", "__DATA_CONST", "__DATA"}
    assert 0 < size.compressed_bytes < size.file_bytes


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    """By the reader of such files."""
    (tmp_path / "a.dylib").write_bytes(b"text")
    with pytest.raises(BinaryError) as caught:
        read_apple_library(tmp_path / "a.dylib")
    assert caught.value.code == "not-mach-o"
