"""The second half: from a plan to verified packages, one target after the other."""

from pathlib import Path
from typing import Final

from ortrim.console import Console, Step
from ortrim.core.artifacts import JobResult
from ortrim.core.measurements import VerifyReport
from ortrim.core.plan import BuildJob, PlannedTarget
from ortrim.errors import VerifyError
from ortrim.executors.container import ContainerExecutor
from ortrim.executors.native import NativeExecutor
from ortrim.executors.parallelism import choose_parallelism
from ortrim.executors.results import finished_build, result_of
from ortrim.executors.workspace import Inputs
from ortrim.package.inputs import ComponentLicence, PackageInputs
from ortrim.package.layout import make_package
from ortrim.pins.tools import tool_requirements
from ortrim.pipeline.converted import Request
from ortrim.pipeline.devices import answers
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.pipeline.verification import Packaged, verify
from ortrim.report.write import OUTDATED, read_report, write_reports
from ortrim.sources.tree import licences
from ortrim.storage.files import require_writable
from ortrim.storage.shipped import shipped_folder
from ortrim.toolchains.zig import RUNTIME_LICENCES
from ortrim.tools.environments import packages_folder

REPORT: Final = "report.json"


def build(request: Request, console: Console) -> tuple[VerifyReport, ...]:
    """Do everything: plan, then build, package, verify and report each target.

    A target whose report is there already, with every device asked for, is not touched again. The verdicts are in the
    reports; a missed budget or a device that fails is not raised here, so that every target gets its report.
    """
    require_writable(request.output)
    planned = make_planned(request, console, to_run=True)
    return tuple(_finish(planned, target, request, console) for target in planned.plan.targets)


def verify_again(request: Request, console: Console) -> tuple[VerifyReport, ...]:
    """Measure what was built before once more and write its reports anew.

    Raises `VerifyError` (`not-built`, `no-device`) and `UsageError` for devices that are none.
    """
    require_writable(request.output)
    planned = make_planned(request, console, to_run=True)
    return tuple(_verify(planned, target, _built(target.job), request, console) for target in planned.plan.targets)


def reports_of(request: Request, console: Console) -> tuple[VerifyReport, ...]:
    """Return the reports of what was built before. Raises as `read_report` does."""
    planned = make_planned(request, console)
    return tuple(read_report(target_folder(planned, target) / REPORT) for target in planned.plan.targets)


def target_folder(planned: Planned, target: PlannedTarget) -> Path:
    """Return the folder that holds a target's package and report."""
    return planned.folder / target.job.target.identifier


def _finish(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> VerifyReport:
    report = _finished(planned, target, request, console)
    if report is not None:
        return report
    return _verify(planned, target, _build(planned, target, request, console), request, console)


def _finished(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> VerifyReport | None:
    """Return a target's report when nothing is left to do. Raises `StorageError` for one that is damaged."""
    folder, identifier = target_folder(planned, target), target.job.target.identifier
    if not (folder / REPORT).is_file():
        return None
    try:
        report = read_report(folder / REPORT)
    except VerifyError as error:
        if error.reference != OUTDATED:
            raise
        console.note(f"{identifier}: {error.what}, so it is verified again")
        return None
    if not ((folder / report.package).is_file() and answers(report, target.job.target, request)):
        return None
    console.note(f"{identifier}: nothing has changed since {folder / REPORT} was written")
    return report


def _build(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> JobResult:
    job = target.job
    with console.step(f"build {job.target.identifier}") as step:
        done = finished_build(job)
        if done.is_dir():
            step.skip("built before")
            return result_of(done)
        executor = builder_for(planned, target, request, step)
        step.note(f"{executor.parallelism.jobs} at a time ({executor.parallelism.reason}); log: {executor.log}")
        step.progress(0, 0, "tools and configuration")
        return executor.run(job)


def builder_for(
    planned: Planned, target: PlannedTarget, request: Request, step: Step
) -> NativeExecutor | ContainerExecutor:
    """Return what builds a target where the request says, telling `step` how far it is."""
    native = executor_for(planned, target, request, step)
    return native if request.container is None else ContainerExecutor(native=native, options=request.container)


def executor_for(planned: Planned, target: PlannedTarget, request: Request, step: Step) -> NativeExecutor:
    """Return what builds a target on this machine itself, telling `step` how far it is."""
    return NativeExecutor(
        inputs=Inputs(
            sources=planned.sources.folder,
            tools=packages_folder("tools", tool_requirements()),
            runner=shipped_folder("runner"),
            hooks=shipped_folder("cmake"),
            ndk=request.ndk,
        ),
        log=(target_folder(planned, target) / "build.log").absolute(),
        parallelism=choose_parallelism(request.jobs),
        on_progress=step.progress,
        on_note=step.note,
    )


def _built(job: BuildJob) -> JobResult:
    folder = finished_build(job)
    if not folder.is_dir():
        hint = "run: invoke build"
        raise VerifyError("not-built", "there is no finished build to verify", where=job.target.identifier, hint=hint)
    return result_of(folder)


def _verify(
    planned: Planned, target: PlannedTarget, result: JobResult, request: Request, console: Console
) -> VerifyReport:
    folder = target_folder(planned, target)
    with console.step(f"package {target.job.target.identifier}"):
        package = make_package(_package_inputs(planned, target.job, result), folder)
    with console.step("compile the runner") as step:
        runner = builder_for(planned, target, request, step).run_runner(target.runner)
    packaged = Packaged(target=target, result=result, package=package, runner=runner)
    report = verify(planned, packaged, request, console)
    with console.step("report") as step:
        write_reports(report, folder)
        step.note(f"{folder}: {package.archive.name}, report.html, report.md, {REPORT}")
    return report


def _package_inputs(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    upstream = planned.sources.folder / "onnxruntime"
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=planned.models.converted,
        operators=planned.models.operators,
        licence=upstream / "LICENSE",
        notices=upstream / "ThirdPartyNotices.txt",
        licences=tuple(
            ComponentLicence(component=component, identifier=identifier, path=path)
            for component, identifier, path in (*_source_licences(planned, job), *_toolchain_licences(job))
        ),
    )


def _source_licences(planned: Planned, job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the job compiles, which may be less than was fetched."""
    compiled = {source.name for source in job.sources}
    return tuple(entry for entry in licences(planned.sources) if entry[0] in compiled)


def _toolchain_licences(job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the compiler itself puts into the library; the system's gcc puts it beside."""
    if job.toolchain.kind != "zig":
        return ()
    tools = packages_folder("tools", tool_requirements())
    return tuple((component, identifier, tools / text) for component, identifier, text in RUNTIME_LICENCES)
