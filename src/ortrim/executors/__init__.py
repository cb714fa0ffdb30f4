"""Executors say *where* a job runs. Each turns a `BuildJob` into a `JobResult`."""

from pathlib import Path
from typing import Protocol

from ortrim.core.artifacts import JobResult
from ortrim.core.plan import BuildJob, RunnerJob


class Executor(Protocol):
    """A place where build jobs run."""

    def run(self, job: BuildJob) -> JobResult:
        """Run a job to its end.

        Raises `BuildError` when compiling or linking fails, `ToolError` when the place lacks something.
        """

    def run_runner(self, job: RunnerJob) -> Path:
        """Compile the runner for a target and return the program. Raises as `run` does."""
