"""The Maven repository of a package, in the hands of a real Gradle: resolved, and put in the official AAR's place."""

import zipfile
from pathlib import Path
from typing import Final

import pytest

from aar_samples import aar_inputs, fake_jdk
from gradle_projects import gradle, guide_rule, resolved_files
from ortrim.platforms.android.aar import AndroidPackage, make_android_package

pytestmark = [pytest.mark.needs("gradle", "java")]

OFFICIAL: Final = "com.microsoft.onnxruntime:onnxruntime-android"
POM: Final = """\
<project><modelVersion>4.0.0</modelVersion><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<packaging>aar</packaging><dependencies>{}</dependencies></project>
"""
DEPENDENCY: Final = """\
<dependency><groupId>com.microsoft.onnxruntime</groupId><artifactId>onnxruntime-android</artifactId>
<version>1.20.0</version>{}<scope>compile</scope></dependency>
"""


@pytest.fixture(name="package", scope="module")
def fixture_package(tmp_path_factory: pytest.TempPathFactory) -> AndroidPackage:
    folder = tmp_path_factory.mktemp("package")
    return make_android_package(aar_inputs(folder / "built", ("x86_64",)), fake_jdk(folder / "jdk"), folder / "out")


@pytest.fixture(name="project")
def fixture_project(package: AndroidPackage, tmp_path: Path) -> Path:
    """Lay out a project beside the unpacked zip, and a repository with the official AAR and a plugin that wants it."""
    with zipfile.ZipFile(package.folder / f"{package.folder.name}-maven.zip") as archive:
        archive.extractall(tmp_path / "ours")
    publish(tmp_path / "others", OFFICIAL, "1.20.0")
    publish(tmp_path / "others", "example:plugin", "1", DEPENDENCY.format(""))
    publish(tmp_path / "others", "example:typed", "1", DEPENDENCY.format("<type>aar</type>"))
    return tmp_path


def publish(repository: Path, module: str, version: str, dependencies: str = "") -> None:
    group, name = module.split(":")
    folder = repository / group.replace(".", "/") / name / version
    folder.mkdir(parents=True)
    (folder / f"{name}-{version}.pom").write_text(POM.format(group, name, version, dependencies))
    zipfile.ZipFile(folder / f"{name}-{version}.aar", "w").close()


def resolved(project: Path, dependencies: tuple[str, ...], rule: str = "") -> list[str]:
    return [path.name for path in resolved_files(project, dependencies, rule)]


def test_the_aar_is_resolved_by_its_coordinates(project: Path, package: AndroidPackage) -> None:
    """From the zip, unpacked; of the newest version too, which `maven-metadata.xml` knows."""
    version = package.manifest.coordinates.rpartition(":")[2]
    expected = [f"onnxruntime-android-sample-{version}.aar"]
    assert resolved(project, (package.manifest.coordinates,)) == expected
    assert resolved(project, ("ortrim:onnxruntime-android-sample:latest.release",)) == expected


def test_the_guides_rule_puts_it_in_the_official_ones_place(project: Path, package: AndroidPackage) -> None:
    """For who names that itself, and for a plugin that brings it; without the rule, both would be in the app."""
    version = package.manifest.coordinates.rpartition(":")[2]
    ours, others = f"onnxruntime-android-sample-{version}.aar", "onnxruntime-android-1.20.0.aar"
    asked = (package.manifest.coordinates, "example:plugin:1")
    assert resolved(project, asked) == [others, ours, "plugin-1.aar"]
    assert resolved(project, asked, guide_rule(package.manifest.coordinates)) == [ours, "plugin-1.aar"]
    assert resolved(project, (f"{OFFICIAL}:1.20.0",), guide_rule(package.manifest.coordinates)) == [ours]


@pytest.mark.parametrize("dependency", [f"{OFFICIAL}:latest.integration@aar", "example:typed:1"])
def test_dependencies_on_a_file_need_more_than_the_plain_rule(
    project: Path, package: AndroidPackage, dependency: str
) -> None:
    """Why the guide says `withoutArtifactSelectors`, which this Gradle does not know: they name a file."""
    done = gradle(project, (dependency,), guide_rule(package.manifest.coordinates))
    assert done.returncode != 0
    assert f"Could not find onnxruntime-android.aar ({package.manifest.coordinates})" in done.stderr
