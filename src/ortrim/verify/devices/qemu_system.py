"""A whole arm64 Linux under qemu: a processor of one's choice, a ceiling to its memory, a kernel that keeps account.

What a process takes there in memory is what it takes on a board; the time that it takes is not. Files lie in the
machine's memory, as they would on a board without a disk: a ceiling holds the kernel, the libraries, the model and the
inputs besides what processes allocate.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.errors import VerifyError
from ortrim.sources.machines import MachineParts
from ortrim.tools.base import InstalledTool
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.initramfs import Entry
from ortrim.verify.devices.machine import Boot, Machine, boot
from ortrim.verify.devices.machine_files import OUTPUTS, machine_entries, save_outputs
from ortrim.verify.devices.machine_protocol import PAYLOAD
from ortrim.verify.devices.machine_verdict import completed_run
from ortrim.verify.devices.payload import make_payload
from ortrim.verify.devices.survey import linux_host
from ortrim.verify.runner_output import read_output

DEFAULT_MEMORY_MIB: Final = 256
PAGE_BYTES: Final = 4096
"""The kernel's, by its configuration."""


class QemuSystem:
    """Starts a machine for each run, and leaves nothing of it.

    `parts` are those of the architecture emulated; `kernel` and `shell` are always arm64's, whose kernel runs programs
    for 32 bits too.
    """

    memory_meaningful = True
    time_meaningful = False

    def __init__(
        self,
        emulation: Emulation,
        parts: MachineParts,
        tool: InstalledTool,
        *,
        kernel: Path,
        shell: Path,
        cpu: str,
        memory_mib: int = DEFAULT_MEMORY_MIB,
    ) -> None:
        ceiling = "" if memory_mib == DEFAULT_MEMORY_MIB else f"@{memory_mib}"
        self.name = f"qemu-system:{cpu}{ceiling}"
        self.machine = Machine(program=tool.path, cpu=cpu, memory_mib=memory_mib, kernel=kernel)
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._shell = shell
        self._described: measurements.Host | None = None

    def with_memory(self, memory_mib: int) -> "QemuSystem":
        """Return the same machine with another ceiling."""
        return QemuSystem(
            self._emulation,
            self._parts,
            self._tool,
            kernel=self.machine.kernel,
            shell=self._shell,
            cpu=self.machine.cpu,
            memory_mib=memory_mib,
        )

    def facts(self) -> measurements.Host:
        """Describe the machine, as the last run found it; without one, it is started for that."""
        if self._described is None:
            self._note(boot(self.machine, self._entries({}), (), 0.0))
        if self._described is None:
            why = "it did not start, or not to its end"
            raise VerifyError("machine-crashed", "the machine cannot be asked", where=self.name, why=why)
        return self._described

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once, in a machine of its own.

        Raises `VerifyError`: `out-of-memory`, `runner-timeout`, `machine-crashed` (the machine ended before the
        runner), those of `boot` and of `read_output`; `StorageError`.
        """
        payload = make_payload(request, PAYLOAD, OUTPUTS)
        entries = self._entries({f"{PAYLOAD}/{name}".lstrip("/"): path for name, path in payload.files.items()})
        booted = boot(self.machine, entries, (runner_words(payload.request),), request.repetition.timeout_seconds)
        self._note(booted)
        completed = completed_run(booted, request, device=self.name, memory_mib=self.machine.memory_mib)
        if request.outputs and booted.answer.files:
            save_outputs(booted.answer.files, request.outputs)
        return read_output(completed, request)

    def close(self) -> None:
        """Do nothing: a machine does not outlive its run."""

    def _entries(self, payload: Mapping[str, Path]) -> tuple[Entry, ...]:
        return machine_entries(self._emulation, self._parts, self._shell, payload)

    def _note(self, booted: Boot) -> None:
        """Keep the machine's description of itself."""
        files = booted.answer.files or {}
        if "cpuinfo" in files:
            self._described = self._host({name: text.decode(errors="replace") for name, text in files.items()})

    def _host(self, files: Mapping[str, str]) -> measurements.Host:
        sections = {
            "cpu": files["cpuinfo"],
            "memory": files.get("meminfo", ""),
            "release": files.get("release", ""),
            "system": "Linux",
            "machine": self._emulation.machine,
            "present": "0",
        }
        return dataclasses.replace(
            linux_host(sections),
            kind="vm",
            model=f"qemu {self._tool.version} virt, {self.machine.cpu}, {self.machine.memory_mib} MiB",
            fingerprint=", ".join(f"{package.name} {package.version}" for package in self._parts.packages),
            page_bytes=PAGE_BYTES,
            time_meaningful=False,
        )
