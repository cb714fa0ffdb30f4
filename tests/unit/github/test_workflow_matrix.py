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
from ortrim.github import workflow_files
from ortrim.platforms import target_problems
from refusing import refused
from sample_plans import sample_plan, sample_target

FOLDER = Path(__file__).parents[3] / "buildspecs"
BUILDSPECS = sorted(path for path in FOLDER.glob("*.toml") if ".hot" not in path.suffixes)


def plan_of(*identifiers: str, name: str = "sample") -> BuildPlan:
    return sample_plan(selected=tuple(sample_target(each) for each in identifiers), name=name)


def test_each_target_is_compiled_on_a_machine_of_its_own() -> None:
    """In the order of the plan, each with the artifact that later jobs ask for; in one line of JSON for GitHub."""
    compiled = workflow_files.compile_jobs(plan_of("linux-x64", "linux-arm64"))
    assert [(job.target, job.runner, job.artifact) for job in compiled] == [
        ("linux-x64", "ubuntu-24.04", "compiled-sample-linux-x64"),
        ("linux-arm64", "ubuntu-24.04-arm", "compiled-sample-linux-arm64"),
    ]
    text = workflow_files.matrix_json(compiled)
    assert "\n" not in text
    entries = json.loads(text)["include"]
    assert [entry["target"] for entry in entries] == ["linux-x64", "linux-arm64"]
    assert {type(value) for entry in entries for value in entry.values()} == {str, int}


@pytest.mark.parametrize("identifier", TARGETS)
def test_a_runner_can_compile_its_target(identifier: str) -> None:
    """The NDK runs on x86-64 alone, Xcode on Macs; arm64 Linux is compiled where it can be run, too."""
    others = {"linux-arm64": "ubuntu-24.04-arm"} | {name: "macos-15" for name in TARGETS if name[:3] in {"ios", "mac"}}
    assert workflow_files.runner_of(TARGETS[identifier]) == others.get(identifier, "ubuntu-24.04")


APPLE = ("macos-arm64", "ios-arm64", "ios-simulator-x86_64", "maccatalyst-arm64")


@pytest.mark.parametrize(
    ("targets", "name", "artifacts", "runner"),
    [
        (("linux-armhf",), "linux-armhf", "linux-armhf", "ubuntu-24.04"),
        (("android-arm64-v8a", "android-x86_64"), "android", "android-*", "ubuntu-24.04"),
        (APPLE, "apple", "apple-*", "macos-15"),
    ],
)
def test_what_is_packaged_together_is_one_delivery(
    targets: tuple[str, ...], name: str, artifacts: str, runner: str
) -> None:
    """Of exactly the targets that were asked for; one of Linux is by itself."""
    linux, *deliveries = workflow_files.deliver_jobs(plan_of("linux-x64", *targets))
    assert (linux.name, linux.targets) == ("linux-x64", "linux-x64")
    (delivery,) = deliveries
    assert (delivery.name, delivery.targets) == (name, ",".join(targets))
    assert (delivery.artifacts, delivery.artifact) == (f"compiled-sample-{artifacts}", f"delivered-sample-{name}")
    assert delivery.runner == runner


def test_two_buildspecs_in_one_run_do_not_share_artifacts() -> None:
    """A release builds several; each name has that of its buildspec."""
    plans = [plan_of("linux-x64", name=name) for name in ("one", "two")]
    names = [job.artifact for plan in plans for job in workflow_files.compile_jobs(plan)]
    names += [job.artifact for plan in plans for job in workflow_files.deliver_jobs(plan)]
    assert len(set(names)) == len(names) == 4


def test_more_jobs_than_github_takes_are_refused() -> None:
    """With what to do, before anything is compiled."""
    plan = plan_of("linux-x64")
    crowd = replace(plan, targets=plan.targets * (workflow_files.MOST_JOBS + 1))
    assert refused(PlanError, workflow_files.compile_jobs, crowd).code == "matrix-too-large"
    assert (
        len(workflow_files.compile_jobs(replace(plan, targets=plan.targets * workflow_files.MOST_JOBS)))
        == workflow_files.MOST_JOBS
    )


def test_there_are_buildspecs() -> None:
    """And every target is in one of them, so that the test below says something of each."""
    assert len(BUILDSPECS) >= 3
    assert {name for path in BUILDSPECS for name in jobs_of_file(path)[0]} == set(TARGETS)


def jobs_of_file(
    path: Path,
) -> tuple[list[str], tuple[workflow_files.CompileJob, ...], tuple[workflow_files.DeliverJob, ...]]:
    spec = load_spec(path, target_problems)
    targets: tuple[TargetSpec, ...] = spec.targets or tuple(map(sample_target, TARGETS))
    plan = sample_plan(selected=targets, name=spec.name)
    return sorted(target.id for target in targets), workflow_files.compile_jobs(plan), workflow_files.deliver_jobs(plan)


@pytest.mark.parametrize("path", BUILDSPECS, ids=lambda path: path.stem)
def test_every_target_of_a_buildspec_is_compiled_and_delivered_once(path: Path) -> None:
    """Each delivery takes the artifacts of its targets, by GitHub's pattern; no entry of a matrix lacks anything."""
    wanted, compiled, delivered = jobs_of_file(path)
    assert sorted(job.target for job in compiled) == wanted
    assert sorted(name for job in delivered for name in job.targets.split(",")) == wanted
    for job in delivered:
        taken = [each.target for each in compiled if fnmatch.fnmatchcase(each.artifact, job.artifacts)]
        assert sorted(taken) == sorted(job.targets.split(","))
    entries = [
        entry for jobs in (compiled, delivered) for entry in json.loads(workflow_files.matrix_json(jobs))["include"]
    ]
    for entry in entries:
        assert entry["runner"] in {workflow_files.UBUNTU, workflow_files.UBUNTU_ARM, workflow_files.MACOS}
        assert 0 < entry["minutes"] <= 120
        assert all(entry.values())
    assert len({entry["artifact"] for entry in entries}) == len(entries)
