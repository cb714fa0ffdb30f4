"""The second half: from a plan to verified packages, one target after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ortrim.binaries.elf import read_library
from ortrim.binaries.sizes import library_size
from ortrim.console import Console
from ortrim.core.artifacts import JobResult, Package
from ortrim.core.measurements import VerifyReport
from ortrim.core.plan import BuildJob, PlannedTarget, plan_digest
from ortrim.executors.native import NativeExecutor
from ortrim.executors.parallelism import choose_parallelism
from ortrim.executors.results import finished_build, result_of
from ortrim.package.layout import make_package
from ortrim.pins.tools import tool_requirements
from ortrim.pipeline.planned import Planned, Request, make_planned
from ortrim.report.write import read_report, write_reports
from ortrim.storage.shipped import shipped_folder
from ortrim.tools.environments import packages_folder

REPORT = "report.json"


def build(request: Request, console: Console) -> tuple[VerifyReport, ...]:
    """Do everything: plan, then build, package, verify and report each target.

    A target whose report is there already is not touched again. The verdicts are in the reports; a missed budget
    is not raised here, so that every target gets its report.
    """
    planned = make_planned(request, console)
    return tuple(_finish(planned, target, request, console) for target in planned.plan.targets)


def target_folder(planned: Planned, target: PlannedTarget) -> Path:
    """Return the folder that holds a target's package and report."""
    return planned.folder / target.job.target.identifier


def _finish(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> VerifyReport:
    folder = target_folder(planned, target)
    if (folder / REPORT).is_file():
        console.note(f"{target.job.target.identifier}: nothing changed since the report in {folder}")
        return read_report(folder / REPORT)
    result = _build(planned, target.job, folder, request, console)
    package = _package(planned, target.job, result, folder, console)
    return _verify(planned, target, result, package, folder, console)


def _build(planned: Planned, job: BuildJob, folder: Path, request: Request, console: Console) -> JobResult:
    with console.step(f"build {job.target.identifier}") as step:
        done = finished_build(job)
        if done.is_dir():
            step.skip("built before")
            return result_of(done)
        parallelism = choose_parallelism(request.jobs)
        step.note(f"{parallelism.jobs} compilations at a time ({parallelism.reason}); log: {folder / 'build.log'}")
        executor = NativeExecutor(
            sources=planned.sources.folder,
            tools=packages_folder("tools", tool_requirements()),
            runner=shipped_folder("runner"),
            log=(folder / "build.log").absolute(),
            parallelism=parallelism,
            on_progress=step.progress,
        )
        return executor.run(job)
