"""The Gradle project for device farms: what is in it, that it is the same anywhere, and which APKs are taken."""

import time
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from types import MappingProxyType

import pytest

from ortrim.devices.harness import PROJECT_ASSET, REQUESTS_ASSET, RUNNER_LIBRARY, HarnessContent
from ortrim.devices.harness_projects import APK, TEST_APK, find_apks, make_harness
from ortrim.errors import Diagnostic, ExitCode, PackageError, StorageError, VerifyError

REQUESTS = '{"schema": "ortrim-requests/1", "runs": [{}, {}]}\n'
JAVA = {
    "androidTest/java/ortrim/harness/RequestsTest.java",
    *(
        f"main/java/ortrim/harness/{name}.java"
        for name in (
            "AndroidPlatform", "Ended", "Files", "Harness", "Layout", "LogTransport", "Platform", "Printed",
            "Requests", "Results", "RunnerProcess", "StartActivity",
        )
    ),
}  # fmt: skip


@pytest.fixture(name="content")
def fixture_content(tmp_path: Path) -> HarnessContent:
    (tmp_path / "built").mkdir()
    for name in ("runner", "library", "model"):
        (tmp_path / "built" / name).write_bytes(name.encode())
    libraries = {RUNNER_LIBRARY: tmp_path / "built" / "runner", "libortrim_ab12.so": tmp_path / "built" / "library"}
    return HarnessContent(
        requests=REQUESTS,
        libraries=MappingProxyType(libraries),
        assets=MappingProxyType({"ortrim/files/cd34": tmp_path / "built" / "model"}),
    )


