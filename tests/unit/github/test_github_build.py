"""`--executor github`: what is dispatched, what comes home, and what is left when something goes wrong."""

import io
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from finished_builds import leave_compiled
from github_builds import TWO, There, expired, github_builds
from github_checks import check_secrets, refused
from github_service import TOKEN, message
from github_state import Workflow
from github_wire import Reply
from ortrim.base.cache import cache_folder
from ortrim.base.command import Terminated
from ortrim.base.console import Bar, Console
from ortrim.compiling.plan import BuildPlan
from ortrim.errors import BuildError, DiagnosticGroup, ExitCode, Interrupted, NetworkError, PlanError, StorageError
from ortrim.github import remote_build
from ortrim.github.client import Remote, Run
from ortrim.github.remote_build import FOLDER, build_on_github
from ortrim.pipeline.transfer import is_compiled
from ortrim.planning.planned import planned_for
from ortrim.platforms.linux import platform as linux_toolchains
from pipeline_stages import Stages
from sample_plans import system_gcc

MAIN = Remote(ref="main")
BOTH = ["linux-x64", "linux-arm64"]


class Build:
    """A build of two Linux targets at GitHub, as the user starts it again and again."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.request = stages.request(TWO, target="linux")
        self.asked: list[Run] = []
        self.cancel = False

    def __call__(self, remote: Remote = MAIN) -> Any:
        return build_on_github(self.request, remote, self.stages.console, self._wants_cancel)

    def _wants_cancel(self, run: Run) -> bool:
        self.asked.append(run)
        return self.cancel

    @property
    def plan(self) -> BuildPlan:
        """The plan of both targets."""
        return planned_for(self.request, self.stages.console).plan

    @property
    def compiled(self) -> list[str]:
        return [target.identifier for target in self.plan.targets if is_compiled(target)]

    @property
    def records(self) -> list[dict[str, Any]]:
        files = (self.stages.folder / "artifacts").glob(f"*/*/{FOLDER}/*.json")
        return [json.loads(file.read_text()) for file in files]

    def require_clean(self) -> None:
        assert list(cache_folder("fetched").iterdir()) == []
        assert list(self.stages.folder.rglob("*partial*")) == []


@pytest.fixture
def build(stages: Stages) -> Build:
    return Build(stages)


@pytest.fixture
def there(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    with github_builds(build.plan.targets, tmp_path / "github", monkeypatch) as made:
        yield made


def interrupting(
    there: There, monkeypatch: pytest.MonkeyPatch, after: int = 1, by: type[BaseException] = KeyboardInterrupt
) -> None:
    """Press Ctrl-C when GitHub has been waited for so many times."""
    clock = there.remote.client.session.clock
    left = [after]

    def sleep(seconds: float) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise by
        clock.sleep(seconds)

    monkeypatch.setattr(there.remote.client.session, "clock", replace(clock, sleep=sleep))


# What goes there and comes back


def test_what_is_compiled_there_is_taken_here(stages: Stages, there: There, build: Build) -> None:
    """Dispatched once, followed to its end, fetched, and then the build goes on as if it had compiled here."""
    assert build() == ("report",)
    assert build.compiled == BOTH
    (body,) = there.bodies
    assert (body["ref"], body["inputs"]["target"]) == ("main", "linux-x64,linux-arm64")
    build.require_clean()
    (record,) = build.records
    assert (record["run"], record["site"], record["ref"]) == (5000, "github.invalid/octo/ort", "main")


def test_a_workflow_that_calls_the_build_is_dispatched(there: There, build: Build) -> None:
    """That of an app's repository takes three inputs; a lost answer does not matter, for its run has the same name."""
    service = there.remote.service
    inputs = frozenset({"target", "plan", "correlation_id"})
    service.workflows = {"compile.yml": Workflow(inputs=inputs, tells_run=False)}
    assert build(Remote(ref="main", workflow="compile.yml")) == ("report",)
    assert build.compiled == BOTH
    assert {run.path for run in service.runs} == {".github/workflows/compile.yml@main"}
    assert build.records[0]["workflow"] == "compile.yml"


