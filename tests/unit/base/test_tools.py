import json
from pathlib import Path

import pytest

from ortrim.base.tools import EMULATIONS, QEMU_SYSTEM, Tool, install_command, machine_folder, require
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.errors import ExitCode, ToolError
from ortrim.planning.doctor import DEVICE_TOOLS, machine_parts_found
from program_files import write_program
from refusing import refused

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, name: str, prints: str, exit_code: int = 0) -> None:
    (folder / f"{name}.out").write_text(prints)
    write_program(folder / name, f'while read -r line; do echo "$line"; done <"$0.out"\nexit {exit_code}')


RECORDED = {
    "git": ("git version 2.39.5\n", "2.39.5"),
    "git-apple": ("git version 2.39.5 (Apple Git-154)\n", "2.39.5"),
    "gcc": ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n", "12.2.0"),
    "clang": ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "14.0.6"),
    "apt-get": ("apt 2.6.1 (amd64)\nSupported modules:\n", "2.6.1"),
    "dpkg-deb": ("Debian 'dpkg-deb' package archive backend version 1.21.22 (amd64).\n", "1.21.22"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_versions_are_read_from_what_tools_print(programs: Path, name: str) -> None:
    printed, version = RECORDED[name]
    install(programs, name, printed)
    installed = require(Tool(name=name, package="any"))
    assert (installed.version, installed.path) == (version, programs / name)


@pytest.mark.parametrize(("minimum", "good"), [((12,), True), ((12, 2, 0), True), ((12, 2, 1), False), ((13,), False)])
def test_a_version_is_compared_as_numbers(programs: Path, minimum: tuple[int, ...], *, good: bool) -> None:
    install(programs, "gcc", RECORDED["gcc"][0])
    tool = Tool(name="gcc", package="gcc", minimum=minimum)
    if good:
        assert require(tool).name == "gcc"
        return
    caught = refused(ToolError, require, tool)
    assert (caught.code, caught.where) == ("tool-too-old", str(programs / "gcc"))
    assert "12.2.0 is too old" in caught.what
    assert caught.hint


def test_an_absent_tool_says_how_to_get_it(programs: Path) -> None:
    install(programs, "apt-get", "")
    error = refused(ToolError, require, Tool(name="clang++", package="clang"))
    assert error.code == "tool-missing"
    assert error.hint.endswith("apt-get install clang")
    assert error.exit_code is ExitCode.TOOL


@pytest.mark.parametrize(("prints", "exit_code"), [("", 0), ("no number here\n", 0), ("gcc 12.2.0\n", 1), ("v12\n", 0)])
def test_a_tool_that_names_no_version_is_broken(programs: Path, prints: str, exit_code: int) -> None:
    """A stub that exists but does not work is not taken for the tool."""
    install(programs, "gcc", prints, exit_code)
    assert refused(ToolError, require, Tool(name="gcc", package="gcc")).code == "tool-broken"


@pytest.mark.parametrize(
    ("manager", "ending"),
    [
        ("apt-get", "apt-get install git"),
        ("dnf", "dnf install git"),
        ("zypper", "zypper install git"),
        ("pacman", "pacman -S git"),
        ("brew", "brew install git"),
        ("none", "package manager, for git"),
    ],
)
def test_the_command_fits_the_system(programs: Path, manager: str, ending: str) -> None:
    install(programs, manager, "")
    assert install_command("git").endswith(ending)


@pytest.mark.parametrize(
    ("manager", "package", "ending"),
    [
        ("apt-get", "adb", "apt-get install adb"),
        ("dnf", "adb", "dnf install android-tools"),
        ("pacman", "default-jdk-headless", "pacman -S jdk-openjdk"),
        ("zypper", "qemu-user-static", "zypper install qemu-linux-user"),
        ("brew", "default-jdk-headless", "brew install openjdk"),
    ],
)
def test_the_package_has_the_systems_own_name(programs: Path, manager: str, package: str, ending: str) -> None:
    """Debian's names are not everybody's: a command that finds no such package helps nobody."""
    install(programs, manager, "")
    assert install_command(package).endswith(ending)


@pytest.mark.parametrize(("user", "begins"), [(0, "apt-get"), (1000, "sudo apt-get")])
def test_only_root_needs_no_sudo(programs: Path, monkeypatch: pytest.MonkeyPatch, user: int, begins: str) -> None:
    install(programs, "apt-get", "")
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert install_command("git").startswith(begins)


def test_a_tool_with_words_of_its_own(programs: Path) -> None:
    """Some programs want other words for their version, and print it to standard error, as `ssh -V` does."""
    write_program(programs / "ssh", '[ "$1" = -V ] && echo "OpenSSH_9.2p1 Debian-2, OpenSSL 3.0.17" >&2')
    assert require(Tool(name="ssh", package="openssh-client", version_words=("-V",))).version == "9.2"
    assert refused(ToolError, require, Tool(name="ssh", package="openssh-client")).code == "tool-broken"


KERNEL_AND_LIBRARIES = json.dumps(
    {
        "packages": [
            {"name": name, "version": version, "architecture": "arm64", "suite": "trixie", "sha256": "a" * 64}
            for name, version in (("libc6", "2.41"), ("musl", "1"), ("linux-image-6.12-cloud-arm64", "6.12.107-1"))
        ]
    }
)


def test_every_foreign_architecture_is_emulated() -> None:
    linux = {target.architecture.value for target in TARGETS.values() if target.system is OperatingSystem.LINUX}
    assert set(EMULATIONS) == linux - {"x64"}
    for emulation in EMULATIONS.values():
        assert len(emulation.library_folders) == len(emulation.loaders)
        assert emulation.user_cpus
    assert len({machine_folder(emulation.debian) for emulation in EMULATIONS.values()}) == len(EMULATIONS)


def test_every_emulator_can_be_missing() -> None:
    looked_for = {tool.name for tool, _ in DEVICE_TOOLS}
    assert {QEMU_SYSTEM.name, *(emulation.user.name for emulation in EMULATIONS.values())} <= looked_for


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (None, ""),
        ("", ""),
        ("[]", ""),
        ('{"packages": 1}', ""),
        ('{"packages": [1]}', ""),
        ('{"packages": [{"name": "libc6"}]}', ""),
        ("\udc80", ""),
        ('{"packages": []}', ""),
        (KERNEL_AND_LIBRARIES, "libc6 2.41, linux-image-6.12-cloud-arm64 6.12.107-1"),
    ],
)
def test_what_was_fetched_is_reported(record: str | None, found: str) -> None:
    """Kernel and C library are named with their versions; what cannot be read was not fetched."""
    if record is not None:
        machine_folder("arm64").mkdir(parents=True)
        (machine_folder("arm64") / "packages.json").write_text(record, errors="surrogateescape")
    assert machine_parts_found("arm64") == found
