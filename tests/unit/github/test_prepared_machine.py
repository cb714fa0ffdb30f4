"""Making a runner ready: what is there is not installed again, and what fails is reported."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aar_samples import fake_jdk
from fake_programs import FakePrograms, fake_programs
from ndk_layout import NDK_VERSION, lay_out_ndk
from ortrim.buildspec.targets import TARGETS
from ortrim.errors import ToolError, UsageError
from ortrim.github import runner_setup
from ortrim.github.runner_setup import install_emulators, install_layout_emulator, prefer_ndk, prepare_sdk, start_phone
from ortrim.platforms import ANDROID, APPLE
from ortrim.platforms.apple import platform as toolchains
from ortrim.platforms.apple.xcode import Xcode
from ortrim.sources.debian import mirrors_in
from program_files import write_program
from refusing import refused
from xcode_layout import lay_out_xcode

HOST = TARGETS["linux-x64"]
SDK_TOOLS = "cmdline-tools/latest/bin"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT", "ANDROID_NDK_HOME", "ANDROID_NDK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "os-release").write_text('NAME="Debian"\nID=debian\n')
    monkeypatch.setattr(runner_setup, "OS_RELEASE", tmp_path / "os-release")
    names = ("apt-get", "sudo", "chmod", "install", "start-stop-daemon")
    made = fake_programs(tmp_path / "programs", monkeypatch, *names)
    monkeypatch.setenv("PATH", str(made.folder / "bin"))
    return made


@pytest.fixture
def sdk(tmp_path: Path, programs: FakePrograms, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sdk"
    monkeypatch.setenv("ANDROID_HOME", str(folder))
    for tool in ("sdkmanager", "avdmanager"):
        programs.add(folder / SDK_TOOLS / tool)
    programs.add(folder / "platform-tools" / "adb")
    for name in ("GITHUB_ENV", "GITHUB_PATH"):
        (tmp_path / name).touch()
        monkeypatch.setenv(name, str(tmp_path / name))
    return folder


def test_the_emulator_of_a_foreign_target_is_installed(programs: FakePrograms) -> None:
    """The list of packages first, and only what is missing; the host's own targets need none."""
    targets = [TARGETS[name] for name in ("linux-x64", "linux-armhf", "linux-arm64-musl", "android-arm64-v8a")]
    install_emulators(targets, HOST, lambda _: None)
    assert [call[:2] for call in programs.calls] == [["apt-get", "update"], ["apt-get", "install"]]
    assert programs.calls[1][-1] == "qemu-user-static"


def test_an_emulator_that_is_there_is_not_installed(programs: FakePrograms) -> None:
    programs.add("qemu-arm-static")
    install_emulators([TARGETS["linux-armhf"], HOST], HOST, lambda _: None)
    assert programs.calls == []


def test_the_emulator_for_nchwc_layout_is_installed_where_it_works(programs: FakePrograms) -> None:
    """On Linux on x64 alone, and only if it is missing."""
    for host in (None, TARGETS["linux-arm64"], TARGETS["macos-x86_64"]):
        install_layout_emulator(host, lambda _: None)
    assert programs.calls == []
    install_layout_emulator(TARGETS["linux-x64"], lambda _: None)
    assert programs.calls[1][-1] == "qemu-user-static"
    programs.add("qemu-x86_64-static")
    install_layout_emulator(TARGETS["linux-x64"], lambda _: None)
    assert len(programs.calls) == 2


def test_a_machine_on_which_nothing_can_be_installed_plans_without_layouts(programs: FakePrograms) -> None:
    """Somebody's own runner without root: the models stay as they are, and that is said."""
    said: list[str] = []
    programs.answer("apt-get", code=100)
    install_layout_emulator(TARGETS["linux-x64"], said.append)
    assert said[1].startswith("models are not converted to NCHWc layout: ")