def test_a_log_has_one_line_for_each_change(stages: Stages, there: There, build: Build) -> None:
    """However often GitHub is asked; in the end it says what the talking took."""
    there.remote.service.fault("GET .*/jobs", Reply(status=502))
    build()
    lines = [line.strip() for line in stages.stdout.getvalue().splitlines()]
    assert [line for line in lines if line.startswith("compile linux-x64")] == [
        "compile linux-x64: between two steps", "compile linux-x64: Compile",
        "compile linux-x64: between two steps", "compile linux-x64: success",
    ]  # fmt: skip
    traffic = there.remote.client.session.traffic
    (account,) = (line for line in lines if line.endswith("of them twice"))
    assert f"1 of them repeated, {traffic.unchanged} unchanged; {traffic.bytes_received:,} bytes" in account


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_where_each_job_is(there: There, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bar that moves; the lines that stay are of jobs that ended."""
    moved: list[tuple[float, float, str]] = []
    monkeypatch.setattr(Bar, "show", lambda _, *words: moved.append(words))
    shown = Terminal()
    build.stages.console = Console(
        stdout=shown, stderr=io.StringIO(), environment={"TERM": "xterm", "COLUMNS": "250", "NO_COLOR": "1"}
    )
    build()
    assert (0, 2, "compile linux-x64: Compile, compile linux-arm64: Compile; 0 of 2 jobs over") in moved
    assert (2, 2, "over: success") in moved
    text = shown.getvalue()
    assert "  compile linux-x64: success" in text
    assert "compile linux-x64: between two steps" not in text


def test_no_more_than_compiling_takes_leaves_this_machine(stages: Stages, there: There, build: Build) -> None:
    """Neither the model's name nor its digests, nor budgets; nothing of this machine."""
    build.request = stages.request(f"[budgets]\nlibrary_bytes = 471100000\n{TWO}", target="linux")
    build()
    (plan,) = there.plans
    sent = b"".join(seen.body for seen in there.remote.service.seen) + repr(plan).encode()
    for word in ("tiny", "471100000", str(stages.folder), TOKEN):
        assert word.encode() not in sent


def test_only_what_is_missing_is_dispatched(there: There, build: Build) -> None:
    """One of two targets was compiled here before."""
    leave_compiled(build.plan.targets[0])
    build()
    (sent,) = there.plans
    assert [target.id for target in sent.given.spec.targets] == ["linux-arm64"]


def test_a_failed_target_does_not_lose_the_others(there: There, build: Build) -> None:
    """Its error is reported, with the end of its log; next time it is the only one that is dispatched."""
    there.fail = {"linux-arm64"}
    assert "dlopen" in refused("run-failed", BuildError, build).why
    assert (build.compiled, build.records) == (["linux-x64"], [])
    there.fail = set()
    build()
    assert [len(sent.given.spec.targets) for sent in there.plans] == [2, 1]
    assert build.compiled == BOTH


def test_when_all_fail_all_are_reported(there: There, build: Build) -> None:
    there.fail = set(BOTH)
    with pytest.raises(DiagnosticGroup) as caught:
        build()
    assert (len(caught.value.diagnostics), caught.value.exit_code) == (2, ExitCode.BUILD)
    assert build.compiled == []
    build.require_clean()


def test_two_at_once_dispatch_once(stages: Stages, there: There, build: Build) -> None:
    """The second takes up the run of the first."""
    other = Build(stages)
    other.request = build.request
    with ThreadPoolExecutor(2) as both:
        ended = [both.submit(each) for each in (build, other)]
    assert [each.result() for each in ended] == [("report",), ("report",)]
    assert len(there.bodies) == 1
    build.require_clean()


# What is not sent


def test_what_only_this_machine_can_build_is_not_sent(
    stages: Stages, there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before anything is asked of GitHub."""
    monkeypatch.setattr(linux_toolchains, "system_toolchain", lambda _: system_gcc())
    build.request = stages.request('[[targets]]\nid = "linux-x64"\ncompiler = "gcc"\n', target="linux-x64")
    assert "gcc is a compiler of this machine" in refused("plan-cannot-travel", PlanError, build).why
    assert there.remote.service.seen == []


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        (message(422, "No ref found for: main"), "ref-not-found"),
        (message(422, "Unexpected inputs provided"), "workflow-inputs-refused"),
        (message(404, "Not Found"), "workflow-not-found"),
        (message(401, "Bad credentials"), "github-refused"),
        (message(403, "API rate limit exceeded", **{"Retry-After": "4000"}), "github-rate-limited"),
    ],
)
def test_a_dispatch_that_was_refused_leaves_no_record(there: There, build: Build, reply: Reply, reference: str) -> None:
    there.remote.service.fault("POST", reply)
    refused(reference, NetworkError, build)
    assert build.records == []
    assert build.compiled == []


# Runs taken up again


def test_ctrl_c_leaves_the_run_and_says_how_to_take_it_up(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is asked; the same command then goes on with the same run."""
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        error = refused("run-left", Interrupted, build)
    assert [run.id for run in build.asked] == [5000]
    assert f"invoke attach 5000 --output {build.request.output}" in error.hint
    assert "--cancel" in error.hint
    assert there.remote.service.runs[0].cancels_at is None
    assert build() == ("report",)
    assert (len(there.bodies), build.compiled) == (1, BOTH)


def test_a_termination_leaves_the_run_and_asks_nobody(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends us waits for no answer; how to take the run up is said."""
    interrupting(there, monkeypatch, by=Terminated)
    error = refused("run-left", Interrupted, build)
    assert build.asked == []
    assert "invoke attach 5000" in error.hint


def test_ctrl_c_cancels_the_run_when_the_user_wants_that(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command then dispatches anew, as nothing is left of it."""
    build.cancel = True
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        refused("run-cancelled", Interrupted, build)
    assert there.remote.service.runs[0].cancels_at is not None
    assert build.records == []
    build()
    assert len(there.bodies) == 2


def test_nobody_is_asked_to_cancel_what_is_over(there: There, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while artifacts are fetched: the same command fetches the rest."""
    build.cancel = True
    with monkeypatch.context() as pressed:

        def press(*_: object) -> None:
            raise KeyboardInterrupt

        pressed.setattr(remote_build, "import_compiled", press)
        refused("run-left", Interrupted, build)
    assert build.asked == []
    build.require_clean()
    assert build() == ("report",)
    assert len(there.bodies) == 1


def test_a_run_that_cannot_be_cancelled_is_reported(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.cancel = True
    interrupting(there, monkeypatch)
    there.remote.service.fault("/cancel", message(403, "no"))
    assert "invoke attach 5000" in refused("github-refused", NetworkError, build).hint


def test_a_dispatch_whose_answer_was_not_awaited_is_found_again(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark was written down before it was sent."""
    there.remote.service.workflows["build.yml"].tells_run = False
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        refused("run-left", Interrupted, build)
    (record,) = build.records
    assert record["run"] is None
    assert build() == ("report",)
    assert len(there.bodies) == 1
    assert build.records[0]["run"] == 5000


def test_a_run_for_other_jobs_is_not_taken_up(
    stages: Stages, there: There, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not compile what is asked for now."""
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        refused("run-left", Interrupted, build)
    build.request = replace(build.request, profile="upstream")
    refused("compiled-for-another-plan", BuildError, build)
    assert len(there.bodies) == 2
    build.require_clean()


@pytest.mark.parametrize(("status", "reference"), [(404, "run-not-found"), (410, "github-gone")])
def test_a_run_that_was_deleted_meanwhile(there: There, build: Build, status: int, reference: str) -> None:
    """One that is gone does not stand in the way of the next."""
    there.remote.service.fault("GET .*/jobs", message(status, "gone"))
    refused("github-not-found" if status == 404 else reference, NetworkError, build)
    there.remote.service.runs.clear()
    build()
    assert len(there.bodies) == 2


@pytest.mark.parametrize("end", ["failure", "cancelled", "deleted"])
def test_a_run_that_failed_unseen_is_asked_for_once(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The next build dispatches anew, and those after it do not look at the old run again."""
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        refused("run-left", Interrupted, build)
    there.remote.clock.now += 1000
    run = there.remote.service.runs[0]
    run.conclusion = end
    run.listed = float("inf") if end == "deleted" else 0
    build()
    assert [record["run"] for record in build.records] == [5001]
    assert len(there.bodies) == 2


@pytest.mark.parametrize(("age", "left"), [(0, [None, 5000]), (3600, [5000])])
def test_a_dispatch_that_came_to_nothing_is_forgotten(
    there: There, build: Build, monkeypatch: pytest.MonkeyPatch, age: float, left: list[int | None]
) -> None:
    """Once GitHub has had the time to list its run."""
    there.remote.service.workflows["build.yml"].tells_run = False
    with monkeypatch.context() as pressed:
        interrupting(there, pressed)
        refused("run-left", Interrupted, build)
    there.remote.service.runs.clear()
    (file,) = (build.stages.folder / "artifacts").glob(f"*/*/{FOLDER}/*.json")
    then = time.time() - age
    os.utime(file, (then, then))
    build()
    assert sorted((record["run"] for record in build.records), key=bool) == left


def test_artifacts_that_expired_are_not_waited_for_again(there: There, build: Build) -> None:
    """The error says to build again, and that dispatches."""
    compiled = there.compiled
    there.compiled = tuple(map(expired, compiled))
    refused("artifact-expired", NetworkError, build)
    assert build.records == []
    there.compiled = compiled
    assert build() == ("report",)
    assert len(there.bodies) == 2


def test_what_was_damaged_on_its_way_is_not_taken(there: There, build: Build) -> None:
    """Nothing of it is left; what came before stays."""
    first, second = there.compiled
    there.compiled = (first, replace(second, content=second.content[:-30]))
    refused("corrupt-archive", StorageError, build)
    assert build.compiled == ["linux-x64"]
    build.require_clean()


def test_a_digest_that_is_not_the_artifacts_is_reported(there: There, build: Build) -> None:
    there.compiled = tuple(replace(each, digest=f"sha256:{'0' * 64}") for each in there.compiled)
    assert "invoke attach 5000" in refused("artifact-digest-mismatch", NetworkError, build).hint
    assert build.compiled == []
    build.require_clean()


def test_a_record_that_is_damaged_is_reported(there: There, build: Build) -> None:
    """A run may be behind it, so that nothing is dispatched before somebody looked."""
    build()
    folder = next((build.stages.folder / "artifacts").glob(f"*/*/{FOLDER}"))
    (folder / "0000.json").write_text('{"schema": "other"}')
    for name in ("builds", "runners"):
        for each in cache_folder(name).iterdir():
            each.rename(cache_folder("moved") / each.name)
    error = refused("record-damaged", StorageError, build)
    assert "remove it" in error.hint
    assert len(there.bodies) == 1
    check_secrets(error)
