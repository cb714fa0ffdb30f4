"""`inspect`: what is in a file, whatever kind of file it is."""

from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any, Final

from ortrim.binaries.archives import MAGIC, archive_members
from ortrim.binaries.elf import read_library
from ortrim.binaries.frameworks import SUFFIX as FRAMEWORK
from ortrim.binaries.macho import is_macho
from ortrim.binaries.sizes import library_size
from ortrim.binaries.xcframework import SUFFIX as XCFRAMEWORK
from ortrim.binaries.xcframework import holds_framework
from ortrim.core.serialization import to_data
from ortrim.errors import Diagnostic, ModelError
from ortrim.models.inspect import inspect_config, inspect_onnx, inspect_ort
from ortrim.models.other_formats import format_by_name, other_format
from ortrim.pipeline.inspection.android import inspect_aar
from ortrim.pipeline.inspection.apple import inspect_macho, inspect_xcframework
from ortrim.pipeline.inspection.archives import inspect_archive
from ortrim.storage.files import storage_errors
from ortrim.storage.zips import open_zip

ELF_MAGIC: Final = b"\x7fELF"
ORT_IDENTIFIER: Final = b"ORTM"
ZIP_MAGIC: Final = b"PK\x03\x04"
APPLE_SUFFIXES: Final = (XCFRAMEWORK, FRAMEWORK)
KINDS: Final = (
    "inspect reads models (ONNX, ORT), libraries (.so, .dylib, .a) for Linux, Android and Apple's systems, AARs, "
    "xcframeworks and frameworks (folders or zip archives of them), and operator configurations"
)


def inspect_file(path: Path) -> dict[str, Any]:
    """Return what is in a model, a library, a package or an operator configuration, as JSON-ready data with its `kind`.

    The kind is told by content, and by name only where content says nothing; the one folder that is read is that of an
    xcframework or a framework. Raises `ModelError` (`file-missing`, `unknown-kind`), `StorageError`, or what the reader
    of that kind raises.
    """
    if path.is_dir() and (path.suffix in APPLE_SUFFIXES or any(path.glob(f"*{XCFRAMEWORK}"))):
        return {"kind": "framework" if path.suffix == FRAMEWORK else "xcframework", **inspect_xcframework(path)}
    if path.is_dir():
        _refuse_other(path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise ModelError("file-missing", what, where=str(path))
    with storage_errors(path), path.open("rb") as file:
        head = file.read(1024)
    if found := _by_head(path, head) or _by_name(path):
        return found
    _refuse_other(path)
    return _by_trying(path, as_text=_is_text(head))


def _by_head(path: Path, head: bytes) -> dict[str, Any] | None:
    """Read a file whose first bytes say what it is."""
    if head.startswith(ELF_MAGIC):
        return {"kind": "library", "facts": to_data(read_library(path)), "size": to_data(library_size(path, None))}
    if is_macho(head):
        return {"kind": "apple library", **inspect_macho(path)}
    if head.startswith(MAGIC):
        return _archive(path)
    if head.startswith(ZIP_MAGIC):
        return _zip(path)
    return {"kind": "ort model", **to_data(inspect_ort(path))} if head[4:8] == ORT_IDENTIFIER else None


def _archive(path: Path) -> dict[str, Any]:
    """Tell a static library by its first object."""
    if any(is_macho(content) for _, content in archive_members(path)[:1]):
        return {"kind": "apple static library", **inspect_macho(path)}
    return {"kind": "static library", **inspect_archive(path)}


def _zip(path: Path) -> dict[str, Any]:
    with open_zip(path, str(path), links=True) as archive:
        apple = holds_framework(archive.members)
    if apple:
        return {"kind": "xcframework", **inspect_xcframework(path)}
    _refuse_other(path)
    return {"kind": "android archive", **inspect_aar(path)}


def _refuse_other(path: Path) -> None:
    """Say what a file is that only needs to become a model first."""
    if other := other_format(path):
        raise ModelError("unknown-kind", other.what, where=str(path), hint=other.hint)


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
        if named := format_by_name(path):
            raise ModelError("unknown-kind", named.what, where=str(path), hint=named.hint) from error
        what, why = "is none of the kinds of file that are known", f"as {kind}: {error.what}"
        raise ModelError("unknown-kind", what, where=str(path), why=why, hint=KINDS) from error


def _is_text(head: bytes) -> bool:
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # takes a character that the head cuts in two
    except UnicodeDecodeError:
        return False
    return bool(text) and all(character in "\t\n\r" or character.isprintable() for character in text)
