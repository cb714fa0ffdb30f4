"""Packages for Apple's systems, from real libraries that zig linked for each of them."""

import errno
import hashlib
import json
import plistlib
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lief
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from apple_packages import TARGETS, apple_inputs, unzipped
from apple_slices import recorded
from ortrim.base.checksums import check_sums
from ortrim.base.json import from_json
from ortrim.binaries.macho.files import read_macho
from ortrim.buildspec.buildspec import AppleSpec
from ortrim.errors import BinaryError, Diagnostic, ExitCode, PackageError, StorageError
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from ortrim.platforms.apple.framework import AppleInputs, AppleManifest, ApplePart
from ortrim.platforms.apple.package import ApplePackage, make_apple_package
from refusing import refused
from sample_package import another_machine, content_of, make_inputs
from sample_plans import SAMPLE_APPLE

NAME = "ortrim-sample-apple-1.21.0"
ZIP = "onnxruntime-1.21.0.xcframework.zip"
IDENTIFIERS = {"ios-arm64", "ios-arm64-maccatalyst", "ios-arm64_x86_64-simulator", "macos-arm64_x86_64"}
STATIC = AppleSpec(ios_deployment_target="15.1", macos_deployment_target="13.3", framework="static")


@pytest.fixture(name="package", scope="module")
def fixture_package(tmp_path_factory: pytest.TempPathFactory) -> ApplePackage:
    folder = tmp_path_factory.mktemp("package")
    return make_apple_package(apple_inputs(folder / "in"), folder / "out")


