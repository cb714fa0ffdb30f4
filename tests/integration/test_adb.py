"""Devices behind adb, for real: Debian's adbd in namespaces of its own, and whatever can go wrong on a cable."""

import platform
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from adb_machine import AdbMachine, adb_machine, until
from device_requests import real_request, script_request
from failing_runs import run_refused
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.devices import adb
from ortrim.devices.adb import AdbTransport, open_adb
from ortrim.devices.host import Host
from ortrim.devices.kinds import DeviceName
from ortrim.devices.remote import CooledDevice
from ortrim.errors import UsageError, VerifyError
from ortrim.planning.devices import open_device
from ortrim.verify.reports import NOT_FOR_DEVICE
from ortrim.verify.target import at_once
from sample_plans import sample_plan

pytestmark = [pytest.mark.network, pytest.mark.needs("adb", "apt-get", "dpkg-deb", "unshare")]

OTHER_FOLDER: Final = "/tmp"  # noqa: S108 - the device's
RECORDED: Final = Path(__file__).parents[1] / "unit" / "devices" / "data" / "adb"


def shim(name: str) -> str:
    return f"#!/system/bin/sh\ncat <<'END'\n{(RECORDED / name).read_text()}END\n"


@pytest.fixture(scope="module")
def phone() -> Iterator[AdbMachine]:
    dumpsys = "#!/system/bin/sh\nexec $1-service\n"
    shims = {
        "getprop": shim("getprop-phone.txt"),
        "dumpsys": dumpsys,
        "thermalservice-service": shim("thermalservice-cool.txt"),
        "battery-service": shim("battery-cool.txt"),
    }
    with adb_machine(shims, devices=2) as machine:
        yield machine


@pytest.fixture
def plain() -> Iterator[AdbMachine]:
    """Run a machine that is ended in the test, with two devices that have no Android around them."""
    with adb_machine({}, devices=2, megabytes=4) as machine:
        yield machine


def opened(machine: AdbMachine, index: int = 0, **options: object) -> CooledDevice:
    return open_adb(machine.serials[index], client=machine.client, **options)  # type: ignore[arg-type]


def left_behind(machine: AdbMachine) -> str:
    """Return what lies on the machine where ortrim works."""
    return machine.inside("find", "/data/local/tmp", "/locked", "-mindepth", "1").stdout


@pytest.mark.needs("gcc")
def test_the_real_runner_runs(phone: AdbMachine, tmp_path: Path) -> None:
    """The runner, the official library and a model go to the device, run there, and give the host's outputs."""
    request = real_request(tmp_path)
    Host().run(request)
    assert request.outputs is not None
    files = sorted(path.relative_to(request.outputs) for path in request.outputs.rglob("*.npy"))
    expected = {name: np.load(request.outputs / name) for name in files}
    for name in files:
        (request.outputs / name).unlink()
    with closing(opened(phone)) as device:
        output = device.run(request)
        assert [case.name for case in output.cases] == ["one", "many"]
        assert output.cases[1].runs == 5
        assert 10**6 < output.memory.peak_rss_bytes < 10**9
    assert len(files) == 2
    for name, array in expected.items():
        np.testing.assert_array_equal(np.load(request.outputs / name), array)
    assert left_behind(phone) == ""


