"""A release of real packages, drafted with the stand-in for `gh`, fetched from the stand-in for GitHub, and used."""

import io
import json
import re
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import onnxruntime
import pytest

import aar_samples
import apple_packages
import gh_program
import sample_package
from aar_samples import aar_inputs, fake_jdk
from apple_packages import apple_inputs
from cmake_application import new_application
from github_fetching import Apps, sums, wanted
from gradle_projects import in_old_words, resolved_files
from ortrim.base.checksums import SUMS
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.binaries.xcframework import read_xcframework
from ortrim.cli.options import request_from
from ortrim.compiling.plan import BuildPlan
from ortrim.errors import PackageError
from ortrim.github.client import Remote
from ortrim.github.fetch.placing import read_lock
from ortrim.github.fetch.run import App, Fetched, fetch_files
from ortrim.github.fetch.snippets import fetched_snippet, snippet, snippet_files
from ortrim.github.jobs import REPORTS, hand_over, with_sums
from ortrim.github.release import draft_release
from ortrim.github.repositories import TOKEN
from ortrim.models.models import OrtModel
from ortrim.package.manifest import FACTS
from ortrim.package.package import make_package
from ortrim.package.wheel import make_wheel
from ortrim.planning.models import converted_models
from ortrim.planning.planned import Planned
from ortrim.planning.request import load
from ortrim.platforms.android.aar import make_android_package
from ortrim.platforms.apple.package import make_apple_package
from program_files import write_program
from refusing import refused
from wheel_package import wheel_inputs

REQUIREMENTS: Final = Path(__file__).parents[1] / "integration" / "data" / "swift-grammar.txt"
READER: Final = """\
import json, sys
from tree_sitter import Language, Parser
import tree_sitter_swift

def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)

def value(node):
    text = node.text.decode()
    return json.loads(text) if node.type == "line_string_literal" else text

def arguments(call):
    given = [node for node in call.children if node.type == "call_suffix"]
    for node in given[0].children[0].children if given else ():
        if node.type == "value_argument" and node.children[0].type == "value_argument_label":
            yield node.children[0].text.decode(), value(node.children[-1])

tree = Parser(Language(tree_sitter_swift.language())).parse(open(sys.argv[1], "rb").read()).root_node
assert not tree.has_error, "no Swift"
calls = [node for node in walk(tree) if node.type == "call_expression"]
print(json.dumps([dict(arguments(call)) for call in calls if call.children[0].text == b".binaryTarget"]))
"""


def binary_targets(package_swift: Path) -> list[dict[str, str]]:
    """Return the arguments of each binary target by their labels: what a string says, other expressions as text."""
    grammar = packages_folder("swift-grammar", REQUIREMENTS.read_text())
    done = run((*ISOLATED_PYTHON, "-c", READER, package_swift), environment=environment_with(grammar))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


LINUX: Final = "ortrim-sample-linux-x64-1.21.0"
TAG: Final = "v1.0.0"


def deliver(folder: Path, name: str, plan: BuildPlan) -> dict[str, bytes]:
    """Hand over what was packaged in `folder` as a run does; return the files for users, by path."""
    for target in plan.targets:
        (folder / target.identifier).mkdir(exist_ok=True)
        for report in REPORTS:
            (folder / target.identifier / report).write_text(f"{target.identifier} {report}")
    planned = cast("Planned", SimpleNamespace(plan=plan, folder=folder))
    destination = folder.parent / "deliveries" / f"delivered-sample-{name}"
    paths = hand_over(planned, destination, 40 * "a")
    files = {path.relative_to(destination).as_posix(): path.read_bytes() for path in paths}
    return {path: content for path, content in files.items() if path not in {FACTS, SUMS}}


@pytest.fixture(scope="module")
def demo() -> OrtModel:
    (model,) = converted_models(load(request_from(None)), Console(quiet=True)).converted
    return model


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory, demo: OrtModel) -> tuple[BuildPlan, Path]:
    """Make a package for Linux and a wheel of a library that runs; return its plan and its folder."""
    folder = tmp_path_factory.mktemp("linux")
    inputs = wheel_inputs(folder / "built")
    planned = replace(inputs.plan.models[0], name=demo.name, ort_sha256=demo.sha256)
    plan = replace(inputs.plan, spec_name="sample", models=(planned,))
    built = replace(inputs.result, symbols=inputs.result.library)
    packaged = replace(inputs, plan=plan, models=(demo,), result=built)
    make_package(packaged, folder / "made")
    make_wheel(packaged, folder / "made")
    return plan, folder / "made"


