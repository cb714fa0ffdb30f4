"""What this machine has for verifying on others: emulators, the ways to real devices, and the parts of machines."""

import json
from typing import Final

from ortrim.tools.base import Tool
from ortrim.tools.emulators import EMULATIONS, PACKAGES_FILE, QEMU_SYSTEM, X64_USER, machine_folder

FETCH_COMMAND: Final = "invoke devices --fetch"
SHOWN_PACKAGES: Final = ("linux-image", "libc6")
"""The kernel and the C library: what a machine is, for who reads a list."""
SSH: Final = Tool(name="ssh", package="openssh-client", version_words=("-V",))
DEVICE_TOOLS: Final = (
    (EMULATIONS["arm64"].user, "linux-arm64: verification on 'qemu-user'"),
    (EMULATIONS["arm"].user, "linux-armhf: verification on 'qemu-user'"),
    (EMULATIONS["riscv64"].user, "linux-riscv64: verification on 'qemu-user'"),
    (X64_USER, "models with layout = 'nchwc8': conversion"),
    (QEMU_SYSTEM, "linux-arm64, linux-armhf: verification on 'qemu-system'"),
    (Tool(name="adb", package="adb", minimum=(1, 0, 41)), "verification on 'adb' devices"),
    (SSH, "verification on 'ssh' machines"),
)
"""Programs, and what each is needed for."""


def machine_parts_found(debian: str) -> str:
    """Return what the cache holds of an emulated machine, by Debian's word for it; empty when it was not fetched."""
    try:
        text = (machine_folder(debian) / PACKAGES_FILE).read_text(encoding="utf-8")
        packages = [(str(entry["name"]), str(entry["version"])) for entry in json.loads(text)["packages"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return ", ".join(f"{name} {version}" for name, version in packages if name.startswith(SHOWN_PACKAGES))
