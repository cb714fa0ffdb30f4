"""Inputs that were recorded: an `.npz` keyed by input name, or a `test_data_set_*` folder as ONNX models ship it."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from ortrim.console import counted
from ortrim.core.models import TensorInfo
from ortrim.errors import VerifyError
from ortrim.storage.bounded import TooLarge, bounded_zip
from ortrim.storage.members import MAXIMUM_ENTRIES
from ortrim.verify.arrays import BFLOAT16, Array, numpy_type

LARGEST_RECORDING_BYTES: Final = 2 << 30


def recorded_files(data: Path) -> tuple[Path, ...]:
    """Return the files that hold the recorded inputs, in order. Raises `VerifyError` (`data-missing`)."""
    files = tuple(sorted(data.glob("input_*.pb"))) if data.is_dir() else (data,) if data.is_file() else ()
    if not files:
        what = "there are no recorded inputs: neither an .npz file nor a folder with input_0.pb"
        raise VerifyError("data-missing", what, where=str(data))
    return files


def recorded_inputs(data: Path, inputs: tuple[TensorInfo, ...]) -> tuple[Array, ...]:
    """Return the recorded arrays in the order of the model's inputs.

    Raises `VerifyError` (`data-missing`, `bad-npz`, `bad-test-data`, `missing-input`, `unknown-input`,
    `shape-mismatch`, `wrong-type`).
    """
    found = _from_folder(data, inputs) if data.is_dir() else _from_npz(data)
    known = {info.name for info in inputs}
    for name in found:
        if name not in known:
            _refuse("unknown-input", f"the model has no input '{name}'", data, f"it has: {', '.join(sorted(known))}")
    return tuple(_checked(info, found, data) for info in inputs)


def _from_npz(data: Path) -> dict[str, Array]:
    recorded_files(data)
    try:
        with bounded_zip(data, MAXIMUM_ENTRIES) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST_RECORDING_BYTES:
            _refuse("bad-npz", "the file is too large", data, f"unpacked it has {size:,} bytes")
        with np.load(data, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except (
        OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, NotImplementedError, RuntimeError,
        zipfile.BadZipFile, zlib.error, MemoryError, TooLarge,
    ) as error:  # fmt: skip
        why = f"{type(error).__name__}: {error}"
        what = "the file is not an .npz of plain arrays"
        raise VerifyError("bad-npz", what, where=str(data), why=why, hint="write it with numpy.savez") from error


def _from_folder(data: Path, inputs: tuple[TensorInfo, ...]) -> dict[str, Array]:
    """Read `input_0.pb`, `input_1.pb`, ..., which stand in the order of the model's inputs."""
    found = {}
    for path in recorded_files(data):
        number = path.stem.removeprefix("input_")
        if not (number.isascii() and number.isdecimal()) or int(number) >= len(inputs):
            _refuse("unknown-input", f"the model has {counted(len(inputs), 'input')}, numbered from 0", path)
        found[inputs[int(number)].name] = _from_protobuf(path)
    return found


def _from_protobuf(path: Path) -> Array:
    import onnx  # noqa: PLC0415 - heavy, and seldom needed
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from onnx import numpy_helper  # noqa: PLC0415

    try:
        tensor = onnx.load_tensor(path)
        array = np.asarray(numpy_helper.to_array(tensor))
    except (DecodeError, ValueError, TypeError, OSError, onnx.checker.ValidationError) as error:
        why = f"{type(error).__name__}: {error}"
        raise VerifyError("bad-test-data", "the file does not hold a tensor", where=str(path), why=why) from error
    if array.dtype.name == BFLOAT16:
        return array.view(np.uint16)
    if array.dtype == np.dtype(object):
        return _texts(array)
    return array


def _checked(info: TensorInfo, found: dict[str, Array], data: Path) -> Array:
    if info.name not in found:
        _refuse("missing-input", f"there is no array for input '{info.name}'", data, f"there is: {', '.join(found)}")
    array = _texts(found[info.name]) if found[info.name].dtype.kind in "US" else found[info.name]
    if array.dtype.newbyteorder("=") != numpy_type(info.element_type):
        why = f"recorded {found[info.name].dtype}; the model takes {info.element_type}"
        _refuse("wrong-type", f"the array for input '{info.name}' has another element type", data, why)
    shape = array.shape if info.shape is None else info.shape
    pairs = zip(shape, array.shape, strict=False)
    if len(shape) != array.ndim or any(isinstance(size, int) and size != given for size, given in pairs):
        why = f"recorded {list(array.shape)}; the model takes {['?' if s is None else s for s in shape]}"
        _refuse("shape-mismatch", f"the array for input '{info.name}' has another shape", data, why)
    return array


def _texts(array: Array) -> Array:
    """Return an array of Python strings, whatever form strings came in."""
    texts = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        element: Any = array[index]
        texts[index] = element.decode("utf-8", errors="surrogateescape") if isinstance(element, bytes) else str(element)
    return texts


def _refuse(reference: str, what: str, data: Path, why: str = "") -> NoReturn:
    raise VerifyError(reference, what, where=str(data), why=why)
