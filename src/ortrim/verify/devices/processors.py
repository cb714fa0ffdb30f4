"""What Linux says of a processor in `/proc/cpuinfo`, on x86-64 and on ARM. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ARM_PARTS: Final[Mapping[tuple[str, str], str]] = {
    ("0x41", "0xc07"): "Cortex-A7",
    ("0x41", "0xc09"): "Cortex-A9",
    ("0x41", "0xc0f"): "Cortex-A15",
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd04"): "Cortex-A35",
    ("0x41", "0xd05"): "Cortex-A55",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd09"): "Cortex-A73",
    ("0x41", "0xd0a"): "Cortex-A75",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd0d"): "Cortex-A77",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd41"): "Cortex-A78",
    ("0x41", "0xd44"): "Cortex-X1",
    ("0x41", "0xd46"): "Cortex-A510",
    ("0x41", "0xd47"): "Cortex-A710",
    ("0x41", "0xd48"): "Cortex-X2",
    ("0x41", "0xd49"): "Neoverse-N2",
}
"""Implementer and part, as kernels on ARM give them instead of a name; from the MIDR table of Linux's `cputype.h`."""


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A processor's name, empty when the kernel gives none, and what it can do in the kernel's words, sorted."""

    name: str
    features: tuple[str, ...]


def read_cpu_information(text: str) -> Processor:
    """Read the text of `/proc/cpuinfo`: the first processor's features, and the names of all kinds in it.

    A processor whose implementer and part are not in `ARM_PARTS` is named by the two numbers.
    """
    fields = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in text.splitlines())]
    features = next((value for key, value in fields if key in {"flags", "Features"}), "")
    name = next((value for key, value in fields if key == "model name" and value), "")
    return Processor(name=name or " + ".join(_arm_names(fields)), features=tuple(sorted(set(features.split()))))


def _arm_names(fields: list[tuple[str, str]]) -> list[str]:
    """Return the name of each kind of core once, in the kernel's order."""
    implementers = [value for key, value in fields if key == "CPU implementer"]
    parts = [value for key, value in fields if key == "CPU part"]
    kinds = dict.fromkeys(zip(implementers, parts, strict=False))
    return [ARM_PARTS.get(kind, f"implementer {kind[0]} part {kind[1]}") for kind in kinds]
