"""The official xcframework and the official library for Macs, as a package of the npm registry carries them."""

import base64
import hashlib
import tarfile
from pathlib import Path
from typing import IO, Final

from official_aar import INTEGRITY, PACKAGE
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run

XCFRAMEWORK: Final = "package/Plugins/iOS~/onnxruntime.xcframework/"
DYLIB: Final = "package/Plugins/macOS/arm64/libonnxruntime.dylib"
UNITY: Final = ".meta"
"""What the package adds for the game engine that it is for."""


def official_apple() -> Path:
    """Return a folder with `onnxruntime.xcframework` and `libonnxruntime.dylib`: baselines of their own version."""
    folder = cache_folder("test-roots") / f"official-apple-{INTEGRITY.removeprefix('sha512-')[:12]}"
    publish_folder(folder, _fetch)
    return folder


def _fetch(folder: Path) -> None:
    done = run(("npm", "pack", "--silent", PACKAGE), cwd=folder, timeout_seconds=600)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tgz")
    digest = hashlib.sha512(archive.read_bytes()).digest()
    assert f"sha512-{base64.b64encode(digest).decode()}" == INTEGRITY, archive
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and not member.name.endswith(UNITY) and _is_wanted(member.name):
                _write(folder / _place(member.name), opened.extractfile(member))
    archive.unlink()


def _is_wanted(name: str) -> bool:
    return name.startswith(XCFRAMEWORK) or name == DYLIB


def _place(name: str) -> str:
    inner = name.removeprefix(XCFRAMEWORK)
    assert ".." not in inner
    return "libonnxruntime.dylib" if name == DYLIB else f"onnxruntime.xcframework/{inner}"


def _write(path: Path, content: IO[bytes] | None) -> None:
    assert content is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.read())
