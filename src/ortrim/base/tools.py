"""What is known of a program before it is run: whether it is there, which version it is, how to get it."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import last_lines, run
from ortrim.errors import ToolError

VERSION: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)")
ANSWER_SECONDS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program of the system: its name on PATH, the oldest version that will do, and Debian's package of it."""

    name: str
    package: str
    minimum: tuple[int, ...] = ()
    version_words: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, kw_only=True)
class InstalledTool:
    """A program that is there and answered: `version` is the first dotted number it printed."""

    name: str
    path: Path
    version: str


def require(tool: Tool) -> InstalledTool:
    """Return the tool as installed."""
    found = shutil.which(tool.name)
    if found is None:
        raise ToolError(
            "tool-missing", "is not installed", where=tool.name, hint=f"run: {install_command(tool.package)}"
        )
    version = _version_of(tool, found)
    if tuple(int(part) for part in version.split(".")) < tool.minimum:
        minimum = ".".join(str(part) for part in tool.minimum)
        what = f"version {version} is too old, {minimum} or newer is needed"
        raise ToolError("tool-too-old", what, where=found, hint=f"run: {install_command(tool.package)}")
    return InstalledTool(name=tool.name, path=Path(found), version=version)


def _version_of(tool: Tool, program: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    done = run([program, *tool.version_words], environment=environment, timeout_seconds=ANSWER_SECONDS)
    match = VERSION.search(done.stdout or done.stderr)
    if done.returncode == 0 and match:
        return match.group(1)
    why = last_lines(done.stderr or done.stdout, 3)
    hint = f"install it again: {install_command(tool.package)}"
    what = f"'{tool.name} {' '.join(tool.version_words)}' names no version (exit code {done.returncode})"
    raise ToolError("tool-broken", what, where=program, why=why, hint=hint)


MANAGERS: Final = {
    "apt-get": "apt-get install {}",
    "dnf": "dnf install {}",
    "zypper": "zypper install {}",
    "pacman": "pacman -S {}",
}
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "adb": {
        "dnf": "android-tools",
        "zypper": "android-tools",
        "pacman": "android-tools",
        "brew": "android-platform-tools",
    },
    "default-jdk-headless": {"dnf": "java-devel", "zypper": "java-devel", "pacman": "jdk-openjdk", "brew": "openjdk"},
    "docker.io": {"dnf": "moby-engine", "zypper": "docker", "pacman": "docker", "brew": "docker"},
    "g++": {"dnf": "gcc-c++", "zypper": "gcc-c++", "pacman": "gcc", "brew": "gcc"},
    "openssh-client": {"dnf": "openssh-clients", "zypper": "openssh-clients", "pacman": "openssh", "brew": "openssh"},
    "qemu-system-arm": {
        "dnf": "qemu-system-aarch64",
        "zypper": "qemu-arm",
        "pacman": "qemu-system-aarch64",
        "brew": "qemu",
    },
    "qemu-user-static": {"zypper": "qemu-linux-user"},
}
"""What Fedora, openSUSE, Arch and Homebrew call packages that have another name in Debian."""


def install_command(package: str) -> str:
    """Return the command that installs a package, by Debian's name, with `sudo` for a user who is not root."""
    names = ELSEWHERE.get(package, {})
    for manager, command in MANAGERS.items():
        if shutil.which(manager):
            is_root = hasattr(os, "geteuid") and os.geteuid() == 0
            return ("" if is_root else "sudo ") + command.format(names.get(manager, package))
    if shutil.which("brew"):
        return f"brew install {names.get('brew', package)}"
    return f"your system's package manager, for {package}"


ALL_TARGETS: Final = "all targets"


@dataclass(frozen=True, kw_only=True)
class ToolFinding:
    """One thing that `doctor` examined.

    `found` is a version and a path, or an amount; empty when absent. `needed_for` says for which targets and when.
    `problem` is empty when all is well; `remedy` is the command that helps, or advice. What is not `required` keeps
    from the builds that `needed_for` names alone.
    """

    name: str
    found: str
    needed_for: str = ALL_TARGETS
    required: bool = True
    problem: str = ""
    remedy: str = ""

    @property
    def satisfied(self) -> bool:
        """Whether nothing needs to be done."""
        return not self.problem
