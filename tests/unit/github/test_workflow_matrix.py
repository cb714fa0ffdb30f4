"""The matrix: every target of a plan on a machine that can compile it, and every target in one delivery."""

import fnmatch
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.buildspec.buildspec import TargetSpec
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildPlan
from ortrim.errors import PlanError
from ortrim.github.workflow_files import (
    MACOS,
    MOST_JOBS,
    UBUNTU,
    UBUNTU_ARM,
    JobMatrix,
    matrix_json,
    matrix_of,
    runner_of,
)
from ortrim.platforms import target_problems
from refusing import refused
from sample_plans import sample_plan, sample_target

FOLDER = Path(__file__).parents[3] / "buildspecs"
BUILDSPECS = sorted(path for path in FOLDER.glob("*.toml") if ".hot" not in path.suffixes)


def plan_of(*identifiers: str, name: str = "sample") -> BuildPlan:
    return sample_plan(selected=tuple(sample_target(each) for each in identifiers), name=name)


def test_each_target_is_compiled_on_a_machine_of_its_own() -> None:
    """In the order of the plan, each with the artifact that later jobs ask for."""
    compiled = matrix_of(plan_of("linux-x64", "linux-arm64")).compiled
    assert [(job.target, job.runner, job.artifact) for job in compiled] == [
        ("linux-x64", "ubuntu-24.04", "compiled-sample-linux-x64"),
        ("linux-arm64", "ubuntu-24.04-arm", "compiled-sample-linux-arm64"),
    ]


@pytest.mark.parametrize("identifier", TARGETS)
def test_a_runner_can_compile_its_target(identifier: str) -> None:
    """The NDK runs on x86-64 alone, Xcode on Macs; arm64 Linux is compiled where it can be run, too."""
    others = {"linux-arm64": "ubuntu-24.04-arm"} | {name: "macos-15" for name in TARGETS if name[:3] in {"ios", "mac"}}
    assert runner_of(TARGETS[identifier]) == others.get(identifier, "ubuntu-24.04")


def test_a_linux_target_is_a_delivery_of_its_own() -> None:
    (delivery,) = matrix_of(plan_of("linux-armhf")).delivered
    assert (delivery.name, delivery.targets) == ("linux-armhf", "linux-armhf")
    assert (delivery.artifacts, delivery.artifact) == ("compiled-sample-linux-armhf", "delivered-sample-linux-armhf")


def test_all_abis_of_android_are_one_delivery() -> None:
    """They are compiled side by side and become one AAR, of exactly the ABIs that were asked for."""
    matrix = matrix_of(plan_of("linux-x64", "android-arm64-v8a", "android-x86_64"))
    assert len(matrix.compiled) == 3
    linux, android = matrix.delivered
    assert linux.name == "linux-x64"
    assert (android.name, android.targets) == ("android", "android-arm64-v8a,android-x86_64")
    assert (android.artifacts, android.artifact) == ("compiled-sample-android-*", "delivered-sample-android")
    assert android.runner == "ubuntu-24.04"


def test_all_slices_of_apple_are_one_delivery() -> None:
    """Phone, simulator and Mac are compiled on machines of their own, and one Mac makes an xcframework of them all."""
    matrix = matrix_of(plan_of("linux-x64", "macos-arm64", "ios-arm64", "ios-simulator-x86_64", "maccatalyst-arm64"))
    assert {job.runner for job in matrix.compiled if job.target != "linux-x64"} == {"macos-15"}
    _, apple = matrix.delivered
    assert (apple.name, apple.targets) == ("apple", "macos-arm64,ios-arm64,ios-simulator-x86_64,maccatalyst-arm64")
    assert (apple.artifacts, apple.artifact) == ("compiled-sample-apple-*", "delivered-sample-apple")
    assert apple.runner == "macos-15"


def test_a_dispatched_plan_is_compiled_only() -> None:
    """Its models are elsewhere, and so is verification."""
    assert matrix_of(plan_of("linux-x64"), delivered=False).delivered == ()


def test_the_matrix_is_what_github_reads() -> None:
    """One line of JSON with an entry for each job, all of it words and numbers."""
    matrix = matrix_of(plan_of("linux-x64", "linux-arm64"))
    text = matrix_json(matrix.compiled)
    assert "\n" not in text
    entries = json.loads(text)["include"]
    assert [entry["target"] for entry in entries] == ["linux-x64", "linux-arm64"]
    assert {type(value) for entry in entries for value in entry.values()} == {str, int}


def test_two_buildspecs_in_one_run_do_not_share_artifacts() -> None:
    """A release builds several; each name has that of its buildspec."""
    matrices = [matrix_of(plan_of("linux-x64", name=name)) for name in ("one", "two")]
    names = [job.artifact for matrix in matrices for job in matrix.compiled]
    names += [job.artifact for matrix in matrices for job in matrix.delivered]
    assert len(set(names)) == len(names) == 4


def test_more_jobs_than_github_takes_are_refused() -> None:
    """With what to do, before anything is compiled."""
    plan = plan_of("linux-x64")
    assert (
        refused(PlanError, matrix_of, replace(plan, targets=plan.targets * (MOST_JOBS + 1))).code == "matrix-too-large"
    )
    assert len(matrix_of(replace(plan, targets=plan.targets * MOST_JOBS)).compiled) == MOST_JOBS


def matrix_of_file(path: Path) -> tuple[list[str], JobMatrix]:
    spec = load_spec(path, target_problems)
    targets: tuple[TargetSpec, ...] = spec.targets or tuple(map(sample_target, TARGETS))
    return sorted(target.id for target in targets), matrix_of(sample_plan(selected=targets, name=spec.name))


def test_there_are_buildspecs() -> None:
    """And every target is in one of them, so that the tests below say something of each."""
    assert len(BUILDSPECS) >= 3
    assert {name for path in BUILDSPECS for name in matrix_of_file(path)[0]} == set(TARGETS)


@pytest.mark.parametrize("path", BUILDSPECS, ids=lambda path: path.stem)
def test_the_matrix_covers_every_target_of_every_buildspec(path: Path) -> None:
    """Each target is compiled once and delivered once, with nothing in between lost."""
    wanted, matrix = matrix_of_file(path)
    assert sorted(job.target for job in matrix.compiled) == wanted
    assert sorted(name for job in matrix.delivered for name in job.targets.split(",")) == wanted


@pytest.mark.parametrize("path", BUILDSPECS, ids=lambda path: path.stem)
def test_no_entry_of_the_matrix_lacks_anything(path: Path) -> None:
    """Each has a runner, a limit of time, and an artifact of its own; GitHub takes what is absent for empty."""
    _, matrix = matrix_of_file(path)
    rendered = [json.loads(matrix_json(jobs))["include"] for jobs in (matrix.compiled, matrix.delivered)]
    for entry in (*rendered[0], *rendered[1]):
        assert entry["runner"] in {UBUNTU, UBUNTU_ARM, MACOS}
        assert 0 < entry["minutes"] <= 120
        assert all(entry.values())
    artifacts = [entry["artifact"] for entries in rendered for entry in entries]
    assert len(set(artifacts)) == len(artifacts)


@pytest.mark.parametrize("path", BUILDSPECS, ids=lambda path: path.stem)
def test_a_delivery_takes_the_artifacts_of_its_targets(path: Path) -> None:
    """Of exactly those, by GitHub's pattern."""
    _, matrix = matrix_of_file(path)
    for job in matrix.delivered:
        taken = [each.target for each in matrix.compiled if fnmatch.fnmatchcase(each.artifact, job.artifacts)]
        assert sorted(taken) == sorted(job.targets.split(","))
