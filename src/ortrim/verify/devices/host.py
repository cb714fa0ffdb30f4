"""The machine on which ortrim itself runs."""

import os
import platform
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.errors import ToolError, VerifyError
from ortrim.tools.command import run
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.runner_output import read_output

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""All that the runner sees, so that no variable of the user's shell favours one library."""


class Host:
    """Runs the runner as a child process."""

    name = "host"

    def facts(self) -> measurements.Host:
        """Describe this machine."""
        return measurements.Host(
            system=platform.system(),
            machine=platform.machine(),
            cpu=_cpu_name(),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once.

        Raises `VerifyError`: `runner-timeout`, `runner-not-startable`, and those of `read_output`.
        """
        limit = request.repetition.timeout_seconds
        try:
            completed = run(runner_words(request), environment=ENVIRONMENT, timeout_seconds=limit)
        except ToolError as error:
            raise _not_run(error, request) from error
        return read_output(completed, request)


def _not_run(error: ToolError, request: RunRequest) -> VerifyError:
    if error.reference == "tool-timeout":
        where = f"{request.library.name} with {request.model.name}"
        what = f"the runner did not end within {request.repetition.timeout_seconds:g} seconds and was stopped"
        return VerifyError("runner-timeout", what, where=where, hint="use smaller cases, or fewer of them")
    hint = "it may have been built for another machine; build it again"
    what = "the runner cannot be started"
    return VerifyError("runner-not-startable", what, where=str(request.runner), why=error.why, hint=hint)


def _cpu_name() -> str:
    """Return the processor's name as the kernel gives it; arm64 kernels give none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
