"""The package for Android: what is in it, that it is sound and the same anywhere, and what it refuses."""

import hashlib
import json
import re
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from aar_samples import ABIS, aar_inputs, fake_jdk
from android_samples import BINDING, CXX, RUNTIME, sample
from ortrim.base.checksums import check_sums
from ortrim.base.json import from_json
from ortrim.compiling.plan import digest
from ortrim.errors import BuildError, Diagnostic, ExitCode, PackageError, StorageError
from ortrim.package.aar_contents import AarManifest, read_aar
from ortrim.parity.measurements import Verdict
from ortrim.pins.runtime import SourcePin
from ortrim.platforms.android.aar import AarInputs, AndroidPackage, make_android_package
from ortrim.platforms.android.gates import Promise, check_aar, require_sound_aar
from ortrim.platforms.android.jni import Jdk
from refusing import refused
from sample_package import MODEL, another_machine, content_of

NAME = "ortrim-sample-android-1.21.0"


@pytest.fixture(name="jdk")
def fixture_jdk(tmp_path: Path) -> Jdk:
    return fake_jdk(tmp_path / "jdk")


@pytest.fixture(name="inputs")
def fixture_inputs(tmp_path: Path) -> AarInputs:
    return aar_inputs(tmp_path / "built", ABIS[:2])


@pytest.fixture(name="package", scope="module")
def fixture_package(tmp_path_factory: pytest.TempPathFactory) -> AndroidPackage:
    folder = tmp_path_factory.mktemp("package")
    return make_android_package(aar_inputs(folder / "built"), fake_jdk(folder / "jdk"), folder / "out")


