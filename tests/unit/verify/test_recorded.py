import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ortrim.errors import VerifyError
from ortrim.models.models import TensorInfo
from ortrim.parity.inputs import recorded_files, recorded_inputs
from zips import zipped

X = TensorInfo(name="x", element_type="float32", shape=("batch", 2))
Y = TensorInfo(name="y", element_type="int64", shape=())


def refused(data: Path, *infos: TensorInfo) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        recorded_inputs(data, infos or (X, Y))
    return caught.value


def npz(tmp_path: Path, **arrays: Any) -> Path:
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


def test_npz_arrays_come_in_the_models_order(tmp_path: Path) -> None:
    data = npz(tmp_path, y=np.int64(3), x=np.ones((4, 2), np.float32))
    x, y = recorded_inputs(data, (X, Y))
    assert (x.shape, int(y)) == ((4, 2), 3)


def test_an_input_of_unknown_rank_takes_what_was_recorded(tmp_path: Path) -> None:
    """Where the model does not say how many dimensions there are, the recording does."""
    info = TensorInfo(name="x", element_type="float32", shape=None)
    for shape in ((), (2, 3)):
        (array,) = recorded_inputs(npz(tmp_path, x=np.ones(shape, np.float32)), (info,))
        assert array.shape == shape


def test_strings_are_taken_in_every_form(tmp_path: Path) -> None:
    info = TensorInfo(name="s", element_type="string", shape=(2,))
    (array,) = recorded_inputs(npz(tmp_path, s=np.array(["a", "Zürich"])), (info,))
    assert array.tolist() == ["a", "Zürich"]
    assert array.dtype == np.dtype(object)


@pytest.mark.parametrize(
    ("reference", "arrays"),
    [
        ("missing-input", {"x": np.ones((1, 2), np.float32)}),
        ("unknown-input", {"x": np.ones((1, 2), np.float32), "y": np.int64(1), "z": np.int64(1)}),
        ("wrong-type", {"x": np.ones((1, 2), np.float64), "y": np.int64(1)}),
        ("wrong-type", {"x": np.array([["a", "b"]]), "y": np.int64(1)}),
        ("shape-mismatch", {"x": np.ones((1, 3), np.float32), "y": np.int64(1)}),
        ("shape-mismatch", {"x": np.ones((2,), np.float32), "y": np.int64(1)}),
        ("bad-npz", {"x": np.array([{}], dtype=object), "y": np.int64(1)}),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, reference: str, arrays: dict[str, Any]) -> None:
    """Each misfit has its own reference and names the file."""
    data = npz(tmp_path, **arrays)
    error = refused(data)
    assert (error.code, error.where) == (reference, str(data))


def _hostile_member() -> bytes:
    """Return an .npz whose one array claims to be far larger than any memory."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1024), }".ljust(117) + b"\n"
    return zipped({"x.npy": b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header})


def _truncated() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.ones((100, 2), np.float32))
    return file.getvalue()[:-40]


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"hello", b"\x93NUMPY\x01\x00", _hostile_member(), _truncated()]
)
def test_files_that_are_no_npz(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.npz").write_bytes(content)
    assert refused(tmp_path / "data.npz", X).code == "bad-npz"


@pytest.mark.parametrize("name", ["absent.npz", "empty"])
def test_missing_data(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(VerifyError) as caught:
        recorded_files(tmp_path / name)
    assert caught.value.code == "data-missing"


def write_tensor(folder: Path, name: str, array: Any) -> None:
    (folder / name).write_bytes(numpy_helper.from_array(array).SerializeToString())


def test_test_data_sets_are_read(tmp_path: Path) -> None:
    """Inputs of an ONNX test data set stand in the model's order; outputs are left alone."""
    write_tensor(tmp_path, "input_0.pb", np.ones((3, 2), np.float32))
    write_tensor(tmp_path, "input_1.pb", np.array(7, np.int64))
    write_tensor(tmp_path, "output_0.pb", np.ones(1))
    x, y = recorded_inputs(tmp_path, (X, Y))
    assert (x.shape, int(y)) == ((3, 2), 7)


def test_strings_and_bfloat16_of_test_data_sets(tmp_path: Path) -> None:
    """Types that NumPy lacks come in the form the runner reads."""
    write_tensor(tmp_path, "input_0.pb", np.array(["a", "b"], dtype=object))
    tensor = onnx.helper.make_tensor("b", onnx.TensorProto.BFLOAT16, (2,), [1.0, -2.0])
    (tmp_path / "input_1.pb").write_bytes(tensor.SerializeToString())
    infos = [TensorInfo(name=kind, element_type=kind, shape=(2,)) for kind in ("string", "bfloat16")]
    texts, bits = recorded_inputs(tmp_path, tuple(infos))
    assert texts.tolist() == ["a", "b"]
    assert bits.tolist() == [0x3F80, 0xC000]


@pytest.mark.parametrize("name", ["input_2.pb", "input_x.pb", "input_-1.pb", "input_².pb"])
def test_inputs_that_the_model_does_not_have(tmp_path: Path, name: str) -> None:
    """A number beyond the model's inputs, or none at all, is refused."""
    write_tensor(tmp_path, "input_0.pb", np.ones((1, 2), np.float32))
    write_tensor(tmp_path, name, np.ones(1, np.float32))
    assert refused(tmp_path).code == "unknown-input"


@pytest.mark.parametrize("content", [b"", b"\x0a\xff", b"hello", b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"])
def test_files_that_are_no_tensor(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "input_0.pb").write_bytes(content)
    assert refused(tmp_path).code == "bad-test-data"
