"""`inspect`: what is in a file, whatever kind of file it is."""

from pathlib import Path
from typing import Any, Final

from ortrim.binaries.elf import read_library
from ortrim.binaries.sizes import library_size
from ortrim.core.serialization import to_data
from ortrim.errors import ModelError
from ortrim.models.inspect import inspect_config, inspect_onnx, inspect_ort

ELF_MAGIC: Final = b"\x7fELF"
ORT_IDENTIFIER: Final = b"ORTM"


def inspect_file(path: Path) -> dict[str, Any]:
    """Return what is in a model, a library or an operator configuration, as JSON-ready data with its `kind`.

    The kind is told by content, not by name. Raises `ModelError` (`file-missing`), or what the reader of that kind
    raises.
    """
    if not path.is_file():
        raise ModelError("file-missing", "there is no such file", where=str(path))
    with path.open("rb") as file:
        head = file.read(1024)
    if head.startswith(ELF_MAGIC):
        return {"kind": "library", "facts": to_data(read_library(path)), "size": to_data(library_size(path, None))}
    if head[4:8] == ORT_IDENTIFIER:
        return {"kind": "ort model", **to_data(inspect_ort(path))}
    if path.suffix == ".config" or (path.suffix != ".onnx" and _is_text(head)):
        return {"kind": "operator configuration", **to_data(inspect_config(path))}
    return {"kind": "onnx model", **to_data(inspect_onnx(path))}


def _is_text(head: bytes) -> bool:
    return bool(head) and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head)
