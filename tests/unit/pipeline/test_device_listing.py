import importlib.metadata
import platform
from pathlib import Path

import pytest

from fake_machine import fake_tool
from fake_xcrun import FakeXcrun, says
from ortrim.base.json import to_data
from ortrim.base.tools import EMULATIONS, Emulation, InstalledTool, Tool
from ortrim.buildspec.targets import TARGETS
from ortrim.devices import adb, host, kinds, simctl
from ortrim.devices.adb import AdbListing
from ortrim.devices.farms import firebase
from ortrim.devices.farms.firebase import Gcloud
from ortrim.devices.host import mac_host
from ortrim.devices.kinds import ListedDevice, fetch_machines
from ortrim.errors import ToolError
from ortrim.platforms import platform_of
from ortrim.sources import root_file_systems

DATA = Path(__file__).parents[1] / "devices" / "data"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that every program is here, and that adb sees two devices."""
    seen = (
        AdbListing(serial="R5CT", state="device", model="SM S911B"),
        AdbListing(serial="emulator-5554", state="offline", model=""),
    )
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(kinds, "require", lambda tool: fake_tool(tmp_path / "bin", "exit 0", name=tool.name))
    monkeypatch.setattr(adb, "find_adb", lambda: None)
    monkeypatch.setattr(adb, "adb_devices", lambda _client: seen)
    monkeypatch.setattr(firebase, "find_gcloud", lambda: Gcloud(path=Path("/gcloud"), environment={}, version="1.2"))
    monkeypatch.setattr(importlib.metadata, "version", absent_package)


def absent_package(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


def list_devices() -> tuple[ListedDevice, ...]:
    return kinds.list_devices(platform_of)


def named(name: str) -> ListedDevice:
    return next(device for device in list_devices() if device.name == name)


def test_what_can_be_measured_where() -> None:
    """The host measures all, an emulated machine no time, user emulation neither time nor memory."""
    measured = {device.name: (device.memory, device.time) for device in list_devices()}
    assert measured["host"] == (True, True)
    assert measured["qemu-user:cortex-a53"] == (False, False)
    assert measured["qemu-system:cortex-a76"] == (True, False)
    assert measured["macho"] == (True, False)
    assert measured["adb:R5CT"] == (True, True)
    assert measured["adb:emulator-5554"] == (True, False)
    assert measured["ssh:[USER@]HOST[:PORT]"] == (True, True)


def test_every_target_has_a_device_and_names_are_unique() -> None:
    """No two lines are called alike."""
    devices = list_devices()
    assert {target for device in devices for target in device.targets} == set(TARGETS)
    assert len({device.name for device in devices}) == len(devices)
    assert named("qemu-system:cortex-a53").targets == ("linux-arm64", "linux-arm64-musl", "linux-armhf")
    assert to_data(devices[0])["name"] == "host"


def test_apples_libraries_run_here_on_linux_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for this machine's processor as they are, others where that is emulated."""
    assert {name for name in named("macho").targets if name.endswith("x86_64")} < set(named("macho").targets)
    assert named("macho").found == "this machine's processor; qemu-aarch64-static 7.2.22 for another, with parity alone"
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    assert (named("macho").problem, named("macho").targets) == ("runs on Linux alone", ())


def test_a_device_that_is_not_ready_says_so() -> None:
    device = named("adb:emulator-5554")
    assert device.problem == "is offline"
    assert "adb devices -l" in device.remedy
    assert (named("adb:R5CT").problem, named("adb:R5CT").found) == ("", "SM S911B")


def test_adb_without_a_phone_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb, "adb_devices", lambda _client: ())
    device = named("adb:[SERIAL]")
    assert device.problem == "adb sees no device"
    assert "USB debugging" in device.remedy


def test_farms_are_listed_by_the_form_of_their_names() -> None:
    """With what they are reached with, or what of it is missing; they run Android's targets alone."""
    firebase, devicefarm = named("firebase:MODEL-VERSION"), named("devicefarm:PROJECT/POOL")
    assert (firebase.found, firebase.problem) == ("gcloud 1.2 (/gcloud)", "")
    assert firebase.targets == tuple(name for name in TARGETS if name.startswith("android-"))
    assert (devicefarm.problem, devicefarm.remedy) == ("boto3: is not installed", 'pip install "ortrim[devicefarm]"')
    assert devicefarm.time


