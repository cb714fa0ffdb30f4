"""AARs of real libraries: the official one inspected and packed anew, and read by Android's own packaging tool."""

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from aar_samples import ABIS, aar_inputs
from android_samples import RUNTIME, SAMPLES, link_samples, sample
from android_tools import aapt2, framework, proguard
from official_aar import official_aar
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.scripts import packages_folder
from ortrim.cli.options import request_from
from ortrim.package.aar_contents import read_aar
from ortrim.parity.measurements import Verdict
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planned import planned_for
from ortrim.platforms.android.aar import FOLDERS, AarInputs, AndroidPackage, classes_jar, make_android_package
from ortrim.platforms.android.gates import check_aar, own_promise
from ortrim.platforms.android.jni import JAVA, find_jdk

pytestmark = [pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "1.29.0"
PACKED: Final = ("arm64-v8a", "armeabi-v7a")
"""One of each word size: packing a library takes seconds."""


def official_inputs(folder: Path, java: Path) -> AarInputs:
    inputs = aar_inputs(folder, PACKED, VERSION, assets=True)
    with zipfile.ZipFile(official_aar()) as archive:
        for part in inputs.parts:
            for name, path in part.libraries:
                path.write_bytes(archive.read(f"jni/{part.abi}/{name}"))
    return replace(inputs, java=tuple(java / name for name in FOLDERS))


@pytest.fixture(name="java", scope="module")
def fixture_java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return upstream's Java files, from the pinned sources."""
    request = request_from(None, target="linux-x64", output=str(tmp_path_factory.mktemp("artifacts")))
    return planned_for(request, Console()).sources.folder / JAVA


@pytest.fixture(name="package", scope="module")
def fixture_package(java: Path, tmp_path_factory: pytest.TempPathFactory) -> AndroidPackage:
    """Make a package of the official libraries and of classes that the real compiler makes of the pinned sources."""
    folder = tmp_path_factory.mktemp("package")
    return make_android_package(official_inputs(folder, java), find_jdk(), folder / "out")


@pytest.mark.needs("npm")
def test_the_official_aar_is_inspected_through_the_command_line() -> None:
    """Its version is read from its library and is its label; four ABIs with their sizes; what it lacks is reported."""
    done = run((sys.executable, "-m", "invoke", "inspect", str(official_aar()), "--json"), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["version"], content["label"]) == (VERSION, f"onnxruntime.aar: ONNX Runtime {VERSION}")
    assert set(content["abis"]) == set(ABIS)
    (library,) = (each for each in content["libraries"] if each["path"] == f"jni/arm64-v8a/{RUNTIME}")
    assert (library["size_bytes"], library["compressed_bytes"]) == (32_120_992, 12_122_455)
    failed = {gate["name"] for gate in content["gates"] if gate["verdict"] == "fail"}
    assert failed == {"rules for R8", "stripped", "no absolute paths"}


@pytest.mark.needs("npm", "javac")
def test_the_official_libraries_make_a_complete_aar(package: AndroidPackage) -> None:
    """Every gate passes but two that upstream's own build is to blame for, and one that sees through this AAR."""
    aar = read_aar(package.aar)
    assert aar.classes is not None
    assert aar.classes.class_version == 52
    assert len(aar.classes.native_methods) > 140
    found = check_aar(aar, replace(own_promise(aar), abis=PACKED))
    failed = {gate.name: gate.detail for gate in found if gate.verdict is Verdict.FAIL}
    assert failed.keys() == {"stripped", "no absolute paths", "native methods are bound"}
    words = failed["native methods are bound"].replace(";", " ").split()
    methods = {word for word in words if word.startswith("ai.onnxruntime.")}
    assert methods == {"ai.onnxruntime.OrtSession$SessionOptions.addArmNN"}


@pytest.mark.needs("npm", "javac", "dpkg-deb", "apt-get")
def test_androids_own_tool_reads_what_is_in_the_aar(package: AndroidPackage, tmp_path: Path) -> None:
    """An APK is made of it as Gradle does it: manifest compiled, libraries and assets laid beside; aapt2 reads that."""
    with zipfile.ZipFile(package.aar) as aar:
        aar.extract("AndroidManifest.xml", tmp_path)
        apk, symbols = tmp_path / "app.apk", tmp_path / "R.txt"
        words = ("--manifest", tmp_path / "AndroidManifest.xml", "-I", framework(), "-o", apk)
        done = aapt2("link", *words, "--output-text-symbols", symbols)
        assert done.returncode == 0, done.stderr
        assert symbols.read_bytes() == aar.read("R.txt")
        with zipfile.ZipFile(apk, "a") as app:
            for name in aar.namelist():
                if name.startswith(("jni/", "assets/")):
                    app.writestr(name.replace("jni/", "lib/"), aar.read(name)[:10_000])
    told = aapt2("dump", "badging", apk)
    assert told.returncode == 0, told.stderr
    assert "package: name='ai.onnxruntime'" in told.stdout
    assert "sdkVersion:'24'" in told.stdout
    (native,) = (line for line in told.stdout.splitlines() if line.startswith("native-code:"))
    assert set(native.replace("'", "").split()[1:]) == set(PACKED)


@pytest.mark.needs("npm", "javac", "java", "dpkg-deb", "apt-get")
def test_the_rules_keep_every_class_from_being_shrunk_away(package: AndroidPackage, tmp_path: Path) -> None:
    with zipfile.ZipFile(package.aar) as aar:
        aar.extract("classes.jar", tmp_path)
        aar.extract("proguard.txt", tmp_path)
    (tmp_path / "other.txt").write_text("-keep class ai.onnxruntime.OrtEnvironment { public *; }\n")
    classes = {}
    for name in ("proguard.txt", "other.txt"):
        shrunk = tmp_path / f"{name}.jar"
        done = proguard(tmp_path / "classes.jar", tmp_path / name, shrunk)
        assert done.returncode == 0, done.stdout + done.stderr
        with zipfile.ZipFile(shrunk) as jar:
            classes[name] = {each for each in jar.namelist() if each.endswith(".class")}
    with zipfile.ZipFile(tmp_path / "classes.jar") as jar:
        everything = {each for each in jar.namelist() if each.endswith(".class")}
    assert classes["proguard.txt"] == everything
    assert len(classes["other.txt"]) < len(everything) / 2


@pytest.mark.needs("javac")
def test_the_java_api_compiles_to_the_same_bytes_anywhere(java: Path, tmp_path: Path) -> None:
    """Upstream's own sources, with the real compiler, from another folder under another name."""
    copied = tmp_path / "a copy of java"
    for name in FOLDERS:
        for path in (java / name).rglob("*.java"):
            target = copied / path.relative_to(java)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    jars = [classes_jar(find_jdk(), [folder / name for name in FOLDERS]) for folder in (java, copied)]
    assert jars[0] == jars[1]


def test_the_recorded_libraries_are_what_zig_links(tmp_path: Path) -> None:
    """Byte for byte, with the pinned toolchain."""
    (tmp_path / "work").mkdir()
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    link_samples(zig, tmp_path, tmp_path / "work")
    differing = [each.file for each in SAMPLES if (tmp_path / each.file).read_bytes() != sample(each.file)]
    assert differing == []
