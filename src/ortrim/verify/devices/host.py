"""The machine on which ortrim itself runs."""

import os
import platform
from pathlib import Path

from ortrim.core import measurements
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.local_run import run_locally
from ortrim.verify.devices.processors import read_cpu_information
from ortrim.verify.runner_output import read_output


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

        Raises `VerifyError`: those of `run_locally` and of `read_output`.
        """
        return read_output(run_locally(runner_words(request), request), request)

    def close(self) -> None:
        """Leave everything as it is: runs on this machine write nothing but their outputs."""


def _cpu_information() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
