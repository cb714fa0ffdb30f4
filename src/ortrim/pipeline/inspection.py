"""`inspect`: what is in a file, whatever kind of file it is."""

from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any, Final

from ortrim.binaries.archives import MAGIC
from ortrim.binaries.elf import read_library
from ortrim.binaries.sizes import library_size
from ortrim.core.serialization import to_data
from ortrim.errors import Diagnostic, ModelError
from ortrim.models.inspect import inspect_config, inspect_onnx, inspect_ort
from ortrim.pipeline.android_inspection import inspect_aar
from ortrim.pipeline.archive_inspection import inspect_archive
from ortrim.storage.files import storage_errors

ELF_MAGIC: Final = b"\x7fELF"
ORT_IDENTIFIER: Final = b"ORTM"
ZIP_MAGIC: Final = b"PK\x03\x04"
KINDS: Final = (
    "inspect reads models (ONNX, ORT), libraries (.so, .a) for Linux and Android, AARs, and operator configurations"
)


def inspect_file(path: Path) -> dict[str, Any]:
    """Return what is in a model, a library, an AAR or an operator configuration, as JSON-ready data with its `kind`.

    The kind is told by content, and by name only where content says nothing. Raises `ModelError` (`file-missing`,
    `unknown-kind`), `StorageError`, or what the reader of that kind raises.
    """
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise ModelError("file-missing", what, where=str(path))
    with storage_errors(path), path.open("rb") as file:
        head = file.read(1024)
    if head.startswith(ELF_MAGIC):
        return {"kind": "library", "facts": to_data(read_library(path)), "size": to_data(library_size(path, None))}
    if head.startswith(MAGIC):
        return {"kind": "static library", **inspect_archive(path)}
    if head.startswith(ZIP_MAGIC):
        return {"kind": "android archive", **inspect_aar(path)}
    if head[4:8] == ORT_IDENTIFIER:
        return {"kind": "ort model", **to_data(inspect_ort(path))}
    return _by_name(path) or _by_trying(path, as_text=_is_text(head))


def _by_name(path: Path) -> dict[str, Any] | None:
    match path.suffix:
        case ".config":
            return {"kind": "operator configuration", **to_data(inspect_config(path))}
        case ".onnx":
            return {"kind": "onnx model", **to_data(inspect_onnx(path))}
        case _:
            return None


def _by_trying(path: Path, *, as_text: bool) -> dict[str, Any]:
    """Read a file that has neither a magic number nor a name of ours."""
    kind, read = ("operator configuration", inspect_config) if as_text else ("onnx model", inspect_onnx)
    try:
        return {"kind": kind, **to_data(read(path))}
    except Diagnostic as error:
        what, why = "is none of the kinds of file that are known", f"as {kind}: {error.what}"
        raise ModelError("unknown-kind", what, where=str(path), why=why, hint=KINDS) from error


def _is_text(head: bytes) -> bool:
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # takes a character that the head cuts in two
    except UnicodeDecodeError:
        return False
    return bool(text) and all(character in "\t\n\r" or character.isprintable() for character in text)