def test_what_is_missing_is_listed_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(tool: Tool) -> InstalledTool:
        raise ToolError(
            "tool-missing", "is not installed", where=tool.name, hint=f"run: apt-get install {tool.package}"
        )

    def no_adb() -> None:
        raise ToolError("tool-missing", "is not installed", where="adb", hint="run: apt-get install adb")

    ready = {device.name for device in list_devices() if not device.name.startswith("adb:")}
    monkeypatch.setattr(kinds, "require", absent)
    monkeypatch.setattr(adb, "find_adb", no_adb)
    found = {device.name: device for device in list_devices()}
    assert set(found) == ready | {"adb:[SERIAL]"}
    assert found["qemu-user:cortex-a7"].problem == "qemu-arm-static is not installed"
    assert found["qemu-user:cortex-a7"].remedy == "apt-get install qemu-user-static"
    assert found["qemu-system:cortex-a53"].remedy == "apt-get install qemu-system-arm"
    assert found["adb:[SERIAL]"].remedy == "apt-get install adb"
    assert (found["host"].problem, found["macho"].problem) == ("", "")
    assert found["macho"].targets == ("ios-simulator-x86_64", "macos-x86_64")
    assert found["macho"].found == "this machine's processor; qemu-aarch64-static is not installed"
    assert found["macho"].remedy == "apt-get install qemu-user-static"


def test_all_machines_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def parts(emulation: Emulation, _announce: object) -> None:
        asked.append(emulation.debian)

    monkeypatch.setattr(root_file_systems, "machine_parts", parts)
    fetch_machines(lambda _: None)
    assert asked == [emulation.debian for emulation in EMULATIONS.values()]


@pytest.fixture(name="on_mac")
def fixture_mac(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Pretend a Mac with Apple's processor, Xcode 26 and a phone."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(host, "mac_facts", lambda: mac_host((DATA / "mac" / "sysctl-m1.txt").read_text()))
    answers = {
        '"simctl list -j"': says(DATA / "simctl" / "list-xcode26.json"),
        '*"list devices"*': f"cp '{DATA}/devicectl/list.json' \"$document\"",
    }
    fake = FakeXcrun(tmp_path / "mac", answers)
    monkeypatch.setattr(simctl, "find_xcrun", lambda _tool: fake.xcrun)
    monkeypatch.setattr(kinds, "find_xcrun", lambda _tool: fake.xcrun)
    return monkeypatch


@pytest.mark.usefixtures("on_mac")
def test_a_mac_lists_itself_its_simulators_and_its_phones() -> None:
    host, simulator, phone = named("host"), named("simctl:[NAME]"), named("devicectl:Jo's iPhone")
    assert host.targets == ("macos-arm64", "macos-x86_64", "maccatalyst-arm64")
    assert host.found == "Apple M1 (macos-x86_64 by Rosetta 2)"
    assert (simulator.targets, simulator.memory, simulator.time) == (("ios-simulator-arm64",), False, False)
    assert (simulator.found, simulator.problem) == ("iPhone 17 (iOS 26.1) and 3 more", "")
    assert (phone.targets, phone.found, phone.problem) == (("ios-arm64",), "iPhone 14 Pro · iOS 18.4.1", "")
    assert named("devicectl:Old iPhone").problem == "is known to this Mac, but not connected"


def test_a_mac_without_an_ios_or_a_phone_says_so(on_mac: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each line has what to do; one simulator could still be made of an iOS that is there."""
    empty = {
        '"simctl list -j"': """echo '{"devices": {}}'""",
        "*": """echo '{"result": {"devices": []}}' >"$document\"""",
    }
    fake = FakeXcrun(tmp_path / "empty", empty)
    on_mac.setattr(simctl, "find_xcrun", lambda _tool: fake.xcrun)
    on_mac.setattr(kinds, "find_xcrun", lambda _tool: fake.xcrun)
    assert "downloadPlatform" in named("simctl:[NAME]").remedy
    assert named("devicectl:[NAME]").problem == "this Mac sees no phone"


def test_elsewhere_apples_lines_say_that_xcode_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("simctl:[NAME]", "devicectl:[NAME]"):
        assert named(name).problem == "xcrun comes with Xcode, which runs only on a Mac"
    assert named("simctl:[NAME]").targets == ("ios-simulator-arm64", "ios-simulator-x86_64")
