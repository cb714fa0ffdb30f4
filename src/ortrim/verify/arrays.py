"""Tensors in files, as the runner reads and writes them: `.npy`, and `.strings` for what NumPy has no plain form for.

A `.strings` file holds little-endian 64-bit numbers: the rank, each dimension, then for each element its length in
bytes followed by that many bytes of UTF-8. bfloat16 travels as the uint16 of its bits.
"""

import math
import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ortrim.errors import VerifyError

Array = NDArray[Any]

STRING: Final = "string"
BFLOAT16: Final = "bfloat16"
FLOATS: Final = frozenset({"float16", BFLOAT16, "float32", "float64"})


def numpy_type(element_type: str) -> np.dtype[Any]:
    """Return the type in which elements are held: `uint16` for bfloat16, `object` for strings."""
    return np.dtype({STRING: "object", BFLOAT16: "uint16"}.get(element_type, element_type))


def save_array(folder: Path, stem: str, array: Array) -> Path:
    """Write `folder/stem.npy`, or `folder/stem.strings` for an array of objects; return the file."""
    if array.dtype == np.dtype(object):
        path = folder / f"{stem}.strings"
        path.write_bytes(_encoded(array))
        return path
    path = folder / f"{stem}.npy"
    # Not ascontiguousarray, which makes a vector of a scalar.
    np.save(path, np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C"), allow_pickle=False)
    return path


def load_array(path: Path) -> Array:
    """Read what `save_array` or the runner wrote.

    Raises `VerifyError` (`bad-output`) when the file is missing, truncated or not such a file.
    """
    try:
        if path.suffix == ".strings":
            return _decoded(path.read_bytes())
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError, struct.error, MemoryError) as error:
        why = f"{type(error).__name__}: {error}"
        raise VerifyError("bad-output", "a saved tensor cannot be read", where=str(path), why=why) from error


def widened(bits: Array) -> Array:
    """Return bfloat16 bits as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: Array) -> Array:
    """Return float32 values as bfloat16 bits, rounded to nearest even; values are finite."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _encoded(array: Array) -> bytes:
    head = struct.pack(f"<{1 + array.ndim}Q", array.ndim, *array.shape)
    texts = [str(element).encode("utf-8", errors="surrogateescape") for element in array.reshape(-1)]
    return head + b"".join(struct.pack("<Q", len(text)) + text for text in texts)


def _decoded(data: bytes) -> Array:
    (rank,) = struct.unpack_from("<Q", data)
    if rank > 32:
        raise ValueError(f"{rank} dimensions")
    shape = struct.unpack_from(f"<{rank}Q", data, 8)
    at = 8 * (1 + rank)
    count = math.prod(shape)
    if count * 8 > len(data) - at:
        raise ValueError(f"{count} elements cannot be in {len(data)} bytes")
    elements = np.empty(count, dtype=object)
    for index in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8 + length
        elements[index] = data[at - length : at].decode("utf-8", errors="surrogateescape")
    if at != len(data):
        raise ValueError("the last element is cut off or followed by more")
    return elements.reshape(shape)
