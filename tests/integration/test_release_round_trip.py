"""A release of real packages, drafted with the stand-in for `gh` and fetched from the stand-in for GitHub."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

import gh_program
from aar_samples import aar_inputs, fake_jdk
from apple_packages import apple_inputs
from github_fetching import Apps, running_apps, sums, wanted
from ortrim.base.checksums import SUMS
from ortrim.base.console import Console
from ortrim.build.plan import BuildPlan
from ortrim.errors import ExitCode, PackageError
from ortrim.fetch.lock import read_lock
from ortrim.fetch.run import App, Fetched, fetch_files
from ortrim.fetch.snippets import snippet, snippet_files
from ortrim.github.credentials import TOKEN
from ortrim.github.followed_run import Remote
from ortrim.github.jobs import REPORTS, hand_over, with_sums
from ortrim.github.release import draft_release
from ortrim.package.manifest import FACTS
from ortrim.pipeline.planned import Planned
from ortrim.platforms.android.aar import make_android_package
from ortrim.platforms.apple.package import make_apple_package
from sample_plans import sample_plan

LINUX: Final = "ortrim-sample-linux-x64-1.21.0"
TAG: Final = "v1.0.0"


def deliver(folder: Path, name: str, plan: BuildPlan) -> dict[str, bytes]:
    """Hand over what was packaged in `folder` as a run does; return the files for users, by path."""
    for target in plan.targets:
        (folder / target.job.target.identifier).mkdir(exist_ok=True)
        for report in REPORTS:
            (folder / target.job.target.identifier / report).write_text(f"{target.job.target.identifier} {report}")
    planned = cast("Planned", SimpleNamespace(plan=plan, folder=folder))
    destination = folder.parent / "deliveries" / f"delivered-sample-{name}"
    paths = hand_over(planned, destination, 40 * "a")
    files = {path.relative_to(destination).as_posix(): path.read_bytes() for path in paths}
    return {path: content for path, content in files.items() if path not in {FACTS, SUMS}}


def linux(folder: Path) -> BuildPlan:
    """Lay out a package for Linux, and return its plan."""
    inside = folder / "linux-x64" / LINUX
    inside.mkdir(parents=True)
    for name in ("manifest.json", "sbom.cdx.json"):
        (inside / name).write_text(name)
    inside.with_name(f"{LINUX}.tar.gz").write_bytes(b"linux")
    return sample_plan("linux-x64")


@pytest.fixture
def delivered(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of a delivery of each kind: an archive, an AAR with a Maven folder, a Swift package."""
    android, apple = aar_inputs(tmp_path / "aar", ("x86",)), apple_inputs(tmp_path / "apple", ("ios-arm64",))
    made = tmp_path / "made"
    make_android_package(android, fake_jdk(tmp_path / "jdk"), made / "android")
    make_apple_package(apple, made / "apple")
    plans = {"linux-x64": linux(made), "android": android.first.plan, "apple": apple.first.plan}
    return {name: deliver(made, name, plan) for name, plan in plans.items()}


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a `gh`; return the folder in which it keeps the files of a release."""
    program = tmp_path / "programs" / "gh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{gh_program.__file__}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv(TOKEN, "t")
    monkeypatch.setenv("GH_STAND_IN", str(tmp_path / "hub.json"))
    monkeypatch.setenv("GH_STAND_IN_TAGS", TAG)
    return tmp_path / "hub.files"


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Apps]:
    """Run the stand-in for GitHub; an app has an empty folder."""
    with running_apps(monkeypatch, tmp_path) as running:
        yield running


def draft(folder: Path) -> tuple[str, ...]:
    """Make a draft of all deliveries."""
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
    """Fetch as `invoke fetch` does in an app's folder."""
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
    """At its path and with its bytes, from a release as from a run; once more from the lock file, with a cold cache."""
    draft(tmp_path)
    publish(apps, assets)
    files = delivered[target]
    assert any("/" in path for path in files) == (target != "linux-x64")
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
    folders = {"ortrim-sample-android-folders.zip", "ortrim-sample-apple-folders.zip"}
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
    with pytest.raises(PackageError) as caught:
        draft(tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("name-twice", ExitCode.PACKAGE)
    assert caught.value.where == name
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
    with pytest.raises(PackageError) as caught:
        fetch(apps, wanted("", "android", release=TAG))
    assert caught.value.code == "name-twice"
    assert "--spec" in caught.value.hint
    assert apps.names() == set()
    fetch(apps, wanted("sample", "android", release=TAG))
    assert fetched_files(apps) == delivered["android"]