def test_only_what_changed_is_pushed(phone: AdbMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run sends nothing; another model alone is sent, and nothing but the model."""
    sent: list[str] = []
    push = AdbTransport.push

    def counted(self: AdbTransport, files: dict[str, Path], folder: str) -> None:
        sent.extend(sorted(path.name for path in files.values()))
        push(self, files, folder)

    monkeypatch.setattr(AdbTransport, "push", counted)
    request = script_request(tmp_path, "exit 4")
    with closing(opened(phone)) as device:
        run_refused(device, request)
        run_refused(device, request)
        assert sent == ["libonnxruntime.so", "model.ort", "runner"]
        request.model.write_bytes(b"another")
        run_refused(device, request)
    assert sent == ["libonnxruntime.so", "model.ort", "runner", "model.ort"]


def test_a_phone_describes_itself(phone: AdbMachine) -> None:
    """Model, SoC, API level, heat and page size come from the device's own programs."""
    with closing(opened(phone)) as device:
        facts = device.facts()
    assert (facts.model, facts.soc, facts.api_level) == ("Example Phone 5 Pro", "QTI SM8550", 34)
    assert (facts.thermal_before, facts.thermal_after, facts.battery_celsius) == (0, 0, 27.4)
    assert facts.page_bytes in {4096, 16384, 65536}
    assert (facts.kind, facts.time_meaningful) == ("physical", True)


def test_a_plain_linux_does_without(plain: AdbMachine) -> None:
    """Without getprop and dumpsys the facts of Android are not known, and those of Linux are."""
    with closing(opened(plain)) as device:
        facts = device.facts()
    assert (facts.model, facts.api_level, facts.thermal_after, facts.battery_celsius) == ("", None, None, None)
    assert facts.system == "Linux"
    assert facts.memory_bytes > 10**8
    assert facts.cores >= 1


def test_a_hot_phone_is_marked(phone: AdbMachine, tmp_path: Path) -> None:
    """A device that goes on throttling is waited for once, and then its times are said to mean nothing."""
    device = opened(phone)
    naps: list[float] = []
    device._sleep = naps.append
    service = "/shims/thermalservice-service"
    hot = f"cp {service} /tmp/cool && sed 's/Status: 0/Status: 2/' /tmp/cool > {service}"
    assert phone.shell(hot).returncode == 0
    try:
        with closing(device):
            run_refused(device, script_request(tmp_path, "exit 4"))
            assert (sum(naps), device.time_meaningful) == (180, False)
            run_refused(device, script_request(tmp_path, "exit 4"))
            assert sum(naps) == 180
            assert (device.facts().thermal_after, device.facts().time_meaningful) == (2, False)
    finally:
        phone.shell(f"cat /tmp/cool > {service}; rm /tmp/cool")


def test_words_arrive_as_they_are(phone: AdbMachine) -> None:
    """Nothing in a word means anything to the device's shell."""
    transport = AdbTransport(phone.client, phone.serials[0])
    words = ("a b", "$HOME", "`id`", "'", '"', "\\n", "*", "", ";true", "-n", "ü\n\n", "@@0 0 0", "!")
    done = transport.execute(("printf", "%s\\n|", *words), timeout_seconds=10)
    assert done.stdout == "".join(f"{word}\n|" for word in words)


@pytest.mark.parametrize("code", [0, 1, 37, 255])
def test_exit_codes_arrive(phone: AdbMachine, code: int) -> None:
    transport = AdbTransport(phone.client, phone.serials[0])
    done = transport.execute(("sh", "-c", f"echo out; echo err >&2; exit {code}"), timeout_seconds=10)
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")


def test_the_runner_is_pinned(phone: AdbMachine, tmp_path: Path) -> None:
    """On chosen cores, the runner may run on these alone."""
    with closing(opened(phone, cores=(0,))) as device:
        error = run_refused(device, script_request(tmp_path, "grep Cpus_allowed_list /proc/self/status >&2; exit 4"))
        assert device.facts().pinned_cores == (0,)
    assert error.why.split() == ["Cpus_allowed_list:", "0"]


def job_of(target: str, api: int) -> BuildJob:
    return sample_plan(target, android=AndroidSpec(api=api)).targets[0].job


@pytest.mark.parametrize("cores", [(777,), (0, 777)])
def test_cores_that_are_not_there(phone: AdbMachine, cores: tuple[int, ...]) -> None:
    """Pinning that cannot work, or only in part, is found out before anything runs."""
    with pytest.raises(UsageError) as caught:
        opened(phone, cores=cores)
    assert caught.value.code == "cannot-pin"


@pytest.mark.parametrize(
    ("target", "api", "said"),
    [
        ("android-arm64-v8a", 34, ""),
        ("android-armeabi-v7a", 24, ""),
        ("android-x86_64", 24, "is for x86_64, and the device runs arm64-v8a, armeabi-v7a, armeabi"),
        ("android-x86", 24, "is for x86, and the device runs"),
        ("android-arm64-v8a", 35, "needs API level 35, and the device has 34 (Android 14)"),
    ],
)
def test_a_phone_takes_what_it_runs(
    phone: AdbMachine, monkeypatch: pytest.MonkeyPatch, target: str, api: int, said: str
) -> None:
    """By its ABIs and its API level, before anything is pushed; what is not for it leaves nothing there.

    What an x86 device would have to translate is run, and its memory is not evaluated.
    """
    monkeypatch.setattr(adb, "open_adb", lambda _, **options: opened(phone, **options))
    name = DeviceName(kind="adb")
    if not said:
        with closing(open_device(TARGETS[target], name, job=job_of(target, api))) as device:
            own = platform.machine() == "aarch64"
            assert (device.memory_meaningful, device.facts().memory_meaningful) == (own, own)
        return
    with pytest.raises(VerifyError, match=re.escape(said)) as caught:
        open_device(TARGETS[target], name, job=job_of(target, api))
    assert (caught.value.code, caught.value.where) == (NOT_FOR_DEVICE, f"adb:{phone.serials[0]}")
    assert left_behind(phone) == ""


def test_a_device_that_does_not_keep_time(phone: AdbMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the device not end the runner, this side does, and what the runner started."""
    monkeypatch.setattr("ortrim.devices.remote.SLACK_SECONDS", 1.0)
    phone.shell("echo 'exit 1' > /shims/sleep; chmod 755 /shims/sleep")
    try:
        with closing(opened(phone)) as device:
            request = script_request(tmp_path, "/system/bin/sleep 614; exit", timeout_seconds=1)
            assert run_refused(device, request).code == "runner-timeout"
    finally:
        phone.shell("rm /shims/sleep")
    assert phone.processes("sleep 614") == []


def test_android_7_has_no_sha256sum(tmp_path: Path) -> None:
    """What arrived is compared by another digest, which its toybox has."""
    with adb_machine({"sha256sum": "#!/system/bin/sh\nexit 127\n"}) as machine:
        with closing(opened(machine)) as device:
            assert run_refused(device, script_request(tmp_path, "exit 4")).code == "model-refused"
        assert left_behind(machine) == ""


def test_a_full_device(plain: AdbMachine, tmp_path: Path) -> None:
    """What does not fit is said, and what did go there is removed."""
    with closing(opened(plain)) as device:
        error = run_refused(device, script_request(tmp_path, "exit 0", size=5 << 20))
    assert (error.code, error.where) == ("device-full", f"adb:{plain.serials[0]}")
    assert left_behind(plain) == ""


def test_a_folder_that_may_not_be_written(phone: AdbMachine, tmp_path: Path) -> None:
    with closing(opened(phone, base="/proc")) as device:
        error = run_refused(device, script_request(tmp_path, "exit 0"))
    assert error.code == "device-unusable"
    assert "/proc" in error.why
    assert "ORTRIM_ADB_FOLDER" in error.hint


def test_another_folder_is_taken_from_the_environment(
    phone: AdbMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTRIM_ADB_FOLDER", OTHER_FOLDER)
    with closing(opened(phone)) as device:
        error = run_refused(device, script_request(tmp_path, 'echo "$0" >&2; exit 4'))
    assert error.why.startswith(f"{OTHER_FOLDER}/ortrim-")


def test_a_folder_from_which_nothing_runs(phone: AdbMachine, tmp_path: Path) -> None:
    """A folder mounted noexec is not taken for a runner that failed."""
    with closing(opened(phone, base="/locked")) as device:
        error = run_refused(device, script_request(tmp_path, "exit 0"))
    assert error.code == "runner-not-startable"
    assert "noexec" in error.hint
    assert left_behind(phone) == ""


def test_side_by_side(plain: AdbMachine, tmp_path: Path) -> None:
    """Of two devices at the same time, one goes away, and the other's result is its own."""
    requests = [script_request(tmp_path / str(index), f"exec sleep 61{6 + index}") for index in range(2)]

    def act(at: int) -> str:
        with closing(opened(plain, at)) as device:
            if at == 0:
                return run_refused(device, requests[0]).code
            until(lambda: bool(plain.processes("sleep 616")), "the runner did not start")
            plain.kill_daemon(0)
            return run_refused(device, script_request(tmp_path / "other", "exit 4")).code

    assert at_once([partial(act, 0), partial(act, 1)]) == ("device-lost", "model-refused")
    assert plain.shell("find /data/local/tmp -name 'ortrim-*'", plain.serials[1]).stdout.count("ortrim-") <= 9


def test_several_devices_and_none_chosen(phone: AdbMachine) -> None:
    with pytest.raises(UsageError) as caught:
        open_adb(client=phone.client)
    assert caught.value.code == "several-devices"
    assert all(f"adb:{serial}" in caught.value.hint for serial in phone.serials)


def test_folders_of_killed_processes_are_removed(phone: AdbMachine, tmp_path: Path) -> None:
    """What an ortrim that was killed left on the device long ago goes with the next run; what is fresh stays."""
    phone.shell("cd /data/local/tmp; mkdir ortrim-old ortrim-new mine; touch -d '2020-01-01 00:00:00' ortrim-old mine")
    with closing(opened(phone)) as device:
        run_refused(device, script_request(tmp_path, "exit 4"))
    assert phone.shell("ls /data/local/tmp; rm -r /data/local/tmp/*").stdout.split() == ["mine", "ortrim-new"]
