import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_machine import fake_parts, fake_tool
from ortrim.core.targets import TARGETS
from ortrim.errors import ExitCode, SourcesError, ToolError, UsageError
from ortrim.sources.machines import MachineParts
from ortrim.tools.base import InstalledTool, Tool
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices import select
from ortrim.verify.devices.qemu_system import QemuSystem
from ortrim.verify.devices.select import default_devices, devices_for, ssh_destination

ARM64 = TARGETS["linux-arm64"]
X64 = TARGETS["linux-x64"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pretend an x86-64 machine on which every emulator is installed; returns what was fetched."""
    fetched: list[str] = []

    def parts(emulation: Emulation, announce: Callable[[str], None]) -> MachineParts:
        fetched.append(emulation.debian)
        announce(f"fetch {emulation.debian}")
        return fake_parts(tmp_path / emulation.debian)

    def require(tool: Tool) -> InstalledTool:
        return fake_tool(tmp_path / "bin", "exit 0", name=tool.name)

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(select, "machine_parts", parts)
    monkeypatch.setattr(select, "require", require)
    return fetched


@pytest.mark.parametrize(
    ("target", "asked", "name"),
    [
        ("linux-x64", "host", "host"),
        ("linux-arm64", "qemu-user", "qemu-user:cortex-a53"),
        ("linux-arm64", "qemu-user:cortex-a76", "qemu-user:cortex-a76"),
        ("linux-arm64-musl", "qemu-user", "qemu-user:cortex-a53"),
        ("linux-armhf", "qemu-user", "qemu-user:cortex-a7"),
        ("linux-armhf", "qemu-system", "qemu-system:cortex-a53"),
        ("linux-riscv64", "qemu-user", "qemu-user:rv64"),
        ("linux-arm64", "qemu-system", "qemu-system:cortex-a53"),
        ("linux-arm64", "qemu-system:cortex-a76", "qemu-system:cortex-a76"),
        ("linux-arm64", "qemu-system:cortex-a76@128", "qemu-system:cortex-a76@128"),
        ("linux-arm64", "qemu-system@64", "qemu-system:cortex-a53@64"),
        ("linux-arm64", "qemu-system:cortex-a53@256", "qemu-system:cortex-a53"),
    ],
)
def test_names_lead_to_devices(target: str, asked: str, name: str) -> None:
    """Each form of a name gives its device, whose own name is complete."""
    (device,) = devices_for(TARGETS[target], (asked,))
    assert device.name == name
    device.close()


def test_several_devices_side_by_side(here: list[str]) -> None:
    """They come in the order asked for, and what is fetched is announced."""
    told: list[str] = []
    devices = devices_for(ARM64, ("qemu-user", "qemu-system:cortex-a76", "qemu-system:cortex-a53@96"), told.append)
    names = [device.name for device in devices]
    assert names == ["qemu-user:cortex-a53", "qemu-system:cortex-a76", "qemu-system:cortex-a53@96"]
    assert told == ["fetch arm64"] * 3
    assert here == ["arm64"] * 3


def test_armhf_has_the_kernel_of_arm64(here: list[str], tmp_path: Path) -> None:
    """Its own libraries, and the 64-bit kernel, which runs its programs."""
    (device,) = devices_for(TARGETS["linux-armhf"], ("qemu-system",))
    assert isinstance(device, QemuSystem)
    assert device.machine.kernel == tmp_path / "arm64" / "kernel"
    assert sorted(here) == ["arm64", "armhf"]


@pytest.mark.parametrize(
    ("target", "name", "reference", "hint"),
    [
        ("linux-arm64", "phone", "unknown-device", "qemu-user[:CPU]"),
        ("linux-arm64", "", "unknown-device", "host, "),
        ("linux-arm64", ":", "unknown-device", "host, "),
        ("linux-arm64", "HOST", "unknown-device", "host, "),
        ("linux-x64", "host:1", "unknown-device", "host, "),
        ("linux-x64", "host@64", "unknown-device", "host, "),
        ("linux-arm64", "qemu-user@64", "unknown-device", "host, "),
        ("linux-arm64", "qemu-system@64:cortex-a53", "unknown-device", "host, "),
        ("linux-arm64", "qemu-user:pentium", "unknown-device", "qemu-user:cortex-a53, qemu-user:cortex-a72"),
        ("linux-arm64", "qemu-system:pentium", "unknown-device", "qemu-system:cortex-a53"),
        ("linux-arm64", "qemu-system:cortex-a53@", "unknown-device", "qemu-system:cortex-a53"),
        ("linux-arm64", "qemu-system:cortex-a53@0", "unknown-device", "qemu-system:cortex-a53"),
        ("linux-arm64", "qemu-system:cortex-a53@31", "unknown-device", "from 32 to 16384"),
        ("linux-arm64", "qemu-system:cortex-a53@99999", "unknown-device", "from 32 to 16384"),
        ("linux-arm64", "qemu-system:cortex-a53@1.5", "unknown-device", "qemu-system:cortex-a53"),
        ("linux-arm64", "qemu-system:-cpu", "unknown-device", "qemu-system:cortex-a53"),
        ("linux-riscv64", "qemu-system", "unknown-device", "none for this target"),
        ("linux-arm64", "host", "wrong-device", "qemu-user"),
        ("linux-x64", "qemu-user", "wrong-device", "host"),
        ("linux-x64", "qemu-system", "wrong-device", "host"),
    ],
)
def test_names_that_lead_nowhere(target: str, name: str, reference: str, hint: str) -> None:
    """A name that is not one, or not for this target, is refused with what there is."""
    with pytest.raises(UsageError) as caught:
        devices_for(TARGETS[target], (name,))
    assert (caught.value.reference, caught.value.exit_code) == (reference, ExitCode.USAGE)
    assert hint in caught.value.hint
    assert "--device" in caught.value.where


def test_one_device_twice() -> None:
    """A device that is named twice, however, is refused."""
    with pytest.raises(UsageError) as caught:
        devices_for(ARM64, ("qemu-user", "qemu-user:cortex-a53"))
    assert caught.value.reference == "device-twice"


class Closing:
    """A device that remembers whether it was closed."""

    name = "adb:1"
    closed = False

    def close(self) -> None:
        """Remember it."""
        self.closed = True


@pytest.mark.parametrize("error", [UsageError("x", "x"), ToolError("x", "x"), KeyboardInterrupt()])
def test_a_failure_closes_what_was_opened(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The second device's failure does not leave the first one open."""
    device = Closing()

    def refuse(_destination: str) -> None:
        raise error

    monkeypatch.setattr(select, "open_adb", lambda _serial: device)
    monkeypatch.setattr(select, "open_ssh", refuse)
    with pytest.raises(type(error)):
        devices_for(ARM64, ("adb:1", "ssh:pi"))
    assert device.closed


def test_what_fetching_says_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose parts cannot be had is no usage error."""

    def refuse(*_: object) -> None:
        raise SourcesError("apt-missing", "there is no apt-get here")

    monkeypatch.setattr(select, "machine_parts", refuse)
    with pytest.raises(SourcesError):
        devices_for(ARM64, ("qemu-user",))


@pytest.mark.parametrize(
    ("asked", "serial"), [("adb", None), ("adb:", None), ("adb:127.0.0.1:5555", "127.0.0.1:5555"), ("adb:R5@x", "R5@x")]
)
def test_adb_devices_by_serial_number(monkeypatch: pytest.MonkeyPatch, asked: str, serial: str | None) -> None:
    """Whatever follows the first colon is the serial number; without one it is the only device there."""
    opened: list[str | None] = []

    def open_adb(given: str | None) -> Closing:
        opened.append(given)
        return Closing()

    monkeypatch.setattr(select, "open_adb", open_adb)
    devices_for(X64, (asked,))
    assert opened == [serial]


@pytest.mark.parametrize(
    ("given", "destination"),
    [
        ("pi@board", "pi@board"),
        ("board", "board"),
        ("pi@board:2222", "ssh://pi@board:2222"),
        ("board.local:22", "ssh://board.local:22"),
        ("pi@[::1]:22", "ssh://pi@[::1]:22"),
        ("pi@::1", "pi@::1"),
        ("ssh://pi@board:22", "ssh://pi@board:22"),
    ],
)
def test_machines_by_destination(given: str, destination: str) -> None:
    """A port makes it an address of the form that `ssh` takes; all else is left to `ssh`."""
    assert ssh_destination(given) == destination


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("linux-x64", ("host",)),
        ("linux-arm64", ("qemu-user", "qemu-system:cortex-a53")),
        ("linux-riscv64", ("qemu-user",)),
    ],
)
def test_devices_that_nobody_named(target: str, names: tuple[str, ...]) -> None:
    """The host when it runs the target, emulators else, and each of these names is one."""
    assert default_devices(TARGETS[target]) == names
    assert len(devices_for(TARGETS[target], names)) == len(names)


def test_a_target_that_nothing_here_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an ARM machine there is no device for x86-64."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert default_devices(X64) == ()
    assert default_devices(ARM64) == ("host",)
