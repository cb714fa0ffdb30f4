import gzip
import io
import json
import tarfile
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.base.checksums import FileEntry
from ortrim.base.json import to_json
from ortrim.compiling.plan import digest
from ortrim.errors import PackageError
from ortrim.package.manifest import PackageInputs, make_manifest, read_manifest
from refusing import refused
from sample_package import make_inputs

FILES = (FileEntry(path="z", size_bytes=1, sha256="a" * 64), FileEntry(path="a/b", size_bytes=2, sha256="b" * 64))


@pytest.fixture
def inputs(tmp_path: Path) -> PackageInputs:
    return make_inputs(tmp_path / "built")


def archive_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_manifest_says_what_the_job_was(inputs: PackageInputs) -> None:
    manifest = make_manifest(inputs, FILES)
    assert manifest.name == "ortrim-demo-linux-x64-1.21.0"
    assert manifest.plan_digest == digest(inputs.plan)
    assert manifest.arguments == inputs.job.arguments
    assert [entry.path for entry in manifest.files] == ["a/b", "z"]


def test_manifest_is_read_from_file_folder_and_archive(inputs: PackageInputs, tmp_path: Path) -> None:
    manifest = make_manifest(inputs, FILES)
    path = tmp_path / "manifest.json"
    path.write_text(to_json(manifest))
    archive = archive_of(tmp_path / "p.tar.gz", {"p/deep/manifest.json": b"{}", "p/manifest.json": path.read_bytes()})
    assert read_manifest(path) == read_manifest(tmp_path) == read_manifest(archive) == manifest


def test_missing_package_is_reported(tmp_path: Path) -> None:
    caught = refused(PackageError, read_manifest, tmp_path / "absent.tar.gz")
    assert caught.code == "package-missing"


def test_folder_and_archive_without_manifest_are_reported(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "other.tar.gz", {"manifest.json": b"{}", "p/x/manifest.json": b"{}"})
    for path in (tmp_path, archive):
        caught = refused(PackageError, read_manifest, path)
        assert caught.code == "manifest-missing"


@pytest.mark.parametrize(
    "content",
    [b"", b"not an archive", b"\x1f\x8b\x08\x00" + bytes(20), b"PK\x03\x04", gzip.compress(b"no tar", mtime=0)],
)
def test_file_that_is_no_archive_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.tar.gz"
    path.write_bytes(content)
    caught = refused(PackageError, read_manifest, path)
    assert caught.code == "package-damaged"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the whole"),
        (b"\xff\xfe", "the whole"),
        (b"[]", "the whole"),
        (b"{}", "name"),
        (b"[" * 100_000, "the whole"),
        (b'{"schema": "ortrim-manifest/2"}', "schema"),
        (b" " * ((16 << 20) + 1), "larger"),
    ],
)
def test_damaged_manifest_is_reported_with_the_place(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    caught = refused(PackageError, read_manifest, tmp_path)
    assert caught.code == "manifest-damaged"
    assert why in caught.why


def test_wrong_type_is_named_by_its_path(inputs: PackageInputs, tmp_path: Path) -> None:
    data = json.loads(to_json(make_manifest(inputs, FILES)))
    data["files"][1]["size_bytes"] = "many"
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(PackageError, match="not a manifest") as caught:
        read_manifest(tmp_path)
    assert caught.value.why.startswith("files.1.size_bytes")


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    """The announced sizes are believed before anything is read."""
    entry = tarfile.TarInfo("p/huge")
    entry.size = 1 << 40
    (tmp_path / "p.tar.gz").write_bytes(gzip.compress(entry.tobuf() + bytes(1024)))
    caught = refused(PackageError, read_manifest, tmp_path / "p.tar.gz")
    assert caught.code == "package-damaged"


@given(cut=st.floats(min_value=0, max_value=0.95), flip=st.integers(min_value=0, max_value=10_000))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_archives_are_always_diagnostics(inputs: PackageInputs, cut: float, flip: int) -> None:
    """Cut anywhere or with a byte changed, also behind the manifest: a `PackageError`, and never a traceback."""
    folder = inputs.result.folder
    text = to_json(make_manifest(inputs, FILES)).encode()
    whole = archive_of(folder / "whole.tar.gz", {"p/manifest.json": text, "p/z": text}).read_bytes()
    damaged, harmless = bytearray(whole), set[str]()
    damaged[flip % len(damaged)] ^= 0x55
    with suppress(OSError, EOFError, zlib.error):
        harmless = {""} if gzip.decompress(damaged) == gzip.decompress(whole) else harmless
    for content, also in ((whole[: int(len(whole) * cut)], set()), (bytes(damaged), harmless)):
        (folder / "damaged.tar.gz").write_bytes(content)
        assert outcome(folder / "damaged.tar.gz") in {"package-damaged", "manifest-missing", "manifest-damaged", *also}


def outcome(path: Path) -> str:
    try:
        read_manifest(path)
    except PackageError as error:
        return error.code
    return ""


def test_cpuinfo_is_what_the_build_was_told(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    without = replace(inputs, job=replace(inputs.job, arguments=("onnxruntime_ENABLE_CPUINFO=OFF",)))
    assert make_manifest(inputs, ()).cpuinfo is True
    assert make_manifest(without, ()).cpuinfo is False


def test_execution_providers_are_what_the_build_was_told(inputs: PackageInputs) -> None:
    assert make_manifest(inputs, ()).providers == ()
    with_one = replace(inputs, job=replace(inputs.job, providers=("xnnpack",)))
    assert make_manifest(with_one, ()).providers == ("xnnpack",)
