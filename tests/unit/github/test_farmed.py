"""Device farms in a workflow: the app compiled where nobody is logged in, run where somebody is."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from fake_programs import FakePrograms, fake_programs
from ortrim.base.checksums import SUMS
from ortrim.base.console import Console
from ortrim.devices.harness_projects import COMMANDS, VERSIONS
from ortrim.errors import PlanError, StorageError, ToolError, VerifyError
from ortrim.github import jobs
from ortrim.github.jobs import FARMED_MARK, TARGET, compile_app, require_farm_target, verify_on_farms
from ortrim.github.workflow_files import GRADLE, WorkflowInputs
from ortrim.planning.planned import Planned, target_folder
from ortrim.planning.request import Request
from ortrim.report.write import write_reports
from ortrim.verify.reports import DeviceFailure, VerifyReport
from pipeline_stages import Stages
from refusing import refused
from sample_plans import sample_plan, sample_target
from sample_reports import lost_board, recorded_report

DEVICES = ("firebase:MediumPhone.arm-34", "devicefarm:voice/Samsung Galaxy S23")
INPUTS = WorkflowInputs(spec=PurePosixPath("sample.toml"), target=TARGET, profile=None, devices=DEVICES)


class Verified:
    """Verification put aside: each call takes the next of `reports`, and remembers what was asked for."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reports: list[VerifyReport] = []

    def again(self, request: Request, _: Console, planned: Planned) -> tuple[VerifyReport, ...]:
        """Do as `verify_again`: write the report where it belongs."""
        self.requests.append(request)
        report = self.reports.pop(0)
        folder = target_folder(planned, planned.plan.targets[0])
        (folder / "harness").mkdir(parents=True, exist_ok=True)
        write_reports(report, folder)
        return (report,)


@pytest.fixture
def verified(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Verified:
    """Be in a checkout with a buildspec; what was compiled is there already."""
    made = Verified()
    stages.request()
    monkeypatch.chdir(stages.folder)
    monkeypatch.setattr(jobs, "import_compiled", lambda *_: None)
    monkeypatch.setattr(jobs, "verify_again", made.again)
    return made


@pytest.fixture
def gradle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    return fake_programs(tmp_path / "programs", monkeypatch, "gradle")


def without(*references: str) -> VerifyReport:
    failure = lost_board().failure
    assert isinstance(failure, DeviceFailure)
    devices = tuple(replace(lost_board(), failure=replace(failure, code=each)) for each in references)
    return replace(recorded_report(), devices=devices)


def test_gradle_compiles_what_is_missing(stages: Stages, verified: Verified, gradle: FakePrograms) -> None:
    """In the project of the app, with its own commands; for the one ABI that phones of farms have."""
    verified.reports = [without("farm-apks-missing", "farm-apks-outdated")]
    (folder,) = compile_app(INPUTS, Path("compiled"), stages.console)
    assert folder.parts[-2:] == (TARGET, "harness")
    assert [" ".join(call) for call in gradle.calls] == list(COMMANDS)
    (request,) = verified.requests
    assert (request.target, request.devices) == (TARGET, DEVICES)


def test_what_else_is_wrong_with_a_device_is_reported_early(
    stages: Stages, verified: Verified, gradle: FakePrograms
) -> None:
    verified.reports = [without("farm-apks-missing", "tool-too-old")]
    assert refused(VerifyError, compile_app, INPUTS, Path("compiled"), stages.console).code == "tool-too-old"
    assert gradle.calls == []


def test_a_gradle_that_fails_is_reported(stages: Stages, verified: Verified, gradle: FakePrograms) -> None:
    """In its own words; the second command is not tried."""
    verified.reports = [without("farm-apks-missing")]
    gradle.answer("gradle", stderr="SDK location not found\n", code=1)
    error = refused(ToolError, compile_app, INPUTS, Path("compiled"), stages.console)
    assert (error.code, error.why) == ("gradle-failed", "SDK location not found")
    assert len(gradle.calls) == 1


def test_reports_of_farms_are_handed_over(stages: Stages, verified: Verified, tmp_path: Path) -> None:
    verified.reports = [without("farm-quota")]
    reports = verify_on_farms(INPUTS, Path("compiled"), tmp_path / "delivery", stages.console)
    assert [device.failure.code for device in reports[0].devices if device.failure] == ["farm-quota"]
    names = sorted(path.name for path in (tmp_path / "delivery").iterdir())
    assert len(names) == 4
    assert names[0] == SUMS
    assert all(f"-{FARMED_MARK}.report." in name for name in names[1:])


def test_a_delivery_that_cannot_be_written_is_reported(stages: Stages, verified: Verified, tmp_path: Path) -> None:
    verified.reports = [recorded_report()]
    (tmp_path / "delivery").write_text("mine")
    with pytest.raises(StorageError):
        verify_on_farms(INPUTS, Path("compiled"), tmp_path / "delivery", stages.console)
    assert (tmp_path / "delivery").read_text() == "mine"


def test_a_farm_needs_something_to_run() -> None:
    """A run without the phones' ABI is refused before anything is compiled."""
    for identifiers, devices in ((("linux-x64", TARGET), DEVICES), (("linux-x64",), ())):
        plan = sample_plan(selected=tuple(map(sample_target, identifiers)))
        require_farm_target(replace(INPUTS, devices=devices), plan)
    assert (
        refused(PlanError, require_farm_target, INPUTS, sample_plan(selected=(sample_target("android-x86_64"),))).code
        == "no-farm-target"
    )


def test_the_workflow_has_the_gradle_that_the_app_needs() -> None:
    assert VERSIONS["gradle"] == GRADLE
