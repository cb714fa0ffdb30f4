"""Tools of the machine that tests may need, and what it means when one is absent."""

import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from bionic_machine import find_bionic
from browser import browser_program
from ortrim.base.cache import is_kept
from ortrim.base.command import run
from ortrim.errors import ToolError
from ortrim.platforms.android.bionic import bionic_folder
from ortrim.platforms.android.ndk import SDK_VARIABLES, installed_ndk

KNOWN_TOOLS: Final = (
    "adb",
    "addr2line",
    "android-phone",
    "apt-get",
    "bionic",
    "bionic-binaries",
    "buildah",
    "ccache",
    "chromium",
    "clang",
    "cpio",
    "dockerd",
    "dpkg-deb",
    "g++",
    "gcc",
    "gcloud",
    "gdb",
    "git",
    "gradle",
    "java",
    "javac",
    "localedef",
    "mcs",
    "mmdebstrap",
    "mono",
    "npm",
    "ndk",
    "pkg-config",
    "podman",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "qemu-aarch64-static",
    "qemu-arm-static",
    "qemu-riscv64-static",
    "qemu-x86_64",
    "qemu-x86_64-static",
    "qemu-system-aarch64",
    "redis-server",
    "root",
    "ruby",
    "runc",
    "sshd",
    "unshare",
    "xcrun",
)
"""Names that `@pytest.mark.needs` may give: programs that count as present when PATH has them and they start."""

PROBES: Final = {
    "sshd": ("-V",),
    "unshare": ("--user", "--map-root-user", "--mount", "true"),
}
"""What a program is started with to see that it works here; `--version` for all others."""


def read_unavailable(path: Path) -> dict[str, str]:
    """Return the tools that CI may lack, with the reason for each. Raises `pytest.UsageError` for a wrong entry."""
    entries = tomllib.loads(path.read_text()).get("tool", [])
    for entry in entries:
        if set(entry) != {"name", "reason"} or not entry["reason"].strip():
            raise pytest.UsageError(f"{path.name}: each tool has a name and a reason, not {entry}")
        if entry["name"] not in KNOWN_TOOLS:
            raise pytest.UsageError(f"{path.name}: unknown tool {entry['name']!r}; known: {', '.join(KNOWN_TOOLS)}")
    return {entry["name"]: entry["reason"] for entry in entries}


class Availability:
    """Decides what the absence of a tool means for a test, and counts what could not be tried."""

    def __init__(
        self,
        unavailable: dict[str, str],
        *,
        strict: bool,
        present: Callable[[str], bool],
        required: frozenset[str] = frozenset(),
    ) -> None:
        self.unavailable = unavailable
        self.strict = strict
        self.present = present
        self.required = required
        self.not_tried: dict[str, int] = {}

    def check(self, names: tuple[str, ...]) -> None:
        """Let the test run, skip it, or fail it: the last in strict runs for an absence that no list explains."""
        for name in names:
            if self.present(name):
                continue
            reason = self.unavailable.get(name)
            if name in self.required:
                pytest.fail(f"{name} is not installed, and this run requires it", pytrace=False)
            if self.strict and reason is None:
                pytest.fail(f"{name} is not installed, and tests/unavailable.toml does not list it", pytrace=False)
            self.add({name: 1})
            pytest.skip(f"{name} is not installed" + (f": {reason}" if reason else ""))

    def add(self, not_tried: Mapping[str, int]) -> None:
        for name, count in not_tried.items():
            self.not_tried[name] = self.not_tried.get(name, 0) + count

    def summary(self) -> tuple[str, ...]:
        """Return the lines that close a run: how many tests were not tried, and for want of what."""
        if not self.not_tried:
            return ()
        total = sum(self.not_tried.values())
        head = f"{total} tests were not tried for want of {len(self.not_tried)} tools"
        counts = sorted(self.not_tried.items())
        lines = (f"  {name}: {count}, {self.unavailable.get(name, 'not installed here')}" for name, count in counts)
        return (head, *lines)


def has_ndk() -> bool:
    try:
        installed_ndk()
    except ToolError:
        return False
    return True


def has_phone() -> bool:
    """Whether adb reaches one phone, for which an SDK can make apps."""
    if not any(os.environ.get(name) for name in SDK_VARIABLES) or shutil.which("adb") is None:
        return False
    return run(("adb", "get-state"), timeout_seconds=20).stdout.strip() == "device"


def has_bionic() -> bool:
    """Whether the cache has bionic's files at the pinned commit."""
    return is_kept(bionic_folder())


def has_plugins() -> bool:
    """Whether qemu's user emulation is here and takes plugins of the first version, which 9.0 does no more."""
    if shutil.which("qemu-x86_64") is None:
        return False
    version, usage = (run(("qemu-x86_64", word), timeout_seconds=20).stdout for word in ("--version", "-help"))
    return re.search(r" version [78]\.", version) is not None and "-plugin" in usage


OWN_PROBES: Final[Mapping[str, Callable[[], bool]]] = {
    "android-phone": has_phone,
    "bionic": has_bionic,
    "bionic-binaries": lambda: find_bionic() is not None,
    "chromium": lambda: browser_program() is not None,
    "ndk": has_ndk,
    "qemu-x86_64": has_plugins,
    "root": lambda: os.geteuid() == 0,
}


def is_present(name: str) -> bool:
    """Whether PATH has the program and it starts; pyenv's shims exist for versions that do not."""
    if name in OWN_PROBES:
        return OWN_PROBES[name]()
    if shutil.which(name) is None:
        return False
    try:
        return run([name, *PROBES.get(name, ("--version",))], timeout_seconds=20).returncode == 0
    except ToolError:
        return False
