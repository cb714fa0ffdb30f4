"""Runs that were dispatched before: listed, taken up with a record of them and without, cancelled."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from github_builds import TWO, There, expired, github_builds
from github_checks import refused
from github_service import message
from ortrim.base.console import Console
from ortrim.errors import BuildError, Interrupted, NetworkError, PlanError, StorageError
from ortrim.github import remote_build
from ortrim.github.client import GitHub, Remote
from ortrim.github.remote_build import FOLDER, Attached, attach, build_on_github, cancel, list_runs, records_in
from ortrim.pipeline.transfer import is_compiled
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request
from pipeline_stages import Stages
from zips import zipped

ANYWHERE = Remote()
GOES_ON: Any = (("report",), ())


@pytest.fixture
def request_of_two(stages: Stages) -> Request:
    return stages.request(TWO, target="linux")


@pytest.fixture
def there(stages: Stages, request_of_two: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """Run GitHub's stand-in, which compiles both targets."""
    plan = planned_for(request_of_two, stages.console).plan
    with github_builds(plan.targets, tmp_path / "github", monkeypatch) as made:
        yield made


@pytest.fixture
def left(stages: Stages, request_of_two: Request, there: There, monkeypatch: pytest.MonkeyPatch) -> int:

    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    session = there.remote.client.session
    with monkeypatch.context() as interrupted:
        interrupted.setattr(session, "clock", replace(session.clock, sleep=pressed))
        refused(
            "run-left",
            Interrupted,
            build_on_github,
            request_of_two,
            Remote(ref="main"),
            stages.console,
            lambda _: False,
        )
    return 5000


def taken_up(stages: Stages, number: int) -> Attached:
    return attach(number, stages.folder / "artifacts", ANYWHERE, stages.console, lambda _: False)


def test_a_run_that_was_left_is_taken_up(stages: Stages, there: There, request_of_two: Request, left: int) -> None:
    """By its record, so that the build goes on with what it compiled."""
    assert taken_up(stages, left) == GOES_ON
    assert all(map(is_compiled, planned_for(request_of_two, stages.console).plan.targets))
    assert len(there.bodies) == 1


