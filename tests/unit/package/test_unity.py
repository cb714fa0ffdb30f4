"""The package for Unity: what its package manager and its importer read."""

import json
import plistlib
import re
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from apple_packages import apple_inputs
from apple_slices import TRIPLES
from ortrim.binaries.macho.files import macho_of
from ortrim.buildspec.targets import TARGETS
from ortrim.errors import PackageError
from ortrim.package.unity import UnityPlugin, make_unity_package
from ortrim.platforms import platform_of
from ortrim.platforms.apple.package import make_apple_package
from refusing import refused
from sample_package import MODEL, make_inputs

LIBRARY = "package/Plugins/Linux/x64/libonnxruntime.so"


def unity_package(folder: Path) -> Path:
    inputs = make_inputs(folder / "built")
    plugins = tuple(platform_of(inputs.job.target).unity_plugins([inputs], folder / "absent.tar.gz"))
    return make_unity_package([inputs], plugins, folder / "unity")


def read(archive: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(archive) as file:
        for member in file:
            assert member.isreg()
            content = file.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


def test_it_is_a_package_of_npms_form_with_models_as_text_assets(tmp_path: Path) -> None:
    archive = unity_package(tmp_path)
    files = read(archive)
    about = json.loads(files["package/package.json"])
    assert (about["name"], about["version"]) == ("com.ortrim.demo", "1.21.0")
    assert archive.name == "com.ortrim.demo-1.21.0.tgz"
    assert files["package/Models/vad.ort.bytes"] == MODEL
    assert {"package/Models/session.json", "package/Documentation~/ThirdPartyNotices.txt"} <= files.keys()


def test_all_that_is_imported_has_an_identifier_of_its_own_that_stays(tmp_path: Path) -> None:
    """Unity ignores what has none in a package; scenes refer to a model by its identifier."""
    files = read(unity_package(tmp_path))
    metas = {name: content.decode() for name, content in files.items() if name.endswith(".meta")}
    imported = {name for name in files if not name.endswith(".meta") and "~/" not in name}
    folders = {"package/Models", "package/Plugins", "package/Plugins/Linux", "package/Plugins/Linux/x64"}
    assert metas.keys() == {f"{name}.meta" for name in imported | folders}
    assert {name for name, meta in metas.items() if "folderAsset: yes" in meta} == {f"{name}.meta" for name in folders}
    identifiers = [re.findall(r"^guid: ([0-9a-f]{32})$", meta, re.MULTILINE) for meta in metas.values()]
    assert len({identifier for (identifier,) in identifiers}) == len(metas)
    assert "guid: 273a150351f71903f57dd5e431b60ac8" in metas["package/Models/vad.ort.bytes.meta"]


def test_a_library_is_loaded_by_its_own_player_and_editor_alone(tmp_path: Path) -> None:
    meta = read(unity_package(tmp_path))[f"{LIBRARY}.meta"].decode()
    enabled = re.findall(r"^      \w+: (\w+)\n    second:\n      enabled: 1$", meta, re.MULTILINE)
    assert enabled == ["Editor", "Linux64"]
    assert re.findall(r"Exclude (\w+): 0", meta) == enabled
    assert re.findall(r"^        OS: (\w+)$", meta, re.MULTILINE) == ["Linux"]


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    assert unity_package(tmp_path / "first").read_bytes() == unity_package(tmp_path / "second").read_bytes()


def test_targets_with_other_models_are_refused(tmp_path: Path) -> None:
    """Such as one that runs NCHWc layout, and one that does not."""
    inputs = make_inputs(tmp_path / "built")
    other = replace(inputs, models=(replace(inputs.models[0], sha256="f" * 64),))
    error = refused(PackageError, make_unity_package, [inputs, other], (), tmp_path / "unity")
    assert error.code == "models-differ"


def of_apple(folder: Path, targets: Sequence[str]) -> dict[str, UnityPlugin]:
    inputs = apple_inputs(folder / "built", tuple(targets))
    parts = [part.inputs for part in inputs.parts]
    made = make_apple_package(inputs, folder / "made")
    return {each.path: each for each in platform_of(parts[0].job.target).unity_plugins(parts, made.xcframework)}


def test_an_xcframework_has_the_slices_of_ios_alone(tmp_path: Path) -> None:
    """A Mac's have symbolic links, which archives of npm's form do not."""
    phones = [target for target in TRIPLES if target.startswith("ios")]
    found = of_apple(tmp_path, [*phones, "maccatalyst-arm64", "macos-arm64", "macos-x86_64"])
    top = "Plugins/iOS~/onnxruntime.xcframework"
    about = plistlib.loads(found[f"{top}/Info.plist"].data)
    slices = {each["LibraryIdentifier"] for each in about["AvailableLibraries"]}
    assert slices == {"ios-arm64", "ios-arm64_x86_64-simulator"}
    assert {path.split("/")[3] for path in found if path.startswith(f"{top}/ios")} == slices
    assert not any(each.players for path, each in found.items() if path.startswith(top))
    assert found["Plugins/iOS/onnxruntime_coreml.c"].players.keys() == {"iOS"}


@pytest.mark.parametrize(
    ("targets", "path", "cpu"),
    [
        (["macos-arm64"], "Plugins/macOS/arm64/libonnxruntime.dylib", "ARM64"),
        (["macos-x86_64"], "Plugins/macOS/x86_64/libonnxruntime.dylib", "x86_64"),
        (["macos-arm64", "macos-x86_64"], "Plugins/macOS/arm64/libonnxruntime.dylib", "AnyCPU"),
    ],
)
def test_a_mac_has_one_library_of_all_architectures(tmp_path: Path, targets: list[str], path: str, cpu: str) -> None:
    ((found, library),) = of_apple(tmp_path, targets).items()
    assert found == path
    assert {settings["CPU"] for settings in library.players.values()} == {cpu}
    assert len(macho_of(library.data, path).images) == len(targets)


def test_an_aar_is_taken_as_it_is(tmp_path: Path) -> None:
    (plugin,) = platform_of(TARGETS["android-arm64-v8a"]).unity_plugins([], tmp_path / "demo.aar")
    assert (plugin.path, plugin.content) == ("Plugins/Android/onnxruntime.aar", tmp_path / "demo.aar")
    assert plugin.players.keys() == {"Android"}
