"""Emulators by what stands behind their names: which processor, with how much memory, and which ones without a name.

- Programs for another processor under qemu's user emulation: right results and illegal instructions, nothing else.
"""

import dataclasses
import os
import platform
import re
import tempfile
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed
from ortrim.base.files import storage_errors
from ortrim.base.tools import Emulation, InstalledTool
from ortrim.buildspec.targets import Target
from ortrim.compiling.root_file_systems import MachineParts
from ortrim.devices.device import ProgramDevice, not_startable
from ortrim.devices.host import absolute, run_locally
from ortrim.devices.kinds import QEMU_SYSTEM, QEMU_USER, DeviceRules, Kind
from ortrim.devices.qemu_system import DEFAULT_MEMORY_MIB
from ortrim.errors import UsageError
from ortrim.parity import measurements
from ortrim.parity.runner import RunnerOutput, RunRequest, runner_words
from ortrim.parity.runner_output import read_output


def emulator_kinds(emulation: Emulation | None, cpu: str) -> tuple[str, ...]:
    """Return the kinds of emulators that have a processor with all that `cpu` has."""
    if emulation is None:
        return ()
    return tuple(kind.name for kind in EMULATORS if emulation.having(cpu, _offered(emulation, kind)))


EMULATORS: Final = (QEMU_USER, QEMU_SYSTEM)

CPU_AND_MEMORY: Final = re.compile(r"(?P<cpu>[a-z0-9-]*)(?:@(?P<mib>[1-9][0-9]{0,4}))?")
LEAST_MIB: Final = 32
MOST_MIB: Final = 16384


def default_emulators(emulation: Emulation, cpu: str = "") -> tuple[str, ...]:
    """Return the names of the emulators on which programs run when none is named, all of one kind together.

    `cpu` is the least processor that they are compiled for, empty for any. Without a default that has all its
    instructions it is the first processor that does, if there is one.
    """
    return tuple(
        f"{kind}:{name}" for kind in EMULATORS for name in _defaults(emulation, _offered(emulation, kind), cpu)
    )


def _offered(emulation: Emulation, kind: Kind) -> tuple[str, ...]:
    """Return the processors of one kind of emulator: of whole machines, or of single programs."""
    return emulation.system_cpus if kind.ceiling else emulation.user_cpus


def emulated_cpu(rules: DeviceRules, target: Target, kind: Kind, name: str, cpu: str = "") -> str:
    """Return the processor of a name, the first that runs what is compiled for `cpu` when the name is empty.

    Raises `UsageError`: `unknown-device`, `wrong-device` (it cannot run the target's programs, or not for `cpu`).
    """
    emulation = rules.emulation_of(target)
    if emulation is None:
        what = f"{kind} does not emulate what {target.identifier} runs on"
        raise UsageError("wrong-device", what, where=f"--device {kind}", hint=f"choose {rules.kinds_for(target)}")
    offered = _offered(emulation, kind)
    if name not in ("", *offered) or not offered:
        raise _unknown(kind, name, offered)
    able = emulation.having(cpu, offered)
    if not able or name not in ("", *able):
        instead = _listed(kind, able)
        hint = f"there are: {instead}" if instead else f"choose {rules.kinds_for(target, cpu)}"
        raise _lacking(target, _named(kind, name), cpu, hint)
    return name or able[0]


def emulated_machine(rules: DeviceRules, target: Target, emulator: Kind, detail: str, cpu: str = "") -> tuple[str, int]:
    """Return processor and memory in MiB of an emulated machine. Raises as `emulated_cpu` does."""
    found = CPU_AND_MEMORY.fullmatch(detail)
    name = emulated_cpu(rules, target, emulator, detail if found is None else found["cpu"], cpu)
    assert found is not None
    memory_mib = int(found["mib"] or DEFAULT_MEMORY_MIB)
    if not LEAST_MIB <= memory_mib <= MOST_MIB:
        what = f"a machine cannot have {memory_mib} MiB"
        hint = f"give from {LEAST_MIB} to {MOST_MIB}, such as {emulator}:{name}@128"
        raise UsageError("unknown-device", what, where=f"--device {emulator}:{detail}", hint=hint)
    return name, memory_mib


def _defaults(emulation: Emulation, offered: tuple[str, ...], cpu: str) -> tuple[str, ...]:
    able = emulation.having(cpu, offered)
    return tuple(name for name in emulation.defaults if name in able) or able[:1]


def _unknown(kind: Kind, name: str, offered: tuple[str, ...]) -> UsageError:
    hint = f"there are: {_listed(kind, offered) or 'none for this target'}"
    what = f"{_named(kind, name)!r} is not a device"
    return UsageError("unknown-device", what, where="--device", hint=hint)


def _lacking(target: Target, name: str, cpu: str, hint: str) -> UsageError:
    """Return the diagnostic of a processor below the baseline, where a run would end with an illegal instruction."""
    instructions = f"instructions that the library for {target.identifier} may use anywhere"
    kind, _, processor = name.partition(":")
    what = f"{processor} lacks {instructions}" if processor else f"{kind} emulates no processor with all {instructions}"
    why = f"the buildspec says for it: cpu = '{cpu}'"
    return UsageError("wrong-device", what, where=f"--device {name}", why=why, hint=hint)


def _named(kind: Kind, name: str) -> str:
    return f"{kind}:{name}" if name else kind.name


def _listed(kind: Kind, names: tuple[str, ...]) -> str:
    return ", ".join(_named(kind, name) for name in names)


NOT_LOADED: Final = 255
REFUSED: Final = re.compile(r"^qemu-\S+: (?:.*: Invalid ELF image|Could not open '/).*", re.MULTILINE)
"""The exit code and message of qemu when it cannot load a program, or the program's dynamic linker."""
SIGNAL: Final = re.compile(r"qemu: uncaught target signal (\d+)")


class QemuUser(ProgramDevice):
    """Runs the runner as a child process, as if this machine had the processor `cpu`."""

    memory_meaningful = QEMU_USER.memory
    time_meaningful = QEMU_USER.time

    def __init__(self, emulation: Emulation, parts: MachineParts, tool: InstalledTool, *, cpu: str) -> None:
        self.name = f"{QEMU_USER}:{cpu}"
        self._emulation = emulation
        self._parts = parts
        self._tool = tool
        self._cpu = cpu

    def facts(self) -> measurements.HostFacts:
        """Describe what programs see: the processor is the one emulated, the system is this machine's."""
        return measurements.HostFacts(
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


def _as_of_the_program(completed: Completed) -> Completed:
    """Return what the program ended with: qemu says which signal ended it, and may end in another way itself."""
    found = SIGNAL.search(completed.stderr)
    return dataclasses.replace(completed, returncode=-int(found[1])) if found else completed
