"""Telling what people give in place of an ONNX model, and how that becomes one.

Formats are told by their first bytes, archives by the names in them; by a file's name only where the content says
nothing. Nothing is unpacked and no pickle is loaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import StorageError
from ortrim.storage.zips import open_zip

HEAD_BYTES: Final = 4096
ZIP: Final = b"PK\x03\x04"
PICKLE: Final = 0x80
PICKLE_PROTOCOLS: Final = range(2, 6)
TORCH_MAGIC: Final = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")
"""What `torch.save` of PyTorch 1.5 and older begins with; `torch/serialization.py`, MAGIC_NUMBER."""
SAFETENSORS_HEADER: Final = 100 << 20
"""The longest header that safetensors reads."""
EXPORT: Final = 'export it in Python: torch.onnx.export(model, example_inputs, "model.onnx")'
TENSORFLOW: Final = "convert it: python -m tf2onnx.convert --{} PATH --output model.onnx"
KERAS: Final = "load it in Keras, then: tf2onnx.convert.from_keras(model, output_path='model.onnx')"
DOWNLOAD: Final = "download it again: the address may ask for a login, or be that of a page about the file"
UNPACK: Final = "unpack it and give the .onnx file inside"


@dataclass(frozen=True, kw_only=True)
class OtherFormat:
    """What a file is, as `the file` goes on, and what to do about it."""

    what: str
    hint: str


BY_MAGIC: Final = {
    b"\x89HDF\r\n\x1a\n": OtherFormat(what="is an HDF5 file, as Keras saves models", hint=KERAS),
    b"GGUF": OtherFormat(what="holds weights for llama.cpp (GGUF)", hint="export the original model to ONNX"),
    b"\x1f\x8b": OtherFormat(what="is compressed by gzip", hint=UNPACK),
    b"\xfd7zXZ": OtherFormat(what="is compressed by xz", hint=UNPACK),
    b"BZh": OtherFormat(what="is compressed by bzip2", hint=UNPACK),
    b"\x28\xb5\x2f\xfd": OtherFormat(what="is compressed by zstd", hint=UNPACK),
}


def other_format(path: Path) -> OtherFormat | None:
    """Return what a file or folder is that is known not to be an ONNX model; None when it may be one."""
    if path.is_dir():
        return _of_folder({entry.name for entry in path.iterdir()}, path)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return _of_bytes(head, path) or _of_text(head) or _of_weights(head, path.stat().st_size)


def format_by_name(path: Path) -> OtherFormat | None:
    """Return what a file that is no ONNX model probably is, by its name."""
    match path.suffix.lower():
        case ".pb":
            hint = TENSORFLOW.format("saved-model" if path.name == "saved_model.pb" else "graphdef")
            return OtherFormat(what="is no ONNX model; by its name it is one of TensorFlow", hint=hint)
        case ".mlmodel":
            return _core_ml("is no ONNX model; by its name it is one of Core ML")
        case _:
            return None


def _of_folder(names: set[str], path: Path) -> OtherFormat | None:
    if path.suffix == ".mlpackage":
        return _core_ml("is a Core ML package")
    if "saved_model.pb" in names:
        return OtherFormat(what="is TensorFlow's SavedModel", hint=TENSORFLOW.format("saved-model"))
    return None


def _core_ml(what: str) -> OtherFormat:
    return OtherFormat(what=what, hint="export the model that it was converted from to ONNX; there is no way back")


def _of_bytes(head: bytes, path: Path) -> OtherFormat | None:
    if not head:
        return OtherFormat(what="is empty", hint="export or download the model again")
    if head[4:8] == b"TFL3":
        return OtherFormat(what="is a TensorFlow Lite model", hint=TENSORFLOW.format("tflite"))
    if head.startswith(ZIP):
        return _of_zip(path)
    for magic, found in BY_MAGIC.items():
        if head.startswith(magic):
            return found
    return _of_pickle(head) if head[0] == PICKLE and head[1:2] and head[1] in PICKLE_PROTOCOLS else None


def _of_pickle(head: bytes) -> OtherFormat:
    if TORCH_MAGIC in head[:32]:
        return OtherFormat(what="is a PyTorch model, saved by torch.save", hint=EXPORT)
    if b"sklearn" in head:
        hint = "convert it in Python: skl2onnx.to_onnx(model, example_inputs)"
        return OtherFormat(what="is a pickled model of scikit-learn", hint=hint)
    return OtherFormat(what="is a pickled Python object, which is never loaded here", hint="export the model to ONNX")


def _of_zip(path: Path) -> OtherFormat | None:
    """Return what a zip archive holds; None for one that is no model's, such as an AAR, and for a damaged one."""
    try:
        with open_zip(path, str(path), links=True) as archive:
            names = tuple(archive.members)
    except StorageError:
        return None
    inner = {name.split("/", 1)[-1] for name in names}
    if "data.pkl" in inner:
        scripted = any(name.startswith("code/") for name in inner)
        what = "is a TorchScript model" if scripted else "is a PyTorch model, saved by torch.save"
        return OtherFormat(what=what, hint=EXPORT)
    if any(name.endswith("exported_program.json") or name.startswith("models/") for name in inner):
        return OtherFormat(what="is a PyTorch model, saved by torch.export", hint=EXPORT)
    if "model.weights.h5" in names:
        return OtherFormat(what="is a Keras model", hint=KERAS)
    return _of_contents(names)


def _of_contents(names: Iterable[str]) -> OtherFormat | None:
    if models := [name for name in names if name.endswith(".onnx")]:
        return OtherFormat(what=f"is a zip archive, with {models[0]!r} in it", hint=UNPACK)
    if names and all(name.endswith(".npy") for name in names):
        return OtherFormat(what="holds arrays of NumPy", hint="it may be the 'data' of a case; give the model itself")
    return None


def _of_text(head: bytes) -> OtherFormat | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"version https://git-lfs"):
        return OtherFormat(what="is only a pointer to Git LFS", hint="run: git lfs pull")
    if text.startswith(b"<"):
        html = b"<html" in text[:1024].lower() or text[:9].lower() == b"<!doctype"
        return OtherFormat(what="is a web page" if html else "is text in XML", hint=DOWNLOAD)
    return OtherFormat(what="is text in JSON", hint=DOWNLOAD) if text.startswith(b"{") else None


def _of_weights(head: bytes, size: int) -> OtherFormat | None:
    length = int.from_bytes(head[:8], "little")
    if head[8:9] != b"{" or not 2 <= length <= min(SAFETENSORS_HEADER, size - 8):
        return None
    hint = "load them into their model in Python and export that: torch.onnx.export or optimum-cli export onnx"
    return OtherFormat(what="holds weights without a model (safetensors)", hint=hint)
