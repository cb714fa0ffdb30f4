"""What a Linux or Android machine says of itself and of its heat, and whether it is cool enough for a number. Pure.

One command asks a machine for all its facts at once. A Linux machine that only runs `adbd` has no properties and no
`dumpsys`; what they would tell is then not known.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ortrim.parity.measurements import DeviceKind, HostFacts

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
    "shell": "readlink /proc/$$/exe",
}
LONGEST_NUMBER: Final = 18
EMULATED: Final = ("QEMU", "linux,dummy-virt")
"""What qemu calls its machines, in the DMI tables and in the device tree."""
USER_EMULATOR: Final = re.compile(r"(?:.*/)?qemu-[^/]+", re.DOTALL)
"""What runs the shell where every program is run by qemu's user emulation: it hides from the process itself alone."""


def read_cpu_information(text: str) -> tuple[str, tuple[str, ...]]:
    """Return from `/proc/cpuinfo` the names of all kinds of processors, and the first one's features, sorted.

    One whose implementer and part are not in `ARM_PARTS` is named by the two numbers; without them the name is empty.
    """
    fields = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in text.splitlines())]
    features = next((value for key, value in fields if key in {"flags", "Features"}), "")
    implementers = [value for key, value in fields if key == "CPU implementer"]
    parts = [value for key, value in fields if key == "CPU part"]
    arm = dict.fromkeys(zip(implementers, parts, strict=False))
    name = next((value for key, value in fields if key == "model name" and value), "")
    name = name or " + ".join(ARM_PARTS.get(kind, f"implementer {kind[0]} part {kind[1]}") for kind in arm)
    return name, tuple(sorted(set(features.split())))


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


def linux_host(sections: Mapping[str, str]) -> HostFacts:
    """Return what any Linux machine says of itself, from the sections of `LINUX`."""
    cpu, features = read_cpu_information(sections.get("cpu", ""))
    system, release, machine, present = (
        sections.get(name, "").strip().partition("\n")[0][:200] for name in ("system", "release", "machine", "present")
    )
    # Cores that are there (`0-3,6`); those in `/proc/cpuinfo` are the ones that are switched on.
    ranges = re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", present)
    cores = sum(int(last or first) - int(first) + 1 for first, last in ranges)
    cores = cores if cores > 0 else max(1, len(re.findall(r"^processor\s*:", sections.get("cpu", ""), re.MULTILINE)))
    kind: DeviceKind = "vm" if "hypervisor" in features or maybe_emulated(sections) else "physical"
    return HostFacts(
        system=system,
        machine=machine,
        cpu=cpu or machine,
        cores=cores,
        memory_bytes=1024 * (number(r"^MemTotal:\s*(\d+) kB", sections.get("memory", "")) or 0),
        kind="user-emulation" if USER_EMULATOR.fullmatch(sections.get("shell", "")) else kind,
        model=sections.get("board", "").strip(),
        abi=machine,
        os_version=f"{system} {release}".strip(),
        page_bytes=number(r"\A(\d+)$", sections.get("page", "")),
        cpu_features=features,
    )


def maybe_emulated(sections: Mapping[str, str]) -> bool:
    """Whether this may be qemu's emulation of another processor; from inside it looks like its virtualization."""
    says = sections.get("vendor", "") + sections.get("compatible", "")
    return any(word in says for word in EMULATED)


def number(pattern: str, text: str, base: int = 10) -> int | None:
    """Return the first group of a pattern as a number, None when there is none or it is absurdly long."""
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1], base) if found and len(found[1]) <= LONGEST_NUMBER else None


NOT_THROTTLED: Final = 0
STATUS_NAMES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
COOL_BATTERY_CELSIUS: Final = 35.0
REPETITIONS: Final = 2
"""How often a run is repeated during which the device began to throttle."""
LONGEST_WAIT_SECONDS: Final = 180.0
"""For one device in one verification, all its runs together: a phone in the sun would take hours otherwise."""
PAUSE_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class Thermal:
    """A device's heat now: Android's thermal status (0 to 6) and the battery's temperature; None when unknown."""

    status: int | None
    battery_celsius: float | None = None

    @property
    def throttles(self) -> str:
        """How much the device says that it throttles, in Android's word for it; empty when it does not."""
        if not self.status or self.status < 0:
            return ""
        name = STATUS_NAMES[self.status] if self.status < len(STATUS_NAMES) else "unknown"
        return f"the device throttles (thermal status {self.status}, {name})"


