"""What `.ci/run` installs before it tests: its own function, by bash, on made-up machines."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from browser import PROGRAMS
from fake_programs import FakePrograms
from ortrim.base.command import run

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "run"
BASH: Final = shutil.which("bash") or "bash"
TOOLS: Final = (
    *(
        "gcc",
        "g++",
        "gdb",
        "addr2line",
        "pkg-config",
        "cpio",
        "redis-server",
        "adb",
        "sshd",
        "buildah",
        "javac",
        "npm",
        "gradle",
        "ruby",
    ),
    *("qemu-aarch64-static", "qemu-arm-static", "qemu-riscv64-static", "qemu-x86_64", "qemu-system-aarch64"),
)


def installed(folder: Path, system: str, *programs: str, stub: str = "") -> list[str]:
    """Return what is installed on a system that has these programs, and one that only asks for a snap."""
    made = FakePrograms(folder)
    made.add(*programs, "apt-get", "sudo")
    if stub:
        made.add(stub)
        made.answer(stub, stderr="requires the chromium snap to be installed", code=1)
    release = folder / "os-release"
    release.write_text(system)
    words = (BASH, "-c", 'source "$1" && install_test_tools "$2"', "test", SCRIPT, release)
    done = run(words, environment={"PATH": str(folder / "bin")})
    assert (done.returncode, done.stderr) == (0, "")
    calls = [call for call in made.calls if "install" in call]
    return [word for call in calls for word in call[call.index("install") + 1 :] if not word.startswith("-")]


DEBIAN: Final = 'ID=debian\nVERSION_ID="12"\n'
UBUNTU: Final = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n'


@pytest.mark.parametrize(
    ("system", "browser", "stub", "packages"),
    [
        (DEBIAN, (), "", ["chromium"]),
        (DEBIAN, ("chromium",), "", []),
        (DEBIAN, ("google-chrome",), "", []),
        (UBUNTU, ("google-chrome-stable",), "chromium-browser", []),
        (UBUNTU, (), "chromium-browser", []),
        (UBUNTU, (), "", []),
    ],
)
def test_a_browser_is_installed_where_it_is_a_package(
    tmp_path: Path, system: str, browser: tuple[str, ...], stub: str, packages: list[str]
) -> None:
    """An image's Chrome will do; Ubuntu's package is a snap in disguise, and asking for Debian's fails there."""
    assert installed(tmp_path, system, *TOOLS, *browser, stub=stub) == packages


def test_other_tools_are_installed_on_either_system(tmp_path: Path) -> None:
    """By the names of their packages, at once."""
    without = [tool for tool in TOOLS if tool not in {"adb", "javac"}]
    assert installed(tmp_path, UBUNTU, *without) == ["adb", "default-jdk-headless"]


def test_the_tests_take_the_browsers_that_it_looks_for() -> None:
    """The two lists are one."""
    done = run((BASH, "-c", 'source "$1" && echo "${BROWSERS[@]}"', "test", SCRIPT))
    assert tuple(done.stdout.split()) == PROGRAMS
