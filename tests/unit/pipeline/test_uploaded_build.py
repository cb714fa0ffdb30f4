"""`--upload-models`: models go, the delivery comes home, and nothing of the models stays there."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from github_builds import There, github_builds
from github_checks import refused
from github_service import message
from github_state import Artifact, RemoteJob, RemoteRun
from github_wire import Reply
from ortrim.console import Console
from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.errors import BuildError, DiagnosticGroup, Interrupted, NetworkError, PlanError
from ortrim.package.sums import SUMS
from ortrim.pipeline import attached, uploaded_build
from ortrim.pipeline.attached import Attached, attach, cancel
from ortrim.pipeline.connection import Remote
from ortrim.pipeline.converted import Request
from ortrim.pipeline.handover import with_sums
from ortrim.pipeline.uploaded_build import build_uploaded
from ortrim.report.write import write_reports
from ortrim.workflows.inputs import read_inputs
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
        (ref,) = self.there.remote.service.git.refs
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


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """Run GitHub's stand-in."""
    with github_builds((), tmp_path / "github", monkeypatch) as made:
        monkeypatch.setattr(uploaded_build, "connect", attached.connect)  # type: ignore[attr-defined]
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
    assert upload.refs == []


# Models that must not stay


@pytest.mark.parametrize(
    ("line", "reply", "reference"),
    [
        ("POST .*/git/blobs", message(403, "no"), "github-refused"),
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

    monkeypatch.setattr(uploaded_build, "create_ref", pressed)
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
