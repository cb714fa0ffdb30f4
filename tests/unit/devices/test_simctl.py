"""Simulators, with a stand-in for `xcrun` that replays recorded answers."""

import dataclasses
import json
import os
import signal
import time
from pathlib import Path

import pytest

from device_samples import sample_request
from failing_runs import run_refused
from fake_xcrun import FakeXcrun, complains, simulators
from ortrim.base.tools import find_xcrun
from ortrim.devices import host as mac_processes
from ortrim.devices import simctl
from ortrim.devices.simctl import SimulatorDevice, open_simulator
from ortrim.errors import Diagnostic, ExitCode, ToolError
from ortrim.parity import measurements
from program_files import write_program
from refusing import refused

DATA = Path(__file__).parent / "data" / "simctl"
NEW = DATA / "list-xcode26.json"
UDID = "DFF39A57-0000-4F2B-A59D-E23CCCCDE33E"
MAC = measurements.HostFacts(
    system="Darwin",
    machine="arm64",
    cpu="Apple M1",
    cores=8,
    memory_bytes=1,
    model="Macmini9,1",
    os_version="macOS 15.5",
)


def opened(mac: FakeXcrun, name: str = "iPhone 17") -> SimulatorDevice:
    return open_simulator(name, "arm64", xcrun=mac.xcrun)


def test_a_run_comes_back_whole_and_the_simulator_is_shut_down(tmp_path: Path) -> None:
    """The runner is spawned with this machine's own paths, and what was booted for it is not left running."""
    mac = simulators(tmp_path / "mac", NEW)
    request = dataclasses.replace(sample_request(tmp_path), outputs=tmp_path / "outputs")
    (tmp_path / "outputs").mkdir()
    told: list[str] = []
    device = open_simulator("", "arm64", xcrun=mac.xcrun, announce=told.append)
    assert device.run(request).cases[0].name == "only"
    device.close()
    device.close()
    assert (tmp_path / "outputs" / "only" / "output_000.npy").read_bytes() == b"the input"
    assert (device.name, told) == ("simctl:iPhone 17", ["booting iPhone 17 (iOS 26.1)"])
    listed, boot, spawn, shutdown = mac.calls
    assert (listed, boot) == ("simctl list -j", f"simctl bootstatus {UDID} -b")
    assert spawn.startswith(f"simctl spawn {UDID} {tmp_path}/runner --library {tmp_path}/libonnxruntime.so ")
    assert shutdown == f"simctl shutdown {UDID}"


def test_relative_paths_hold_in_the_simulators_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = sample_request(Path("below"))
    mac = simulators(tmp_path / "mac", NEW, spawn='cd /; shift 3; exec "$@"')
    assert opened(mac).run(request).status == "ok"


def test_a_simulator_that_runs_already_is_left_running(tmp_path: Path) -> None:
    listing = tmp_path / "list.json"
    listing.write_text(NEW.read_text().replace("Shutdown", "Booted"))
    mac = simulators(tmp_path / "mac", listing)
    opened(mac).close()
    assert [call.split()[1] for call in mac.calls] == ["list", "bootstatus"]


def empty_list(folder: Path) -> Path:
    document = json.loads(NEW.read_text(encoding="utf-8"))
    (folder / "empty.json").write_text(json.dumps({**document, "devices": {}}))
    return folder / "empty.json"


def test_a_simulator_is_made_where_there_is_none_and_deleted(tmp_path: Path) -> None:
    """Under a name of our own, of the newest iPhone and iOS."""
    mac = simulators(tmp_path / "mac", empty_list(tmp_path))
    told: list[str] = []
    device = open_simulator("", "arm64", xcrun=mac.xcrun, announce=told.append)
    device.close()
    _, create, boot, shutdown, delete = mac.calls
    kinds = "com.apple.CoreSimulator.SimDeviceType.iPhone-17-Pro com.apple.CoreSimulator.SimRuntime.iOS-26-1"
    assert create.startswith("simctl create ortrim-")
    assert create.endswith(kinds)
    made = "0F0F0F0F-0000-4000-8000-000000000000"
    assert (boot, shutdown, delete) == (
        f"simctl bootstatus {made} -b", f"simctl shutdown {made}", f"simctl delete {made}"
    )  # fmt: skip
    assert told == ["making a simulator: iPhone 17 Pro", "booting iPhone 17 Pro (iOS 26.1)"]


