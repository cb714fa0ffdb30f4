import platform
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.buildspec.targets import TARGETS, Target
from ortrim.devices import kinds as named
from ortrim.devices.kinds import DeviceName
from ortrim.devices.ssh import ssh_destination
from ortrim.errors import ExitCode, UsageError
from ortrim.platforms import platform_of
from ortrim.platforms.apple.platform import translated_here
from refusing import refused

ARM64 = TARGETS["linux-arm64"]
X64 = TARGETS["linux-x64"]


def read_name(target: Target, name: str, cpu: str = "") -> DeviceName:
    return named.read_name(platform_of(target), target, name, cpu)


def read_names(target: Target, names: tuple[str, ...]) -> tuple[DeviceName, ...]:
    return named.read_names(platform_of(target), target, names)


def default_devices(target: Target) -> tuple[str, ...]:
    return platform_of(target).default_devices(target)


def runs_here(target: Target) -> bool:
    return platform_of(target).runs_here(target)


def kinds_for(target: Target) -> str:
    return platform_of(target).kinds_for(target)


def pretend(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "Linux", "x86_64")


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
        ("linux-x64", "adb", "adb"),
        ("linux-x64", "adb:", "adb"),
        ("linux-x64", "adb:127.0.0.1:5555", "adb:127.0.0.1:5555"),
        ("linux-x64", "adb:R5@x", "adb:R5@x"),
        ("linux-x64", "ssh:pi@board", "ssh:pi@board"),
        ("linux-x64", "ssh:pi@board:22", "ssh:ssh://pi@board:22"),
        ("android-arm64-v8a", "firebase:MediumPhone.arm-34", "firebase:MediumPhone.arm-34"),
        ("android-arm64-v8a", "devicefarm:App/Top Devices", "devicefarm:App/Top Devices"),
    ],
)
def test_names_are_completed(target: str, asked: str, name: str) -> None:
    """Each form of a name gives the one that the device itself has, and reading that gives it again."""
    found = read_name(TARGETS[target], asked)
    assert str(found) == name
    assert read_name(TARGETS[target], name) == found


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
        ("android-arm64-v8a", "firebase", "unknown-device", "firebase:MODEL-VERSION"),
        ("android-arm64-v8a", "qemu-user", "wrong-device", "adb"),
        ("android-arm64-v8a", "browserstack:Google Pixel 8-14.0", "unknown-device", "devicefarm:PROJECT/POOL"),
        ("linux-arm64", "devicefarm:App/Top Devices", "wrong-device", "qemu-user"),
        ("linux-arm64", "host", "wrong-device", "qemu-user"),
        ("linux-x64", "qemu-user", "wrong-device", "host"),
        ("linux-x64", "qemu-system", "wrong-device", "host"),
        ("linux-x64", "macho", "wrong-device", "host"),
        ("macos-arm64", "macho:max", "unknown-device", "macho"),
        ("android-arm64-v8a", "host", "wrong-device", "adb, or a device farm's: firebase:"),
        ("linux-arm64", "ssh", "bad-destination", "user@host"),
        ("linux-arm64", "ssh:-oProxyCommand=x", "bad-destination", "user@host"),
        ("linux-arm64", "ssh:a b", "bad-destination", "user@host"),
    ],
)
def test_names_that_lead_nowhere(target: str, name: str, reference: str, hint: str) -> None:
    """A name that is not one, or not for this target, is refused with what there is."""
    error = refused(UsageError, read_name, TARGETS[target], name)
    assert (error.code, error.exit_code) == (reference, ExitCode.USAGE)
    assert hint in error.hint
    assert reference == "bad-destination" or "--device" in error.where


