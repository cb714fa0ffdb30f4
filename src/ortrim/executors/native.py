"""The native executor: upstream's own `build.py` on this machine, with the job's toolchain."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompilerCacheUse, JobResult
from ortrim.core.plan import BuildJob, RunnerJob, digest
from ortrim.errors import BuildError, StorageError
from ortrim.executors.build_log import FULL_DISK, first_error, ninja_step, remedy
from ortrim.executors.parallelism import Parallelism
from ortrim.executors.paths import JobPaths
from ortrim.executors.results import collect, finished_build, result_of, write_facts
from ortrim.executors.workspace import Inputs, job_environment, prepare_workspace
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import locked, publish_folder
from ortrim.tools.command import run, stream
from ortrim.tools.compiler_cache import CompilerCache, compiler_cache
from ortrim.tools.environments import ISOLATED_PYTHON

RUNNER: Final = "runner"

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, kw_only=True)
class NativeExecutor:
    """Builds on this machine.

    Results lie in the user's cache by the job's digest, so that the same job is never built twice. The log of the
    build is written to `log` while it runs.
    """

    inputs: Inputs
    log: Path
    parallelism: Parallelism
    on_progress: Progress

    def run(self, job: BuildJob) -> JobResult:
        """Build a job, or return what was built of it before; see `Executor.run`."""
        folder = finished_build(job)
        publish_folder(folder, lambda destination: self._build(job, destination))
        shutil.rmtree(_work_folder(job), ignore_errors=True)  # only now: until then it is what a rerun goes on from
        return result_of(folder)

    def run_runner(self, job: RunnerJob) -> Path:
        """Compile a runner, or return what was compiled before; see `Executor.run_runner`."""
        folder = cache_folder("runners") / digest(job)[:20]
        publish_folder(folder, lambda destination: self._compile_runner(job, destination))
        return folder / RUNNER

    def _build(self, job: BuildJob, destination: Path) -> None:
        """Build in a folder that survives an interruption, so that the next run goes on from there."""
        work = _work_folder(job)
        with locked(work):
            paths = prepare_workspace(work, self.inputs, job.toolchain, job.operator_config)
            started = time.monotonic()
            cache_use = self._compile(job, paths)
            collect(job, paths, destination, self.log)
            write_facts(destination, time.monotonic() - started, cache_use)

    def _compile(self, job: BuildJob, paths: JobPaths) -> CompilerCacheUse | None:
        launcher = paths.tools / "bin" / "sccache"
        bases = (paths.build, paths.sources, paths.tools)
        with compiler_cache(launcher, cache_folder("compiler"), bases) as cache:
            lines: list[str] = []
            code = self._stream_upstream(job, paths, cache, lines)
            if code != 0:
                raise _build_failed(job.target.identifier, first_error(lines), f"the whole log is {self.log}; ", code)
            return cache.use() if cache else None

    def _stream_upstream(self, job: BuildJob, paths: JobPaths, cache: CompilerCache | None, lines: list[str]) -> int:
        script = paths.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
        parallel = ("--parallel", str(self.parallelism.jobs))
        arguments = (*paths.resolve_all(job.arguments), *_launcher_definitions(cache), *parallel)
        environment = job_environment(paths, job.toolchain) | dict(cache.environment if cache else {})
        with storage_errors(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("w", buffering=1, encoding="utf-8") as log:

            def on_line(line: str) -> None:
                log.write(line + "\n")
                lines.append(line)
                if step := ninja_step(line):
                    self.on_progress(*step)

            command = (*ISOLATED_PYTHON, str(script), *arguments)
            return stream(command, on_line, cwd=paths.build, environment=environment)

    def _compile_runner(self, job: RunnerJob, destination: Path) -> None:
        # Not in the system's temporary folder, from which programs may not be allowed to run.
        work = destination / "work"
        paths = prepare_workspace(work, self.inputs, job.toolchain)
        command = (str(paths.wrappers / "cc"), *paths.resolve_all(job.arguments))
        done = run(command, cwd=paths.build, environment=job_environment(paths, job.toolchain))
        if done.returncode != 0:
            error = first_error((done.stdout + done.stderr).splitlines())
            raise _build_failed(f"runner for {job.target.identifier}", error, "", done.returncode)
        (paths.build / RUNNER).rename(destination / RUNNER)
        shutil.rmtree(work)


def _launcher_definitions(cache: CompilerCache | None) -> tuple[str, ...]:
    if cache is None:
        return ()
    return (
        "--cmake_extra_defines",
        f"CMAKE_C_COMPILER_LAUNCHER={cache.launcher}",
        f"CMAKE_CXX_COMPILER_LAUNCHER={cache.launcher}",
    )


def _work_folder(job: BuildJob) -> Path:
    """Return the folder that a job is built in; it goes when the finished build is there."""
    return cache_folder("builds") / f"{digest(job)[:20]}.work"


def _build_failed(where: str, why: str, log: str, code: int) -> BuildError | StorageError:
    if FULL_DISK in why:
        hint = f"{log}free some space, then run the same command again: it goes on where it stopped"
        return StorageError("disk-full", "the build ran out of disk space", where=where, why=why, hint=hint)
    what = "the build stopped at an error" if code > 0 else f"the build was stopped by signal {-code}"
    return BuildError("build-failed", what, where=where, why=why, hint=log + remedy(why))
