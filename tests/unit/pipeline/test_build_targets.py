"""From a plan to reports: what is done, what is left alone, what is refused before work."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from ortrim.errors import StorageError, VerifyError
from ortrim.package.package import write_sums
from ortrim.pipeline import building
from ortrim.pipeline.building import build, verify_again
from ortrim.pipeline.finished import reports_of
from ortrim.planning.planned import planned_for
from ortrim.report.write import read_report, write_reports
from ortrim.verify.judge import failed_device
from ortrim.verify.reports import VerifyReport
from pipeline_stages import Stages, leave_report
from refusing import refused
from sample_reports import RECORDED, on_device, recorded_report

OLD_REPORT = RECORDED.with_name("report-1.json")


class Text(Protocol):
    def getvalue(self) -> str:
        """Return what was written."""


@pytest.fixture
def finished(stages: Stages) -> Callable[[], Path]:
    def leave() -> Path:
        planned = planned_for(stages.request(), stages.console)
        return leave_report(planned, planned.plan.targets[0])

    return leave


def pretend(monkeypatch: pytest.MonkeyPatch, report: VerifyReport) -> list[str]:
    """Let each stage of the second half do nothing but say that it ran; verification gives this report."""
    made: list[str] = []

    def packaged(*_: object) -> Iterator[str]:
        made.append("packaged")
        yield "package"

    def verified(*_: object) -> VerifyReport:
        made.append("verified")
        return report

    monkeypatch.setattr(building, "_build", lambda *_: made.append("built"))
    monkeypatch.setattr(building, "packaged", packaged)
    monkeypatch.setattr(building, "_verify", verified)
    return made


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:

    def forbidden(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(building, "_build", forbidden)


def test_what_is_finished_is_not_touched_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished()
    forbid(monkeypatch)
    (report,) = build(stages.request(), stages.console)
    assert report.package == "package.tar.gz"
    assert stages.stdout.getvalue().count("nothing has changed") == 1
    assert str(folder) in stages.stdout.getvalue()


def test_a_case_that_the_model_does_not_run_on_ends_the_build_before_compiling(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise VerifyError("reference-failed", "the full runtime does not run the original model")

    forbid(monkeypatch)
    monkeypatch.setattr(building, "make_references", refuse)
    with pytest.raises(VerifyError, match="reference-failed"):
        build(stages.request(), stages.console)


@pytest.mark.parametrize("folder", ["cache/trees", "out"])
def test_a_disk_without_room_ends_the_build_before_compiling(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str
) -> None:
    forbid(monkeypatch)
    full = tmp_path / folder
    monkeypatch.setattr("ortrim.base.files.free_bytes", lambda path: 1000 if path == full else None)
    error = refused(StorageError, build, replace(stages.request(), output=tmp_path / "out"), stages.console)
    assert error.code == "disk-full"


def test_a_package_that_was_removed_is_made_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (finished() / "package.tar.gz").unlink()
    report = recorded_report()
    made = pretend(monkeypatch, report)
    assert build(stages.request(), stages.console) == (report,)
    assert made == ["built", "packaged", "verified"]


@pytest.mark.parametrize("changed", ["package.tar.gz", "package/models/m.ort", "package/SHA256SUMS", "report.json"])
def test_a_package_that_was_changed_is_made_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Its report says nothing of what lies there now; so does that of another build."""
    folder = finished()
    (folder / "package" / "models").mkdir(parents=True)
    (folder / "package" / "models" / "m.ort").write_bytes(b"model")
    write_sums(folder / "package")
    forbid(monkeypatch)
    build(stages.request(), stages.console)
    if changed == "report.json":
        write_reports(replace(reports_of(stages.request(), stages.console)[0], plan_digest="0" * 64), folder)
        with pytest.raises(VerifyError, match="report-misplaced"):
            reports_of(stages.request(), stages.console)
    else:
        (folder / changed).write_bytes((folder / changed).read_bytes()[:-1] + b"?")
    report = recorded_report()
    made = pretend(monkeypatch, report)
    assert build(stages.request(), stages.console) == (report,)
    assert made == ["built", "packaged", "verified"]
    assert (
        changed in stages.stdout.getvalue() or "of another build, so it is verified again" in stages.stdout.getvalue()
    )


