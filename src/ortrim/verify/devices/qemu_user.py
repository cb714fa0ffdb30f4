"""Programs for another processor under qemu's user emulation: right results and illegal instructions, nothing else.

What is measured there is qemu: its own memory is counted with the program's, and there is no ceiling to it.
"""

import dataclasses
import os
import platform
import re
import tempfile
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.sources.machines import MachineParts
from ortrim.storage.files import storage_errors
from ortrim.tools.base import InstalledTool
from ortrim.tools.command import Completed
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.local_run import absolute, run_locally
from ortrim.verify.devices.run_errors import not_startable
from ortrim.verify.runner_output import read_output

NOT_LOADED: Final = 255
REFUSED: Final = re.compile(r"^qemu-\S+: (?:.*: Invalid ELF image|Could not open '/).*", re.MULTILINE)
"""What qemu ends with, and says, when it cannot load a program, or the linker that the program asks for."""
SIGNAL: Final = re.compile(r"qemu: uncaught target signal (\d+)")


class QemuUser:
    """Runs the runner as a child process, as if this machine had the processor `cpu`."""

    memory_meaningful = False
    time_meaningful = False

    def __init__(self, emulation: Emulation, parts: MachineParts, tool: InstalledTool, *, cpu: str) -> None:
        self.name = f"qemu-user:{cpu}"
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._cpu = cpu

    def facts(self) -> measurements.Host:
        """Describe what programs see: the processor is the one emulated, the system is this machine's."""
        return measurements.Host(
            system="Linux",
            machine=self._emulation.machine,
            cpu=f"{self._cpu}, emulated by {self._tool.name} {self._tool.version}",
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kind="user-emulation",
            model=f"qemu user emulation, {self._cpu}",
            abi=self._emulation.machine,
            os_version=f"{platform.system()} {platform.release()}",
            fingerprint=", ".join(f"{package.name} {package.version}" for package in self._parts.packages),
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            memory_meaningful=False,
            time_meaningful=False,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once.

        Raises `VerifyError`: those of `run_locally` and of `read_output`.
        """
        words = (str(self._tool.path), "-L", str(self._parts.root), "-cpu", self._cpu)
        # In a folder of its own, since qemu writes the memory of a program that crashes where it runs.
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-qemu-") as place:
            completed = run_locally((*words, *runner_words(absolute(request))), request, cwd=Path(place))
        if completed.returncode == NOT_LOADED and (found := REFUSED.search(completed.stderr)):
            raise not_startable(self.name, found[0])
        return read_output(_as_of_the_program(completed), request)

    def close(self) -> None:
        """Leave everything as it is: runs write nothing but their outputs."""


def _as_of_the_program(completed: Completed) -> Completed:
    """Return what the program ended with: qemu says which signal ended it, and may end in another way itself."""
    found = SIGNAL.search(completed.stderr)
    return dataclasses.replace(completed, returncode=-int(found[1])) if found else completed
