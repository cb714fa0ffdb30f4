"""The machine on which ortrim itself runs."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from ortrim.core import measurements
from ortrim.tools.command import Completed, run
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.local_run import ENVIRONMENT, run_locally
from ortrim.verify.devices.pinning import check_pinning, pinned
from ortrim.verify.devices.processors import read_cpu_information
from ortrim.verify.devices.run_errors import NOT_STARTED, not_startable
from ortrim.verify.runner_output import read_output


class Host:
    """Runs the runner as a child process, on `cores` (all, when empty).

    Raises `UsageError` `cannot-pin`, or `ToolError` when there is no `taskset`.
    """

    name = "host"
    memory_meaningful = True
    time_meaningful = True

    def __init__(self, cores: tuple[int, ...] = ()) -> None:
        self._cores = cores
        check_pinning(_execute, cores, self.name)

    def facts(self) -> measurements.Host:
        """Describe this machine."""
        cpu = read_cpu_information(_cpu_information())
        return measurements.Host(
            system=platform.system(),
            machine=platform.machine(),
            cpu=cpu.name or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            pinned_cores=self._cores,
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
        done = run_locally((*pinned(self._cores), *runner_words(request)), request)
        if self._cores and done.returncode in NOT_STARTED:  # taskset's own
            raise not_startable(str(request.runner), done.stderr.strip())
        return read_output(done, request)

    def close(self) -> None:
        """Leave everything as it is: runs on this machine write nothing but their outputs."""


def saturates_here() -> bool:
    """Whether sums of products of 8 bits saturate here, as with AVX2 alone, and are others than on most devices.

    `vpmaddubsw` adds two of them in 16 bits; SSE's kernels, VNNI and ARM add in 32
    (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).
    """
    features = set(read_cpu_information(_cpu_information()).features)
    return "avx2" in features and not features & {"avx_vnni", "avx512_vnni"}


def _execute(words: Sequence[str], seconds: float) -> Completed:
    return run(words, environment=ENVIRONMENT, timeout_seconds=seconds)


def _cpu_information() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
