"""`--upload-models`: models go, the delivery comes home, and nothing of the models stays there."""

import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from github_builds import There, github_builds
from github_checks import OCTO, refused
from github_service import answer, message
from github_state import Artifact, RemoteJob, RemoteRun
from github_wire import Reply
from onnx_samples import branching, write
from ortrim.base.cache import locked
from ortrim.base.checksums import SUMS
from ortrim.base.console import Console
from ortrim.errors import BuildError, DiagnosticGroup, Interrupted, NetworkError, PackageError, PlanError
from ortrim.github import remote_build, uploaded_models
from ortrim.github.followed_run import Connection, DispatchRecord, Kept, Remote, keep, records_in
from ortrim.github.jobs import with_sums
from ortrim.github.remote_build import Attached, attach, build_on_github, cancel
from ortrim.github.repositories import Repository, Site, create_ref, store_commit
from ortrim.github.uploaded_models import build_uploaded
from ortrim.github.workflow_files import read_inputs
from ortrim.pipeline.request import Request
from ortrim.report.write import write_reports
from ortrim.verify.measurements import Verdict
from ortrim.verify.reports import VerifyReport
from sample_reports import recorded_report

MAIN = Remote(ref="main")


class Stages(Protocol):
    """What conftest.py offers."""

    folder: Path
    stdout: io.StringIO
    console: Console

    def request(self, body: str = "", **changes: Any) -> Request:
        """Return a request for a buildspec with one model."""


def delivery(folder: Path, *reports: VerifyReport) -> Artifact:
    """Return the artifact that a delivering job leaves."""
    folder.mkdir()
    for report in reports:
        write_reports(report, folder / "made")
        for file in list((folder / "made").iterdir()):
            file.rename(folder / f"ortrim-sample-{report.target}-1.21.0.{file.name}")
        (folder / "made").rmdir()
    (folder / "ortrim-sample.tar.gz").write_bytes(b"package")
    with_sums(folder)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return Artifact(id=51, name="delivered-sample-linux-x64", content=content.getvalue())


