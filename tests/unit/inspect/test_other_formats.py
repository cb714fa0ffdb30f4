"""What is given in place of an ONNX model: each is called by its name, with the way to ONNX."""

import gzip
import json
import pickle
import struct
from pathlib import Path
from typing import Final

import pytest

from onnx_samples import relu
from ortrim.analysis.inspect import inspect_file, inspect_onnx
from ortrim.errors import ModelError
from ortrim.models.onnx_files import other_format
from refusing import refused
from zips import zipped

ONNX: Final = relu().SerializeToString()
HEADER: Final = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


def archive_of(*names: str) -> bytes:
    return zipped(dict.fromkeys(names, "x"))


FILES: Final = {
    "model.pt": (
        archive_of("model/data.pkl", "model/version", "model/data/0"),
        "saved by torch.save",
        "torch.onnx.export",
    ),
    "model.pth": (pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), "saved by torch.save", "torch.onnx.export"),
    "script.pt": (archive_of("m/data.pkl", "m/code/__torch__.py"), "TorchScript", "torch.onnx.export"),
    "model.pt2": (archive_of("m/serialized_exported_program.json"), "torch.export", "torch.onnx.export"),
    "model.keras": (archive_of("metadata.json", "config.json", "model.weights.h5"), "Keras", "from_keras"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(50), "HDF5", "from_keras"),
    "model.tflite": (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite", "--tflite"),
    "frozen.pb": (b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", "TensorFlow", "--graphdef"),
    "saved_model.pb": (b"\x08\x01\x12\x7f\x0a\x05serve", "TensorFlow", "--saved-model"),
    "model.mlmodel": (b"\x08\x04\x12\x7f\x0a\x06\x0a\x01x", "Core ML", "converted from"),
    "model.safetensors": (struct.pack("<Q", len(HEADER)) + HEADER + bytes(4), "safetensors", "optimum-cli"),
    "model.gguf": (b"GGUF" + bytes(40), "GGUF", "original model"),
    "model.pkl": (pickle.dumps({"a": 1}), "pickled Python object", "ONNX"),
    "forest.pkl": (b"\x80\x04\x95\x00csklearn.ensemble\n", "scikit-learn", "skl2onnx"),
    "model.onnx.gz": (gzip.compress(ONNX), "compressed by gzip", "unpack"),
    "model.zip": (archive_of("net/model.onnx"), "'net/model.onnx'", "unpack"),
    "inputs.npz": (archive_of("x.npy", "y.npy"), "NumPy", "data"),
    "pointer.bin": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS", "git lfs pull"),
    "page": (b"\n<!DOCTYPE html><html></html>", "web page", "download it again"),
    "answer": (b'{"error": "not found"}', "JSON", "download it again"),
    "empty": (b"", "empty", "again"),
}


@pytest.mark.parametrize("name", FILES)
def test_inspect_says_what_a_file_is(tmp_path: Path, name: str) -> None:
    content, what, hint = FILES[name]
    (tmp_path / name).write_bytes(content)
    error = refused(ModelError, inspect_file, tmp_path / name)
    assert error.code == "unknown-kind"
    assert what in error.what
    assert hint in error.hint


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith((".pb", ".mlmodel"))])
def test_so_does_whatever_reads_a_model(tmp_path: Path, name: str) -> None:
    content, what, hint = FILES[name]
    (tmp_path / "model.onnx").write_bytes(content)
    error = refused(ModelError, inspect_onnx, tmp_path / "model.onnx")
    assert error.code == "not-onnx"
    assert what in error.what
    assert hint in error.hint


@pytest.mark.parametrize(
    ("folder", "file", "what"), [("m.mlpackage", "x", "Core ML"), ("m", "saved_model.pb", "SavedModel")]
)
def test_folders_that_are_models_are_reported(tmp_path: Path, folder: str, file: str, what: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / file).touch()
    assert what in refused(ModelError, inspect_file, tmp_path / folder).what


@pytest.mark.parametrize(
    "content", [ONNX, b"# operators\nai.onnx;14;Relu\n", b"\x80", archive_of("AndroidManifest.xml")]
)
def test_what_may_be_ours_is_left_to_its_reader(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert other_format(tmp_path / "file") is None
