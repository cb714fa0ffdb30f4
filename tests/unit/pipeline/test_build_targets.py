"""From a plan to reports: what is done, what is left alone, what is refused before work."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.files import sha256_of
from ortrim.errors import (
    BinaryError,
    BudgetMissed,
    Diagnostic,
    DiagnosticGroup,
    ExitCode,
    ParityError,
    StorageError,
    ToolError,
    UsageError,
    VerifyError,
)
from ortrim.package.package import write_sums
from ortrim.parity.measurements import Comparison, Gate, Verdict
from ortrim.pipeline import building
from ortrim.pipeline.building import build, verify_again
from ortrim.pipeline.finished import reports_of
from ortrim.planning.planned import planned_for
from ortrim.report.write import read_report, write_reports
from ortrim.verify.failures import gravest_failure
from ortrim.verify.judge import failed_device, failure_of
from ortrim.verify.reports import NOT_FOR_DEVICE, ReportedArtifact, VerifyReport
from pipeline_stages import Stages, leave_report
from refusing import refused
from sample_reports import RECORDED, on_device, recorded_report

OLD_REPORT = RECORDED.with_name("report-1.json")


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


@pytest.mark.parametrize("kept", [b"", b"another"])
def test_a_wheel_that_was_removed_or_changed_is_made_again(
    stages: Stages, finished: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, kept: bytes
) -> None:
    folder = finished()
    report, wheel = read_report(folder / "report.json"), folder / "ortrim_vad-1.21.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    made_of = ReportedArtifact(name=wheel.name, size_bytes=5, sha256=sha256_of(wheel), build_id=None)
    write_reports(replace(report, artifacts=(*report.artifacts, made_of)), folder)
    forbid(monkeypatch)
    build(stages.request(), stages.console)
    if kept:
        wheel.write_bytes(kept)
    else:
        wheel.unlink()
    made = pretend(monkeypatch, recorded_report())
    build(stages.request(), stages.console)
    assert made == ["built", "packaged", "verified"]


@pytest.mark.parametrize(
    ("package", "target"),
    [
        ("wheel", "ios-arm64"),
        ("wheel", "android-arm64-v8a"),
        ("unity", "ios-arm64"),  # its C# is linked with a static framework there
        ("unity", "linux-arm64"),
        ("unity", "maccatalyst-arm64"),
    ],
)
def test_a_package_that_no_target_can_have_is_refused_before_any_work(
    stages: Stages, package: str, target: str
) -> None:
    """A buildspec may ask for one of its other targets."""
    error = refused(UsageError, build, stages.request(target=target, packages=(package,)), stages.console)
    assert (error.code, error.what) == ("no-such-package", f"none of {target} can have the package {package}")
    assert stages.ran == []


@pytest.mark.parametrize("kept", [b"", b"another"])
def test_a_package_for_unity_that_was_removed_or_changed_is_made_again(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, kept: bytes
) -> None:
    request = stages.request(packages=("unity",))
    planned = planned_for(request, stages.console)
    leave_report(planned, planned.plan.targets[0])
    package = planned.folder / "unity" / "com.ortrim.sample-1.21.0.tgz"

    def leave(*_: object) -> None:
        package.parent.mkdir(exist_ok=True)
        package.write_bytes(b"package")
        write_sums(package.parent)

    leave()
    forbid(monkeypatch)
    build(request, stages.console)
    if kept:
        package.write_bytes(kept)
    else:
        package.unlink()
    made = pretend(monkeypatch, recorded_report())
    monkeypatch.setattr(building, "_package_for_unity", leave)
    build(request, stages.console)
    assert made == ["built", "packaged", "verified"]
    assert package.read_bytes() == b"package"


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


GATE = Gate(name="executable stack", verdict=Verdict.FAIL, detail="the library asks for one")


@pytest.fixture
def good() -> VerifyReport:
    report = judged(recorded_report(), Verdict.PASS)
    gates = tuple(replace(gate, verdict=Verdict.PASS) for gate in report.gates)
    parity = tuple(replace(output, verdict=Verdict.PASS) for output in report.devices[0].parity)
    return on_device(replace(report, gates=gates), parity=parity)


def judged(report: VerifyReport, verdict: Verdict) -> VerifyReport:

    def lines(given: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
        return tuple(replace(line, verdict=verdict) for line in given)

    (device,) = report.devices
    return on_device(replace(report, comparisons=lines(report.comparisons)), comparisons=lines(device.comparisons))


def with_gate(report: VerifyReport) -> VerifyReport:
    return replace(report, gates=(*report.gates, GATE))


def without_parity(report: VerifyReport) -> VerifyReport:
    first, *rest = report.devices[0].parity
    lost = replace(first, verdict=Verdict.FAIL, reason="0.5 at element 3, 1e-4 is allowed")
    return on_device(report, parity=(lost, *rest))


def unproved(report: VerifyReport) -> VerifyReport:
    parity = tuple(
        replace(output, verdict=Verdict.NOT_JUDGED, reason="every element is 0") for output in report.devices[0].parity
    )
    report = on_device(report, parity=parity, verdict=Verdict.INCONCLUSIVE)
    return replace(report, verdict=Verdict.INCONCLUSIVE)


def test_what_could_not_be_judged_has_a_code_of_its_own(good: VerifyReport) -> None:
    """It is no failure of the library, and no pass; a missed budget is graver."""
    found = gravest_failure((unproved(good),))
    assert found is not None
    assert (found.code, found.exit_code) == ("parity-inconclusive", ExitCode.INCONCLUSIVE)
    assert found.what == "no output of silero_vad can be judged (output: every element is 0)"
    both = gravest_failure((unproved(over_budget(good)),))
    assert isinstance(both, BudgetMissed)


def over_budget(report: VerifyReport) -> VerifyReport:
    line = replace(
        report.comparisons[0], measure="library", model="", unit="bytes", ours=2e6, budget=1e6, budget_is_ratio=False,
        verdict=Verdict.FAIL,
    )  # fmt: skip
    return replace(report, comparisons=(line,))


def with_failed(report: VerifyReport, *errors: Diagnostic) -> VerifyReport:
    failed = (failed_device(f"adb:{number}", "none", error) for number, error in enumerate(errors))
    return replace(report, devices=(*report.devices, *failed))


def refusing(report: VerifyReport, *models: str) -> VerifyReport:
    errors = {name: VerifyError("model-refused", "the library refuses the model", where=name) for name in models}
    failed = tuple(failure_of(error, name) for name, error in errors.items())
    return on_device(report, failed_models=failed, verdict=Verdict.FAIL)


def test_a_model_that_is_refused_fails_by_its_name(good: VerifyReport) -> None:
    """The first one first, and beside lost parity it comes before that."""
    found = gravest_failure((good, refusing(without_parity(good), "kws", "vad")))
    assert found is not None
    assert (found.code, found.where, found.exit_code) == ("model-refused", "kws", ExitCode.VERIFY)
    assert "vad: the library refuses the model" in str(found)


LOST = VerifyError("device-lost", "the connection broke", where="adb:0", why="Broken pipe", hint="plug it in")


def test_without_a_failure_there_is_none(good: VerifyReport) -> None:
    unsure, unjudged = judged(good, Verdict.INCONCLUSIVE), judged(good, Verdict.NOT_JUDGED)
    assert gravest_failure((good, unsure, unjudged)) is None
    assert gravest_failure(()) is None


def test_the_gravest_kind_comes_first(good: VerifyReport) -> None:
    """A bad library, then a device of which nothing is known, then wrong numbers, then too much; in any report."""
    budget, parity = over_budget(good), without_parity(over_budget(good))
    lost, gate = with_failed(without_parity(good), LOST), with_gate(with_failed(without_parity(good), LOST))
    assert isinstance(gravest_failure((budget,)), BudgetMissed)
    assert isinstance(gravest_failure((good, parity)), ParityError)
    found = gravest_failure((budget, parity, lost))
    assert found is not None
    assert (found.code, found.exit_code) == ("device-lost", ExitCode.VERIFY)
    assert isinstance(gravest_failure((budget, parity, lost, gate)), BinaryError)


def test_a_failed_device_ends_with_its_own_diagnostic(good: VerifyReport) -> None:
    """Word for word, with the code of its class, whatever that is."""
    for error in (LOST, ToolError("tool-missing", "is not installed", where="adb", hint="run: invoke doctor")):
        failure = gravest_failure((good, with_failed(good, error)))
        assert failure is not None
        assert str(failure) == str(error)
        assert failure.exit_code == error.exit_code


MISFIT = VerifyError(NOT_FOR_DEVICE, "this library is for x86", where="adb:R58", hint="name another")


def test_one_abi_of_several_on_a_phone_is_enough(good: VerifyReport) -> None:
    """What the phone does not run is no failure when it ran another target; when it ran none, it is one."""
    other = with_failed(replace(good, devices=()), MISFIT)
    ran = on_device(good, device="adb:R58")
    assert gravest_failure((ran, other)) is None
    for reports in ((other,), (good, other), (other, other)):
        failure = gravest_failure(reports)
        assert failure is not None
        assert failure.exit_code is ExitCode.VERIFY


def test_a_phone_that_went_away_on_its_own_abi_fails(good: VerifyReport) -> None:
    lost = replace(good, devices=(failed_device("adb:R58", "none", LOST),))
    failure = gravest_failure((with_failed(replace(good, devices=()), MISFIT), lost))
    assert failure is not None
    assert str(failure) == str(LOST)


def test_several_failed_devices(good: VerifyReport) -> None:
    """Those of one class are shown together; another class is not given a code that is not its own."""
    crash = VerifyError("runner-crashed", "the runner was ended by SIGSEGV")
    failure = gravest_failure((with_failed(good, LOST, ToolError("tool-missing", "is not installed"), crash),))
    assert isinstance(failure, DiagnosticGroup)
    assert [each.code for each in failure.diagnostics] == ["device-lost", "runner-crashed"]
    assert failure.exit_code is ExitCode.VERIFY


def test_a_missed_budget_shows_both_numbers_with_their_unit(good: VerifyReport) -> None:
    """Bytes are whole and grouped, times short, ratios percentages of the baseline."""
    report = over_budget(good)
    (line,) = report.comparisons
    failure = gravest_failure((report,))
    assert failure is not None
    assert failure.code == "budget-missed"
    assert (failure.what, failure.where) == ("library is over its budget", report.target)
    assert failure.why == "measured 2,000,000 bytes, budget 1,000,000 bytes"
    slow = replace(line, measure="p99", unit="ms", ours=5.123456, budget=4.0, model="vad")
    failure = gravest_failure((on_device(good, comparisons=(slow,)),))
    assert failure is not None
    assert failure.why == "measured 5.123 ms, budget 4 ms"
    assert failure.where == f"{report.target} on host, model vad"
    missed = replace(slow, measure="missed deadlines", unit="runs", ours=0.5, budget=0.0)
    failure = gravest_failure((on_device(good, comparisons=(missed,)),))
    assert failure is not None
    assert failure.why == "measured 0.5 runs, budget 0 runs"
    large = replace(line, ratio=0.1234, budget=0.09, budget_is_ratio=True)
    failure = gravest_failure((replace(report, comparisons=(large,)),))
    assert failure is not None
    assert failure.why == "measured 12.3% of the baseline's, budget 9.0% of the baseline's"


def test_a_ratio_that_could_not_be_measured_is_worded(good: VerifyReport) -> None:
    (line,) = over_budget(good).comparisons
    nothing = replace(line, ratio=None, budget=0.09, budget_is_ratio=True)
    failure = gravest_failure((replace(good, comparisons=(nothing,)),))
    assert failure is not None
    assert failure.why == "measured nothing, budget 9.0% of the baseline's"


def test_lost_parity_names_output_case_and_model(good: VerifyReport) -> None:
    report = without_parity(good)
    lost = report.devices[0].parity[0]
    failure = gravest_failure((report,))
    assert failure is not None
    assert failure.code == "parity-lost"
    assert f"output {lost.output} of case {lost.case}" in failure.what
    assert failure.where == f"{report.target} on host, model {lost.model}"
    assert failure.why == lost.reason


def test_all_failures_of_the_gravest_kind_are_shown(good: VerifyReport) -> None:
    """Two targets that miss are mended in one go."""
    failure = gravest_failure((with_gate(good), replace(with_gate(good), target="linux-arm64")))
    assert isinstance(failure, DiagnosticGroup)
    assert [each.where for each in failure.diagnostics] == [good.target, "linux-arm64"]
    assert failure.exit_code is ExitCode.BINARY