@pytest.fixture
def delivered(
    tmp_path: Path, demo: OrtModel, linux: tuple[BuildPlan, Path], monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[str, bytes]]:
    """Return the files of a delivery of each kind: an archive, an AAR with a Maven folder, a Swift package."""
    for samples in (aar_samples, apple_packages, sample_package):
        monkeypatch.setattr(samples, "MODEL", demo.path.read_bytes())
    android, apple = aar_inputs(tmp_path / "aar", ("x86",)), apple_inputs(tmp_path / "apple", ("ios-arm64",))
    made = tmp_path / "made"
    make_android_package(android, fake_jdk(tmp_path / "jdk"), made / "android")
    make_apple_package(apple, made / "apple")
    shutil.copytree(linux[1], made / "linux-x64", symlinks=True)
    plans = {"linux-x64": linux[0], "android": android.first.plan, "apple": apple.first.plan}
    return {name: deliver(made, name, plan) for name, plan in plans.items()}


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a `gh`; return the folder in which it keeps the files of a release."""
    program = write_program(tmp_path / "programs" / "gh", f'exec "{sys.executable}" "{gh_program.__file__}" "$@"')
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv(TOKEN, "t")
    monkeypatch.setenv("GH_STAND_IN", str(tmp_path / "hub.json"))
    monkeypatch.setenv("GH_STAND_IN_TAGS", TAG)
    return tmp_path / "hub.files"


def draft(folder: Path) -> tuple[str, ...]:
    (folder / "CHANGELOG.md").write_text("## 1.0.0\n\n- one\n")
    return draft_release(TAG, folder / "deliveries", folder / "CHANGELOG.md")


def publish(apps: Apps, assets: Path) -> None:
    """Have GitHub offer what was drafted, and check that its sums are of each file and of nothing else."""
    files = {path.name: path.read_bytes() for path in assets.iterdir() if path.name != SUMS}
    assert (assets / SUMS).read_bytes() == sums(files)
    assert all(set(name) <= set(KEPT) for name in files)
    apps.service.release(TAG, files)


KEPT: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
"""Characters that GitHub leaves as they are in the names of a release's files."""


def fetch(apps: Apps, what: Any) -> Fetched:
    place = App(folder=apps.folder / "app", output=None)
    return fetch_files(what, Remote(repository=""), place, Console(stdout=io.StringIO(), stderr=io.StringIO()))


