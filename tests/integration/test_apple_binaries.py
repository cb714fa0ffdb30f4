"""Real binaries for Apple's systems: the official ones inspected, and the recorded samples made anew by zig."""

import base64
import hashlib
import json
import sys
import tarfile
from pathlib import Path
from typing import IO, Any, Final

import pytest

from apple_samples import SAMPLES, link_samples, sample
from official_aar import INTEGRITY, PACKAGE
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements

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


pytestmark = [pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "1.29.0"


def inspected(name: str) -> dict[str, Any]:
    """Return what the command line tells of one of the official files."""
    done = run((sys.executable, "-m", "invoke", "inspect", str(official_apple() / name), "--json"), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    assert (content["version"], content["label"]) == (VERSION, f"{name}: ONNX Runtime {VERSION}")
    return content


@pytest.mark.needs("npm")
def test_the_official_xcframework_is_inspected_through_the_command_line() -> None:
    """Device, simulator and Catalyst with their sizes; what would make an app's upload fail, or clash, is reported."""
    content = inspected("onnxruntime.xcframework")
    assert {name: each["binary_bytes"] for name, each in content["slices"].items()} == {
        "ios-arm64": 48_347_664,
        "ios-arm64_x86_64-simulator": 99_143_856,
        "ios-arm64_x86_64-maccatalyst": 94_231_672,
    }
    assert content["broken"] == [
        "module-map-missing", "privacy-manifest-missing", "framework-not-versioned", "minimum-os-missing",
        "exports-others",
    ]  # fmt: skip
    assert {each["kind"] for each in content["libraries"]} == {"static library"}
    assert content["other_names_in_all"] > 2000


@pytest.mark.needs("npm")
def test_the_official_library_for_macs_is_inspected_through_the_command_line() -> None:
    """Its size is that which a trimmed library is told beside, of its own version."""
    content = inspected("libonnxruntime.dylib")
    assert (content["kind"], content["size_bytes"]) == ("apple library", 43_184_400)
    assert content["other_names"] == []
    assert content["public_api"] == [
        "OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU",
        "OrtSessionOptionsAppendExecutionProvider_CoreML",
    ]  # fmt: skip
    (image,) = content["architectures"]
    assert (image["built_for"], image["install_name"]) == (["macos 14.0 (SDK 26.2)"], "@rpath/libonnxruntime.1.dylib")


def test_the_recorded_samples_are_what_zig_links(tmp_path: Path) -> None:
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    (tmp_path / "made").mkdir()
    (tmp_path / "work").mkdir()
    link_samples(zig, tmp_path / "made", tmp_path / "work")
    assert [each.file for each in SAMPLES if (tmp_path / "made" / each.file).read_bytes() != sample(each.file)] == []