def names_in(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return set(archive.namelist())


def test_the_aar_has_what_gradle_and_cmake_look_for(package: AndroidPackage) -> None:
    assert names_in(package.aar) == {
        "AndroidManifest.xml",
        "META-INF/com/android/build/gradle/aar-metadata.properties",
        "META-INF/ortrim/LICENSE",
        "META-INF/ortrim/ThirdPartyNotices.txt",
        "META-INF/ortrim/manifest.json",
        "META-INF/ortrim/sbom.cdx.json",
        "R.txt",
        "classes.jar",
        "headers/onnxruntime_c_api.h",
        "headers/onnxruntime_cxx_api.h",
        "prefab/modules/onnxruntime/include/onnxruntime_c_api.h",
        "prefab/modules/onnxruntime/include/onnxruntime_cxx_api.h",
        "prefab/modules/onnxruntime/module.json",
        "prefab/prefab.json",
        "proguard.txt",
        *(f"jni/{abi}/{name}" for abi in ABIS for name in (RUNTIME, BINDING)),
        *(f"prefab/modules/onnxruntime/libs/android.{abi}/{name}" for abi in ABIS for name in ("abi.json", RUNTIME)),
    }


def test_the_aar_passes_every_gate(package: AndroidPackage) -> None:
    """Every gate is judged, the manifest's too, since ortrim wrote it."""
    aar = read_aar(package.aar)
    promise = Promise(api_level=24, abis=ABIS, whole_relro=True)
    require_sound_aar(aar, promise)
    assert {gate.verdict for gate in check_aar(aar, promise)} == {Verdict.PASS}
    assert aar.version == "1.21.0"
    assert aar.manifest == package.manifest


def test_a_manifest_of_other_libraries_is_found_out(package: AndroidPackage) -> None:
    aar = read_aar(package.aar)
    assert aar.manifest is not None
    others: tuple[AarManifest, ...] = (
        replace(aar.manifest, api_level=21),
        replace(aar.manifest, page_bytes=4096),
        replace(aar.manifest, ort_version="1.20.0"),
        replace(aar.manifest, abis=aar.manifest.abis[1:]),
        replace(aar.manifest, abis=(replace(aar.manifest.abis[0], build_ids=()), *aar.manifest.abis[1:])),
    )
    for other in others:
        found = check_aar(replace(aar, manifest=other), Promise(api_level=24))
        assert [gate.name for gate in found if gate.verdict is Verdict.FAIL] == ["manifest.json describes this AAR"]


def test_the_folder_has_everything_and_sums_that_cover_it(package: AndroidPackage) -> None:
    assert package.folder.name == NAME
    check_sums(package.folder)
    top = {path.name for path in package.folder.iterdir()}
    documents = {"LICENSE", "ThirdPartyNotices.txt", "manifest.json", "sbom.cdx.json", "SHA256SUMS"}
    assert top == {f"{NAME}.aar", f"{NAME}-jniLibs.zip", f"{NAME}-maven.zip", "maven", "models", *documents}
    assert (package.folder / "models" / "vad.ort").read_bytes() == MODEL
    assert package.symbols is None
    manifest = from_json(AarManifest, (package.folder / "manifest.json").read_bytes())
    assert (manifest.api_level, manifest.page_bytes, manifest.ndk, manifest.stl) == (
        24,
        16384,
        "27.2.12479018",
        "c++_static",
    )
    assert ("javac", "17.0.15") in manifest.tools
    with zipfile.ZipFile(package.aar) as archive:
        for entry in manifest.files:
            assert hashlib.sha256(archive.read(entry.path)).hexdigest() == entry.sha256


def test_the_bill_of_materials_is_one(package: AndroidPackage) -> None:
    text = (package.folder / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    listed = {component["name"] for component in json.loads(text)["components"]}
    assert {f"jni/{abi}/{RUNTIME}" for abi in ABIS} | {"classes.jar", "libc++"} <= listed


def test_what_one_abi_alone_compiles_is_listed(inputs: AarInputs, jdk: Jdk, tmp_path: Path) -> None:
    """As cpuinfo is in those for ARM, whatever comes first: in the bill, the manifest and the POM."""
    pin = SourcePin(name="cpuinfo", version="8" * 40, kind="upstream", digest="5" * 64, licence="BSD-2-Clause")
    last = inputs.parts[-1]
    job = replace(last.inputs.job, sources=(*last.inputs.job.sources, pin))
    changed = replace(last, inputs=replace(last.inputs, job=job))
    made = make_android_package(replace(inputs, parts=(*inputs.parts[:-1], changed)), jdk, tmp_path / "more")
    listed = {part["name"]: part for part in json.loads((made.folder / "sbom.cdx.json").read_text())["components"]}
    assert listed["cpuinfo"]["purl"] == f"pkg:github/pytorch/cpuinfo@{'8' * 40}"
    assert pin in made.manifest.sources
    assert "<name>BSD-2-Clause</name>" in next(made.folder.rglob("*.pom")).read_text()


def test_plain_libraries_are_laid_out_as_projects_keep_them(package: AndroidPackage) -> None:
    libraries = {f"jniLibs/{abi}/{name}" for abi in ABIS for name in (RUNTIME, BINDING)}
    assert libraries | {"libs/onnxruntime.jar", "proguard.txt", "LICENSE"} <= names_in(
        package.folder / f"{package.folder.name}-jniLibs.zip"
    )


def test_a_maven_repository_leads_to_the_aar(package: AndroidPackage) -> None:
    version = package.manifest.coordinates.rpartition(":")[2]
    assert re.fullmatch(r"1\.21\.0-[0-9a-f]{12}", version)
    folder = package.folder / "maven" / "ortrim" / "onnxruntime-android-sample" / version
    stem = folder / f"onnxruntime-android-sample-{version}"
    assert Path(f"{stem}.aar").read_bytes() == package.aar.read_bytes()
    pom = ET.fromstring(Path(f"{stem}.pom").read_text())  # noqa: S314 - our own
    space = "{http://maven.apache.org/POM/4.0.0}"
    told = [pom.findtext(f"{space}{key}") for key in ("groupId", "artifactId", "version", "packaging")]
    assert told == ["ortrim", "onnxruntime-android-sample", version, "aar"]
    licences = [(each.findtext(f"{space}name"), each.findtext(f"{space}url")) for each in pom.iter(f"{space}license")]
    assert licences == [
        ("MIT", "https://spdx.org/licenses/MIT.html"),
        ("Apache-2.0 WITH LLVM-exception", "https://spdx.org/licenses/LLVM-exception.html"),
        ("MPL-2.0", "https://spdx.org/licenses/MPL-2.0.html"),
    ]
    assert "do_not_remove: published-with-gradle-metadata" in Path(f"{stem}.pom").read_text()
    module = json.loads(Path(f"{stem}.module").read_text())
    assert module["component"]["version"] == version
    for variant in module["variants"]:
        (file,) = variant["files"]
        assert (folder / file["url"]).stat().st_size == file["size"]
        assert file["sha256"] == hashlib.sha256(package.aar.read_bytes()).hexdigest()
    listed = ET.fromstring((folder.parent / "maven-metadata.xml").read_text())  # noqa: S314 - our own
    assert listed.findtext("versioning/release") == version
    assert package.manifest.coordinates == f"ortrim:onnxruntime-android-sample:{version}"


def test_the_maven_repository_is_one_file_too(package: AndroidPackage) -> None:
    """A release has no folders: who takes the zip has the repository as it is in the package."""
    with zipfile.ZipFile(package.folder / f"{package.folder.name}-maven.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == content_of(package.folder / "maven")


def test_gradle_sees_that_the_official_aar_is_the_same(package: AndroidPackage) -> None:
    """Both provide one capability, the official one by its very coordinates, so that Gradle refuses to take both.

    By the specification of Gradle's metadata, version 1.1; no capability is a variant's own unless it is named.
    """
    (path,) = (package.folder / "maven").rglob("*.module")
    module = json.loads(path.read_text())
    own = dict(zip(("group", "name", "version"), package.manifest.coordinates.split(":"), strict=True))
    official = {"group": "com.microsoft.onnxruntime", "name": "onnxruntime-android", "version": "1.21.0"}
    assert next(iter(module.items())) == ("formatVersion", "1.1")
    assert {variant["attributes"]["org.gradle.usage"] for variant in module["variants"]} == {"java-api", "java-runtime"}
    assert [variant["capabilities"] for variant in module["variants"]] == [[own, official]] * 2
    for variant in module["variants"]:
        assert variant.keys() == {"name", "attributes", "capabilities", "files"}
        assert {type(value) for value in variant["attributes"].values()} == {str}


def test_the_maven_version_is_new_whenever_the_bytes_may_be(
    inputs: AarInputs, jdk: Jdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another plan, another javac or another zlib: Gradle keeps what it fetched under a version."""

    def coordinates(inputs: AarInputs, jdk: Jdk) -> str:
        return make_android_package(inputs, jdk, tmp_path / "out").manifest.coordinates

    first = coordinates(inputs, jdk)
    assert coordinates(inputs, jdk) == first
    others = {coordinates(inputs, replace(jdk, version="21.0.1"))}
    others.add(coordinates(aar_inputs(tmp_path / "other", ABIS[:1]), jdk))
    monkeypatch.setattr("zlib.ZLIB_RUNTIME_VERSION", "1.4.0")
    others.add(coordinates(inputs, jdk))
    assert len({first, *others}) == 4
    pom = next((tmp_path / "out").rglob("*.pom")).read_text()
    assert f"from plan {digest(inputs.first.plan)[:12]}." in pom


def test_the_manifest_says_how_each_abi_was_built(inputs: AarInputs, tmp_path: Path, jdk: Jdk) -> None:
    first, second = inputs.parts
    job = replace(first.inputs.job, providers=("xnnpack",), arguments=("--use_xnnpack",))
    parts = (replace(first, inputs=replace(first.inputs, job=job)), second)
    package = make_android_package(replace(inputs, parts=parts), jdk, tmp_path / "out")
    manifest = json.loads((package.folder / "manifest.json").read_text())
    one, other = manifest["abis"]
    assert manifest["linkage"] == "shared"
    assert (one["providers"], one["cpuinfo"], one["arguments"]) == (["xnnpack"], True, ["--use_xnnpack"])
    assert (other["providers"], other["cpuinfo"], other["arguments"]) == ([], False, list(second.inputs.job.arguments))


def test_every_file_of_the_repository_has_right_digests(package: AndroidPackage) -> None:
    """MD5 and SHA-1 for Maven, the others for Gradle."""
    files = content_of(package.folder / "maven")
    plain = [name for name in files if not name.endswith((".md5", ".sha1", ".sha256", ".sha512"))]
    assert len(plain) == 4
    for name in plain:
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            content = (package.folder / "maven" / name).read_bytes()
            assert files[f"{name}.{algorithm}"] == hashlib.new(algorithm, content).hexdigest().encode()


def test_headers_of_all_kinds_are_everywhere(inputs: AarInputs, jdk: Jdk, tmp_path: Path) -> None:
    """Also the tables that headers include: for Prefab, beside the classes, and in the zip of plain libraries."""
    name = "onnxruntime_experimental_c_api.inc"
    (inputs.first.result.headers / name).write_text("ORT_EXPERIMENTAL_API(One)\n")
    package = make_android_package(inputs, jdk, tmp_path / "out")
    assert {f"headers/{name}", f"prefab/modules/onnxruntime/include/{name}"} <= names_in(package.aar)
    assert f"include/{name}" in names_in(package.folder / f"{package.folder.name}-jniLibs.zip")


def test_cmake_is_told_what_a_library_was_built_for(package: AndroidPackage, tmp_path: Path) -> None:
    """Prefab takes a hidden C++ library for none, and a shared one by name; versions are numbers."""
    with zipfile.ZipFile(package.aar) as archive:
        about = json.loads(archive.read("prefab/modules/onnxruntime/libs/android.x86/abi.json"))
        assert about == {"abi": "x86", "api": 24, "ndk": 27, "stl": "none", "static": False}
        assert json.loads(archive.read("prefab/prefab.json"))["version"] == "1.21.0"
        module = json.loads(archive.read("prefab/modules/onnxruntime/module.json"))
        assert module["library_name"] == "libonnxruntime"
    shared = aar_inputs(tmp_path / "shared", ("x86",), stl="c++_shared", api=26)
    (shared.parts[0].inputs.result.folder / CXX).write_bytes(sample(f"x86-{CXX}"))
    other = make_android_package(shared, fake_jdk(tmp_path / "another"), tmp_path / "other")
    with zipfile.ZipFile(other.aar) as archive:
        about = json.loads(archive.read("prefab/modules/onnxruntime/libs/android.x86/abi.json"))
        assert (about["stl"], about["api"]) == ("c++_shared", 26)
        assert archive.read(f"jni/x86/{CXX}") == sample(f"x86-{CXX}")
        assert b'android:minSdkVersion="26"' in archive.read("AndroidManifest.xml")
    with zipfile.ZipFile(other.folder / f"{other.folder.name}-jniLibs.zip") as archive:
        assert archive.read(f"jniLibs/x86/{CXX}") == sample(f"x86-{CXX}")


def test_models_are_assets_when_asked(jdk: Jdk, tmp_path: Path) -> None:
    """They are then in the app as `assets/models/<name>.ort`, with the settings beside, and count for the download."""
    inputs = aar_inputs(tmp_path / "built", ("arm64-v8a",), assets=True)
    aar = read_aar(make_android_package(inputs, jdk, tmp_path / "out").aar)
    assert aar.assets == ("assets/models/session.json", "assets/models/vad.ort")
    (size,) = aar.sizes
    assert size.download_bytes > size.compressed_bytes + aar.asset_bytes


def test_symbols_are_kept_apart_by_build_id(jdk: Jdk, tmp_path: Path) -> None:
    """Found by debuggers by the build-id of what ships, and by Play by the ABI."""
    inputs = aar_inputs(tmp_path / "built", ("arm64-v8a",))
    symbols = tmp_path / "built" / f"{RUNTIME}.sym"
    symbols.write_bytes(sample(f"arm64-v8a-{RUNTIME}"))
    (first,) = inputs.parts
    part = replace(first, inputs=replace(first.inputs, result=replace(first.inputs.result, symbols=symbols)))
    package = make_android_package(replace(inputs, parts=(part,)), jdk, tmp_path / "out")
    assert package.symbols is not None
    build_id = dict(package.manifest.abis[0].build_ids)[RUNTIME]
    assert names_in(package.symbols) == {f".build-id/{build_id[:2]}/{build_id[2:]}.debug", f"arm64-v8a/{RUNTIME}.sym"}
    symbols.write_bytes(sample("unstripped.so"))
    caught = refused(PackageError, make_android_package, replace(inputs, parts=(part,)), jdk, tmp_path / "second")
    assert caught.code == "symbols-differ"
    assert not (tmp_path / "second" / NAME).exists()


def test_same_inputs_give_the_same_bytes_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make_android_package(aar_inputs(tmp_path / "a", ABIS[:2]), fake_jdk(tmp_path / "jdk"), tmp_path / "one")
    with another_machine(monkeypatch):
        inputs, jdk = aar_inputs(tmp_path / "another" / "place", ABIS[:2]), fake_jdk(tmp_path / "other jdk")
        other = make_android_package(inputs, jdk, tmp_path / "deep" / "other")
    assert content_of(one.folder) == content_of(other.folder)


def test_a_package_made_before_is_replaced(jdk: Jdk, tmp_path: Path) -> None:
    inputs = aar_inputs(tmp_path / "built", ("x86",))
    package = make_android_package(inputs, jdk, tmp_path / "out")
    before = content_of(package.folder)
    (package.folder / "SHA256SUMS").unlink()
    package.aar.write_bytes(b"")
    again = make_android_package(inputs, jdk, package.folder.parent)
    assert content_of(again.folder) == before


def without_file(inputs: AarInputs) -> AarInputs:
    assert inputs.parts[0].binding
    inputs.parts[0].binding.unlink()
    return inputs


def with_linux(inputs: AarInputs) -> AarInputs:
    part = inputs.parts[0]
    job = replace(part.inputs.job, android=None)
    return replace(inputs, parts=(replace(part, inputs=replace(part.inputs, job=job)),))


def with_one_twice(inputs: AarInputs) -> AarInputs:
    return replace(inputs, parts=(inputs.parts[0], inputs.parts[0]))


def with_another_plan(inputs: AarInputs) -> AarInputs:
    first, second = inputs.parts[:2]
    plan = replace(second.inputs.plan, spec_name="other")
    return replace(inputs, parts=(first, replace(second, inputs=replace(second.inputs, plan=plan))))


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        (lambda inputs: replace(inputs, parts=()), "no-abi"),
        (without_file, "package-input-missing"),
        (with_linux, "not-android"),
        (with_one_twice, "mixed-builds"),
        (with_another_plan, "mixed-builds"),
        (lambda inputs: replace(inputs, java=(inputs.java[0] / "nowhere",)), "java-sources-missing"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    inputs: AarInputs, jdk: Jdk, tmp_path: Path, change: object, reference: str
) -> None:
    assert callable(change)
    caught = refused(PackageError, make_android_package, change(inputs), jdk, tmp_path / "out")
    assert (caught.code, caught.exit_code) == (reference, ExitCode.PACKAGE)
    assert not (tmp_path / "out").exists()


def test_a_path_of_this_machine_is_refused(jdk: Jdk, tmp_path: Path) -> None:
    inputs = aar_inputs(tmp_path / "built", ("x86",))
    header = inputs.first.result.headers / "onnxruntime_c_api.h"
    header.write_text(f"// {inputs.first.result.folder}\n")
    caught = refused(PackageError, make_android_package, inputs, jdk, tmp_path / "out")
    assert caught.code == "machine-path"


def test_a_compiler_that_fails_leaves_nothing(inputs: AarInputs, jdk: Jdk, tmp_path: Path) -> None:
    jdk.javac.write_text("#!/bin/sh\necho 'OnnxRuntime.java:3: error: ; expected' >&2\nexit 1\n")
    caught = refused(BuildError, make_android_package, inputs, jdk, tmp_path / "out")
    assert (caught.code, caught.exit_code) == ("java-not-compiled", ExitCode.BUILD)
    assert "; expected" in caught.why
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_reported(inputs: AarInputs, jdk: Jdk, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    caught = refused(Diagnostic, make_android_package, inputs, jdk, tmp_path / "out")
    assert isinstance(caught, StorageError)
