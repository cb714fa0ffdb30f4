"""The machine on which ortrim itself runs."""

import os
import platform
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.errors import ToolError, VerifyError
from ortrim.tools.command import run
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.processors import read_cpu_information
from ortrim.verify.runner_output import never_ended, read_output

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""All that the runner sees, so that no variable of the user's shell favours one library."""


class Host:
    """Runs the runner as a child process."""

    name = "host"
    memory_meaningful = True
    time_meaningful = True

    def facts(self) -> measurements.Host:
        """Describe this machine."""
        cpu = read_cpu_information(_cpu_information())
        return measurements.Host(
            system=platform.system(),
            machine=platform.machine(),
            cpu=cpu.name or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kind="vm" if "hypervisor" in cpu.features else "physical",
            abi=platform.machine(),
            os_version=f"{platform.system()} {platform.release()}",
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            cpu_features=cpu.features,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once.

        Raises `VerifyError`: `runner-timeout`, `runner-not-startable`, and those of `read_output`.
        """
        limit = request.repetition.timeout_seconds
        try:
            completed = run(runner_words(request), environment=ENVIRONMENT, timeout_seconds=limit)
        except ToolError as error:
            raise not_run(error, request) from error
        return read_output(completed, request)

    def close(self) -> None:
        """Leave everything as it is: runs on this machine write nothing but their outputs."""


def not_run(error: ToolError, request: RunRequest) -> VerifyError:
    """Return the diagnostic of a runner that was not started, or not left to its end."""
    if error.reference == "tool-timeout":
        return never_ended(request)
    hint = "it may have been built for another machine; build it again"
    what = "the runner cannot be started"
    return VerifyError("runner-not-startable", what, where=str(request.runner), why=error.why, hint=hint)


def _cpu_information() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
