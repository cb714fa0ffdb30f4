import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_machine import fake_parts, fake_tool
from ortrim.base.tools import Emulation, InstalledTool, Tool
from ortrim.buildspec.targets import TARGETS
from ortrim.devices import adb, host, kinds, simctl, ssh
from ortrim.devices.device import Device
from ortrim.devices.host import Host
from ortrim.devices.kinds import DeviceName, read_name
from ortrim.devices.qemu import QemuSystem
from ortrim.errors import SourcesError, ToolError, UsageError
from ortrim.planning.devices import open_device
from ortrim.platforms import platform_of
from ortrim.sources import root_file_systems
from ortrim.sources.root_file_systems import MachineParts
from refusing import refused

ARM64 = TARGETS["linux-arm64"]


@pytest.fixture(autouse=True)
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pretend that every emulator is installed; returns what was fetched."""
    fetched: list[str] = []

    def parts(emulation: Emulation, announce: Callable[[str], None]) -> MachineParts:
        fetched.append(emulation.debian)
        announce(f"fetch {emulation.debian}")
        return fake_parts(tmp_path / emulation.debian)

    def require(tool: Tool) -> InstalledTool:
        return fake_tool(tmp_path / "bin", "exit 0", name=tool.name)

    monkeypatch.setattr(root_file_systems, "machine_parts", parts)
    monkeypatch.setattr(kinds, "require", require)
    return fetched


def opened(target: str, name: str) -> Device:
    return open_device(TARGETS[target], read_name(platform_of(TARGETS[target]), TARGETS[target], name))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("linux-arm64", "qemu-user"),
        ("linux-arm64-musl", "qemu-user:cortex-a76"),
        ("linux-armhf", "qemu-user"),
        ("linux-riscv64", "qemu-user"),
        ("linux-arm64", "qemu-system"),
        ("linux-arm64", "qemu-system:cortex-a76@128"),
        ("linux-arm64", "qemu-system@256"),
        ("linux-armhf", "qemu-system:cortex-a72"),
    ],
)
def test_devices_have_the_names_they_were_asked_for_by(target: str, name: str) -> None:
    assert opened(target, name).name == str(read_name(platform_of(TARGETS[target]), TARGETS[target], name))


def test_the_host() -> None:
    assert isinstance(open_device(ARM64, DeviceName(kind="host")), Host)


def test_what_is_fetched_is_announced(fetched: list[str]) -> None:
    told: list[str] = []
    open_device(ARM64, read_name(platform_of(ARM64), ARM64, "qemu-user"), told.append)
    assert (told, fetched) == (["fetch arm64"], ["arm64"])


def test_armhf_has_the_kernel_of_arm64(fetched: list[str], tmp_path: Path) -> None:
    """Its own libraries, and the 64-bit kernel, which runs its programs."""
    device = opened("linux-armhf", "qemu-system")
    assert isinstance(device, QemuSystem)
    assert device.machine.kernel == tmp_path / "arm64" / "kernel"
    assert sorted(fetched) == ["arm64", "armhf"]


def test_what_fetching_says_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose parts cannot be had is no usage error."""

    def refuse(*_: object) -> None:
        raise SourcesError("apt-missing", "there is no apt-get here")

    monkeypatch.setattr(root_file_systems, "machine_parts", refuse)
    refused(SourcesError, opened, "linux-arm64", "qemu-user")


@pytest.mark.parametrize("name", ["qemu-user", "qemu-system"])
def test_an_emulator_that_is_missing(monkeypatch: pytest.MonkeyPatch, fetched: list[str], name: str) -> None:

    def refuse(tool: Tool) -> InstalledTool:
        raise ToolError("tool-missing", "is not installed", where=tool.name)

    monkeypatch.setattr(kinds, "require", refuse)
    refused(ToolError, opened, "linux-arm64", name)
    assert fetched == []


def test_devices_elsewhere_are_opened_by_their_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only phone has no serial number yet."""
    told: list[str] = []
    asked: list[tuple[str | None, tuple[int, ...]]] = []

    def note(place: str | None, *, cores: tuple[int, ...], announce: Callable[[str], None]) -> None:
        asked.append((place, cores))
        announce(f"{place} cools down")

    monkeypatch.setattr(adb, "open_adb", note)
    monkeypatch.setattr(ssh, "open_ssh", note)
    for name in ("adb", "adb:127.0.0.1:5555", "ssh:pi@board:22"):
        open_device(ARM64, read_name(platform_of(ARM64), ARM64, name).on((4, 5)), told.append)
    places = (None, "127.0.0.1:5555", "ssh://pi@board:22")
    assert asked == [(place, (4, 5)) for place in places]
    assert told == [f"{place} cools down" for place in places]


def test_the_host_on_chosen_cores() -> None:
    """They are checked when it is opened."""
    assert refused(UsageError, open_device, ARM64, DeviceName(kind="host").on((1000,))).code == "cannot-pin"
    assert DeviceName(kind="qemu-user", detail="cortex-a53").on((0,)).cores == ()


def test_a_mac_is_opened_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Rosetta where a target needs it, which is looked for first."""
    asked: list[bool] = []

    def mac(_cores: tuple[int, ...], *, translated: bool) -> str:
        asked.append(translated)
        return "a Mac"

    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(host, "MacHost", mac)
    for target in ("macos-arm64", "macos-x86_64"):
        open_device(TARGETS[target], DeviceName(kind="host"))
    assert asked == [False, True]


def test_a_simulator_is_opened_for_the_targets_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name that was given, in Apple's word for the architecture."""
    asked: list[tuple[str, str]] = []

    def simulator(name: str, architecture: str, *, announce: Callable[[str], None]) -> None:
        asked.append((name, architecture))
        announce("booting")

    told: list[str] = []
    monkeypatch.setattr(simctl, "open_simulator", simulator)
    name = DeviceName(kind="simctl", detail="iPhone 17")
    open_device(TARGETS["ios-simulator-x86_64"], name, told.append)
    assert (asked, told) == ([("iPhone 17", "x86_64")], ["booting"])
