"""One command that asks a Linux machine for all its facts at once, and how to read what it answers. Pure.

What a machine does not have or know (a plain Linux has no `getprop`, a container no `/sys`) is simply empty.
"""

import re
from collections.abc import Mapping
from typing import Final

from ortrim.core.measurements import DeviceKind, Host
from ortrim.verify.devices.processors import read_cpu_information

SECTION: Final = "@@ortrim "
LINUX: Final[Mapping[str, str]] = {
    "system": "uname -s",
    "release": "uname -r",
    "machine": "uname -m",
    "page": "getconf PAGE_SIZE || getconf PAGESIZE",
    "cpu": "cat /proc/cpuinfo",
    "memory": "cat /proc/meminfo",
    "present": "cat /sys/devices/system/cpu/present",
    "board": "cat /proc/device-tree/model",
    "compatible": "cat /proc/device-tree/compatible",
    "vendor": "cat /sys/class/dmi/id/sys_vendor",
}
LONGEST_NUMBER: Final = 18
EMULATED: Final = ("QEMU", "linux,dummy-virt")
"""What qemu calls its machines, in the DMI tables and in the device tree."""


def survey_script(commands: Mapping[str, str]) -> str:
    """Return the script that prints a line with each section's name, then what its command prints."""
    return "; ".join(
        f"echo; echo '{SECTION}{name}'; {{ {command}; }} 2>/dev/null" for name, command in commands.items()
    )


def read_sections(printed: str) -> dict[str, str]:
    """Return what each section's command printed, without the line ends around it and without NUL."""
    _, *parts = f"\n{printed}".replace("\r\n", "\n").split(f"\n{SECTION}")
    named = (part.partition("\n") for part in parts)
    return {name: text.replace("\0", "\n").strip("\n") for name, _, text in named}


def linux_host(sections: Mapping[str, str]) -> Host:
    """Return what any Linux machine says of itself, from the sections of `LINUX`."""
    cpu = read_cpu_information(sections.get("cpu", ""))
    machine = _word(sections.get("machine", ""))
    system, release = _word(sections.get("system", "")), _word(sections.get("release", ""))
    return Host(
        system=system,
        machine=machine,
        cpu=cpu.name or machine,
        cores=_cores(sections),
        memory_bytes=1024 * (number(r"^MemTotal:\s*(\d+) kB", sections.get("memory", "")) or 0),
        kind=_kind(sections, cpu.features),
        model=sections.get("board", "").strip(),
        abi=machine,
        os_version=f"{system} {release}".strip(),
        page_bytes=number(r"\A(\d+)$", sections.get("page", "")),
        cpu_features=cpu.features,
    )


def maybe_emulated(sections: Mapping[str, str]) -> bool:
    """Whether this may be qemu's emulation of another processor; from inside it looks like its virtualization."""
    says = sections.get("vendor", "") + sections.get("compatible", "")
    return any(word in says for word in EMULATED)


def number(pattern: str, text: str, base: int = 10) -> int | None:
    """Return the first group of a pattern as a number, None when there is none or it is absurdly long."""
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1], base) if found and len(found[1]) <= LONGEST_NUMBER else None


def _word(text: str) -> str:
    return text.strip().partition("\n")[0][:200]


def _cores(sections: Mapping[str, str]) -> int:
    """Count the cores that are there (`0-3,6`); those in `/proc/cpuinfo` are the ones that are switched on."""
    ranges = re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", _word(sections.get("present", "")))
    count = sum(int(last or first) - int(first) + 1 for first, last in ranges)
    return count if count > 0 else max(1, len(re.findall(r"^processor\s*:", sections.get("cpu", ""), re.MULTILINE)))


def _kind(sections: Mapping[str, str], features: tuple[str, ...]) -> DeviceKind:
    return "vm" if "hypervisor" in features or maybe_emulated(sections) else "physical"
