"""React Native's plugin as npm has it, with a package in the official AAR's and pod's place.

What has not been tried: Android's Gradle plugin, CocoaPods, an app.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from aar_samples import aar_inputs, fake_jdk
from gradle_projects import guide_rule, run_gradle
from npm_archives import npm_archive
from ortrim.base.archives import unpack
from ortrim.base.command import run
from ortrim.platforms.android.aar import make_android_package
from podspecs import PODS

pytestmark = [pytest.mark.network, pytest.mark.needs("npm")]

PLUGIN: Final = "onnxruntime-react-native@1.24.3"
INTEGRITY: Final = "sha512-vMxFcnO1YDtT6auv719Zk0Zj/EXujqeEzSjTe5W7A915qaRrM4pRfXlI4ye/ExOwcTan7NYVZ/wpLX+YBU2aWQ=="
GUIDE: Final = Path(__file__).parents[2] / "docs" / "start" / "plugins.md"
BUILD: Final = """\
allprojects {{ repositories {{ maven {{ url "$rootDir/ours" }} }} }}
configurations {{ extractLibs }}
{rule}
dependencies {{ {dependency} }}
{task}
"""


@pytest.fixture(name="plugin")
def fixture_plugin(tmp_path: Path) -> Path:
    """Install the plugin into the folder of an app; return its folder."""
    plugin = tmp_path / "node_modules" / "onnxruntime-react-native"
    unpack(npm_archive(PLUGIN, INTEGRITY, tmp_path), plugin, strip=1)
    (tmp_path / "package.json").write_text("{}")
    return plugin


def edit(plugin: Path) -> None:
    """Run the guide's lines in the folder of the app."""
    (lines,) = re.findall(r"<!-- editing the plugin -->\n```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    done = run(("sh", "-euc", lines), cwd=plugin.parents[1])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("gradle", "java")
def test_the_plugins_build_finds_headers_and_library(plugin: Path, tmp_path: Path) -> None:
    """Its own task unpacks the AAR, and its CMake file looks for headers and library by a pattern of the AAR's name."""
    project = tmp_path / "android"
    project.mkdir()
    inputs = aar_inputs(tmp_path / "built", ("x86_64",))
    package = make_android_package(inputs, fake_jdk(tmp_path / "jdk"), tmp_path)
    unpack(package.folder / f"{package.folder.name}-maven.zip", project / "ours")
    text = (plugin / "android" / "build.gradle").read_text()
    (dependency,) = re.findall(r'extractLibs "com\.microsoft\.onnxruntime:onnxruntime-android:[^"]*"', text)
    (task,) = re.findall(r"^task extractLibs \{.*?^\}$", text, re.DOTALL | re.MULTILINE)
    dependency = dependency.replace("@aar", "")  # Debian's Gradle has no `withoutArtifactSelectors`
    build = BUILD.format(rule=guide_rule(package.manifest.coordinates), dependency=dependency, task=task)
    done = run_gradle(project, build, "extractLibs")
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = (plugin / "android" / "CMakeLists.txt").read_text().replace("${ANDROID_ABI}", "x86_64")
    (headers,), (libraries,) = (
        list((project / "build").glob(pattern))
        for pattern in re.findall(r"BUILD_DIR\}/(onnxruntime-android-[^\"]*)", wanted)
    )
    assert (headers / "onnxruntime_cxx_api.h").is_file()
    assert (libraries / "libonnxruntime.so").is_file()


def test_the_guides_lines_take_nnapi_out(plugin: Path) -> None:
    build = plugin / "android" / "build.gradle"
    assert "-DUSE_NNAPI=${!useQnn}" in build.read_text()
    edit(plugin)
    assert re.findall('-DUSE_NNAPI=[^"]*', build.read_text()) == ["-DUSE_NNAPI=OFF"] * 2


@pytest.mark.needs("ruby")
def test_the_plugins_pod_takes_ours_and_the_guides_lines_take_coreml_out(plugin: Path, tmp_path: Path) -> None:
    """With a stand-in for CocoaPods' own words: the plugin depends on `onnxruntime-c`, of any version."""
    (tmp_path / "stub.rb").write_text(PODS)

    def said() -> dict[str, Any]:
        podspec = plugin / "onnxruntime-react-native.podspec"
        done = run(("ruby", tmp_path / "stub.rb", podspec), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        read: dict[str, Any] = json.loads(done.stdout)
        return read

    assert said()["dependencies"] == [["onnxruntime-c"], ["React-Core"], ["React-callinvoker"]]
    assert said()["xcconfig"] == {"OTHER_CPLUSPLUSFLAGS": "-Wall -Wextra -DUSE_COREML"}
    edit(plugin)
    assert said()["xcconfig"] == {"OTHER_CPLUSPLUSFLAGS": "-Wall -Wextra"}
