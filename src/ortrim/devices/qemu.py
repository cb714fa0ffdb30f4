"""Programs under qemu: one for another processor, or a whole arm64 Linux with a ceiling to its memory.

Under user emulation there are right results and illegal instructions, nothing else. What a process takes in memory in a
whole machine is what it takes on a board, and its processor counts instructions as a real one does; the time that it
takes is another. Files lie in the machine's memory, as they would on a board without a disk: a ceiling holds the
kernel, the libraries, the model and the inputs besides what processes allocate.
"""

import contextlib
import dataclasses
import math
import os
import platform
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.tools import Emulation, InstalledTool
from ortrim.devices import kinds, machine_files
from ortrim.devices.device import NOT_STARTED, Device, ProgramDevice, not_startable
from ortrim.devices.facts import linux_host
from ortrim.devices.host import absolute, memory_bytes, run_locally
from ortrim.devices.kinds import DEFAULT_MEMORY_MIB
from ortrim.devices.remote import make_payload, signalled
from ortrim.errors import ToolError, VerifyError
from ortrim.parity.measurements import HostFacts, LeastMemory
from ortrim.parity.runner import (
    Repetition,
    RunnerOutput,
    RunRequest,
    never_ended,
    out_of_memory,
    place_of,
    read_output,
    runner_words,
)
from ortrim.sources.root_file_systems import MachineParts

NOT_LOADED: Final = 255
REFUSED: Final = re.compile(r"^qemu-\S+: (?:.*: Invalid ELF image|Could not open '/).*", re.MULTILINE)
"""The exit code and message of qemu when it cannot load a program, or the program's dynamic linker."""
SIGNAL: Final = re.compile(r"qemu: uncaught target signal (\d+)")


class QemuUser(ProgramDevice):
    """Runs the runner as a child process, as if this machine had the processor `cpu`."""

    memory_meaningful = kinds.QEMU_USER.memory
    time_meaningful = kinds.QEMU_USER.time

    def __init__(self, emulation: Emulation, parts: MachineParts, tool: InstalledTool, *, cpu: str) -> None:
        self.name = f"{kinds.QEMU_USER}:{cpu}"
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._cpu = cpu

    def facts(self) -> HostFacts:
        """Describe what programs see: the processor is the one emulated, the system is this machine's."""
        return HostFacts(
            system="Linux",
            machine=self._emulation.machine,
            cpu=f"{self._cpu}, emulated by {self._tool.name} {self._tool.version}",
            cores=os.cpu_count() or 1,
            memory_bytes=memory_bytes(),
            kind="user-emulation",
            model=f"qemu user emulation, {self._cpu}",
            abi=self._emulation.machine,
            os_version=f"{platform.system()} {platform.release()}",
            fingerprint=_packages(self._parts),
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            memory_meaningful=False,
            time_meaningful=False,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once."""
        words = (str(self._tool.path), "-L", str(self._parts.root), "-cpu", self._cpu)
        # In a folder of its own, since qemu writes the memory of a program that crashes where it runs.
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-qemu-") as place:
            completed = run_locally((*words, *runner_words(absolute(request))), request, cwd=Path(place))
        if completed.returncode == NOT_LOADED and (found := REFUSED.search(completed.stderr)):
            raise not_startable(self.name, found[0])
        return read_output(with_signal(completed), request)


def with_signal(completed: Completed) -> Completed:
    """Return how an emulated program ended: qemu says which signal that was, and may end in another way itself."""
    found = SIGNAL.search(completed.stderr)
    return dataclasses.replace(completed, returncode=-int(found[1])) if found else completed


def _packages(parts: MachineParts) -> str:
    return ", ".join(f"{package.name} {package.version}" for package in parts.packages)


ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
START_SECONDS: Final = 90.0
"""How long a machine may take to start and to end, besides its commands: about four seconds on an idle host."""
SELF_END_SECONDS: Final = 30.0
"""How much longer the machine waits before it ends by itself; by then whoever started it has given up on it."""
KERNEL_ARGUMENTS: Final = (
    "console=ttyAMA0", "quiet", "panic=-1", "nokaslr", "cma=0", "transparent_hugepage=never",
)  # fmt: skip
"""Restart, that is end, on a panic; no memory set aside, and pages of one size, so that memory is repeatable."""
COUNTING: Final = ("-icount", "shift=0,sleep=off")
"""Without it qemu's processors count cycles alone (its `target/arm/helper.c`). The machine's clock then goes by
instructions, too, a nanosecond for each, and does not wait while there is nothing to do.
"""
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

    answer: machine_files.PushAnswer
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


def boot(
    machine: Machine, entries: Sequence[machine_files.Entry], commands: Sequence[Sequence[str]], limit_seconds: float
) -> Boot:
    """Start a machine that holds `entries`, run the commands in turn, and return its answer, whole or not.

    `limit_seconds` is for each command, and for all of them. Whatever happens, qemu is ended and its files are removed.
    """
    limit = START_SECONDS + limit_seconds
    script = machine_files.init_script(commands, limit_seconds=limit_seconds, machine_seconds=limit + SELF_END_SECONDS)
    held = [
        machine_files.regular("init", script.encode(), executable=True),
        *map(machine_files.folder, ROOMS),
        *entries,
    ]
    archive = machine_files.compress(machine_files.write_archive(machine_files.with_folders(held)))
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-machine-") as name:
        place = Path(name)
        (place / "initrd").write_bytes(archive)
        timed_out = _run_qemu(machine, place, limit)
        console, data = _console(place), b""
        with contextlib.suppress(FileNotFoundError):
            data = (place / "answer").read_bytes()
    try:
        return Boot(answer=machine_files.read_answer(data), console=console, timed_out=timed_out)
    except machine_files.BadAnswer as error:
        why = f"{error}\n{console[-500:]}".strip()
        what = "the machine's answer cannot be read"
        raise VerifyError("machine-garbage", what, where=machine.cpu, why=why) from error


def _run_qemu(machine: Machine, place: Path, limit: float) -> bool:
    """Run qemu to its end; return whether it had to be stopped."""
    try:
        done = run(qemu_words(machine), cwd=place, environment=ENVIRONMENT, timeout_seconds=limit)
    except ToolError as error:
        if error.code == "tool-timeout":
            return True
        raise
    if done.returncode < 0:
        what = f"qemu was ended by signal {-done.returncode} before its machine was done"
        raise VerifyError("machine-lost", what, where=machine.cpu, hint="run the same command again")
    if done.returncode > 0:
        why = last_lines(done.stderr)
        raise VerifyError("machine-not-startable", "qemu cannot emulate this machine", where=machine.cpu, why=why)
    return False


def qemu_words(machine: Machine) -> tuple[str, ...]:
    """Return qemu's command line; its files are in the folder in which it runs."""
    return (
        str(machine.program),
        *("-M", "virt", "-cpu", machine.cpu, "-smp", "1", "-m", str(machine.memory_mib)),
        *COUNTING,
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", str(machine.kernel), "-initrd", "initrd", "-append", " ".join(KERNEL_ARGUMENTS)),
        *("-chardev", "file,id=console,path=console", "-serial", "chardev:console"),
        *("-chardev", "file,id=answer,path=answer", "-device", "virtio-serial-pci"),
        *("-device", "virtserialport,chardev=answer,name=answer"),
    )


def _console(place: Path) -> str:
    """Return the end of what stood on the console, where the reason of an end is."""
    with contextlib.suppress(FileNotFoundError), (place / "console").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - CONSOLE_BYTES))
        return file.read().decode("utf-8", errors="replace").replace("\r", "")
    return ""


