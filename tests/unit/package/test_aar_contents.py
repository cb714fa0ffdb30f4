"""AARs: what is read of one, and what anybody could hand us in place of one."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import refusing
from aar_samples import ABIS, MANIFEST, facts_of, members
from android_samples import RUNTIME, sample
from ortrim.errors import BinaryError, Diagnostic, ExitCode, StorageError
from ortrim.package.aar_contents import read_aar, read_android_manifest
from zips import zipped


def refused(folder: Path, content: Mapping[str, bytes]) -> Diagnostic:
    return refusing.refused(Diagnostic, facts_of, folder, content)


def test_an_aar_is_read_in_full(tmp_path: Path) -> None:
    more = {
        "META-INF/com/android/build/gradle/aar-metadata.properties": b"aarFormatVersion=1.0\n#x=y\nminCompileSdk = 1\n",
        "headers/a.h": b"",
        "prefab/prefab.json": b"{}",
        "assets/models/vad.ort": bytes(10_000),
    }
    aar = facts_of(tmp_path, members() | more)
    assert (aar.file, aar.version, aar.package, aar.minimum_api) == ("library.aar", "1.21.0", "ai.onnxruntime", 24)
    assert aar.metadata == (("aarFormatVersion", "1.0"), ("minCompileSdk", "1"))
    assert aar.abis == tuple(sorted(ABIS))
    assert aar.classes is not None
    assert (aar.classes.count, aar.classes.class_version, len(aar.classes.native_methods)) == (1, 52, 3)
    assert aar.keep_rules == ("-keep class ai.onnxruntime.** { *; }",)
    assert (aar.headers, aar.prefab, aar.assets) == (
        ("headers/a.h",),
        ("prefab/prefab.json",),
        ("assets/models/vad.ort",),
    )
    assert 0 < aar.asset_bytes < 100
    assert aar.members == len(members()) + len(more)
    assert aar.manifest is None


def test_sizes_are_reported_as_they_are_packed_and_downloaded(tmp_path: Path) -> None:
    """A library that is stored in the AAR is compressed for the download all the same."""
    deflated = facts_of(tmp_path, members(("x86",)))
    path = tmp_path / "stored.aar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members(("x86",)).items():
            archive.writestr(name, data)
    stored = read_aar(path)
    (one,), (other,) = deflated.sizes, stored.sizes
    assert one.library_bytes == other.library_bytes == other.compressed_bytes
    assert one.compressed_bytes < one.library_bytes
    libraries = sum(library.download_bytes for library in stored.libraries)
    assert libraries < other.library_bytes / 2


def test_an_aar_may_have_no_libraries_and_no_classes(tmp_path: Path) -> None:
    aar = facts_of(tmp_path, {"AndroidManifest.xml": members()["AndroidManifest.xml"]})
    assert (aar.libraries, aar.classes, aar.abis, aar.sizes, aar.version) == ((), None, (), (), "")


@pytest.mark.parametrize(
    ("change", "reference", "code"),
    [
        ({f"jni/x86/{RUNTIME}": b"\x7fELF" + b"\xff" * 100}, "corrupt-elf", ExitCode.BINARY),
        ({f"jni/x86/{RUNTIME}": b"garbage"}, "not-elf", ExitCode.BINARY),
        ({f"jni/x86/{RUNTIME}": b""}, "not-elf", ExitCode.BINARY),
        ({f"jni/x86/{RUNTIME}": sample(f"x86-{RUNTIME}")[:500]}, "corrupt-elf", ExitCode.BINARY),
        ({"classes.jar": b"not a jar"}, "corrupt-archive", ExitCode.STORAGE),
        ({"classes.jar": zipped({"A.class": b"no class"})}, "corrupt-class", ExitCode.BINARY),
        ({"classes.jar": zipped({"../A.class": b""})}, "unsafe-archive", ExitCode.STORAGE),
        ({"AndroidManifest.xml": b"<manifest"}, "bad-android-manifest", ExitCode.BINARY),
        ({"AndroidManifest.xml": bytes(17 << 20)}, "not-an-aar", ExitCode.BINARY),
        ({"META-INF/ortrim/manifest.json": b"{}"}, "manifest-damaged", ExitCode.BINARY),
        ({"META-INF/ortrim/manifest.json": b"\xff"}, "manifest-damaged", ExitCode.BINARY),
        ({"../../evil.so": b""}, "unsafe-archive", ExitCode.STORAGE),
        ({"/etc/cron.d/evil": b""}, "unsafe-archive", ExitCode.STORAGE),
    ],
)
def test_bad_members_are_told_apart(tmp_path: Path, change: dict[str, bytes], reference: str, code: ExitCode) -> None:
    error = refused(tmp_path, members(("x86",)) | change)
    assert (error.code, error.exit_code) == (reference, code)
    assert error.where


def test_an_archive_without_a_manifest_is_no_aar(tmp_path: Path) -> None:
    error = refused(tmp_path, {"classes.jar": b""})
    assert (error.code, error.exit_code) == ("not-an-aar", ExitCode.BINARY)
    assert isinstance(error, BinaryError)


def test_an_aar_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.aar"
    path.write_bytes(zipped(members())[:-100])
    caught = refusing.refused(StorageError, read_aar, path)
    assert caught.code == "corrupt-archive"


def test_other_files_below_jni_are_left_alone(tmp_path: Path) -> None:
    """Some AARs carry notes there, or deeper folders."""
    aar = facts_of(tmp_path, members(("x86",)) | {"jni/README": b"x", "jni/x86/gdb.setup": b"x", "jni/a/b/c.so": b"x"})
    assert len(aar.libraries) == 2


ENTITIES = b'<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><manifest package="&b;"/>'


def test_a_manifest_says_package_level_and_attributes() -> None:
    """Whatever prefix it gives Android's namespace."""
    text = MANIFEST.replace(b"android:", b"a:").replace(b"xmlns:android", b"xmlns:a")
    text = text.replace(b"<application/>", b'<application a:extractNativeLibs="true" a:allowBackup="false"/>')
    found = read_android_manifest(text, "AndroidManifest.xml")
    assert (found.package, found.minimum_api) == ("ai.onnxruntime", 24)
    assert found.application == (("allowBackup", "false"), ("extractNativeLibs", "true"))


def test_what_is_not_said_is_not_invented() -> None:
    """An AAR need not give a level, nor a package since Gradle has namespaces."""
    found = read_android_manifest(b"<manifest/>", "AndroidManifest.xml")
    assert (found.package, found.minimum_api, found.application) == ("", None, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no element"),
        (b"<manifest>", "no element"),
        (b"<resources/>", "its first element is 'resources'"),
        (MANIFEST.replace(b'"24"', b'"VanillaIceCream"'), "invalid literal"),
        (ENTITIES, "it declares a document type"),
        (b'<!DOCTYPE m SYSTEM "file:///etc/passwd"><manifest/>', "it declares a document type"),
        (b"\xff\xfe\x00", ""),
    ],
)
def test_what_is_no_manifest_is_refused(text: bytes, why: str) -> None:
    caught = refusing.refused(BinaryError, read_android_manifest, text, "library.aar: AndroidManifest.xml")
    assert caught.code == "bad-android-manifest"
    assert why in caught.why


def test_the_compiled_form_is_told_apart() -> None:
    caught = refusing.refused(
        BinaryError, read_android_manifest, b"\x03\x00\x08\x00" + bytes(100), "app.apk: AndroidManifest.xml"
    )
    assert caught.code == "not-an-aar"
    assert "APK" in caught.hint
