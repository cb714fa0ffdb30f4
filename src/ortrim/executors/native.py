"""The native executor: upstream's own `build.py` on this machine, with the job's toolchain."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ortrim.core.artifacts import CompilerCacheUse, JobResult
from ortrim.core.plan import BuildJob, job_digest
from ortrim.errors import BuildError
from ortrim.executors.build_log import first_error, ninja_step
from ortrim.executors.parallelism import Parallelism
from ortrim.executors.paths import JobPaths
from ortrim.executors.results import collect, finished_build, result_of, write_facts
from ortrim.storage.cache import cache_folder
from ortrim.storage.folders import locked, publish_folder
from ortrim.tools.command import run, stream
from ortrim.tools.compiler_cache import CompilerCache, compiler_cache
from ortrim.tools.environments import ISOLATED_PYTHON, environment_with

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, kw_only=True)
class NativeExecutor:
    """Builds on this machine.

    `sources` and `tools` are complete folders that are only read; `runner` holds the runner's source. Results
    lie in the user's cache by the job's digest, so that the same job is never built twice. The log of the build
    is written to `log` while it runs.
    """

    sources: Path
    tools: Path
    runner: Path
    log: Path
    parallelism: Parallelism
    on_progress: Progress

    def run(self, job: BuildJob) -> JobResult:
        """Build a job, or return what was built of it before; see `Executor.run`."""
        folder = finished_build(job)
        publish_folder(folder, lambda destination: self._build(job, destination))
        return result_of(folder)

    def _build(self, job: BuildJob, destination: Path) -> None:
        """Build in a folder that survives an interruption, so that the next run goes on from there."""
        work = cache_folder("builds") / f"{job_digest(job)[:20]}.work"
        with locked(work):
            paths = self._prepare(job, work)
            started = time.monotonic()
            cache_use = self._compile(job, paths)
            compiled = time.monotonic()
            self._compile_runner(job, paths)
            durations = (("build", compiled - started), ("runner", time.monotonic() - compiled))
            collect(job, paths, destination, self.log)
            write_facts(destination, durations, cache_use)
            shutil.rmtree(work)

    def _prepare(self, job: BuildJob, work: Path) -> JobPaths:
        paths = JobPaths(
            sources=self.sources,
            build=work / "out",
            tools=self.tools,
            wrappers=work / "wrappers",
            config=work / "operators.config",
            runner=self.runner,
        )
        paths.wrappers.mkdir(parents=True, exist_ok=True)
        paths.build.mkdir(exist_ok=True)
        for name, text in job.toolchain.wrappers:
            (paths.wrappers / name).write_text(text)
            (paths.wrappers / name).chmod(0o755)
        paths.config.write_text(job.operator_config)
        return paths

    def _compile(self, job: BuildJob, paths: JobPaths) -> CompilerCacheUse | None:
        launcher = self.tools / "bin" / "sccache"
        bases = (paths.build, self.sources, self.tools)
        with compiler_cache(launcher, cache_folder("compiler"), bases) as cache:
            self._run_upstream(job, paths, cache)
            return cache.use() if cache else None

    def _run_upstream(self, job: BuildJob, paths: JobPaths, cache: CompilerCache | None) -> None:
        script = self.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
        command: tuple[str | Path, ...] = (
            *ISOLATED_PYTHON,
            script,
            *paths.resolve_all(job.arguments),
            *_launcher_definitions(cache),
        )
        environment = self._environment(job, paths) | dict(cache.environment if cache else {})
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("w", buffering=1) as log:
            lines: list[str] = []

            def on_line(line: str) -> None:
                log.write(line + "\n")
                lines.append(line)
                if step := ninja_step(line):
                    self.on_progress(*step)

            code = stream(
                (*command, "--parallel", str(self.parallelism.jobs)), on_line, cwd=paths.build, environment=environment
            )
        if code != 0:
            raise _build_failed(job, first_error(lines), self.log)

    def _environment(self, job: BuildJob, paths: JobPaths) -> dict[str, str]:
        """Return all that the build sees of this machine.

        `GIT_CEILING_DIRECTORIES` keeps upstream's CMake from writing the commit of whatever repository the cache
        lies in into the library.
        """
        return environment_with(self.tools) | {
            "CC": str(paths.wrappers / "cc"),
            "CXX": str(paths.wrappers / "c++"),
            "GIT_CEILING_DIRECTORIES": str(self.sources.parent),
            "HOME": str(paths.build),
            "ORTRIM_BUILD": str(paths.build),
            "ORTRIM_LINK_MAP": str(paths.build / "link.map"),
            "ORTRIM_SOURCES": str(self.sources),
            "SOURCE_DATE_EPOCH": "315532800",
            "TZ": "UTC",
            "ZIG_GLOBAL_CACHE_DIR": str(cache_folder("zig")),
            "ZIG_LOCAL_CACHE_DIR": str(paths.build / "zig"),
            **{name: paths.resolve(value) for name, value in job.toolchain.environment},
        }

    def _compile_runner(self, job: BuildJob, paths: JobPaths) -> None:
        command: tuple[str | Path, ...] = (paths.wrappers / "cc", *paths.resolve_all(job.runner_arguments))
        done = run(command, cwd=paths.build, environment=self._environment(job, paths))
        if done.returncode != 0:
            raise _build_failed(job, first_error(done.stderr.splitlines()), self.log)


def _launcher_definitions(cache: CompilerCache | None) -> tuple[str, ...]:
    if cache is None:
        return ()
    return (
        "--cmake_extra_defines",
        f"CMAKE_C_COMPILER_LAUNCHER={cache.launcher}",
        f"CMAKE_CXX_COMPILER_LAUNCHER={cache.launcher}",
    )


def _build_failed(job: BuildJob, why: str, log: Path) -> BuildError:
    hint = f"the whole log is {log}; mend the cause and run the same command: it goes on where it stopped"
    return BuildError("build-failed", "the build stopped at an error", where=job.target.identifier, why=why, hint=hint)