def test_a_run_is_looked_for_where_its_record_says(
    stages: Stages, there: There, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the command line says otherwise."""
    asked: list[str] = []

    def told(remote: Remote, _: Console) -> GitHub:
        asked.append(remote.repository)
        return there.remote.client

    monkeypatch.setattr(remote_build, "connect", told)
    output = stages.folder / "artifacts"
    for remote in (ANYWHERE, Remote(repository="fork/ort")):
        attach(left, output, remote, stages.console, lambda _: False)
    cancel(left, stages.folder / "elsewhere", ANYWHERE, stages.console)
    assert asked == ["github.invalid/octo/ort", "fork/ort", ""]


def test_a_run_taken_up_twice_is_not_fetched_twice(stages: Stages, there: There, left: int) -> None:
    taken_up(stages, left)
    assert taken_up(stages, left) == GOES_ON
    assert sum(line.endswith("/zip 302") for line in there.remote.service.lines()) == 2
    assert "nothing of the run 5000 is missing here" in stages.stdout.getvalue()


def test_what_changed_since_the_dispatch_is_reported(stages: Stages, there: There, left: int) -> None:
    """Another profile is another library; what the run compiles would be of no use."""
    spec = stages.folder / "sample.toml"
    spec.write_text(f'profile = "upstream"\n{spec.read_text()}')
    assert refused("plan-changed", PlanError, taken_up, stages, left).where == "linux-x64"


def test_what_failed_there_is_not_compiled_here(stages: Stages, there: There, left: int) -> None:
    """Its error is reported, and again when it is asked for again."""
    run = there.remote.service.runs[0]
    there.fail = {"linux-arm64"}
    failed = there._run()
    run.jobs, run.artifacts, run.conclusion = failed.jobs, failed.artifacts, failed.conclusion
    for _ in range(2):
        refused("run-failed", BuildError, taken_up, stages, left)


def test_without_a_record_the_artifacts_are_fetched(stages: Stages, there: There, left: int, tmp_path: Path) -> None:
    """Into a folder of the run's own, and it is said that this is all; a second time nothing is fetched."""
    output = tmp_path / "other"
    came = attach(left, output, ANYWHERE, stages.console, lambda _: False)
    names = ("compiled-sample-linux-x64", "compiled-sample-linux-arm64")
    assert came == ((), tuple(output / "from-github" / FOLDER / "5000" / name for name in names))
    assert [[file.name for file in folder.iterdir()] for folder in came[1]] == [
        ["compiled-linux-x64.tar.gz"], ["compiled-linux-arm64.tar.gz"]
    ]  # fmt: skip
    assert "has no record of the run 5000" in stages.stdout.getvalue()
    assert attach(left, output, ANYWHERE, stages.console, lambda _: False) == came
    assert sum(line.endswith("/zip 302") for line in there.remote.service.lines()) == 2


def test_names_of_artifacts_lead_nowhere_else(stages: Stages, there: There, left: int, tmp_path: Path) -> None:
    run = there.remote.service.runs[0]
    first, second = run.artifacts
    run.artifacts = (replace(first, name="../../evil"), replace(second, name=".."), expired(replace(first, id=77)))
    came = attach(left, tmp_path / "other", ANYWHERE, stages.console, lambda _: False)
    assert [folder.name for folder in came[1]] == [f"artifact-{first.id}", f"artifact-{second.id}"]
    assert not (tmp_path / "evil").exists()
    assert "compiled-sample-linux-x64: expired" in stages.stdout.getvalue()


@pytest.mark.parametrize("content", ["{}", "as it is"])
def test_what_a_run_left_is_never_taken_for_a_record(
    stages: Stages, there: There, left: int, tmp_path: Path, content: str
) -> None:
    """Whoever names an artifact after the folder of records neither stops this program nor tells it what to do."""
    (record,) = (stages.folder / "artifacts").glob(f"*/*/{FOLDER}/*.json")
    stored = zipped({"x.json": record.read_text() if content == "as it is" else content})
    run = there.remote.service.runs[0]
    run.artifacts = tuple(
        replace(run.artifacts[0], id=number, name=name, content=stored)
        for number, name in enumerate((FOLDER, "5000", "from-github"), start=60)
    )
    output = tmp_path / "other"
    came = [attach(left, output, ANYWHERE, stages.console, lambda _: False) for _ in range(2)]
    assert came[0] == came[1]
    assert [[file.name for file in folder.iterdir()] for folder in came[0][1]] == [["x.json"]] * 3
    assert records_in(output) == ()


def test_of_a_run_that_was_repeated_the_newest_is_fetched(
    stages: Stages, there: There, left: int, tmp_path: Path
) -> None:
    run = there.remote.service.runs[0]
    run.attempt = 2
    run.artifacts = (replace(run.artifacts[1], id=90), replace(run.artifacts[0], id=50, name=run.artifacts[1].name))
    came = attach(left, tmp_path / "other", ANYWHERE, stages.console, lambda _: False)
    (folder,) = came[1]
    assert folder.parent.name == "5000-2"
    assert [file.name for file in folder.iterdir()] == ["compiled-linux-arm64.tar.gz"]


@pytest.mark.parametrize("strange", [{"path": ".github/workflows/ci.yml@main"}, {"head_repository": "stranger/ort"}])
def test_a_run_of_somebody_else_is_not_taken(
    stages: Stages, there: There, left: int, tmp_path: Path, strange: dict[str, str]
) -> None:
    """A pull request of a fork runs in this repository, too, and leaves what its owner likes."""
    run = there.remote.service.runs[0]
    there.remote.service.runs[0] = replace(run, **strange)  # type: ignore[arg-type]
    refused("run-not-ours", NetworkError, attach, left, tmp_path / "other", ANYWHERE, stages.console, lambda _: False)
    assert not (tmp_path / "other").exists()


def test_a_run_that_is_not_there_is_reported(stages: Stages, there: There) -> None:
    before = sorted((stages.folder / "artifacts").rglob("*"))
    refused("run-not-found", NetworkError, taken_up, stages, 4711)
    assert sorted((stages.folder / "artifacts").rglob("*")) == before


def test_a_run_without_a_record_says_where_it_is_when_it_is_left(
    stages: Stages, there: There, left: int, tmp_path: Path
) -> None:
    """The words of the hint find it from anywhere."""
    there.remote.service.fault("GET .*/artifacts", message(403, "no"))
    error = refused(
        "github-refused", NetworkError, attach, left, tmp_path / "other", ANYWHERE, stages.console, lambda _: False
    )
    assert "invoke attach 5000 --repo github.invalid/octo/ort" in error.hint


def test_a_run_is_cancelled_once(stages: Stages, there: There, left: int) -> None:
    output = stages.folder / "artifacts"
    assert cancel(left, output, ANYWHERE, stages.console)
    there.remote.clock.now += 30
    assert not cancel(left, output, ANYWHERE, stages.console)
    refused("run-cancelled", BuildError, taken_up, stages, left)


def test_a_damaged_record_is_reported(stages: Stages, there: There, left: int) -> None:
    """With its file, before GitHub is asked."""
    (file,) = (stages.folder / "artifacts").glob(f"*/*/{FOLDER}/*.json")
    file.write_bytes(b"\xff\x00")
    asked = len(there.remote.service.seen)
    assert refused("record-damaged", StorageError, taken_up, stages, left).where == str(file)
    assert len(there.remote.service.seen) == asked


def test_the_latest_runs_are_listed(stages: Stages, there: There, left: int) -> None:
    there.remote.service.start("build linux-x64 [00000000]")
    titles = [run.display_title for run in list_runs(ANYWHERE, stages.console)]
    assert titles[0] == "build linux-x64 [00000000]"
    assert titles[1].startswith("build linux-x64,linux-arm64 [")