def completed_run(booted: Boot, request: RunRequest, *, device: str, memory_mib: int) -> Completed:
    """Return what the one command of a machine ended with, and what it printed."""
    codes = booted.answer.exit_codes
    files = booted.answer.files
    if booted.out_of_memory and (codes != (0,) or files is None):
        ceiling = f"the machine has {memory_mib} MiB, of which its kernel takes about 30"
        raise out_of_memory(request, f"{booted.out_of_memory}\n{ceiling}")
    if booted.answer.late:
        raise never_ended(request)
    if not codes or files is None:
        if booted.timed_out and booted.answer.begun and not codes:
            raise never_ended(request)
        what = "the machine did not finish in time" if booted.timed_out else "the machine shut down unexpectedly"
        why, hint = booted.panic or last_lines(booted.console), "try again with more memory, such as @256"
        raise VerifyError("machine-crashed", what, where=f"{device}, {place_of(request)}", why=why, hint=hint)
    if codes[0] in NOT_STARTED:
        raise not_startable(device, booted.complaints.strip().rpartition("\n")[2])
    stdout = files.get("0", b"").decode("utf-8", errors="replace")
    return Completed(argv=(device,), returncode=signalled(codes[0]), stdout=stdout, stderr=booted.complaints)


PAGE_BYTES: Final = 4096
"""The kernel's, by its configuration."""