UNKNOWN_HEAT: Final = Thermal(status=None)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do before a run: run, wait so many seconds and look again, or run and mark the times."""

    action: Literal["run", "wait", "mark"]
    seconds: float = 0.0
    reason: str = ""


def decide(thermal: Thermal, waited_seconds: float) -> Decision:
    """Say what to do before a run on a device that has been waited for `waited_seconds` already.

    When all waiting is used up, a warm battery alone does not make times worthless if the device itself says that it
    throttles nothing.
    """
    reason, battery = thermal.throttles, thermal.battery_celsius
    if not reason and battery is not None and battery > COOL_BATTERY_CELSIUS:
        reason = f"the battery has {battery:.1f} °C, more than {COOL_BATTERY_CELSIUS:g}"
    if not reason:
        return Decision(action="run")
    remaining = LONGEST_WAIT_SECONDS - waited_seconds
    if remaining > 0:
        return Decision(action="wait", seconds=min(PAUSE_SECONDS, remaining), reason=reason)
    return Decision(action="run" if thermal.status == NOT_THROTTLED else "mark", reason=reason)


ANDROID_HEAT: Final[Mapping[str, str]] = {"thermal": "dumpsys thermalservice", "battery": "dumpsys battery"}
THERMAL_SURVEY: Final = survey_script(ANDROID_HEAT)
ANDROID_SURVEY: Final = survey_script({**LINUX, "properties": "getprop", **ANDROID_HEAT})
PROPERTY: Final = re.compile(r"^\[([^\]\n]+)\]: \[(.*?)\]$", re.MULTILINE | re.DOTALL)
"""As `getprop` prints them; a value may have line ends."""
EMULATORS: Final = frozenset({"goldfish", "ranchu", "cutf_cvm"})
"""`ro.hardware` of the emulators of Android Studio, old and new, and of Cuttlefish."""


def adb_host(printed: str) -> HostFacts:
    """Return the facts in the answer to `ANDROID_SURVEY`; its heat is in `thermal_after` and `battery_celsius`."""
    sections = read_sections(printed)
    linux, heat = linux_host(sections), adb_thermal(printed)
    host = dataclasses.replace(linux, thermal_after=heat.status, battery_celsius=heat.battery_celsius)
    properties = read_properties(sections.get("properties", ""))
    if not properties:
        return host
    release, maker, model, qemu, qemu_boot, hardware = (
        properties.get(f"ro.{name}", "")
        for name in ("build.version.release", "product.manufacturer", "product.model",
                     "kernel.qemu", "boot.qemu", "hardware")
    )  # fmt: skip
    kind: DeviceKind = "emulator" if "1" in {qemu, qemu_boot} or hardware in EMULATORS else "physical"
    # Devices say their SoC's maker and model since API level 31.
    soc = " ".join(filter(None, (properties.get("ro.soc.manufacturer"), properties.get("ro.soc.model"))))
    return dataclasses.replace(
        host,
        kind=host.kind if host.kind == "user-emulation" else kind,
        model=model if model.lower().startswith(maker.lower()) else f"{maker} {model}",
        soc=soc or properties.get("ro.board.platform", ""),
        abi=properties.get("ro.product.cpu.abilist") or properties.get("ro.product.cpu.abi") or host.abi,
        os_version=f"Android {release}" if release else host.os_version,
        api_level=number(r"\A(\d{1,4})\Z", properties.get("ro.build.version.sdk", "")),
        fingerprint=properties.get("ro.build.fingerprint", ""),
    )


def adb_thermal(printed: str) -> Thermal:
    """Return the heat in the answer to `THERMAL_SURVEY` or `ANDROID_SURVEY`.

    Android gives the battery's temperature in tenths of a degree.
    """
    sections = read_sections(printed)
    battery = sections.get("battery", "")
    tenths = number(r"^\s*temperature: (-?\d{1,4})$", battery)
    absent = re.search(r"^\s*present: false$", battery, re.MULTILINE)
    return Thermal(
        status=number(r"^\s*Thermal Status: (\d)$", sections.get("thermal", "")),
        battery_celsius=None if tenths is None or absent else tenths / 10,
    )


def read_properties(printed: str) -> dict[str, str]:
    """Return the properties that `getprop` printed."""
    return dict(PROPERTY.findall(printed.replace("\r\n", "\n")))


ZONES: Final = (
    "for z in /sys/class/thermal/thermal_zone*; do [ -r $z/temp ] && echo zone $(cat $z/temp); "
    'for t in $z/trip_point_*_type; do [ "$(cat $t)" = passive ] && echo passive $(cat ${t%type}temp); done; done'
)
HEAT: Final[Mapping[str, str]] = {
    "zones": ZONES,
    "throttled": "cat /sys/devices/platform/soc/soc:firmware/get_throttled",
}
SURVEY: Final = survey_script({**LINUX, "distribution": "cat /etc/os-release", **HEAT})
NOW: Final = 0xF
LIGHT: Final = 1


def ssh_host(printed: str) -> HostFacts:
    """Return the facts in the answer to `SURVEY`; its present heat is in `thermal_after`."""
    sections = read_sections(printed)
    named = re.search(r'^PRETTY_NAME="?([^"\n]{1,100})', sections.get("distribution", ""), re.MULTILINE)
    host = linux_host(sections)
    release = f"{named[1]}, {host.os_version}" if named else host.os_version
    return dataclasses.replace(host, os_version=release, thermal_after=ssh_thermal(printed).status)


def ssh_thermal(printed: str) -> Thermal:
    """Return the heat in the answer to `THERMAL_SURVEY` or `SURVEY`, in Android's scale: nothing, or light, throttling.

    The status is None for a board that has neither a passive trip point nor a firmware that tells.
    """
    sections = read_sections(printed)
    bits = number(r"\A([0-9a-fA-F]{1,8})\Z", sections.get("throttled", ""), base=16)
    states = _zones_throttle(sections.get("zones", ""))
    if bits is not None:
        states.append(bits & NOW != 0)
    return Thermal(status=None if not states else LIGHT if any(states) else NOT_THROTTLED)


def _zones_throttle(text: str) -> list[bool]:
    """Return for each passive trip point whether its zone has reached it. Both are in thousandths of a degree."""
    reached, temperature = [], None
    for line in text.splitlines():
        found = re.fullmatch(r"(zone|passive) (-?\d{1,7})", line.strip())
        if found is None:
            temperature = None if line.startswith("zone") else temperature
        elif found[1] == "zone":
            temperature = int(found[2])
        elif temperature is not None and int(found[2]) > 0:
            reached.append(temperature >= int(found[2]))
    return reached
