"""Verification on device farms in a workflow: the app is compiled in one job, and runs from another, which may log in.

Gradle and its plugins are code of others. It runs where there are no credentials and no way to get any.
"""

from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.plan import BuildPlan
from ortrim.core.reports import VerifyReport
from ortrim.errors import PlanError, ToolError, VerifyError
from ortrim.package.android.harness import COMMANDS
from ortrim.pipeline.converted import Request
from ortrim.pipeline.planned import make_planned, target_folder
from ortrim.pipeline.targets import verify_again
from ortrim.pipeline.verification.farms import HARNESS
from ortrim.pipeline.workflow_jobs.handover import add_reports
from ortrim.pipeline.workflow_jobs.transfer import import_compiled
from ortrim.storage.files import storage_errors
from ortrim.tools.command import run
from ortrim.workflows.inputs import Inputs

TARGET: Final = "android-arm64-v8a"
"""What the phones of farms run."""
MARK: Final = "on-farms"
TO_COMPILE: Final = ("farm-apks-missing", "farm-apks-outdated")
GRADLE_SECONDS: Final = 1800


def require_farm_target(inputs: Inputs, plan: BuildPlan) -> None:
    """Check that there is something to run on the farms that were asked for. Raises `PlanError` `no-farm-target`."""
    planned = {target.job.target.identifier for target in plan.targets}
    if inputs.devices and TARGET not in planned:
        what, hint = f"devices of farms run {TARGET}, which is not built", f"add it to the input target: {TARGET}"
        raise PlanError("no-farm-target", what, where=inputs.devices[0], hint=hint)


def compile_app(inputs: Inputs, source: Path, console: Console) -> tuple[Path, ...]:
    """Write the app that carries what is to run on farms, have Gradle compile it, and return its project's folders.

    `source` holds the archives of compiled targets. Raises `ToolError` (`gradle-failed`, `tool-missing`), `VerifyError`
    with what a device says before it is asked for anything, and what importing and packaging raise.
    """
    request = _request(inputs)
    planned = make_planned(request, console)
    import_compiled(planned.plan.targets, source)
    for report in verify_again(request, console):
        _require_app_alone_missing(report)
    folders = tuple(target_folder(planned, target) / HARNESS for target in planned.plan.targets)
    for folder in folders:
        with console.step("compile the app") as step:
            for command in COMMANDS:
                step.note(command)
                _gradle(command, folder)
    return folders


def verify_on_farms(inputs: Inputs, source: Path, destination: Path, console: Console) -> tuple[VerifyReport, ...]:
    """Run the compiled app on every device of a farm, and leave the reports in `destination`.

    Raises what importing, packaging and verifying raise; what a device ended with is in its report.
    """
    request = _request(inputs)
    planned = make_planned(request, console)
    import_compiled(planned.plan.targets, source)
    reports = verify_again(request, console)
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
    add_reports(planned, destination, MARK)
    return reports


def _require_app_alone_missing(report: VerifyReport) -> None:
    for device in report.devices:
        failure = device.failure
        if failure and failure.reference not in TO_COMPILE:
            raise VerifyError(failure.reference, failure.what, where=failure.where, why=failure.why, hint=failure.hint)


def _gradle(command: str, folder: Path) -> None:
    done = run(command.split(), cwd=folder, timeout_seconds=GRADLE_SECONDS)
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        hint = "the project's README.md says what Gradle needs"
        raise ToolError(
            "gradle-failed", f"ended with {done.returncode}", where=f"{command} in {folder}", why=why, hint=hint
        )


def _request(inputs: Inputs) -> Request:
    return Request(
        spec=Path(inputs.spec), target=TARGET, profile=inputs.profile, elsewhere=True, devices=inputs.devices
    )