def test_a_damaged_report_is_a_diagnostic(stages: Stages, finished: Callable[[], Path]) -> None:
    """It says what to do, and nothing is measured behind the user's back."""
    (finished() / "report.json").write_text("{")
    assert refused(StorageError, build, stages.request(), stages.console).code == "report-damaged"


def test_a_report_of_another_version_is_verified_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build says so in one line and goes on; showing the report says what to do. The old file is left until then."""
    old = finished() / "report.json"
    old.write_bytes(OLD_REPORT.read_bytes())
    error = refused(VerifyError, reports_of, stages.request(), stages.console)
    assert (error.code, error.hint) == ("report-outdated", "run: invoke verify")
    assert old.read_bytes() == OLD_REPORT.read_bytes()
    report = recorded_report()
    pretend(monkeypatch, report)
    assert build(stages.request(), stages.console) == (report,)
    note = "linux-x64: another version of ortrim wrote this report, so it is verified again"
    assert stages.stdout.getvalue().count(note) == 1


@pytest.mark.parametrize(
    "asked", [{"devices": ("ssh:pi@board",)}, {"devices": ("host", "ssh:pi@board")}, {"trace": True}], ids=str
)
def test_what_a_report_lacks_is_verified(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    finished()
    report = recorded_report()
    pretend(monkeypatch, report)
    assert build(stages.request(**asked), stages.console) == (report,)
    assert "nothing has changed" not in stages.stdout.getvalue()


def test_a_device_that_failed_is_tried_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished()
    failed = failed_device("host", "none", VerifyError("runner-timeout", "the runner did not end"))
    write_reports(replace(read_report(folder / "report.json"), devices=(failed,)), folder)
    report = recorded_report()
    pretend(monkeypatch, report)
    assert build(stages.request(), stages.console) == (report,)


def test_a_report_with_more_than_was_asked_for_is_enough(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices and profiles of an earlier run do no harm."""
    folder = finished()
    report = on_device(read_report(folder / "report.json"), traces=("outputs/host/vad/trace.json",))
    write_reports(replace(report, devices=(*report.devices, replace(report.devices[0], device="adb:1"))), folder)
    forbid(monkeypatch)
    assert len(build(stages.request(), stages.console)) == 1


def test_results_that_cannot_be_written_are_refused_before_any_work(stages: Stages) -> None:
    """A file where the folder should be, or a folder inside a file: told at once, and nothing is made."""
    (stages.folder / "file").write_text("in the way")
    for output in (stages.folder / "file", stages.folder / "file" / "inside"):
        assert refused(StorageError, build, stages.request(output=output), stages.console).code == "path-in-the-way"
    assert stages.ran == []


def test_a_relative_output_folder_is_seen_from_where_one_is(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished()
    monkeypatch.chdir(stages.folder)
    forbid(monkeypatch)
    (report,) = build(stages.request(output=Path("artifacts")), stages.console)
    assert (folder / report.package).is_file()


def test_what_was_not_built_cannot_be_verified_again(stages: Stages) -> None:
    error = refused(VerifyError, verify_again, stages.request(), stages.console)
    assert (error.code, error.hint) == ("not-built", "run: invoke build")


def test_what_cannot_run_here_is_not_verified_again(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert refused(VerifyError, verify_again, stages.request(target="linux-arm64"), stages.console).code == "no-device"


def test_a_report_can_be_shown_of_what_was_built(stages: Stages, finished: Callable[[], Path]) -> None:
    assert refused(VerifyError, reports_of, stages.request(), stages.console).code == "report-missing"
    finished()
    assert len(reports_of(stages.request(), stages.console)) == 1
