from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ortrim.errors import ExitCode, VerifyError
from ortrim.parity.inputs import load_array, narrowed, save_array, widened
from refusing import refused

TYPES = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_numbers_come_back(tmp_path: Path, element_type: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype=element_type)
    path = save_array(tmp_path, "input_000", array)
    found = load_array(path)
    assert path.name == "input_000.npy"
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)


def test_other_layouts_are_straightened(tmp_path: Path) -> None:
    """Big-endian and Fortran-ordered arrays are written as the runner reads them."""
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    data = save_array(tmp_path, "x", array).read_bytes()
    assert b"'<i4'" in data
    assert b"'fortran_order': False" in data
    assert np.array_equal(load_array(tmp_path / "x.npy"), array)


@settings(deadline=None)
@given(texts=st.lists(st.text(), max_size=6))
def test_strings_come_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("strings")
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    array[:] = clean
    assert list(load_array(save_array(folder, "x", array))) == clean


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_no_bytes_surprise_the_reader_of_strings(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Any bytes are strings or a diagnostic, at once, and never anything else."""
    path = tmp_path_factory.mktemp("hostile") / "x.strings"
    path.write_bytes(data)
    try:
        found = load_array(path)
    except VerifyError:
        return
    assert save_array(path.parent, "y", found).read_bytes() == data


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"hello", b"\xff" * 64])
@pytest.mark.parametrize("name", ["x.npy", "x.strings"])
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    error = refused(VerifyError, load_array, tmp_path / name)
    assert (error.code, error.exit_code) == ("bad-output", ExitCode.VERIFY)
    assert name in error.where


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(VerifyError, match="cannot be read"):
        load_array(tmp_path / "x.npy")


@settings(deadline=None)
@given(values=npst.arrays(np.uint16, st.integers(0, 20), elements=st.integers(0, 0x7F7F)))
def test_bfloat16_bits_survive_widening(values: Any) -> None:
    assert np.array_equal(narrowed(widened(values)), values)


def test_bfloat16_is_rounded_to_nearest_even() -> None:
    assert list(narrowed(np.array([1.0, 1.00390625, 1.01171875, 1.004], np.float32))) == [
        0x3F80,
        0x3F80,
        0x3F82,
        0x3F81,
    ]
