"""What builds a target, where the request says: on this machine itself, or in a container of it.

- Executors say *where* a job runs. Each turns a `BuildJob` into a `JobResult`.
"""

from pathlib import Path
from typing import Protocol

from ortrim.base.cache import is_kept
from ortrim.base.console import Step
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.build.container import ContainerExecutor
from ortrim.build.execution import Inputs, choose_parallelism
from ortrim.build.native import NativeExecutor
from ortrim.build.plan import BuildJob, JobResult, PlannedTarget, RunnerJob
from ortrim.build.sources import sound_sources
from ortrim.build.trees import finished_build, result_of
from ortrim.errors import VerifyError
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.pipeline.request import Request
from ortrim.pipeline.transfer import is_compiled

Builder = NativeExecutor | ContainerExecutor


def builder_for(planned: Planned, target: PlannedTarget, request: Request, step: Step) -> Builder:
    """Return what builds a target where the request says, telling `step` how far it is."""
    native = executor_for(planned, target, request, step)
    return native if request.container is None else ContainerExecutor(native=native, options=request.container)


def executor_for(planned: Planned, target: PlannedTarget, request: Request, step: Step) -> NativeExecutor:
    """Return what builds a target on this machine itself, telling `step` how far it is."""
    log = target_folder(planned, target) / "build.log"
    sources = sound_sources(planned.sources, step.note)
    return native_executor(sources, log, step, jobs=request.jobs, ndk=request.ndk)


def native_executor(
    sources: Path, log: Path, step: Step, *, jobs: int | None = None, ndk: Path | None = None
) -> NativeExecutor:
    """Return what builds from a source tree on this machine itself; without `jobs`, as many as it can bear."""
    return NativeExecutor(
        inputs=Inputs(
            sources=sources,
            tools=packages_folder("tools", tool_requirements()),
            runner=shipped_folder("runner"),
            hooks=shipped_folder("cmake"),
            ndk=ndk,
        ),
        log=log.absolute(),
        parallelism=choose_parallelism(jobs),
        on_progress=step.progress,
        on_note=step.note,
    )


def compiled_before(target: PlannedTarget) -> JobResult:
    """Return what an earlier build of a target left, of which nothing needs an NDK or Xcode any more.

    It may have been compiled in a container, or on another machine. Raises `VerifyError` `not-built`.
    """
    if (target.job.android or target.job.apple) and not is_compiled(target):
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


class Executor(Protocol):
    """A place where build jobs run."""

    def run(self, job: BuildJob) -> JobResult:
        """Run a job to its end.

        Raises `BuildError` when compiling or linking fails, `ToolError` when the place lacks something.
        """

    def run_runner(self, job: RunnerJob) -> Path:
        """Compile the runner for a target and return the program. Raises as `run` does."""