@pytest.fixture(name="xcframework", scope="module")
def fixture_xcframework(package: ApplePackage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unzipped(package.xcframework, tmp_path_factory.mktemp("unpacked")) / "onnxruntime.xcframework"


def change_part(whole: AppleInputs, number: int, **changes: Any) -> AppleInputs:
    parts = list(whole.parts)
    parts[number] = replace(parts[number], **changes)
    return replace(whole, parts=tuple(parts))


def change_apple(whole: AppleInputs, number: int, **changes: Any) -> AppleInputs:
    """Return inputs one of whose libraries is built for something else."""
    part = whole.parts[number]
    assert part.inputs.job.apple is not None
    job = replace(part.inputs.job, apple=replace(part.inputs.job.apple, **changes))
    return change_part(whole, number, inputs=replace(part.inputs, job=job))


def with_library(inputs: AppleInputs, content: bytes) -> AppleInputs:
    """Return inputs whose first library is another."""
    inputs.first.result.library.write_bytes(content)
    return inputs


def test_a_package_is_a_folder_that_swift_takes(package: ApplePackage) -> None:
    """The Swift package in a folder of its name, symbols apart, and proof of all."""
    assert package.folder.name == NAME
    assert set(content_of(package.folder)) == {
        "LICENSE", "SHA256SUMS", "ThirdPartyNotices.txt", "manifest.json", "sbom.cdx.json",
        "models/vad.ort", "models/session.json", f"{NAME}-dSYMs.zip",
        "onnxruntime/Package.swift", f"onnxruntime/{ZIP}",
        "onnxruntime/objectivec/PrivacyInfo.xcprivacy", "onnxruntime/objectivec/assert_arc_enabled.mm",
        "onnxruntime/objectivec/cxx_api.h", "onnxruntime/objectivec/include/onnxruntime.h",
        "onnxruntime/objectivec/include/ort_env.h", "onnxruntime/objectivec/ort_env.mm",
        "onnxruntime/objectivec/ort_session.mm",
    }  # fmt: skip
    check_sums(package.folder)


def test_every_property_list_is_read_by_python(xcframework: Path) -> None:
    found = sorted(path for path in xcframework.rglob("*") if path.suffix in {".plist", ".xcprivacy"})
    read = {path.relative_to(xcframework).as_posix(): plistlib.loads(path.read_bytes()) for path in found}
    assert len([name for name in read if "Versions/Current" not in name]) >= 9
    for entry in read["Info.plist"]["AvailableLibraries"]:
        framework = xcframework / entry["LibraryIdentifier"] / entry["LibraryPath"]
        binary = xcframework / entry["LibraryIdentifier"] / entry["BinaryPath"]
        assert binary.resolve() == (framework / "onnxruntime").resolve()
        assert list(read_macho(binary).architectures) == entry["SupportedArchitectures"]


def test_every_library_is_read_by_lief_and_fits_its_property_list(xcframework: Path) -> None:
    assert {path.name for path in xcframework.iterdir() if path.is_dir()} == IDENTIFIERS
    for identifier in IDENTIFIERS:
        framework = xcframework / identifier / "onnxruntime.framework"
        assert lief.MachO.parse(str(framework / "onnxruntime")) is not None
        folder = framework / "Resources" if (framework / "Resources").is_dir() else framework
        plist = plistlib.loads((folder / "Info.plist").read_bytes())
        builds = {build for image in read_macho(framework / "onnxruntime").images for build in image.builds}
        minimum = plist.get("MinimumOSVersion") or plist["LSMinimumSystemVersion"]
        said = {"12.0": "15.1"}.get(minimum, minimum)  # Mac Catalyst's load command counts as iOS does
        assert {build.minimum_os for build in builds} == {said}
        name = f"{next(iter(builds)).platform}-{next(iter(builds)).variant}".rstrip("-")
        assert (identifier.split("-")[0], *identifier.split("-")[2:]) == tuple(name.split("-"))


def test_a_macs_framework_has_versions_and_a_phones_has_none(xcframework: Path) -> None:
    """Links lead where Apple's tools expect them; the library can be run."""
    mac = xcframework / "macos-arm64_x86_64" / "onnxruntime.framework"
    assert {path.name: str(path.readlink()) for path in mac.iterdir() if path.is_symlink()} == {
        "Headers": "Versions/Current/Headers",
        "Modules": "Versions/Current/Modules",
        "Resources": "Versions/Current/Resources",
        "onnxruntime": "Versions/Current/onnxruntime",
    }
    assert (mac / "Versions" / "Current").readlink() == Path("A")
    phone = xcframework / "ios-arm64" / "onnxruntime.framework"
    assert not [path for path in phone.rglob("*") if path.is_symlink()]
    assert {path.name for path in phone.iterdir()} == {
        "Headers", "Info.plist", "Modules", "PrivacyInfo.xcprivacy", "onnxruntime",
    }  # fmt: skip
    assert all((each / "onnxruntime").stat().st_mode & 0o777 == 0o755 for each in (mac, phone))


def test_the_module_names_what_can_be_imported(xcframework: Path) -> None:
    """C for everyone, C++ for who speaks it."""
    text = (xcframework / "ios-arm64/onnxruntime.framework/Modules/module.modulemap").read_text()
    headers = re.findall(r'header "(.+)"', text)
    assert headers == ["onnxruntime_c_api.h", "coreml_provider_factory.h", "onnxruntime_cxx_api.h"]
    assert text.count("{") == text.count("}") == 2
    assert all((xcframework / "ios-arm64/onnxruntime.framework/Headers" / name).is_file() for name in headers)


def test_the_checksum_is_that_of_the_zip(package: ApplePackage) -> None:
    expected = hashlib.sha256(package.xcframework.read_bytes()).hexdigest()
    text = (package.swift_package / "Package.swift").read_text()
    assert re.findall(r'checksum: "(\w+)"', text) == [expected] == [package.checksum]
    assert f'path: "{package.xcframework.name}"' in text
    assert '.iOS("15.1"), .macCatalyst("15.1"), .macOS("13.3")' in text
    assert text.startswith("// swift-tools-version: 5.6\n")


def test_pods_take_the_place_of_the_official_ones(package: ApplePackage) -> None:
    """By name, version and dependency; what they name is in the zip."""
    with zipfile.ZipFile(package.xcframework) as archive:
        names = archive.namelist()
        runtime, bindings = (json.loads(archive.read(f"onnxruntime-{name}.podspec.json")) for name in ("c", "objc"))
    assert (runtime["name"], runtime["version"]) == ("onnxruntime-c", "1.21.0")
    assert runtime["platforms"] == bindings["platforms"] == {"ios": "15.1", "osx": "13.3"}
    assert (runtime["static_framework"], runtime["libraries"]) == (False, "c++")
    assert "weak_frameworks" not in runtime
    assert bindings["dependencies"] == {"onnxruntime-c": ["1.21.0"]}
    assert runtime["license"] == bindings["license"] == {"type": "MIT AND MPL-2.0", "file": "LICENSE"}
    assert "onnxruntime.xcframework/Info.plist" in names
    assert {runtime["license"]["file"], *runtime["resource_bundles"]["onnxruntime_privacy"]} < set(names)
    assert not [name for name in names if "training" in name or "checkpoint" in name]


def test_the_manifest_covers_the_zip(package: ApplePackage) -> None:
    with zipfile.ZipFile(package.xcframework) as archive:
        assert archive.read("manifest.json") == (package.folder / "manifest.json").read_bytes()
        links = {entry.filename for entry in archive.infolist() if entry.external_attr >> 28 == 0o12}
        listed = {entry.path for entry in package.manifest.files}
        assert listed | links | {"manifest.json"} == set(archive.namelist())
    manifest = from_json(AppleManifest, (package.folder / "manifest.json").read_text())
    assert manifest == package.manifest
    assert {each.identifier for each in manifest.slices} == IDENTIFIERS
    uuids = {target.target: target.uuid for each in manifest.slices for target in each.targets}
    assert set(uuids) == set(TARGETS)
    assert len(set(uuids.values())) == len(TARGETS)
    assert {target.cross_built for each in manifest.slices for target in each.targets} == {False}
    assert [reason.reasons for reason in manifest.required_reasons] == [("C617.1",), ("35F9.1",)]


def test_what_no_mac_compiled_says_so(tmp_path: Path) -> None:
    """In the manifest, target by target: no Mac has run it."""
    inputs = apple_inputs(tmp_path / "in", ("macos-arm64",))
    toolchain = zig_apple_toolchain(inputs.first.job.target, "13.3", "0.17.0")
    job = replace(inputs.first.job, toolchain=toolchain)
    inputs = change_part(inputs, 0, inputs=replace(inputs.first, job=job))
    package = make_apple_package(inputs, tmp_path / "out")
    assert [target.cross_built for each in package.manifest.slices for target in each.targets] == [True]
    assert package.manifest.compiler == "zig 0.17.0"


def test_the_bill_of_materials_lists_every_library(package: ApplePackage) -> None:
    text = (package.folder / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    names = [part["name"] for part in json.loads(text)["components"]]
    assert len([name for name in names if name.endswith("/onnxruntime")]) == len(IDENTIFIERS)


def test_debug_symbols_are_apart_and_found_by_uuid(package: ApplePackage, tmp_path: Path) -> None:
    assert package.symbols is not None
    folder = unzipped(package.symbols, tmp_path)
    assert {path.name for path in folder.iterdir()} == IDENTIFIERS
    inner = "onnxruntime.framework.dSYM/Contents"
    found = read_macho(folder / "macos-arm64_x86_64" / inner / "Resources/DWARF/onnxruntime")
    shipped = {target.uuid for each in package.manifest.slices for target in each.targets}
    assert {image.uuid for image in found.images} < shipped
    assert plistlib.loads((folder / "ios-arm64" / inner / "Info.plist").read_bytes())["CFBundlePackageType"] == "dSYM"


def test_same_inputs_give_the_same_bytes_anywhere(
    package: ApplePackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with another_machine(monkeypatch):
        other = make_apple_package(apple_inputs(tmp_path / "deep" / "place"), tmp_path / "other")
    assert content_of(other.folder) == content_of(package.folder)


def test_no_path_of_the_machine_is_in_a_package(tmp_path: Path) -> None:
    inputs = apple_inputs(tmp_path / "in", ("ios-arm64",))
    (inputs.objective_c / "cxx_api.h").write_text(f"// {inputs.first.result.folder}\n")
    caught = refused(PackageError, make_apple_package, inputs, tmp_path / "out")
    assert caught.code == "machine-path"
    assert not (tmp_path / "out").exists()


def test_a_package_for_phones_alone(tmp_path: Path) -> None:
    inputs = change_part(apple_inputs(tmp_path / "in", ("ios-arm64",)), 0, symbols=None)
    package = make_apple_package(inputs, tmp_path / "out")
    assert package.symbols is None
    assert 'platforms: [.iOS("15.1")]' in (package.swift_package / "Package.swift").read_text()
    with zipfile.ZipFile(package.xcframework) as archive:
        assert json.loads(archive.read("onnxruntime-c.podspec.json"))["platforms"] == {"ios": "15.1"}
        assert not [entry for entry in archive.infolist() if entry.external_attr >> 28 == 0o12]


def test_core_ml_is_linked_weakly(tmp_path: Path) -> None:
    """A system without it starts the app all the same."""
    whole = apple_inputs(tmp_path / "in", ("ios-arm64",))
    job = replace(whole.first.job, providers=("coreml",))
    inputs = change_part(whole, 0, inputs=replace(whole.first, job=job))
    package = make_apple_package(inputs, tmp_path / "out")
    with zipfile.ZipFile(package.xcframework) as archive:
        spec = json.loads(archive.read("onnxruntime-c.podspec.json"))
    assert (spec["frameworks"], spec["weak_frameworks"]) == (["Foundation"], ["CoreML"])
    assert '.linkedFramework("CoreML")' in (package.swift_package / "Package.swift").read_text()


def test_a_package_made_again_replaces_the_old_one(tmp_path: Path) -> None:
    inputs = apple_inputs(tmp_path / "in", ("ios-arm64",))
    package = make_apple_package(inputs, tmp_path / "out")
    (package.folder / "stray").write_text("")
    make_apple_package(inputs, tmp_path / "out")
    assert not (package.folder / "stray").exists()


def test_what_signs_is_given_the_xcframework_as_it_will_be(tmp_path: Path) -> None:
    seen: list[Path] = []

    def sign(path: Path) -> None:
        seen.append(path)
        assert (path / "macos-arm64" / "onnxruntime.framework" / "onnxruntime").is_symlink()
        (path / "_CodeSignature").mkdir()
        (path / "_CodeSignature" / "CodeResources").write_text("signed")

    package = make_apple_package(apple_inputs(tmp_path / "in", ("macos-arm64",)), tmp_path / "out", sign)
    assert [path.name for path in seen] == ["onnxruntime.xcframework"]
    assert not seen[0].exists()
    signature = "onnxruntime.xcframework/_CodeSignature/CodeResources"
    assert signature in {entry.path for entry in package.manifest.files}
    folder = unzipped(package.xcframework, tmp_path / "unpacked")
    assert (folder / signature).read_text() == "signed"
    framework = folder / "onnxruntime.xcframework/macos-arm64/onnxruntime.framework"
    assert (framework / "Versions/A/onnxruntime").stat().st_mode & 0o777 == 0o755
    assert (framework / "onnxruntime").is_symlink()


def test_a_signature_that_fails_leaves_nothing(tmp_path: Path) -> None:

    def sign(path: Path) -> None:
        raise PackageError("not-signed", "no", where=path.name)

    caught = refused(
        PackageError, make_apple_package, apple_inputs(tmp_path / "in", ("ios-arm64",)), tmp_path / "out", sign
    )
    assert caught.code == "not-signed"
    assert not (tmp_path / "out").exists()


def without_part(inputs: AppleInputs) -> AppleInputs:
    return replace(inputs, parts=())


def without_library(inputs: AppleInputs) -> AppleInputs:
    """Return inputs whose first library is gone."""
    inputs.first.result.library.unlink()
    return inputs


def without_symbols(inputs: AppleInputs) -> AppleInputs:
    """Return inputs whose first symbols are gone."""
    symbols = inputs.parts[0].symbols
    assert symbols is not None
    symbols.unlink()
    return inputs


def with_linux(inputs: AppleInputs) -> AppleInputs:
    other = make_inputs(inputs.objective_c.parent / "linux")
    return replace(inputs, parts=(*inputs.parts, ApplePart(inputs=other)))


def with_one_twice(inputs: AppleInputs) -> AppleInputs:
    return replace(inputs, parts=(*inputs.parts, inputs.parts[0]))


def with_another_floor(inputs: AppleInputs) -> AppleInputs:
    """Return inputs in which the second simulator is for a newer system than the first."""
    return change_apple(inputs, 2, deployment_target="16.0")


def with_another_plan(inputs: AppleInputs) -> AppleInputs:
    """Return inputs whose second part is of another plan."""
    part = inputs.parts[1]
    plan = replace(part.inputs.plan, ortrim_version="9.9.9")
    return change_part(inputs, 1, inputs=replace(part.inputs, plan=plan))


def with_other_symbols(inputs: AppleInputs) -> AppleInputs:
    """Return inputs whose first symbols are of another library."""
    symbols = inputs.parts[0].symbols
    assert symbols is not None
    symbols.write_bytes(recorded("macos-arm64"))
    return inputs


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        (without_part, "no-slice"),
        (without_library, "package-input-missing"),
        (without_symbols, "package-input-missing"),
        (lambda inputs: replace(inputs, objective_c=inputs.objective_c / "nowhere"), "package-input-missing"),
        (with_linux, "not-apple"),
        (with_one_twice, "mixed-builds"),
        (with_another_floor, "mixed-builds"),
        (with_another_plan, "mixed-builds"),
        (with_other_symbols, "symbols-differ"),
        (lambda inputs: with_library(inputs, recorded("macos-x86_64")), "wrong-architecture"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    tmp_path: Path, change: Callable[[AppleInputs], AppleInputs], reference: str
) -> None:
    caught = refused(PackageError, make_apple_package, change(apple_inputs(tmp_path / "in")), tmp_path / "out")
    assert (caught.code, caught.exit_code) == (reference, ExitCode.PACKAGE)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(100), recorded("ios-arm64")[:2000]])
def test_what_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    inputs = with_library(apple_inputs(tmp_path / "in", ("ios-arm64",)), content)
    caught = refused(BinaryError, make_apple_package, inputs, tmp_path / "out")
    assert caught.where == "ios-arm64"
    assert not (tmp_path / "out").exists()


def test_a_dynamic_library_is_no_static_framework(tmp_path: Path) -> None:
    """The archive is what a static one holds."""
    inputs = apple_inputs(tmp_path / "in", ("ios-arm64",), STATIC)
    archive = inputs.first.result.folder / "libonnxruntime.a"
    archive.write_bytes(recorded("ios-arm64"))
    caught = refused(PackageError, make_apple_package, inputs, tmp_path / "out")
    assert caught.code == "wrong-kind"


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError(errno.ENOSPC, "No space left on device"), StorageError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_what_ends_in_the_middle_leaves_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: type[BaseException]
) -> None:
    """A full disk, or Ctrl-C, after the zip was written: no half of it is there, and the earlier one is gone."""

    def ends(*_: object) -> None:
        raise error

    inputs = apple_inputs(tmp_path / "in", ("ios-arm64",))
    make_apple_package(inputs, tmp_path / "out")
    monkeypatch.setattr("ortrim.package.package.write_contents", ends)
    with pytest.raises(told) as caught:
        make_apple_package(inputs, tmp_path / "out")
    assert not isinstance(caught.value, StorageError) or caught.value.code == "disk-full"
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []


def test_a_file_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    caught = refused(Diagnostic, make_apple_package, apple_inputs(tmp_path / "in", ("ios-arm64",)), tmp_path / "out")
    assert isinstance(caught, StorageError)


def test_the_sample_is_what_the_libraries_were_linked_for() -> None:
    """Else every minimum here would be wrong."""
    assert (SAMPLE_APPLE.ios_deployment_target, SAMPLE_APPLE.macos_deployment_target) == ("15.1", "13.3")