def fetched_files(apps: Apps) -> dict[str, bytes]:
    """Return what lies in the app's output, by path, but for its sums."""
    output = apps.output()
    found = (path for path in output.rglob("*") if path.is_file() and path.name != SUMS)
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("target", ["linux-x64", "android", "apple"])
def test_every_file_of_a_delivery_comes_back(
    apps: Apps, tmp_path: Path, delivered: dict[str, dict[str, bytes]], assets: Path, target: str
) -> None:
    draft(tmp_path)
    publish(apps, assets)
    files = delivered[target]
    assert any("/" in path for path in files)
    fetch(apps, wanted("sample", target, release=TAG))
    assert fetched_files(apps) == files
    locked = apps.lock().read_bytes()
    assert not fetch(apps, wanted()).changed
    apps.forget()
    for path in sorted(apps.output().rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert fetch(apps, wanted()).changed
    assert fetched_files(apps) == files
    assert apps.lock().read_bytes() == locked


def test_a_release_of_all_targets_has_few_files(
    tmp_path: Path, delivered: dict[str, dict[str, bytes]], assets: Path
) -> None:
    """One archive for the folders of a delivery: GitHub refuses hundreds of files that come at once."""
    names = draft(tmp_path)
    assert set(names) == {path.name for path in assets.iterdir()}
    folders = {f"ortrim-sample-{name}-folders.zip" for name in delivered}
    assert set(names) == {SUMS, *folders, *(path for files in delivered.values() for path in files if "/" not in path)}


@pytest.mark.usefixtures("delivered")
def test_a_release_drafted_again_has_the_same_bytes(tmp_path: Path, assets: Path) -> None:
    """A job that is run again changes no digest that somebody may have locked."""
    draft(tmp_path)
    before = (assets / SUMS).read_bytes()
    for path in tmp_path.joinpath("deliveries").rglob("*"):
        path.touch()
    (tmp_path / "hub.json").unlink()
    draft(tmp_path)
    assert (assets / SUMS).read_bytes() == before


@pytest.mark.usefixtures("delivered")
def test_swift_fetches_the_xcframework_by_its_address(apps: Apps, tmp_path: Path, assets: Path) -> None:
    """The zip is a file of the release by itself, and its name says which spec and version it is of."""
    draft(tmp_path)
    publish(apps, assets)
    fetch(apps, wanted("sample", "ios*", release=TAG))
    lock = read_lock(apps.lock())
    assert lock is not None
    name = "ortrim-sample-apple-1.21.0.xcframework.zip"
    assert f"/releases/download/{TAG}/{name}" in snippet("spm", snippet_files(lock))
    assert not [file.url for file in snippet_files(lock) if "onnxruntime-1.21.0" in file.url]


@pytest.mark.usefixtures("delivered")
@pytest.mark.parametrize(
    "name", ["ortrim-sample-android-folders.zip", "Ortrim-sample-android-1.21.0.AAR", SUMS.lower()]
)
def test_names_that_collide_are_refused_before_anything_is_uploaded(tmp_path: Path, assets: Path, name: str) -> None:
    """Also those of archives that are made for the release, and those that differ in capitals only."""
    other = tmp_path / "deliveries" / "delivered-sample-zother"
    other.mkdir()
    (other / name).write_text("other")
    with_sums(other)
    error = refused(PackageError, draft, tmp_path)
    assert error.code == "name-twice"
    assert error.where == name
    assert not assets.exists()


def test_files_of_two_specs_at_one_path_are_not_mixed(
    apps: Apps, tmp_path: Path, delivered: dict[str, dict[str, bytes]], assets: Path
) -> None:
    """Each can be fetched by itself; together they are refused, and nothing is placed."""
    other = tmp_path / "deliveries" / "delivered-other-android"
    (other / "models").mkdir(parents=True)
    (other / "models" / "session.json").write_text("another")
    with_sums(other)
    draft(tmp_path)
    publish(apps, assets)
    error = refused(PackageError, fetch, apps, wanted("", "android", release=TAG))
    assert error.code == "name-twice"
    assert "--spec" in error.hint
    assert apps.names() == set()
    fetch(apps, wanted("sample", "android", release=TAG))
    assert fetched_files(apps) == delivered["android"]


@pytest.mark.network
@pytest.mark.usefixtures("delivered")
def test_cmake_builds_an_application_with_the_fetched_package(apps: Apps, tmp_path: Path, assets: Path) -> None:
    draft(tmp_path)
    publish(apps, assets)
    fetch(apps, wanted("sample", "linux-x64", release=TAG))
    application = new_application(tmp_path)
    package = application.configure_with(apps.output() / f"{LINUX}.tar.gz")
    assert application.build_and_run() == f"version {onnxruntime.__version__}\n"
    require_loads(package / "models")
    assert (apps.output() / f"{LINUX}-symbols.tar.gz").is_file()


@pytest.mark.needs("gradle", "java")
def test_gradle_resolves_the_fetched_aar(
    apps: Apps, tmp_path: Path, delivered: dict[str, dict[str, bytes]], assets: Path
) -> None:
    """From the zip of the Maven repository, by the coordinates that the manifest says; it is the AAR beside it."""
    draft(tmp_path)
    publish(apps, assets)
    fetch(apps, wanted("sample", "android", release=TAG))
    (repository,) = apps.output().glob("*-maven.zip")
    (manifest,) = apps.output().glob("*.manifest.json")
    with zipfile.ZipFile(repository) as content:
        for name in content.namelist():
            content.extract(name, tmp_path / "project" / "ours")
    (found,) = resolved_files(tmp_path / "project", (json.loads(manifest.read_text())["coordinates"],))
    assert found.read_bytes() in {content for name, content in delivered["android"].items() if name.endswith(".aar")}
    require_loads(apps.output() / "models")


@pytest.mark.needs("gradle", "java")
@pytest.mark.usefixtures("delivered")
def test_gradle_takes_the_fetched_aar_in_the_official_ones_place(apps: Apps, tmp_path: Path, assets: Path) -> None:
    """By what the snippet for React Native says, in the words of Debian's Gradle, from the app's folder `android`."""
    draft(tmp_path)
    publish(apps, assets)
    fetched = fetch(apps, wanted("sample", "android", release=TAG))
    project = apps.output().parent / "android"
    project.mkdir()
    rule = in_old_words(fetched_snippet("react-native", fetched.lock, Path(apps.output().name)))
    (found,) = resolved_files(project, ("com.microsoft.onnxruntime:onnxruntime-android:1.20.0",), rule)
    assert found.is_relative_to(apps.output() / "maven")


@pytest.mark.usefixtures("delivered")
@pytest.mark.parametrize(("kind", "target"), [("python", "linux-x64"), ("rust", "linux-x64"), ("flutter", "ios*")])
def test_snippets_name_files_that_were_fetched(
    apps: Apps, tmp_path: Path, assets: Path, kind: str, target: str
) -> None:
    draft(tmp_path)
    publish(apps, assets)
    fetched = fetch(apps, wanted("sample", target, release=TAG))
    named = re.findall(r"out/[\w./-]+", fetched_snippet(kind, fetched.lock, Path("out")))
    assert len(named) == 1
    assert (apps.output() / named[0].removeprefix("out/")).is_file()


@pytest.mark.network
@pytest.mark.usefixtures("delivered")
def test_swift_reads_the_fetched_package(apps: Apps, tmp_path: Path, assets: Path) -> None:
    """The snippet names a file of the release and its SHA-256, which SwiftPM compares; so does the package."""
    draft(tmp_path)
    publish(apps, assets)
    fetch(apps, wanted("sample", "ios*", release=TAG))
    lock = read_lock(apps.lock())
    assert lock is not None
    (tmp_path / "Package.swift").write_text(snippet("spm", snippet_files(lock)))
    (target,) = binary_targets(tmp_path / "Package.swift")
    zipped = assets / target["url"].rpartition("/")[2]
    assert target["checksum"] == sha256_of(zipped) == sha256_of(apps.output() / zipped.name)
    package = apps.output() / "onnxruntime"
    beside, published = binary_targets(package / "Package.swift")
    assert (published["url"], published["checksum"]) == ("address", target["checksum"])
    assert sha256_of(package / beside["path"]) == target["checksum"]
    assert read_xcframework(package / beside["path"]).version == "1.21.0"
    require_loads(apps.output() / "models")


def require_loads(models: Path) -> None:
    """Check that each model loads and runs with the settings that `session.json` has for it."""
    said = json.loads((models / "session.json").read_text())
    assert said["models"].keys() == {path.stem for path in models.glob("*.ort")}
    for settings in said["models"].values():
        content = (models / settings["file"]).read_bytes()
        session = onnxruntime.InferenceSession(content, session_options(settings), providers=["CPUExecutionProvider"])
        given = {"input": np.zeros((1, 576), np.float32), "state": np.zeros((2, 1, 128), np.float32)}
        (probability, _) = session.run(None, {**given, "sr": np.array(16000, np.int64)})
        assert probability.shape == (1, 1)


def session_options(settings: dict[str, Any]) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    for name in ("intra_op_num_threads", "inter_op_num_threads", "enable_cpu_mem_arena", "enable_mem_pattern"):
        setattr(options, name, settings[name])
    options.execution_mode = getattr(onnxruntime.ExecutionMode, settings["execution_mode"])
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings["graph_optimization_level"])
    for name, value in settings["session_configuration"].items():
        options.add_session_config_entry(name, value)
    return options