@pytest.fixture(name="harness")
def fixture_harness(content: HarnessContent, tmp_path: Path) -> Path:
    return make_harness(content, tmp_path / "harness", abi="arm64-v8a", api=24)


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compiled(harness: Path, requests: bytes = REQUESTS.encode()) -> None:
    for name in (APK, TEST_APK):
        (harness / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(harness / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("AndroidManifest.xml", b"binary")
            if name == APK:
                archive.writestr(f"assets/{REQUESTS_ASSET}", requests)
                archive.write(harness / "app/src/main/assets" / PROJECT_ASSET, f"assets/{PROJECT_ASSET}")


def refused(harness: Path) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        find_apks(harness)
    return caught.value


def test_the_project_is_what_gradle_looks_for(harness: Path) -> None:
    """Settings, the app's build file, manifest and sources, the test, and what the app carries."""
    assert set(content_of(harness)) == {
        "README.md",
        "app/build.gradle.kts",
        "gradle.properties",
        "settings.gradle.kts",
        "app/src/main/AndroidManifest.xml",
        f"app/src/main/jniLibs/arm64-v8a/{RUNNER_LIBRARY}",
        "app/src/main/jniLibs/arm64-v8a/libortrim_ab12.so",
        "app/src/main/assets/ortrim/files/cd34",
        "app/src/main/assets/ortrim/project.sha256",
        "app/src/main/assets/ortrim/requests.json",
        *(f"app/src/{name}" for name in JAVA),
    }


def test_the_manifest_is_sound(harness: Path) -> None:
    """One screen that can be started, whose class is there; the storage that results go to."""
    root = ET.parse(harness / "app/src/main/AndroidManifest.xml").getroot()  # noqa: S314 - our own file
    android = "{http://schemas.android.com/apk/res/android}"
    (activity,) = root.iter("activity")
    source = harness / "app/src/main/java" / f"{activity.attrib[f'{android}name'].replace('.', '/')}.java"
    assert "extends Activity" in source.read_text()
    assert activity.attrib[f"{android}exported"] == "true"
    (permission,) = root.iter("uses-permission")
    assert permission.attrib[f"{android}maxSdkVersion"] == "29"


def test_another_abi_and_level(content: HarnessContent, tmp_path: Path) -> None:
    """Are what the package under test was built for."""
    harness = make_harness(content, tmp_path / "arm", abi="armeabi-v7a", api=21)
    text = (harness / "app/build.gradle.kts").read_text()
    assert 'abiFilters += "armeabi-v7a"' in text
    assert "minSdk = 21" in text
    assert [path.name for path in (harness / "app/src/main/jniLibs").iterdir()] == ["armeabi-v7a"]


def test_the_project_is_the_same_anywhere(harness: Path, content: HarnessContent, tmp_path: Path) -> None:
    """In another folder, at another time; no path of this machine is in it."""
    other = make_harness(content, tmp_path / "a b" / "other", abi="arm64-v8a", api=24)
    assert content_of(other) == content_of(harness)
    assert str(tmp_path) not in str(content_of(harness))


def test_making_it_again_spares_gradle_its_work(harness: Path, content: HarnessContent) -> None:
    """What is the same is not touched, what Gradle keeps stays, and what is not wanted any more goes."""
    compiled(harness)
    kept = harness / "app/src/main/jniLibs/arm64-v8a" / RUNNER_LIBRARY
    before = kept.stat().st_mtime_ns
    for name in ("main/jniLibs/arm64-v8a/libold.so", "main/assets/ortrim/files/old/er", "main/java/Old.java"):
        path = harness / "app/src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old")
    (harness / "app/src/main/jniLibs/arm64-v8a/liblink.so").symlink_to(harness / "README.md")
    time.sleep(0.01)
    changed = HarnessContent(requests='{"runs": [{}]}', libraries=content.libraries, assets={})
    make_harness(changed, harness, abi="arm64-v8a", api=24)
    names = set(content_of(harness))
    assert {APK, TEST_APK} <= names
    assert not [name for name in names if "old" in name.lower() or "cd34" in name or "liblink" in name]
    assert not (harness / "app/src/main/assets/ortrim/files").exists()
    assert kept.stat().st_mtime_ns == before
    assert "runs one process" in (harness / "README.md").read_text()
    assert refused(harness).code == "farm-apks-outdated"


def test_an_altered_file_is_mended(harness: Path, content: HarnessContent) -> None:
    """Also a source of ours that somebody edited, and a link that somebody put there."""
    expected = content_of(harness)
    (harness / "app/src/main/assets/ortrim/files/cd34").write_bytes(b"altered")
    manifest = harness / "app/src/main/AndroidManifest.xml"
    manifest.unlink()
    manifest.symlink_to(harness / "README.md")
    make_harness(content, harness, abi="arm64-v8a", api=24)
    assert content_of(harness) == expected


@pytest.mark.parametrize("name", ["../../evil.so", "/etc/evil.so", "a\nb.so"])
def test_names_that_leave_the_project(content: HarnessContent, tmp_path: Path, name: str) -> None:
    bad = HarnessContent(requests=REQUESTS, libraries={name: tmp_path / "built" / "runner"}, assets={})
    with pytest.raises(PackageError) as caught:
        make_harness(bad, tmp_path / "new", abi="arm64-v8a", api=24)
    assert caught.value.code == "bad-package-path"
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_gone(content: HarnessContent, tmp_path: Path) -> None:
    (tmp_path / "built" / "model").unlink()
    with pytest.raises(StorageError):
        make_harness(content, tmp_path / "new", abi="arm64-v8a", api=24)
    assert not list((tmp_path / "new").rglob("requests.json"))
    assert not list((tmp_path / "new").rglob("*.part"))


def test_a_file_in_the_way(content: HarnessContent, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        make_harness(content, tmp_path / "new", abi="arm64-v8a", api=24)
    assert caught.value.code == "path-in-the-way"


def test_the_apks_are_found_where_gradle_leaves_them(harness: Path) -> None:
    compiled(harness)
    assert find_apks(harness) == (harness / APK, harness / TEST_APK)


@pytest.mark.parametrize("lacking", [APK, TEST_APK])
def test_without_an_apk_the_commands_are_reported(harness: Path, lacking: str) -> None:
    """To be run in the project's folder."""
    compiled(harness)
    (harness / lacking).unlink()
    error = refused(harness)
    assert isinstance(error, VerifyError)
    assert (error.code, error.where) == ("farm-apks-missing", str(harness))
    assert lacking in error.why
    assert "gradle assembleDebug; gradle assembleDebugAndroidTest" in error.hint


@pytest.mark.parametrize("requests", [b"", b"{}", REQUESTS.encode() + b" ", bytes(17 << 20)])
def test_an_app_with_other_requests_is_outdated(harness: Path, requests: bytes) -> None:
    """Also one that claims to carry more than anybody would ask for, which is not unpacked."""
    compiled(harness, requests)
    assert refused(harness).code == "farm-apks-outdated"


def test_an_app_without_requests_is_outdated(harness: Path) -> None:
    compiled(harness)
    (harness / APK).write_bytes((harness / TEST_APK).read_bytes())
    assert refused(harness).code == "farm-apks-outdated"


def test_an_app_of_another_ortrim_is_outdated(harness: Path) -> None:
    """Its requests are the same, but what carries them out is not."""
    compiled(harness)
    (harness / "app/src/main/assets" / PROJECT_ASSET).write_bytes(b"newer")
    assert refused(harness).code == "farm-apks-outdated"


def test_a_damaged_apk(harness: Path) -> None:
    compiled(harness)
    whole = (harness / APK).read_bytes()
    for length in range(0, len(whole), 25):
        (harness / APK).write_bytes(whole[:length])
        error = refused(harness)
        assert (error.code, error.exit_code) == ("corrupt-archive", ExitCode.STORAGE)