@pytest.mark.parametrize("release", ["ID=ubuntu\nID_LIKE=debian\n", ""])
def test_another_distribution_is_reported_where_debian_is(
    programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    """With Debian's keys, after everything else is installed, and never to install anything from there by itself."""
    (tmp_path / "os-release").write_text(release)
    programs.add("qemu-arm-static")
    monkeypatch.setenv(runner_setup.MIRROR, "https://mirror.invalid/debian")
    written: dict[str, str] = {}
    monkeypatch.setattr(runner_setup, "_install_file", lambda path, text: written.update({path.name: text}))
    install_emulators([TARGETS["linux-armhf"]], HOST, lambda _: None)
    assert [call[0] for call in programs.calls] == ["apt-get", "apt-get"]
    assert programs.calls[1][-1] == "debian-archive-keyring"
    (mirror,) = mirrors_in([(True, written["ortrim-debian.sources"])], frozenset({"trixie"}))
    assert mirror.uri == "https://mirror.invalid/debian"
    assert mirror.signed_by.endswith("debian-archive-keyring.gpg")
    assert "Pin-Priority: -1" in written["ortrim-debian"]


@pytest.mark.parametrize("address", ["", "mirror", "https://", "https://mirror.invalid/a\nTrusted: yes", "file:///x"])
def test_without_debians_address_nothing_is_installed(
    programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """No address is guessed; one that would add a line to apt's configuration is none."""
    (tmp_path / "os-release").write_text("ID=ubuntu\n")
    monkeypatch.setenv(runner_setup.MIRROR, address)
    error = refused(ToolError, install_emulators, [TARGETS["linux-armhf"]], HOST, lambda _: None)
    assert error.code == "no-debian-mirror"
    assert runner_setup.MIRROR in error.hint
    assert programs.calls == []


def test_a_file_is_installed_as_root(programs: FakePrograms, tmp_path: Path) -> None:
    """Readable for all, in folders that may have to be made."""
    runner_setup._install_file(tmp_path / "apt" / "x.sources", "Types: deb\n")
    (call,) = programs.calls
    assert call[:4] == ["install", "-D", "-m", "0644"]
    assert call[-1] == str(tmp_path / "apt" / "x.sources")


def test_another_distribution_needs_no_debian_for_its_own_targets(programs: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("ID=ubuntu\n")
    install_emulators([HOST, TARGETS["android-x86_64"]], HOST, lambda _: None)
    assert programs.calls == []


def test_who_is_not_root_asks_for_it(programs: FakePrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on GitHub's runners, where sudo asks nothing."""
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    install_emulators([TARGETS["linux-riscv64"]], HOST, lambda _: None)
    assert {call[0] for call in programs.calls} == {"sudo"}


def test_what_cannot_be_installed_is_reported(programs: FakePrograms) -> None:
    """In the words of what failed; nothing else is tried."""
    programs.answer("apt-get", stderr="E: Could not get lock\n", code=100)
    error = refused(ToolError, install_emulators, [TARGETS["linux-armhf"]], HOST, lambda _: None)
    assert error.code == "not-prepared"
    assert "Could not get lock" in error.why
    assert len(programs.calls) == 1


def test_a_missing_ndk_is_installed(programs: FakePrograms, sdk: Path) -> None:
    prepare_sdk(ANDROID, [NDK_VERSION], (), lambda _: None)
    assert programs.calls == [["sdkmanager", "--install", f"ndk;{NDK_VERSION}"]]


def test_an_ndk_that_is_there_is_not_installed(programs: FakePrograms, sdk: Path) -> None:
    """Wherever the environment says that it is."""
    lay_out_ndk(sdk / "ndk" / NDK_VERSION)
    prepare_sdk(ANDROID, [NDK_VERSION], (), lambda _: None)
    assert programs.calls == []


def test_without_an_sdk_nothing_can_be_installed(programs: FakePrograms) -> None:
    """The variable is named; Linux targets need none."""
    error = refused(ToolError, prepare_sdk, ANDROID, [NDK_VERSION], (), lambda _: None)
    assert (error.code, error.where) == ("sdk-missing", "ANDROID_HOME")
    prepare_sdk(ANDROID, [], (), lambda _: None)


def test_a_machine_without_a_jdk_makes_nothing_for_android(
    programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told before the work; Linux targets need none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ANDROID.require_package_tools(())
    assert refused(ToolError, ANDROID.require_package_tools, [TARGETS["android-x86_64"]]).code == "javac-missing"
    monkeypatch.setenv("JAVA_HOME", str(fake_jdk(tmp_path / "jdk" / "bin").javac.parents[1]))
    ANDROID.require_package_tools([TARGETS["android-x86_64"]])


def test_a_mac_is_looked_at_before_it_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = Xcode(folder=lay_out_xcode(tmp_path / "Xcode.app"), version="16.4")
    asked: list[str] = []

    def find(version: str) -> Xcode:
        asked.append(version)
        return found

    monkeypatch.setattr(toolchains, "find_xcode", find)
    prepare_sdk(APPLE, (), (), lambda _: None)
    assert asked == []
    prepare_sdk(APPLE, ("16.4",), [TARGETS["ios-arm64"], TARGETS["macos-x86_64"]], lambda _: None)
    assert asked == ["16.4"]
    (found.folder / "Platforms/iPhoneOS.platform/Developer/SDKs/iPhoneOS.sdk").rmdir()
    prepare_sdk(APPLE, ("16.4",), [TARGETS["macos-x86_64"]], lambda _: None)
    assert (
        refused(ToolError, prepare_sdk, APPLE, ("16.4",), [TARGETS["ios-arm64"]], lambda _: None).code
        == "xcode-sdk-missing"
    )


def test_later_steps_compile_with_the_ndk_that_was_asked_for(
    programs: FakePrograms, sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever the machine's own variable names."""
    other = lay_out_ndk(sdk / "ndk" / "26.3.11579264", "26.3.11579264")
    monkeypatch.setenv("ANDROID_NDK_HOME", str(other))
    wanted = lay_out_ndk(sdk / "ndk" / NDK_VERSION)
    prefer_ndk(NDK_VERSION)
    name, value, _ = (tmp_path / "GITHUB_ENV").read_text().splitlines()
    assert (name.partition("<<")[0], value) == ("ANDROID_NDK_HOME", str(wanted))


@pytest.fixture
def phone(programs: FakePrograms, sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setattr(runner_setup, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(runner_setup, "BOOT_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(runner_setup, "EMULATOR_LOG", tmp_path / "emulator.log")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    programs.answer("adb", "shell", stdout="\n", once="first")
    programs.answer("adb", "shell", stdout="1\n")
    return lambda level: start_phone(level, lambda _: None)


def test_a_phone_is_started_and_waited_for(
    phone: Callable[[int], None], programs: FakePrograms, sdk: Path, tmp_path: Path
) -> None:
    """It goes on running by itself, and is ready when it says so, not when it can be reached; later steps find adb."""
    phone(29)
    called = [call[0] for call in programs.calls]
    assert called == ["chmod", "sdkmanager", "avdmanager", "start-stop-daemon", "adb", "adb", "adb"]
    start = programs.calls[3]
    assert start[:4] == ["start-stop-daemon", "--start", "--background", "--output"]
    assert start[4:7] == [str(tmp_path / "emulator.log"), "--startas", str(sdk / "emulator" / "emulator")]
    assert (tmp_path / "GITHUB_PATH").read_text() == f"{sdk / 'platform-tools'}\n"


@pytest.mark.parametrize(("level", "flavour"), [(24, "default"), (29, "default"), (35, "google_apis_ps16k")])
def test_a_level_has_its_image(phone: Callable[[int], None], programs: FakePrograms, level: int, flavour: str) -> None:
    """The newest has pages of 16 KB."""
    phone(level)
    image = f"system-images;android-{level};{flavour};x86_64"
    assert [image in call for call in programs.calls[1:3]] == [True, True]


def test_no_other_level_is_guessed(phone: Callable[[int], None], programs: FakePrograms) -> None:
    error = refused(UsageError, phone, 30)
    assert error.code == "no-such-phone"
    assert "24, 29, 35" in error.hint
    assert programs.calls == []


def test_the_phone_is_made_where_the_emulator_looks_for_it(
    phone: Callable[[int], None], programs: FakePrograms, sdk: Path, tmp_path: Path
) -> None:
    """By itself, avdmanager would follow XDG_CONFIG_HOME."""
    said = tmp_path / "said"
    for program in (sdk / SDK_TOOLS / "avdmanager", programs.folder / "bin" / "start-stop-daemon"):
        program.write_text(f'#!/bin/sh\necho "$ANDROID_AVD_HOME" >>"{said}"\n')
    phone(24)
    folder = tmp_path / "home" / ".android" / "avd"
    assert said.read_text() == f"{folder}\n{folder}\n"
    assert folder.is_dir()


def test_licences_are_accepted(phone: Callable[[int], None], programs: FakePrograms, sdk: Path, tmp_path: Path) -> None:
    """Asking for them, sdkmanager takes silence for a no."""
    write_program(programs.folder / "bin" / "yes", "while echo y; do :; done 2>/dev/null")
    program = sdk / SDK_TOOLS / "sdkmanager"
    program.write_text(f'#!/bin/sh\nread -r answer\necho "$answer" >"{tmp_path}/answer"\n')
    phone(24)
    assert (tmp_path / "answer").read_text() == "y\n"


def test_a_machine_whose_kvm_may_be_used_is_left_alone(
    phone: Callable[[int], None], programs: FakePrograms, tmp_path: Path
) -> None:
    (tmp_path / "kvm").touch()
    phone(29)
    assert "chmod" not in [call[0] for call in programs.calls]


def test_a_phone_that_does_not_start_is_given_up(
    phone: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_setup, "BOOT_SECONDS", -1)
    (tmp_path / "emulator.log").write_text("ERROR | out of memory\n")
    error = refused(ToolError, phone, 29)
    assert (error.code, error.why) == ("emulator-not-started", "ERROR | out of memory")


@pytest.mark.parametrize(
    ("script", "limit"),
    [("exec /bin/sleep 60", "REACHED_SECONDS"), ('[ "$1" = shell ] && exec /bin/sleep 60', "ANSWER_SECONDS")],
)
def test_an_emulator_that_does_not_answer_says_why(
    phone: Callable[[int], None], sdk: Path, monkeypatch: pytest.MonkeyPatch, script: str, limit: str
) -> None:
    """Without a limit adb would wait for ever, at once or later; the emulator's own last words are the reason."""
    (sdk / "platform-tools" / "adb").write_text(f"#!/bin/sh\n{script}\nexit 0\n")
    monkeypatch.setattr(runner_setup, limit, 0.2)
    runner_setup.EMULATOR_LOG.write_text("INFO | Android emulator\nFATAL | Unknown AVD name [ortrim]\n")
    error = refused(ToolError, phone, 29)
    assert error.code == "emulator-not-started"
    assert "Unknown AVD name" in error.why