@pytest.mark.parametrize(
    ("target", "cpu", "asked", "name"),
    [
        ("linux-arm64", "cortex-a76", "qemu-user", "qemu-user:cortex-a76"),
        ("linux-arm64", "cortex-a78", "qemu-system@128", "qemu-system:cortex-a76@128"),
        ("linux-arm64", "cortex-a72", "qemu-system:cortex-a53", "qemu-system:cortex-a53"),
        ("linux-armhf", "cortex-a53", "qemu-user", "qemu-user:max"),
        ("linux-armhf", "cortex-a53", "qemu-system", "qemu-system:cortex-a53"),
        ("linux-riscv64", "spacemit-x60", "adb", "adb"),
    ],
)
def test_names_are_completed_to_what_has_the_floor(target: str, cpu: str, asked: str, name: str) -> None:
    """The first processor that has all instructions of the buildspec's least one; machines elsewhere are taken."""
    assert str(read_name(TARGETS[target], asked, cpu)) == name


@pytest.mark.parametrize(
    ("target", "cpu", "name", "hint"),
    [
        ("linux-arm64", "cortex-a76", "qemu-user:cortex-a53", "there are: qemu-user:cortex-a76"),
        ("linux-arm64", "cortex-a55", "qemu-system:cortex-a72@64", "there are: qemu-system:cortex-a76"),
        ("linux-armhf", "cortex-a53", "qemu-user:cortex-a15", "there are: qemu-user:max"),
        ("linux-riscv64", "spacemit-x60", "qemu-user", "choose adb or ssh:"),
        ("linux-riscv64", "spacemit-x60", "qemu-user:rv64", "choose adb or ssh:"),
    ],
)
def test_a_processor_below_the_floor(target: str, cpu: str, name: str, hint: str) -> None:
    """It would end a correct library by an illegal instruction."""
    error = refused(UsageError, read_name, TARGETS[target], name, cpu)
    assert (error.code, error.exit_code) == ("wrong-device", ExitCode.USAGE)
    assert cpu in error.why
    assert error.hint.startswith(hint)


@pytest.mark.parametrize("target", TARGETS)
def test_hints_name_only_what_runs_the_target(target: str) -> None:
    """Whatever a hint offers is a device for that target, and nothing that it leaves out is."""
    said = kinds_for(TARGETS[target])
    examples = {"host": "host", "qemu-user": "qemu-user", "qemu-system": "qemu-system", "adb": "adb", "ssh": "ssh:a"}
    for kind, example in {**examples, "firebase": "firebase:a-1"}.items():
        if kind in said:
            read_name(TARGETS[target], example)
        elif kind != "ssh":  # a phone may run a server
            with pytest.raises(UsageError):
                read_name(TARGETS[target], example)


@given(st.text(max_size=40))
def test_no_name_is_more_than_a_usage_error(name: str) -> None:
    """Whatever is written, the answer is a device whose name leads back to it, or a diagnostic."""
    try:
        found = read_name(ARM64, name)
    except UsageError:
        return
    assert read_name(ARM64, str(found)) == found


@pytest.mark.parametrize(
    "names",
    [
        ("qemu-user", "qemu-user:cortex-a53"),
        ("adb", "qemu-user", "adb:"),
        ("qemu-system@256", "qemu-system"),
        ("ssh:pi@a", "ssh:pi@a"),
    ],
)
def test_one_device_twice(names: tuple[str, ...]) -> None:
    error = refused(UsageError, read_names, ARM64, names)
    assert (error.code, error.where) == ("device-twice", f"--device {names[-1]}")


def test_several_names() -> None:
    asked = ("qemu-user", "qemu-system:cortex-a76", "qemu-system:cortex-a53@96")
    names = ["qemu-user:cortex-a53", "qemu-system:cortex-a76", "qemu-system:cortex-a53@96"]
    assert list(map(str, read_names(ARM64, asked))) == names
    assert read_names(ARM64, ()) == ()


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
        (
            "linux-arm64",
            ("qemu-user:cortex-a53", "qemu-user:cortex-a76", "qemu-system:cortex-a53", "qemu-system:cortex-a76"),
        ),
        ("linux-armhf", ("qemu-user:cortex-a7", "qemu-system:cortex-a53")),
        ("linux-riscv64", ("qemu-user:rv64",)),
    ],
)
def test_devices_that_nobody_named(target: str, names: tuple[str, ...]) -> None:
    """The host when it runs the target, emulators else, and each of these names is one."""
    assert default_devices(TARGETS[target]) == names
    assert len(read_names(TARGETS[target], names)) == len(names)


