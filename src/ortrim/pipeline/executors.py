"""What builds a target, where the request says: on this machine itself, or in a container of it."""

from dataclasses import replace
from pathlib import Path

from ortrim.base.cache import is_kept
from ortrim.base.console import Step
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.compiling.containers.executor import places_in_containers
from ortrim.compiling.execution import BuildInputs, choose_parallelism
from ortrim.compiling.native import Executor
from ortrim.compiling.plan import AssemblyJob, BuildJob, JobResult, PlannedTarget
from ortrim.compiling.trees import finished_build, result_of
from ortrim.errors import VerifyError
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.transfer import is_compiled
from ortrim.planning.planned import Planned, target_folder
from ortrim.planning.request import Request
from ortrim.platforms import Platform, platform_of
from ortrim.sources.sources import sound_sources


def executor_for(planned: Planned, target: PlannedTarget, request: Request, step: Step) -> Executor:
    """Return what builds a target where the request says, telling `step` how far it is."""
    log = target_folder(planned, target) / "build.log"
    sources = sound_sources(planned.sources, step.note)
    platform = platform_of(target.job.target)
    native = native_executor(sources, log, step, platform, jobs=request.jobs, ndk=request.ndk)
    if request.container is None:
        return native
    return replace(native, place=places_in_containers(request.container, platform.images()))


def native_executor(
    sources: Path, log: Path, step: Step, platform: Platform, *, jobs: int | None = None, ndk: Path | None = None
) -> Executor:
    """Return what builds for a platform on this machine itself; without `jobs`, as many at once as it can bear."""
    return Executor(
        inputs=build_inputs(sources, platform, ndk),
        log=log.absolute(),
        parallelism=choose_parallelism(jobs),
        on_progress=step.progress,
        on_note=step.note,
    )


def build_inputs(sources: Path, platform: Platform, sdk: Path | None = None) -> BuildInputs:
    """Return what builds for a platform read, and how that platform ends them."""
    return BuildInputs(
        sources=sources,
        tools=packages_folder("tools", tool_requirements()),
        runner=shipped_folder("runner"),
        hooks=shipped_folder("cmake"),
        sdk=sdk,
        installed=platform.installed,
        finish=platform.finish,
    )


def compiled_before(target: PlannedTarget, assembly: AssemblyJob | None) -> JobResult:
    """Return what an earlier build of a target left, of which nothing needs an NDK or Xcode any more.

    It may have been compiled in a container, or on another machine. Raises `VerifyError` `not-built`.
    """
    by_sdk = target.job.toolchain.kind == platform_of(target.job.target).SDK
    if by_sdk and not is_compiled(target, java=assembly is None or assembly.java is not False):
        raise _not_built(target.job)
    return built_before(target.job)


def built_before(job: BuildJob) -> JobResult:
    """Return what an earlier build of a job left. Raises `VerifyError` `not-built`."""
    folder = finished_build(job)
    if not is_kept(folder):
        raise _not_built(job)
    return result_of(folder)


def _not_built(job: BuildJob) -> VerifyError:
    what, hint = "there is no finished build to verify", "run: invoke build"
    return VerifyError("not-built", what, where=job.target.identifier, hint=hint)
