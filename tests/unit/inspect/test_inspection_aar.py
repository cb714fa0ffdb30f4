"""`inspect` of AARs: told by content, judged by what they promise themselves."""

from pathlib import Path

import pytest

from aar_samples import MANIFEST, aar_inputs, fake_jdk, members
from ortrim.analysis.inspect import inspect_file
from ortrim.errors import BinaryError, Diagnostic, ExitCode, StorageError
from ortrim.platforms.android.aar import make_android_package
from refusing import refused
from zips import zipped


def test_an_aar_of_any_origin_is_shown_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "unknown.bin"
    path.write_bytes(zipped(members()))
    content = inspect_file(path)
    assert content["kind"] == "android archive"
    assert content["label"] == "unknown.bin: ONNX Runtime 1.21.0"
    assert content["manifest"] is None
    assert set(content["abis"]) == {"arm64-v8a", "armeabi-v7a", "x86", "x86_64"}
    assert set(content["abis"]["x86"]) == {"library_bytes", "compressed_bytes", "download_bytes"}
    assert content["libraries"][0]["needed"] == ["libc.so", "libdl.so"]
    assert content["classes"]["native_methods"] == 3
    assert {gate["verdict"] for gate in content["gates"]} == {"pass", "not judged"}


def test_an_aar_of_ours_shows_its_manifest(tmp_path: Path) -> None:
    package = make_android_package(aar_inputs(tmp_path / "in", ("x86",)), fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    content = inspect_file(package.aar)
    assert content["manifest"]["plan_digest"] == package.manifest.plan_digest
    assert content["prefab"]
    assert [gate["verdict"] for gate in content["gates"] if gate["name"] == "manifest.json describes this AAR"] == [
        "pass"
    ]


def test_an_aar_without_a_library_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.aar"
    path.write_bytes(zipped({"AndroidManifest.xml": MANIFEST}))
    content = inspect_file(path)
    assert (content["label"], content["version"], content["classes"]) == ("empty.aar: of no known version", None, None)
    failed = [gate["name"] for gate in content["gates"] if gate["verdict"] == "fail"]
    assert failed == ["all ABIs", "rules for R8"]


@pytest.mark.parametrize(
    ("content", "kind", "reference"),
    [
        (zipped({"mimetype": b""}), BinaryError, "not-an-aar"),
        (zipped(members())[:2000], StorageError, "corrupt-archive"),
        (zipped({"AndroidManifest.xml": b"\x03\x00\x08\x00"}), BinaryError, "not-an-aar"),
    ],
)
def test_other_zip_archives_are_refused(tmp_path: Path, content: bytes, kind: type[Diagnostic], reference: str) -> None:
    (tmp_path / "file").write_bytes(content)
    error = refused(kind, inspect_file, tmp_path / "file")
    assert error.code == reference
    assert error.exit_code in {ExitCode.BINARY, ExitCode.STORAGE}