def test_a_target_that_nothing_here_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an ARM machine there is no device for x86-64."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert default_devices(X64) == ()
    assert default_devices(ARM64) == ("host",)


def test_only_linux_runs_here() -> None:
    """Another system's programs do not, whatever the processor, nor in the emulators of Linux machines."""
    others = [target for target in TARGETS.values() if not target.identifier.startswith("linux-")]
    assert not any(map(runs_here, others))
    assert not {device.partition(":")[0] for target in others for device in default_devices(target)} - {"macho"}


@pytest.mark.parametrize(
    ("machine", "target", "defaults"),
    [
        ("arm64", "macos-arm64", ("host",)),
        ("arm64", "macos-x86_64", ("host",)),
        ("arm64", "maccatalyst-arm64", ("host",)),
        ("arm64", "ios-simulator-arm64", ("simctl",)),
        ("arm64", "ios-simulator-x86_64", ()),
        ("arm64", "ios-arm64", ()),
        ("arm64", "android-arm64-v8a", ()),
        ("x86_64", "macos-arm64", ()),
        ("x86_64", "macos-x86_64", ("host",)),
        ("x86_64", "ios-simulator-x86_64", ("simctl",)),
    ],
)
def test_defaults_on_a_mac(
    monkeypatch: pytest.MonkeyPatch, machine: str, target: str, defaults: tuple[str, ...]
) -> None:
    """A Mac runs its own programs and simulators for its own processor; those with Apple's also translate Intel's."""
    pretend(monkeypatch, "Darwin", machine)
    assert default_devices(TARGETS[target]) == defaults
    assert translated_here(TARGETS[target]) is ((machine, target) == ("arm64", "macos-x86_64"))


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith(("ios", "mac"))])
def test_of_apples_programs_the_code_alone_runs_elsewhere(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """On Linux, on the processor that it is for or an emulated one; nowhere on Windows."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    pretend(monkeypatch, "Linux", "x86_64")
    assert default_devices(TARGETS[target]) == ("macho",)
    pretend(monkeypatch, "Windows", "AMD64")
    assert default_devices(TARGETS[target]) == ()


def test_a_mac_is_no_linux_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever processor it has."""
    pretend(monkeypatch, "Darwin", "x86_64")
    assert not runs_here(X64)
    assert default_devices(ARM64)[0].startswith("qemu-user")


@pytest.mark.parametrize(
    ("target", "asked", "detail"),
    [
        ("ios-simulator-arm64", "simctl", ""),
        ("ios-simulator-arm64", "simctl:iPhone 17 Pro", "iPhone 17 Pro"),
        ("ios-arm64", "devicectl", ""),
        ("ios-arm64", "devicectl:Jo's iPhone", "Jo's iPhone"),
    ],
)
def test_names_of_apples_devices(monkeypatch: pytest.MonkeyPatch, target: str, asked: str, detail: str) -> None:
    """A simulator or a phone, by a name that may have anything in it."""
    pretend(monkeypatch, "Darwin", "arm64")
    name = read_name(TARGETS[target], asked)
    assert (name.detail, str(name), name.row.cores) == (detail, asked, False)


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("ios-arm64", "simctl"),
        ("ios-arm64", "host"),
        ("ios-arm64", "adb"),
        ("ios-arm64", "firebase:iphone14pro-16.6"),
        ("ios-simulator-arm64", "devicectl"),
        ("ios-simulator-x86_64", "simctl"),
        ("macos-arm64", "simctl"),
        ("macos-arm64", "ssh:mac"),
        ("linux-arm64", "simctl"),
        ("linux-arm64", "devicectl"),
        ("android-arm64-v8a", "devicectl"),
    ],
)
def test_devices_that_do_not_run_a_target_on_a_mac(monkeypatch: pytest.MonkeyPatch, target: str, asked: str) -> None:
    """The hint names what does."""
    pretend(monkeypatch, "Darwin", "arm64")
    error = refused(UsageError, read_name, TARGETS[target], asked)
    assert error.code == "wrong-device"
    assert kinds_for(TARGETS[target]) in error.hint
