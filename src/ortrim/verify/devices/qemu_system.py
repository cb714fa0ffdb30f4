"""A whole arm64 Linux under qemu: a processor of one's choice, a ceiling to its memory, a kernel that keeps account.

What a process takes there in memory is what it takes on a board; the time that it takes is not. Files lie in the
machine's memory, as they would on a board without a disk: a ceiling holds the kernel, the libraries, the model and the
inputs besides what processes allocate.
"""

import dataclasses
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.errors import Diagnostic, VerifyError
from ortrim.sources.machines import MachineParts
from ortrim.storage.files import storage_errors
from ortrim.tools.base import InstalledTool
from ortrim.tools.command import Completed
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.initramfs import Entry, regular
from ortrim.verify.devices.link_needs import libraries_for
from ortrim.verify.devices.machine import Boot, Machine, boot
from ortrim.verify.devices.machine_protocol import OUT, PAYLOAD, SHELL
from ortrim.verify.devices.payload import make_payload
from ortrim.verify.devices.remote import signalled
from ortrim.verify.devices.survey import linux_host
from ortrim.verify.runner_output import never_ended, out_of_memory, place_of, read_output

DEFAULT_MEMORY_MIB: Final = 256
SAVED: Final = "saved"
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
        payload = make_payload(request, PAYLOAD, f"{OUT}/{SAVED}")
        entries = self._entries({f"{PAYLOAD}/{name}".lstrip("/"): path for name, path in payload.files.items()})
        limit = request.repetition.timeout_seconds
        booted = boot(self.machine, entries, (runner_words(payload.request),), limit)
        self._note(booted)
        completed = self._completed(booted, request)
        if request.outputs and booted.answer.files:
            _save(booted.answer.files, request.outputs)
        return read_output(completed, request)

    def close(self) -> None:
        """Do nothing: a machine does not outlive its run."""

    def _completed(self, booted: Boot, request: RunRequest) -> Completed:
        """Return what the runner ended with; raises when it did not end, or for want of memory."""
        codes = booted.answer.exit_codes
        if booted.out_of_memory and (codes != (0,) or booted.answer.files is None):
            raise out_of_memory(request, f"{booted.out_of_memory}\n{self._ceiling()}")
        if not codes or booted.answer.files is None:
            raise self._not_ended(booted, request)
        returncode = signalled(codes[0])
        stdout = booted.answer.files.get("0", b"").decode("utf-8", errors="replace")
        return Completed(argv=(self.name,), returncode=returncode, stdout=stdout, stderr=booted.complaints)

    def _not_ended(self, booted: Boot, request: RunRequest) -> Diagnostic:
        if booted.timed_out and booted.answer.begun and not booted.answer.exit_codes:
            return never_ended(request)
        what = "the machine did not come to its end in time" if booted.timed_out else "the machine ended by itself"
        why = booted.panic or "\n".join(booted.console.strip().splitlines()[-5:])
        hint = "try again with more memory, such as @256"
        return VerifyError("machine-crashed", what, where=f"{self.name}, {place_of(request)}", why=why, hint=hint)

    def _ceiling(self) -> str:
        return f"the machine has {self.machine.memory_mib} MiB, of which its kernel takes about 30"

    def _entries(self, payload: Mapping[str, Path]) -> list[Entry]:
        folders = [f"usr/lib/{name}" for name in self._emulation.library_folders]
        programs = [path for name, path in payload.items() if name.endswith(("/runner", "/library.so"))]
        libraries = libraries_for(programs, self._parts.root, folders)
        files = {SHELL.lstrip("/"): self._shell, **libraries, **payload}
        return [_entry(name, path) for name, path in files.items()]

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


def _entry(name: str, path: Path) -> Entry:
    with storage_errors(path):
        executable = name.endswith("/runner") or bool(path.stat().st_mode & stat.S_IXUSR)
        return regular(name, path.read_bytes(), executable=executable)


def _save(files: Mapping[str, bytes], destination: Path) -> None:
    """Write what the runner saved; names were checked when they were read."""
    with storage_errors(destination):
        for name, content in files.items():
            if name.startswith(f"{SAVED}/"):
                target = destination / name.removeprefix(f"{SAVED}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
