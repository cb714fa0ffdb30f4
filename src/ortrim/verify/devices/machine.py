"""Starting a machine under qemu, once, with everything that it is to run already in its memory."""

import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError, VerifyError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import run
from ortrim.verify.devices.initramfs import BadArchive, Entry, compress, folder, regular, with_folders, write_archive
from ortrim.verify.devices.machine_protocol import Answer, init_script, read_answer

ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
START_SECONDS: Final = 90.0
"""How long a machine may take to start and to end, besides its commands: about four seconds on an idle host."""
SELF_END_SECONDS: Final = 30.0
"""How much longer the machine waits before it ends by itself; by then whoever started it has given up on it."""
KERNEL_ARGUMENTS: Final = (
    "console=ttyAMA0", "quiet", "panic=-1", "nokaslr", "cma=0", "transparent_hugepage=never",
)  # fmt: skip
"""Restart, that is end, on a panic; no memory set aside, and pages of one size, so that memory is repeatable."""
NO_MEMORY: Final = re.compile(r"Out of memory|deadlocked on memory|Initramfs unpacking failed|oom-kill", re.IGNORECASE)
PANIC: Final = re.compile(r"Kernel panic - (.*)")
KERNEL_LINE: Final = re.compile(r"^\[ *\d+\.\d+\] ")
CONSOLE_BYTES: Final = 4 << 20
"""More is what a library prints again and again."""
ROOMS: Final = ("dev", "proc", "sys", "out", "payload", "tmp")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What is emulated: a processor in qemu's words, the memory in MiB, and the kernel; `program` is qemu."""

    program: Path
    cpu: str
    memory_mib: int
    kernel: Path


@dataclass(frozen=True, kw_only=True)
class Boot:
    """One machine's life: its answer, what stood on its console, and whether it was stopped at the time limit."""

    answer: Answer
    console: str
    timed_out: bool

    @property
    def out_of_memory(self) -> str:
        """The kernel's own words for that there was not enough memory, or nothing."""
        return next((line for line in self.console.splitlines() if NO_MEMORY.search(line)), "")

    @property
    def panic(self) -> str:
        """The kernel's own words for why it could not go on, or nothing."""
        found = PANIC.search(self.console)
        return found[0].strip() if found else ""

    @property
    def complaints(self) -> str:
        """What programs wrote to standard error: the console without the kernel's messages."""
        return "\n".join(line for line in self.console.splitlines() if not KERNEL_LINE.match(line))


def boot(machine: Machine, entries: Sequence[Entry], commands: Sequence[Sequence[str]], limit_seconds: float) -> Boot:
    """Start a machine that holds `entries`, run the commands in turn, and return its answer, whole or not.

    `limit_seconds` is for each command, and for all of them. Whatever happens, qemu is ended and its files are removed.
    Raises `VerifyError`: `machine-not-startable` (qemu refuses), `machine-lost` (qemu was ended from outside),
    `machine-garbage`; `ToolError` when qemu is gone, or `StorageError`.
    """
    limit = START_SECONDS + limit_seconds
    script = init_script(commands, limit_seconds=limit_seconds, machine_seconds=limit + SELF_END_SECONDS)
    init = regular("init", script.encode(), executable=True)
    archive = compress(write_archive(with_folders([init, *map(folder, ROOMS), *entries])))
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-machine-") as name:
        place = Path(name)
        (place / "initrd").write_bytes(archive)
        timed_out = _run_qemu(machine, place, limit)
        return Boot(answer=_answer(place, machine), console=_console(place), timed_out=timed_out)


def _run_qemu(machine: Machine, place: Path, limit: float) -> bool:
    """Run qemu to its end; return whether it had to be stopped."""
    try:
        done = run(qemu_words(machine), cwd=place, environment=ENVIRONMENT, timeout_seconds=limit)
    except ToolError as error:
        if error.reference == "tool-timeout":
            return True
        raise
    if done.returncode < 0:
        what = f"qemu was ended by signal {-done.returncode} before its machine was done"
        raise VerifyError("machine-lost", what, where=machine.cpu, hint="run the same command again")
    if done.returncode > 0:
        why = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise VerifyError("machine-not-startable", "qemu cannot emulate this machine", where=machine.cpu, why=why)
    return False


def qemu_words(machine: Machine) -> tuple[str, ...]:
    """Return qemu's command line; its files are in the folder in which it runs."""
    return (
        str(machine.program),
        *("-M", "virt", "-cpu", machine.cpu, "-smp", "1", "-m", str(machine.memory_mib)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", str(machine.kernel), "-initrd", "initrd", "-append", " ".join(KERNEL_ARGUMENTS)),
        *("-chardev", "file,id=console,path=console", "-serial", "chardev:console"),
        *("-chardev", "file,id=answer,path=answer", "-device", "virtio-serial-pci"),
        *("-device", "virtserialport,chardev=answer,name=answer"),
    )


def _answer(place: Path, machine: Machine) -> Answer:
    data = (place / "answer").read_bytes() if (place / "answer").is_file() else b""
    try:
        return read_answer(data)
    except BadArchive as error:
        why = f"{error}\n{_console(place)[-500:]}".strip()
        what = "what came back from the machine makes no sense"
        raise VerifyError("machine-garbage", what, where=machine.cpu, why=why) from error


def _console(place: Path) -> str:
    """Return the end of what stood on the console, where the reason of an end is."""
    with contextlib.suppress(FileNotFoundError), (place / "console").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - CONSOLE_BYTES))
        return file.read().decode("utf-8", errors="replace").replace("\r", "")
    return ""
