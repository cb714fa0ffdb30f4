"""What a Mac says of itself. Pure.

`sysctl` prints a line for each name that it knows and complains of the others, which differ from Mac to Mac.
"""

import re
from collections.abc import Mapping
from typing import Final

from ortrim.core.measurements import Host
from ortrim.verify.devices.survey import number

NAMES: Final = (
    "machdep.cpu.brand_string",
    "hw.model",
    "hw.machine",
    "hw.ncpu",
    "hw.memsize",
    "hw.pagesize",
    "kern.osproductversion",
    "kern.osversion",
    "kern.hv_vmm_present",
)
SURVEY: Final = ("sysctl", *NAMES)
LINE: Final = re.compile(r"^([a-z0-9_.]+): (.*)$", re.MULTILINE)
TRANSLATED: Final = "x86_64 by Rosetta 2 on"


def mac_host(printed: str) -> Host:
    """Return the facts in the answer to `SURVEY`."""
    said: Mapping[str, str] = {name: value.strip() for name, value in LINE.findall(printed.replace("\r", ""))}
    machine, version = said.get("hw.machine", ""), said.get("kern.osproductversion", "")
    return Host(
        system="Darwin",
        machine=machine,
        cpu=said.get("machdep.cpu.brand_string") or machine,
        cores=_whole(said, "hw.ncpu") or 1,
        memory_bytes=_whole(said, "hw.memsize") or 0,
        kind="vm" if said.get("kern.hv_vmm_present") == "1" else "physical",
        model=said.get("hw.model", ""),
        abi=machine,
        os_version=f"macOS {version}".strip(),
        fingerprint=said.get("kern.osversion", ""),
        page_bytes=_whole(said, "hw.pagesize"),
    )


def _whole(said: Mapping[str, str], name: str) -> int | None:
    return number(r"\A(\d+)\Z", said.get(name, ""))