class Upload:
    """A build whose models are uploaded, as the user starts it."""

    def __init__(self, stages: Stages, there: There) -> None:
        self.stages = stages
        self.there = there
        self.cancel = False
        self.seen_there: dict[str, bytes] = {}
        self.run = RemoteRun(ends=100)
        there.remote.service.template = self._started

    def _started(self) -> RemoteRun:
        ref = list(self.there.remote.service.git.refs)[-1]
        self.seen_there = self.there.remote.service.git.files(ref)
        return replace(self.run)

    def __call__(self, **changes: Any) -> tuple[VerifyReport, ...]:
        """Build."""
        request = self.stages.request(**{"target": "linux-x64", **changes})
        return build_uploaded(request, MAIN, self.stages.console, lambda _: self.cancel)

    @property
    def refs(self) -> list[str]:
        """The refs under which something still lies."""
        return list(self.there.remote.service.git.refs)

    @property
    def output(self) -> Path:
        """The folder for output."""
        return self.stages.folder / "artifacts"

    @property
    def records(self) -> tuple[Kept, ...]:
        """What is known here of dispatches."""
        return records_in(self.output)

    def leave(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Build, and press Ctrl-C while GitHub is waited for."""
        with monkeypatch.context() as patch:
            press(self.there, patch)
            with refused("run-left", Interrupted):
                self()


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """Run GitHub's stand-in."""
    with github_builds((), tmp_path / "github", monkeypatch) as made:
        monkeypatch.setattr(uploaded_models, "connect", remote_build.connect)  # type: ignore[attr-defined]
        yield made


@pytest.fixture
def upload(stages: Stages, there: There, tmp_path: Path) -> Upload:
    """Return a build whose run delivers the recorded report."""
    made = Upload(stages, there)
    made.run.artifacts = (delivery(tmp_path / "delivered", recorded_report()),)
    return made


def press(there: There, patch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C while GitHub is waited for."""

    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    session = there.remote.client.session
    patch.setattr(session, "clock", replace(session.clock, sleep=pressed))


def test_what_was_delivered_comes_home(stages: Stages, there: There, upload: Upload) -> None:
    """Checked by its sums; the models were there as long as the run, and no longer."""
    (report,) = upload()
    assert report == recorded_report()
    model = (stages.folder / "tiny.onnx").read_bytes()
    assert upload.seen_there == {"sample.toml": (stages.folder / "sample.toml").read_bytes(), "tiny.onnx": model}
    (body,) = there.bodies
    inputs = read_inputs(json.dumps(body["inputs"]))
    assert (str(inputs.spec), inputs.target, inputs.profile) == ("uploaded/sample.toml", "linux-x64", None)
    assert upload.refs == []
    assert there.remote.service.git.log == [f"+{inputs.models}", f"-{inputs.models}"]
    (sums,) = (stages.folder / "artifacts").rglob(SUMS)
    assert sums.parent == stages.folder / "artifacts" / "sample" / "uploaded" / "5000" / "delivered-sample-linux-x64"


def test_the_profile_asked_for_is_passed_on(there: There, upload: Upload) -> None:
    """As an input of the workflow."""
    upload(profile="upstream")
    assert there.bodies[0]["inputs"]["profile"] == "upstream"


def test_a_missed_budget_is_a_report_and_no_failed_run(upload: Upload, tmp_path: Path) -> None:
    """The job that delivers ends with an error then; what it says is in the report."""
    report = recorded_report()
    missed = replace(report.comparisons[0], verdict=Verdict.FAIL)
    bad = replace(report, comparisons=(missed, *report.comparisons[1:]), verdict=Verdict.FAIL)
    upload.run.artifacts = (delivery(tmp_path / "bad", bad),)
    upload.run.conclusion = "failure"
    upload.run.jobs = (RemoteJob(name="deliver linux-x64", conclusion="failure"),)
    assert upload() == (bad,)
    assert upload.refs == []


@pytest.mark.parametrize("delivers", [True, False])
def test_a_failed_run_is_told_and_leaves_no_models(upload: Upload, *, delivers: bool) -> None:
    """Also when what it delivered is all right: something else has failed."""
    upload.run.conclusion = "failure"
    upload.run.jobs = (RemoteJob(name="plan", conclusion="failure", log=b"no such thing\n"),)
    if not delivers:
        upload.run.artifacts = ()
    with refused("run-failed", BuildError) as caught:
        upload()
    assert "no such thing" in caught[0].why
    assert upload.refs == []


def test_a_run_without_a_delivery_is_told(upload: Upload) -> None:
    """Success alone is no report."""
    upload.run.artifacts = ()
    with refused("delivery-incomplete", BuildError):
        upload()
    assert upload.refs == []


def test_models_are_gone_before_the_delivery_is_fetched(upload: Upload, there: There) -> None:
    """A download that fails needs them no longer."""
    there.remote.service.fault("GET .*/zip", message(403, "no"))
    with refused("github-refused", NetworkError) as caught:
        upload()
    assert "invoke attach 5000" in caught[0].hint
    assert upload.refs == []


def test_a_delivery_that_is_not_what_its_sums_say_is_refused(upload: Upload, tmp_path: Path) -> None:
    """The digest of the archive does not speak for what is in it."""
    folder = tmp_path / "changed"
    delivery(folder, recorded_report())
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for path in folder.iterdir():
            file.writestr(path.name, path.read_bytes() + (b"x" if path.suffix == ".gz" else b""))
    upload.run.artifacts = (replace(upload.run.artifacts[0], content=content.getvalue()),)
    with pytest.raises(DiagnosticGroup) as caught:
        upload()
    assert caught.value.reference == "digest-mismatch"
    assert str(upload.output / "sample" / "uploaded" / "5000" / "delivered-sample-linux-x64") in str(caught.value)
    assert "partial" not in str(caught.value)
    assert upload.refs == []
    assert list((upload.output / "sample" / "uploaded").rglob("delivered-*")) == []


def test_after_a_damaged_delivery_the_same_command_builds_anew(upload: Upload, there: There) -> None:
    """The run would deliver the same again."""
    good = upload.run.artifacts
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(SUMS, "no sums\n")
    upload.run.artifacts = (replace(good[0], content=content.getvalue()),)
    with refused("sums-damaged", PackageError):
        upload()
    assert upload.records == ()
    upload.run.artifacts = tuple(replace(each, id=52) for each in good)
    assert upload() == (recorded_report(),)
    assert len(there.bodies) == 2


# Models that must not stay


@pytest.mark.parametrize(
    ("line", "reply", "reference"),
    [
        ("POST .*/git/blobs", message(403, "no"), "github-refused"),
        ("POST .*/git/blobs", answer({}, 201), "github-unexpected-answer"),
        ("POST .*/git/trees", Reply(status=302), "github-unexpected-answer"),
        ("POST .*/git/refs", message(422, "Reference update failed"), "github-invalid-request"),
        ("POST .*/dispatches", message(422, "No ref found for: main"), "ref-not-found"),
    ],
)
def test_what_was_not_dispatched_leaves_nothing(
    stages: Stages, upload: Upload, line: str, reply: Reply, reference: str
) -> None:
    """Neither models there nor a record here that would promise a run."""
    upload.there.remote.service.fault(line, reply)
    with refused(reference, NetworkError):
        upload()
    assert upload.refs == []
    assert list((stages.folder / "artifacts").rglob("runs/*.json")) == []


def test_a_public_repository_gets_no_model(upload: Upload, there: There) -> None:
    """It is asked before anything is sent."""
    there.remote.service.private = False
    with refused("repository-public", NetworkError):
        upload()
    assert [seen.method for seen in there.remote.service.seen] == ["GET"]


def test_what_cannot_travel_is_not_sent(stages: Stages, upload: Upload, there: There) -> None:
    """A model that is named by a path of this machine."""
    spec = stages.request().spec
    spec.write_text(spec.read_text().replace("tiny.onnx", str(stages.folder / "tiny.onnx")))
    request = Request(spec=spec, target="linux-x64", output=stages.folder / "artifacts")
    with refused("plan-cannot-travel", PlanError):
        build_uploaded(request, MAIN, stages.console, lambda _: False)
    assert there.remote.service.seen == []


def test_models_that_cannot_be_removed_are_not_forgotten(stages: Stages, upload: Upload, there: There) -> None:
    """The user is told how to remove them; the reports are there all the same."""
    there.remote.service.fault("DELETE", *(Reply(status=503) for _ in range(9)))
    assert upload() == (recorded_report(),)
    (ref,) = upload.refs
    assert f"git push https://github.invalid/octo/ort --delete {ref}" in stages.stdout.getvalue()


def test_a_run_that_was_left_keeps_its_models_until_it_is_taken_up(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still needs them; whoever takes it up gets the reports, and the models go."""
    with monkeypatch.context() as patch:
        press(there, patch)
        with refused("run-left", Interrupted) as caught:
            upload()
    assert len(upload.refs) == 1
    assert upload.refs[0] in stages.stdout.getvalue()
    assert "invoke attach 5000" in caught[0].hint
    output = stages.folder / "artifacts"
    assert attach(5000, output, Remote(), stages.console, lambda _: False) == Attached(reports=(recorded_report(),))
    assert upload.refs == []


@pytest.mark.parametrize("at_once", [True, False])
def test_a_run_that_is_cancelled_leaves_no_models(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """On Ctrl-C or later."""
    upload.cancel = at_once
    with monkeypatch.context() as patch:
        press(there, patch)
        with refused("run-cancelled" if at_once else "run-left", Interrupted):
            upload()
    if not at_once:
        assert cancel(5000, stages.folder / "artifacts", Remote(), stages.console)
    assert upload.refs == []


def test_ctrl_c_while_models_are_sent_leaves_none(
    upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was started."""

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(uploaded_models, "create_ref", pressed)
    with pytest.raises(KeyboardInterrupt):
        upload()
    assert (upload.refs, there.bodies) == ([], [])


def test_an_outage_keeps_the_models_for_the_run(upload: Upload, there: There) -> None:
    """It may still be going."""
    there.remote.service.fault("GET .*/jobs", message(403, "no"))
    with refused("github-refused", NetworkError) as caught:
        upload()
    assert "invoke attach 5000" in caught[0].hint
    assert len(upload.refs) == 1


@pytest.mark.parametrize("ends", ["attach", "cancel"])
def test_models_of_a_run_that_was_deleted_are_removed(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Whoever takes it up or ends it is told that there is none, and nothing is left."""
    upload.leave(monkeypatch)
    there.remote.service.runs.clear()
    if ends == "cancel":
        assert not cancel(5000, upload.output, Remote(), stages.console)
    else:
        with refused("run-not-found", NetworkError):
            attach(5000, upload.output, Remote(), stages.console, lambda _: False)
    assert (upload.refs, upload.records) == ([], ())


def test_models_are_removed_when_the_run_is_deleted_while_it_is_followed(
    upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody will ask for them."""
    session = there.remote.client.session
    clock = replace(session.clock, sleep=lambda _: there.remote.service.runs.clear())
    monkeypatch.setattr(session, "clock", clock)
    with refused("run-not-found", NetworkError):
        upload()
    assert (upload.refs, upload.records) == ([], ())


@pytest.mark.parametrize("ends", ["attach", "cancel"])
def test_models_stay_known_when_the_repository_cannot_be_seen(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """With another token GitHub says of everything that it is not there."""
    upload.leave(monkeypatch)
    there.remote.service.fault("(GET|POST) ", *(message(404, "Not Found") for _ in range(9)))
    with refused("repository-not-found", NetworkError):
        if ends == "cancel":
            cancel(5000, upload.output, Remote(), stages.console)
        else:
            attach(5000, upload.output, Remote(), stages.console, lambda _: False)
    assert (len(upload.refs), len(upload.records)) == (1, 1)


@pytest.mark.parametrize("ends", ["attach", "cancel"])
def test_what_another_repository_does_not_have_is_not_forgotten(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """A wrong `--repo` is not the end of a run."""
    upload.leave(monkeypatch)
    fork = Repository(owner="octo", name="fork")
    site = Site(service=there.remote.client.service, repository=fork)
    monkeypatch.setattr(remote_build, "connect", lambda *_: Connection(site=site, client=there.remote.client))
    with refused("github-not-found" if ends == "cancel" else "run-not-found", NetworkError):
        if ends == "cancel":
            cancel(5000, upload.output, Remote(), stages.console)
        else:
            attach(5000, upload.output, Remote(), stages.console, lambda _: False)
    assert (len(upload.refs), len(upload.records)) == (1, 1)


def test_a_run_whose_number_never_came_is_ended_with_its_models(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark tells whose it is."""
    there.remote.service.workflows["build.yml"].tells_run = False
    upload.leave(monkeypatch)
    assert upload.records[0].record.run is None
    assert cancel(5000, upload.output, Remote(), stages.console)
    assert (upload.refs, upload.records) == ([], ())


def left_behind(upload: Upload, mark: str, *, age: float = 0, run: int | None = None, spec: str = "other") -> Kept:
    """Leave what a program leaves that was killed after it had uploaded models."""
    client, ref = upload.there.remote.client, f"refs/ortrim/models/{mark}"
    create_ref(client, OCTO, ref, store_commit(client, OCTO, {}, "left"))
    record = DispatchRecord(
        site="github.invalid/octo/ort", workflow="build.yml", ref="main", correlation_id=mark, models=ref, run=run,
        asked=upload.stages.request(), jobs=(("linux-x64", ""),),
    )  # fmt: skip
    kept = keep(record, upload.output / spec / "uploaded" / "runs" / f"{mark}.json")
    then = time.time() - age
    os.utime(kept.file, (then, then))
    return kept


@pytest.mark.parametrize("spec", ["sample", "other"])
def test_models_of_a_killed_program_are_removed_by_the_next_build(upload: Upload, spec: str) -> None:
    """What it uploaded for was never dispatched."""
    kept = left_behind(upload, "00000000000000aa", age=3600, spec=spec)
    assert upload() == (recorded_report(),)
    assert upload.refs == []
    assert not kept.file.exists()


def test_a_build_whose_models_stay_here_removes_those_too(upload: Upload) -> None:
    """Nobody has to upload again to be rid of them."""
    left_behind(upload, "00000000000000aa", age=3600)
    upload.there.remote.service.fault("POST .*/dispatches", message(422, "No ref found for: main"))
    with refused("ref-not-found", NetworkError):
        build_on_github(upload.stages.request(target="linux-x64"), MAIN, upload.stages.console, lambda _: False)
    assert (upload.refs, upload.records) == ([], ())


def test_models_that_somebody_may_need_stay(upload: Upload) -> None:
    """Of what was dispatched a moment ago, of what is being uploaded right now, and in another repository."""
    young = left_behind(upload, "00000000000000aa")
    busy = left_behind(upload, "00000000000000bb", age=3600, spec="busy")
    away = left_behind(upload, "00000000000000cc", age=3600)
    keep(replace(away.record, site="github.invalid/octo/other", run=7), away.file)
    with locked(busy.file.parent):
        upload()
    assert upload.refs == [each.record.models for each in (young, busy, away)]
    assert all(each.file.exists() for each in (young, busy, away))


@pytest.mark.parametrize(("conclusion", "kept"), [("success", 1), ("failure", 1), ("gone", 0)])
def test_models_of_a_run_that_nobody_took_up_are_removed_by_the_next_build(
    upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, conclusion: str, kept: int
) -> None:
    """Once it is over; whatever else it left can still be fetched."""
    upload.run.conclusion = conclusion
    upload.leave(monkeypatch)
    there.remote.clock.now += 1000
    if conclusion == "gone":
        there.remote.service.runs.clear()
    upload.run.conclusion = "success"
    upload(profile="upstream")
    assert upload.refs == []
    assert len([each for each in upload.records if each.record.asked.profile is None]) == kept


def test_what_the_token_may_not_see_is_not_taken_for_gone(upload: Upload, there: There) -> None:
    """Its record is all that leads to the models."""
    kept = left_behind(upload, "00000000000000aa", age=3600, run=4711)
    there.remote.service.fault("GET ", *(message(404, "Not Found") for _ in range(9)))
    there.remote.service.fault("DELETE ", message(404, "Not Found"))
    with refused("repository-not-found", NetworkError):
        upload()
    assert upload.refs == [kept.record.models]
    assert upload.records == (kept,)


def test_what_cannot_be_swept_stands_in_nobodys_way(upload: Upload, there: There) -> None:
    """It is tried again the next time."""
    kept = left_behind(upload, "00000000000000aa", age=3600)
    there.remote.service.fault("DELETE", message(403, "no"))
    assert upload() == (recorded_report(),)
    assert upload.refs == [kept.record.models]
    assert "--delete refs/ortrim/models/00000000000000aa" in upload.stages.stdout.getvalue()
    upload()
    assert upload.refs == []


# Once and no more


def test_the_same_command_takes_up_its_run(upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    """And uploads nothing again; it is the same when the run's number never came."""
    there.remote.service.workflows["build.yml"].tells_run = False
    upload.leave(monkeypatch)
    assert upload() == (recorded_report(),)
    assert (len(there.bodies), upload.refs) == (1, [])
    assert len(there.remote.service.git.log) == 2


def test_what_is_here_is_built_anew(upload: Upload, there: There) -> None:
    """Whoever asks a second time wants other times, or has a newer workflow there."""
    for _ in range(2):
        assert upload() == (recorded_report(),)
    assert (len(there.bodies), upload.refs) == (2, [])


def test_what_is_here_can_be_shown_again(stages: Stages, upload: Upload, there: There) -> None:
    """Nothing is fetched or removed for it."""
    upload()
    for _ in range(2):
        came = attach(5000, upload.output, Remote(), stages.console, lambda _: False)
        assert came == Attached(reports=(recorded_report(),))
    assert sum(line.endswith("/zip 302") for line in there.remote.service.lines()) == 1
    assert [line.split()[0] for line in there.remote.service.lines()].count("DELETE") == 1


def test_a_delivery_that_did_not_come_is_fetched_again(upload: Upload, there: There) -> None:
    """The run is over, and its models are gone."""
    there.remote.service.fault("GET .*/zip", message(403, "no"))
    with refused("github-refused", NetworkError):
        upload()
    assert upload() == (recorded_report(),)
    assert len(there.bodies) == 1


@pytest.mark.parametrize("changed", ["model", "spec", "profile", "branch"])
def test_a_run_for_something_else_is_not_taken_up(
    stages: Stages, upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Its delivery would be of another library."""
    upload.leave(monkeypatch)
    there.remote.service.refs.add("topic")
    if changed == "model":
        write(stages.folder / "tiny.onnx", branching())
    body = "[budgets]\nlibrary_bytes = 9000000\n" if changed == "spec" else ""
    request = stages.request(body, target="linux-x64", profile="upstream" if changed == "profile" else None)
    remote = Remote(ref="topic") if changed == "branch" else MAIN
    build_uploaded(request, remote, stages.console, lambda _: False)
    assert len(there.bodies) == 2


def test_two_at_once_upload_once(stages: Stages, upload: Upload, there: There) -> None:
    """The second takes up the run of the first."""
    request = stages.request(target="linux-x64")
    with ThreadPoolExecutor(2) as both:
        ended = [both.submit(build_uploaded, request, MAIN, stages.console, lambda _: False) for _ in range(2)]
    assert [each.result() for each in ended] == [(recorded_report(),)] * 2
    assert (len(there.bodies), upload.refs) == (1, [])


@pytest.mark.parametrize("how", ["failed", "expired", "cancelled"])
def test_a_run_that_came_to_nothing_is_not_taken_up(
    upload: Upload, there: There, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Nor is it asked for again."""
    whole = upload.run
    reference = {"failed": "run-failed", "expired": "artifact-expired", "cancelled": "run-cancelled"}[how]
    upload.run = replace(whole, conclusion="failure" if how == "failed" else "success")
    upload.run.artifacts = tuple(replace(each, expired=True) for each in whole.artifacts) if how == "expired" else ()
    upload.cancel = how == "cancelled"
    with monkeypatch.context() as patch:
        if how == "cancelled":
            press(there, patch)
        with pytest.raises((BuildError, NetworkError, Interrupted)) as caught:
            upload()
    assert caught.value.reference == reference
    assert (upload.refs, upload.records) == ([], ())
    upload.run = replace(whole, artifacts=tuple(replace(each, id=52) for each in whole.artifacts))
    assert upload() == (recorded_report(),)
    assert len(there.bodies) == 2
