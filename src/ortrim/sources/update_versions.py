"""Entries for new versions of ONNX Runtime in `onnxruntime.toml`, and what upstream's archive says of them."""

import re
import zipfile
from pathlib import Path
from typing import Final

from ortrim.errors import NetworkError
from ortrim.storage.bounded import DAMAGE

VERSIONS_FILE: Final = "onnxruntime.toml"
ENTRY: Final = re.compile(r'^\[versions\."(?P<version>[^"]+)"\]\n(?:[a-z_]+ = .*\n)*', re.MULTILINE)
RELEASE: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")
NDK_TEMPLATE: Final = "tools/ci_build/github/azure-pipelines/templates/use-android-ndk.yml"
NDK: Final = re.compile(r'name: AndroidNdkVersion\s+(?:[a-zA-Z]+: .*\s+)*?default: "?([0-9]+\.[0-9]+\.[0-9]+)"?\s')
LARGEST_TEMPLATE: Final = 1 << 16


def release_number(version: str) -> tuple[int, ...] | None:
    """Return a version such as `1.22.0` as numbers that can be ordered; None for anything else, a candidate say."""
    found = RELEASE.fullmatch(version)
    return tuple(map(int, found.groups())) if found else None


def with_version(text: str, version: str, *, max_opset: int, max_ir_version: int, ndk: str | None) -> str:
    """Return the text of `onnxruntime.toml` with an entry for a version that it lacks, in the order of versions."""
    number = release_number(version)
    assert number is not None
    lines = [f'[versions."{version}"]', f"max_opset = {max_opset}", f"max_ir_version = {max_ir_version}"]
    entry = "\n".join([*lines, *([f'ndk = "{ndk}"'] if ndk else [])]) + "\n"
    entries = list(ENTRY.finditer(text))
    assert version not in {found["version"] for found in entries}
    later = next((found for found in entries if (release_number(found["version"]) or ()) > number), None)
    if later:
        return f"{text[: later.start()]}{entry}\n{text[later.start() :]}"
    end = entries[-1].end()
    return f"{text[:end]}\n{entry}{text[end:]}"


def ndk_of(archive: Path) -> str | None:
    """Return the version of Android's NDK that upstream builds with, as its archive says; None when it does not.

    Raises `NetworkError` `corrupt-download`.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            name = next((name for name in file.namelist() if name.split("/", 1)[-1] == NDK_TEMPLATE), None)
            if name is None or file.getinfo(name).file_size > LARGEST_TEMPLATE:
                return None
            found = NDK.search(file.read(name).decode("utf-8", "replace"))
    except DAMAGE as error:
        raise NetworkError("corrupt-download", "is not a zip archive", where=str(archive), why=str(error)) from error
    return found[1] if found else None
