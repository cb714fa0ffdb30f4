"""`inspect`: what is in a file, whatever kind of file it is."""

from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any, Final

from ortrim.binaries.elf import read_library
from ortrim.binaries.sizes import library_size
from ortrim.core.serialization import to_data
from ortrim.errors import ModelError
from ortrim.models.inspect import inspect_config, inspect_onnx, inspect_ort
from ortrim.pipeline.android_inspection import inspect_aar
from ortrim.storage.files import storage_errors

ELF_MAGIC: Final = b"\x7fELF"
ORT_IDENTIFIER: Final = b"ORTM"
ZIP_MAGIC: Final = b"PK\x03\x04"


def inspect_file(path: Path) -> dict[str, Any]:
    """Return what is in a model, a library, an AAR or an operator configuration, as JSON-ready data with its `kind`.

    The kind is told by content, not by name. Raises `ModelError` (`file-missing`), `StorageError`, or what the reader
    of that kind raises.
    """
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise ModelError("file-missing", what, where=str(path))
    with storage_errors(path), path.open("rb") as file:
        head = file.read(1024)
    if head.startswith(ELF_MAGIC):
        return {"kind": "library", "facts": to_data(read_library(path)), "size": to_data(library_size(path, None))}
    if head.startswith(ZIP_MAGIC):
        return {"kind": "android archive", **inspect_aar(path)}
    if head[4:8] == ORT_IDENTIFIER:
        return {"kind": "ort model", **to_data(inspect_ort(path))}
    if path.suffix == ".config" or (path.suffix != ".onnx" and _is_text(head)):
        return {"kind": "operator configuration", **to_data(inspect_config(path))}
    return {"kind": "onnx model", **to_data(inspect_onnx(path))}


def _is_text(head: bytes) -> bool:
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # takes a character that the head cuts in two
    except UnicodeDecodeError:
        return False
    return bool(text) and all(character in "\t\n\r" or character.isprintable() for character in text)
