"""What a Linux board says of itself and of its heat. Pure.

The kernel throttles when a zone reaches the temperature of a `passive` trip point. A Raspberry Pi's firmware throttles
by itself and says so in `get_throttled`, whose lowest four bits are about now: too little voltage, frequency capped,
throttled, soft temperature limit (Raspberry Pi's documentation of `vcgencmd`).
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from ortrim.core.measurements import Host
from ortrim.verify.devices.survey import LINUX, linux_host, number, read_sections, survey_script
from ortrim.verify.devices.thermal import NOT_THROTTLED, Thermal

ZONES: Final = (
    "for z in /sys/class/thermal/thermal_zone*; do [ -r $z/temp ] && echo zone $(cat $z/temp); "
    'for t in $z/trip_point_*_type; do [ "$(cat $t)" = passive ] && echo passive $(cat ${t%type}temp); done; done'
)
HEAT: Final[Mapping[str, str]] = {
    "zones": ZONES,
    "throttled": "cat /sys/devices/platform/soc/soc:firmware/get_throttled",
}
THERMAL_SURVEY: Final = survey_script(HEAT)
SURVEY: Final = survey_script({**LINUX, "distribution": "cat /etc/os-release", **HEAT})
NOW: Final = 0xF
LIGHT: Final = 1


def ssh_host(printed: str) -> Host:
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
    states = list(_zones_throttle(sections.get("zones", "")))
    if bits is not None:
        states.append(bits & NOW != 0)
    status = None if not states else LIGHT if any(states) else NOT_THROTTLED
    return Thermal(status=status, battery_celsius=None)


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
