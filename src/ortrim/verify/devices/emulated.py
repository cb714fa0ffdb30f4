"""Emulators by what stands behind their names: which processor, with how much memory, and which ones without a name."""

import re
from typing import Final, Literal

from ortrim.core.targets import Target
from ortrim.errors import UsageError
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB
from ortrim.verify.devices.runnable import emulation_of, kinds_for

EmulatorKind = Literal["qemu-user", "qemu-system"]

CPU_AND_MEMORY: Final = re.compile(r"(?P<cpu>[a-z0-9-]*)(?:@(?P<mib>[1-9][0-9]{0,4}))?")
LEAST_MIB: Final = 32
MOST_MIB: Final = 16384


def default_emulators(target: Target, cpu: str = "") -> tuple[str, ...]:
    """Return the names of the emulators on which a target is verified when none is named, all of one kind together.

    `cpu` is the least processor that it is compiled for, empty for any. Without a default that has all its
    instructions it is the first processor that does, if there is one.
    """
    emulation = emulation_of(target)
    if emulation is None:
        return ()
    kinds = (("qemu-user", emulation.user_cpus), ("qemu-system", emulation.system_cpus))
    return tuple(f"{kind}:{name}" for kind, offered in kinds for name in _defaults(emulation, offered, cpu))


def emulated_cpu(target: Target, kind: EmulatorKind, name: str, cpu: str = "") -> str:
    """Return the processor of a name, the first that runs what is compiled for `cpu` when the name is empty.

    Raises `UsageError`: `unknown-device`, `wrong-device` (it cannot run the target's programs, or not for `cpu`).
    """
    emulation = emulation_of(target)
    if emulation is None:
        what = f"{kind} does not emulate what {target.identifier} runs on"
        raise UsageError("wrong-device", what, where=f"--device {kind}", hint=f"choose {kinds_for(target)}")
    offered = emulation.user_cpus if kind == "qemu-user" else emulation.system_cpus
    if name not in ("", *offered) or not offered:
        raise _unknown(kind, name, offered)
    able = emulation.having(cpu, offered)
    if not able or name not in ("", *able):
        raise _lacking(target, kind, name, cpu, able)
    return name or able[0]


def emulated_machine(target: Target, detail: str, cpu: str = "") -> tuple[str, int]:
    """Return processor and memory in MiB of what stands behind `qemu-system`. Raises as `emulated_cpu` does."""
    found = CPU_AND_MEMORY.fullmatch(detail)
    name = emulated_cpu(target, "qemu-system", detail if found is None else found["cpu"], cpu)
    assert found is not None
    memory_mib = int(found["mib"] or DEFAULT_MEMORY_MIB)
    if not LEAST_MIB <= memory_mib <= MOST_MIB:
        what = f"a machine cannot have {memory_mib} MiB"
        hint = f"give from {LEAST_MIB} to {MOST_MIB}, such as qemu-system:{name}@128"
        raise UsageError("unknown-device", what, where=f"--device qemu-system:{detail}", hint=hint)
    return name, memory_mib


def _defaults(emulation: Emulation, offered: tuple[str, ...], cpu: str) -> tuple[str, ...]:
    able = emulation.having(cpu, offered)
    return tuple(name for name in emulation.defaults if name in able) or able[:1]


def _unknown(kind: EmulatorKind, name: str, offered: tuple[str, ...]) -> UsageError:
    hint = f"there are: {_listed(kind, offered) or 'none for this target'}"
    what = f"{_named(kind, name)!r} is not a device"
    return UsageError("unknown-device", what, where="--device", hint=hint)


def _lacking(target: Target, kind: EmulatorKind, name: str, cpu: str, able: tuple[str, ...]) -> UsageError:
    """Return the diagnostic of a processor below the floor, where a run would end with an illegal instruction."""
    instructions = f"instructions that the library for {target.identifier} may use anywhere"
    what = f"{name} lacks {instructions}" if name else f"{kind} emulates no processor with all {instructions}"
    why = f"the buildspec says for it: cpu = '{cpu}'"
    hint = f"there are: {_listed(kind, able)}" if able else f"choose {kinds_for(target, cpu)}"
    return UsageError("wrong-device", what, where=f"--device {_named(kind, name)}", why=why, hint=hint)


def _named(kind: EmulatorKind, name: str) -> str:
    return f"{kind}:{name}" if name else kind


def _listed(kind: EmulatorKind, names: tuple[str, ...]) -> str:
    return ", ".join(_named(kind, name) for name in names)