@pytest.mark.parametrize(
    ("script", "reference"),
    [
        ("echo 'Child process terminated with signal 4: Illegal instruction' >&2; exit 132", "illegal-instruction"),
        ("echo 'Child process terminated with signal 11: Segmentation fault' >&2; exit 139", "runner-crashed"),
        ("exit 134", "runner-crashed"),
        ("exit 4", "model-refused"),
        ("exit 7", "output-unwritable"),
        ("echo garbage", "runner-garbage"),
    ],
)
def test_runners_that_end_badly(tmp_path: Path, script: str, reference: str) -> None:
    device = opened(simulators(tmp_path / "mac", NEW))
    assert run_refused(device, sample_request(tmp_path, script)).code == reference


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("device-unknown", "device-lost"),
        ("device-shut-down", "device-lost"),
        ("spawn-absent", "runner-not-startable"),
    ],
)
def test_simctl_itself_failing(tmp_path: Path, answer: str, reference: str) -> None:
    """What simctl says of itself is told apart from what the runner ends with."""
    device = opened(simulators(tmp_path / "mac", NEW, spawn=complains(DATA / f"{answer}.txt")))
    error = run_refused(device, sample_request(tmp_path))
    assert (error.code, error.where) == (reference, "simctl:iPhone 17")


def test_a_report_counts_more_than_simctls_words(tmp_path: Path) -> None:
    """A runner that failed in an orderly way ended by itself, whatever else was printed."""
    said = '{"schema":"ortrim-runner/1","status":"error","stage":"load","exit_code":4,"message":"no such operator"}'
    script = f"echo '{said}' >\"$json\"; echo 'Invalid device or so' >&2; exit 4"
    error = run_refused(opened(simulators(tmp_path / "mac", NEW)), sample_request(tmp_path, script))
    assert (error.code, error.why) == ("model-refused", "no such operator")


def test_a_runner_without_an_end_is_killed_with_all_that_is_its(tmp_path: Path) -> None:
    """What was spawned is no child of simctl's: it is found by its command line, which names a file of ours alone."""
    spawn = f"shift 3; setsid \"$@\" & echo $! >'{tmp_path}/pid'; wait"
    request = sample_request(tmp_path, f"mkfifo {tmp_path}/never; read line <{tmp_path}/never", seconds=0.5)
    error = run_refused(opened(simulators(tmp_path / "mac", NEW, spawn=spawn)), request)
    assert error.code == "runner-timeout"
    assert gone(int((tmp_path / "pid").read_text()))


