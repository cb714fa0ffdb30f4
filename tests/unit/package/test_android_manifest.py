import pytest

from aar_samples import MANIFEST
from ortrim.errors import BinaryError, ExitCode
from ortrim.package.aar_contents import read_android_manifest

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
    """Nothing is expanded or fetched to find out."""
    with pytest.raises(BinaryError) as caught:
        read_android_manifest(text, "library.aar: AndroidManifest.xml")
    assert (caught.value.code, caught.value.exit_code) == ("bad-android-manifest", ExitCode.BINARY)
    assert why in caught.value.why


def test_the_compiled_form_is_told_apart() -> None:
    """It is what an APK has."""
    with pytest.raises(BinaryError) as caught:
        read_android_manifest(b"\x03\x00\x08\x00" + bytes(100), "app.apk: AndroidManifest.xml")
    assert caught.value.code == "not-an-aar"
    assert "APK" in caught.value.hint
