"""What an Android device says of itself: its properties, its heat, and what any Linux says. Pure.

A Linux machine that only runs `adbd` has no properties and no `dumpsys`; what they would tell is then not known.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from ortrim.core.measurements import DeviceKind, Host
from ortrim.verify.devices.survey import LINUX, linux_host, number, read_sections, survey_script
from ortrim.verify.devices.thermal import Thermal

HEAT: Final[Mapping[str, str]] = {"thermal": "dumpsys thermalservice", "battery": "dumpsys battery"}
THERMAL_SURVEY: Final = survey_script(HEAT)
SURVEY: Final = survey_script({**LINUX, "properties": "getprop", **HEAT})
PROPERTY: Final = re.compile(r"^\[([^\]\n]+)\]: \[(.*?)\]$", re.MULTILINE | re.DOTALL)
"""As `getprop` prints them; a value may have line ends."""
EMULATORS: Final = frozenset({"goldfish", "ranchu", "cutf_cvm"})
"""`ro.hardware` of the emulators of Android Studio, old and new, and of Cuttlefish."""


def adb_host(printed: str) -> Host:
    """Return the facts in the answer to `SURVEY`; its present heat is in `thermal_after` and `battery_celsius`."""
    sections = read_sections(printed)
    linux, heat = linux_host(sections), adb_thermal(printed)
    host = dataclasses.replace(linux, thermal_after=heat.status, battery_celsius=heat.battery_celsius)
    properties = read_properties(sections.get("properties", ""))
    return _android(host, properties) if properties else host


def adb_thermal(printed: str) -> Thermal:
    """Return the heat in the answer to `THERMAL_SURVEY` or `SURVEY`."""
    sections = read_sections(printed)
    status = number(r"^\s*Thermal Status: (\d)$", sections.get("thermal", ""))
    return Thermal(status=status, battery_celsius=_battery_celsius(sections.get("battery", "")))


def read_properties(printed: str) -> dict[str, str]:
    """Return the properties that `getprop` printed."""
    return dict(PROPERTY.findall(printed.replace("\r\n", "\n")))


def _android(host: Host, properties: Mapping[str, str]) -> Host:
    release = properties.get("ro.build.version.release", "")
    maker = properties.get("ro.product.manufacturer", "")
    model = properties.get("ro.product.model", "")
    return dataclasses.replace(
        host,
        kind=_kind(properties),
        model=model if model.lower().startswith(maker.lower()) else f"{maker} {model}",
        soc=_soc(properties),
        abi=properties.get("ro.product.cpu.abilist") or properties.get("ro.product.cpu.abi") or host.abi,
        os_version=f"Android {release}" if release else host.os_version,
        api_level=number(r"\A(\d{1,4})\Z", properties.get("ro.build.version.sdk", "")),
        fingerprint=properties.get("ro.build.fingerprint", ""),
    )


def _kind(properties: Mapping[str, str]) -> DeviceKind:
    says = "1" in {properties.get("ro.kernel.qemu"), properties.get("ro.boot.qemu")}
    return "emulator" if says or properties.get("ro.hardware") in EMULATORS else "physical"


def _soc(properties: Mapping[str, str]) -> str:
    """Return the SoC's maker and model, which devices say since API level 31, or the platform's name."""
    words = (properties.get("ro.soc.manufacturer", ""), properties.get("ro.soc.model", ""))
    return " ".join(word for word in words if word) or properties.get("ro.board.platform", "")


def _battery_celsius(text: str) -> float | None:
    """Return the battery's temperature, which Android gives in tenths of a degree; None without a battery."""
    tenths = number(r"^\s*temperature: (-?\d{1,4})$", text)
    absent = re.search(r"^\s*present: false$", text, re.MULTILINE)
    return None if tenths is None or absent else tenths / 10