class QemuSystem(ProgramDevice):
    """Starts a machine for each run, and leaves nothing of it.

    `parts` are those of the architecture emulated; the machine's kernel and `shell` are always arm64's, whose kernel
    runs programs for 32 bits too.
    """

    time_meaningful = kinds.QEMU_SYSTEM.time

    def __init__(
        self, emulation: Emulation, parts: MachineParts, tool: InstalledTool, machine: Machine, *, shell: Path
    ) -> None:
        ceiling = "" if machine.memory_mib == DEFAULT_MEMORY_MIB else f"@{machine.memory_mib}"
        self.name = f"{kinds.QEMU_SYSTEM}:{machine.cpu}{ceiling}"
        self.ceiling_mib = machine.memory_mib
        self.machine = machine
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._shell = shell
        self._described: HostFacts | None = None

    def with_memory(self, memory_mib: int) -> "QemuSystem":
        """Return the same machine with another ceiling."""
        machine = dataclasses.replace(self.machine, memory_mib=memory_mib)
        return QemuSystem(self._emulation, self._parts, self._tool, machine, shell=self._shell)

    def facts(self) -> HostFacts:
        """Describe the machine, as the last run found it; without one, it is started for that."""
        if self._described is None:
            self._boot({}, (), 0.0)
        if self._described is None:
            why = "it did not start, or did not finish"
            raise VerifyError("machine-crashed", "the machine cannot be queried", where=self.name, why=why)
        return self._described

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once, in a machine of its own."""
        payload = make_payload(request, machine_files.PAYLOAD, machine_files.OUTPUTS)
        files = {f"{machine_files.PAYLOAD}/{name}".lstrip("/"): path for name, path in payload.files.items()}
        booted = self._boot(files, (runner_words(payload.request),), request.repetition.timeout_seconds)
        completed = completed_run(booted, request, device=self.name, memory_mib=self.machine.memory_mib)
        if request.outputs and booted.answer.files:
            machine_files.save_outputs(booted.answer.files, request.outputs)
        return read_output(completed, request)

    def _boot(self, files: Mapping[str, Path], commands: Sequence[Sequence[str]], limit_seconds: float) -> Boot:
        """Start the machine, and keep its description of itself."""
        entries = machine_files.machine_entries(self._emulation, self._parts, self._shell, files)
        booted = boot(self.machine, entries, commands, limit_seconds)
        said = {name: text.decode(errors="replace") for name, text in (booted.answer.files or {}).items()}
        if "cpuinfo" in said:
            sections = {
                "cpu": said["cpuinfo"],
                "memory": said.get("meminfo", ""),
                "release": said.get("release", ""),
                "system": "Linux",
                "machine": self._emulation.machine,
                "present": "0",
            }
            self._described = dataclasses.replace(
                linux_host(sections),
                kind="vm",
                model=f"qemu {self._tool.version} virt, {self.machine.cpu}, {self.machine.memory_mib} MiB",
                fingerprint=_packages(self._parts),
                page_bytes=PAGE_BYTES,
                time_meaningful=False,
            )
        return booted


LOWER_MIB: Final = 40
"""Below what Debian's kernel starts with."""
STEP_MIB: Final = 2
TOO_LITTLE: Final = frozenset({
    "out-of-memory", "machine-crashed", "machine-garbage", "runner-crashed", "runner-failed", "runner-timeout",
    "library-refused", "model-refused", "inference-failed", "output-unwritable", "runner-garbage",
})  # fmt: skip
"""How too little memory may show: the kernel kills, does not even start, or an allocation fails and is reported. Each
counts as too little only because the same run ended well with the most memory."""
REPETITION: Final = Repetition(runs=3, warmup=1, timeout_seconds=120.0)


def least_memory(
    device: Device,
    request: RunRequest,
    *,
    model: str,
    lower_mib: int = LOWER_MIB,
    upper_mib: int = DEFAULT_MEMORY_MIB,
    step_mib: int = STEP_MIB,
    on_try: Callable[[int], None] = lambda _: None,
) -> LeastMemory:
    """Halve between a ceiling that is too low, `lower_mib`, and one that has to be enough, `upper_mib`.

    Of the answer, `enough_mib` is at most `step_mib` above `too_little_mib`. A ceiling holds the kernel and the files
    too: `usable_bytes` is what the kernel had to give away, to files first, with `enough_mib`. `model` is its name.
    Each ceiling is reported to `on_try` before it is tried.
    """
    tried: list[tuple[int, str]] = []
    low, high, middle, usable_bytes = lower_mib, upper_mib, upper_mib, 0
    while not tried or high - low > step_mib:
        on_try(middle)
        machine = device.with_memory(middle)
        try:
            machine.run(request)
        except VerifyError as error:
            if not tried or error.code not in TOO_LITTLE:
                raise
            tried.append((middle, error.code))
            low = middle
        else:
            tried.append((middle, "enough"))
            high, usable_bytes = middle, machine.facts().memory_bytes
        middle = (low + high) // 2
    return LeastMemory(model=model, enough_mib=high, usable_bytes=usable_bytes, too_little_mib=low, tried=tuple(tried))


def tries(upper_mib: int, lower_mib: int = LOWER_MIB, step_mib: int = STEP_MIB) -> int:
    """Return how many runs a search takes, at most."""
    return 1 + max(0, math.ceil(math.log2((upper_mib - lower_mib) / step_mib)))