def gone(number: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2][0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    os.kill(number, signal.SIGKILL)
    return False


def test_ctrl_c_ends_the_runner_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened(simulators(tmp_path / "mac", NEW))
    killed: list[str] = []

    def interrupted(*_words: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simctl, "kill_with", killed.append)
    monkeypatch.setattr(type(device._xcrun), "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        device.run(sample_request(tmp_path))
    assert len(killed) == 1
    assert killed[0].endswith(".json")


def unopened(mac: FakeXcrun, name: str = "") -> Diagnostic:
    error = refused(Diagnostic, opened, mac, name)
    assert error.exit_code in {ExitCode.VERIFY, ExitCode.USAGE}
    return error


def test_a_simulator_that_does_not_boot_is_shut_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether simctl says so or never comes back."""
    mac = simulators(tmp_path / "mac", NEW, boot=complains(DATA / "boot-failed.txt"))
    error = unopened(mac)
    assert (error.code, error.where) == ("simulator-trouble", "simctl:iPhone 17")
    assert "launchd_sim may have crashed" in error.why
    assert mac.calls[-1] == f"simctl shutdown {UDID}"
    monkeypatch.setattr(simctl, "BOOT_SECONDS", 0.3)
    slow = simulators(tmp_path / "slow", NEW, boot="sleep 600")
    assert "did not end" in unopened(slow).why
    assert slow.calls[-1] == f"simctl shutdown {UDID}"


def test_ctrl_c_while_it_boots_leaves_none_behind(tmp_path: Path) -> None:
    """What was made for this is shut down and deleted, and the interruption comes through."""
    mac = simulators(tmp_path / "mac", empty_list(tmp_path))

    def told(text: str) -> None:
        if text.startswith("booting"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_simulator("", "arm64", xcrun=mac.xcrun, announce=told)
    assert [call.split()[1] for call in mac.calls] == ["list", "create", "shutdown", "delete"]


def test_what_cannot_be_made(tmp_path: Path) -> None:
    mac = simulators(tmp_path / "mac", empty_list(tmp_path), create="echo '--help me'")
    assert unopened(mac).code == "simulator-trouble"
    assert [call.split()[1] for call in mac.calls] == ["list", "create"]


def test_the_numbers_are_marked_as_a_macs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts name the Mac beside the phone that it simulates, and nothing of it counts as a phone's."""
    monkeypatch.setattr(simctl, "mac_facts", lambda: MAC)
    facts = opened(simulators(tmp_path / "mac", NEW)).facts()
    assert (facts.kind, facts.memory_meaningful, facts.time_meaningful) == ("simulator", False, False)
    assert facts.model == "iPhone 17, simulated on Macmini9,1"
    assert facts.cpu == "Apple M1 of the Mac (macOS 15.5)"
    assert facts.os_version == "iOS 26.1"


def test_programs_are_found_by_a_word_of_theirs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others keep running, whatever their command lines look like."""
    killed: list[int] = []
    word = "/x/abc.json"
    listed = "    1 /sbin/launchd\n  234 /x/runner --json /x/abc.json\n 9999999999 /x/abc.json\nnonsense /x/abc.json\n"
    done = type("Done", (), {"stdout": listed})
    monkeypatch.setattr(mac_processes, "run", lambda *_words, **_options: done)
    monkeypatch.setattr(os, "kill", lambda number, _signal: killed.append(number))
    mac_processes.kill_with(word)
    assert killed == [234]


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    write_program(folder / "xcrun", script)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_tool_is_found_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C's locale, with the user's own Xcode, and without variables that would reach what runs in a simulator."""
    installed(tmp_path, monkeypatch, 'echo "$@"; echo "$LC_ALL $DEVELOPER_DIR $SIMCTL_CHILD_X" >&2')
    monkeypatch.setenv("SIMCTL_CHILD_X", "1")
    xcrun = find_xcrun("simctl", {**os.environ, "DEVELOPER_DIR": "/X"})
    done = xcrun.run("simctl", "list", timeout_seconds=10)
    assert (done.stdout, done.stderr) == ("simctl list\n", "C /X \n")


@pytest.mark.parametrize(
    ("said", "reference", "remedy"),
    [
        (
            'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH',
            "xcode-missing",
            "xcode-select",
        ),
        (
            "xcrun: error: invalid active developer path (/Library/Developer/CommandLineTools)",
            "xcode-missing",
            "App Store",
        ),
        ("You have not agreed to the Xcode license agreements.", "xcode-licence", "license accept"),
        ("Run 'xcodebuild -runFirstLaunch' to install them.", "xcode-not-ready", "-runFirstLaunch"),
        ("", "xcode-missing", "xcode-select"),
    ],
)
def test_an_xcode_that_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reference: str, remedy: str
) -> None:
    installed(tmp_path, monkeypatch, f'echo "{said}" >&2; exit 72'.replace('"simctl"', "'simctl'"))
    error = refused(ToolError, find_xcrun, "simctl")
    assert (error.code, error.exit_code) == (reference, ExitCode.TOOL)
    assert remedy in error.hint
    assert error.where == "xcrun"


def test_a_machine_without_xcrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(ToolError, find_xcrun, "devicectl")
    assert (error.code, error.where) == ("tool-missing", "xcrun")
    assert "Mac" in error.what


def test_a_list_that_does_not_come(tmp_path: Path) -> None:
    """Simctl's own words are passed on."""
    mac = FakeXcrun(tmp_path / "mac", {"*": "echo 'CoreSimulatorService connection became invalid.' >&2; exit 1"})
    error = unopened(mac)
    assert (error.code, error.hint) == ("simulator-trouble", "restart the Mac")
