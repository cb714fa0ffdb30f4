"""A whole arm64 Linux under qemu: a processor of one's choice, a ceiling to its memory, a kernel that keeps account.

What a process takes there in memory is what it takes on a board, and its processor counts instructions as a real one
does; the time that it takes is another. Files lie in the machine's memory, as they would on a board without a disk: a
ceiling holds the kernel, the libraries, the model and the inputs besides what processes allocate.

- Starting a machine under qemu, once, with everything that it is to run already in its memory.
- How a run in an emulated machine ended: by the runner, for want of memory, at the time limit, or with the machine.
- The least memory in which a model loads and runs, found by halving.
"""

import contextlib
import dataclasses
import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.tools import Emulation, InstalledTool
from ortrim.compiling.root_file_systems import MachineParts
from ortrim.devices.device import NOT_STARTED, Device, ProgramDevice, not_startable
from ortrim.devices.facts import linux_host
from ortrim.devices.kinds import QEMU_SYSTEM
from ortrim.devices.machine_files import (
    OUTPUTS,
    PAYLOAD,
    BadAnswer,
    Entry,
    PushAnswer,
    compress,
    folder,
    init_script,
    machine_entries,
    read_answer,
    regular,
    save_outputs,
    with_folders,
    write_archive,
)
from ortrim.devices.remote import make_payload
from ortrim.devices.remote_shell import signalled
from ortrim.errors import ToolError, VerifyError
from ortrim.parity import measurements
from ortrim.parity.measurements import LeastMemory
from ortrim.parity.runner import Repetition, RunnerOutput, RunRequest, runner_words
from ortrim.parity.runner_output import never_ended, out_of_memory, place_of, read_output

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

    answer: PushAnswer
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


def _answer(place: Path, machine: Machine) -> PushAnswer:
    data = (place / "answer").read_bytes() if (place / "answer").is_file() else b""
    try:
        return read_answer(data)
    except BadAnswer as error:
        why = f"{error}\n{_console(place)[-500:]}".strip()
        what = "the machine's answer cannot be read"
        raise VerifyError("machine-garbage", what, where=machine.cpu, why=why) from error


def _console(place: Path) -> str:
    """Return the end of what stood on the console, where the reason of an end is."""
    with contextlib.suppress(FileNotFoundError), (place / "console").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - CONSOLE_BYTES))
        return file.read().decode("utf-8", errors="replace").replace("\r", "")
    return ""


def completed_run(booted: Boot, request: RunRequest, *, device: str, memory_mib: int) -> Completed:
    """Return what the one command of a machine ended with, and what it printed.

    Raises `VerifyError`: `out-of-memory`, `runner-timeout`, `runner-not-startable`, `machine-crashed` (the
    machine ended before the runner).
    """
    codes = booted.answer.exit_codes
    files = booted.answer.files
    if booted.out_of_memory and (codes != (0,) or files is None):
        ceiling = f"the machine has {memory_mib} MiB, of which its kernel takes about 30"
        raise out_of_memory(request, f"{booted.out_of_memory}\n{ceiling}")
    if booted.answer.late:
        raise never_ended(request)
    if not codes or files is None:
        raise _not_ended(booted, request, device)
    if codes[0] in NOT_STARTED:
        raise not_startable(device, booted.complaints.strip().rpartition("\n")[2])
    stdout = files.get("0", b"").decode("utf-8", errors="replace")
    return Completed(argv=(device,), returncode=signalled(codes[0]), stdout=stdout, stderr=booted.complaints)


def _not_ended(booted: Boot, request: RunRequest, device: str) -> VerifyError:
    if booted.timed_out and booted.answer.begun and not booted.answer.exit_codes:
        return never_ended(request)
    what = "the machine did not finish in time" if booted.timed_out else "the machine shut down unexpectedly"
    why = booted.panic or last_lines(booted.console)
    hint = "try again with more memory, such as @256"
    return VerifyError("machine-crashed", what, where=f"{device}, {place_of(request)}", why=why, hint=hint)


DEFAULT_MEMORY_MIB: Final = 256
PAGE_BYTES: Final = 4096
"""The kernel's, by its configuration."""


class QemuSystem(ProgramDevice):
    """Starts a machine for each run, and leaves nothing of it.

    `parts` are those of the architecture emulated; `kernel` and `shell` are always arm64's, whose kernel runs programs
    for 32 bits too.
    """

    time_meaningful = QEMU_SYSTEM.time

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
        self.name = f"{QEMU_SYSTEM}:{cpu}{ceiling}"
        self.ceiling_mib = memory_mib
        self.machine = Machine(program=tool.path, cpu=cpu, memory_mib=memory_mib, kernel=kernel)
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._shell = shell
        self._described: measurements.HostFacts | None = None

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

    def facts(self) -> measurements.HostFacts:
        """Describe the machine, as the last run found it; without one, it is started for that."""
        if self._described is None:
            self._note(boot(self.machine, self._entries({}), (), 0.0))
        if self._described is None:
            why = "it did not start, or did not finish"
            raise VerifyError("machine-crashed", "the machine cannot be queried", where=self.name, why=why)
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

    def _entries(self, payload: Mapping[str, Path]) -> tuple[Entry, ...]:
        return machine_entries(self._emulation, self._parts, self._shell, payload)

    def _note(self, booted: Boot) -> None:
        """Keep the machine's description of itself."""
        files = booted.answer.files or {}
        if "cpuinfo" in files:
            self._described = self._host({name: text.decode(errors="replace") for name, text in files.items()})

    def _host(self, files: Mapping[str, str]) -> measurements.HostFacts:
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
    Each ceiling is reported to `on_try` before it is tried. Raises what the run with `upper_mib` raises, and
    `VerifyError` of any run that did not fail for want of memory.
    """
    search = _Search(device=device, request=request, on_try=on_try)
    search.ends_well(upper_mib, must=True)
    low, high = lower_mib, upper_mib
    while high - low > step_mib:
        middle = (low + high) // 2
        low, high = (low, middle) if search.ends_well(middle) else (middle, high)
    return LeastMemory(
        model=model,
        enough_mib=high,
        usable_bytes=search.usable_bytes[high],
        too_little_mib=low,
        tried=tuple(search.tried),
    )


def tries(upper_mib: int, lower_mib: int = LOWER_MIB, step_mib: int = STEP_MIB) -> int:
    """Return how many runs a search takes, at most."""
    return 1 + max(0, math.ceil(math.log2((upper_mib - lower_mib) / step_mib)))


@dataclass(kw_only=True)
class _Search:
    """The runs of one search, in turn."""

    device: Device
    request: RunRequest
    on_try: Callable[[int], None]
    tried: list[tuple[int, str]] = field(default_factory=list)
    usable_bytes: dict[int, int] = field(default_factory=dict)

    def ends_well(self, ceiling: int, *, must: bool = False) -> bool:
        """Run once; a failure that may be for want of memory is an answer, unless it `must` end well."""
        self.on_try(ceiling)
        machine = self.device.with_memory(ceiling)
        try:
            machine.run(self.request)
        except VerifyError as error:
            if must or error.code not in TOO_LITTLE:
                raise
            self.tried.append((ceiling, error.code))
            return False
        self.tried.append((ceiling, "enough"))
        self.usable_bytes[ceiling] = machine.facts().memory_bytes
        return True
