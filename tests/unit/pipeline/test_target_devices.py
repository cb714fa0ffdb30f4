"""Which devices a target is verified on."""

import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.buildspec.buildspec import TargetSpec
from ortrim.buildspec.targets import CPUS, TARGETS, Target
from ortrim.devices import adb, kinds
from ortrim.devices.farms import firebase
from ortrim.devices.kinds import DeviceName
from ortrim.devices.ssh import SshClient
from ortrim.errors import Diagnostic, ExitCode, ToolError, UsageError, VerifyError
from ortrim.parity.measurements import LeastMemory
from ortrim.planning.devices import answers, devices_of, make_parts, require_devices, require_ready
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.verify.judge import failed_device, failure_of
from ortrim.verify.reports import NOT_FOR_DEVICE, VerifyReport
from sample_plans import sample_plan
from sample_reports import on_device, recorded_report

ARM64 = TARGETS["linux-arm64"]
X64 = TARGETS["linux-x64"]
ARM64_DEFAULTS = ["qemu-user:cortex-a53", "qemu-user:cortex-a76", "qemu-system:cortex-a53", "qemu-system:cortex-a76"]
REFUSED = failure_of(VerifyError("model-refused", "the library refuses the model"), "m")
LEAST = LeastMemory(model="m", enough_mib=58, too_little_mib=56, usable_bytes=1, tried=())


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend an x86-64 machine on which every emulator is installed."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def request(*devices: str, **changes: Any) -> Request:
    return Request(spec=Path("a.toml"), devices=devices, **changes)


def require(request: Request, *targets: str) -> None:
    require_devices([TargetSpec(id=target) for target in targets], request, X64)


def refused(request: Request, *targets: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        require(request, *targets)
    return caught.value


@pytest.mark.parametrize(
    ("target", "device", "code"),
    [
        ("android-arm64-v8a", "adb", "no-device"),
        ("android-arm64-v8a", "adb:R5CT", "unknown-device"),
        ("android-arm64-v8a", "firebase:oriole-33", "no-device"),
        ("linux-arm64", "ssh:pi@board", "ssh-unreachable"),
        ("linux-arm64", "qemu-system", "tool-missing"),
        ("linux-arm64", "qemu-user", "tool-missing"),
        ("macos-arm64", "macho", "tool-missing"),
    ],
)
def test_a_named_device_that_is_not_there_is_found_before_compiling(
    monkeypatch: pytest.MonkeyPatch, target: str, device: str, code: str
) -> None:
    """Where it was only looked for once there was something to run on it, that was after the compiler."""

    def missing(*_: object) -> None:
        raise ToolError("tool-missing", "is not installed")

    def unreachable(*_: object) -> None:
        raise VerifyError("ssh-unreachable", "the machine does not answer")

    monkeypatch.setattr(adb, "find_adb", lambda: None)
    monkeypatch.setattr(adb, "adb_devices", lambda _client: ())
    monkeypatch.setattr(kinds, "require", missing)
    monkeypatch.setattr(SshClient, "connect", unreachable)
    monkeypatch.setattr(firebase, "find_gcloud", missing)
    with pytest.raises(Diagnostic) as caught:
        require_ready([TARGETS[target]], request(device))
    assert caught.value.code == code


def test_all_defaults_are_taken() -> None:
    assert list(map(str, devices_of(X64, request()))) == ["host"]
    assert list(map(str, devices_of(ARM64, request()))) == ARM64_DEFAULTS


@pytest.mark.parametrize("target", ["macos-arm64", "macos-x86_64", "ios-arm64", "ios-simulator-x86_64"])
def test_apples_code_runs_on_linux_where_nothing_else_is_named(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Unless Macs of GitHub's compile it, or the other processor is not emulated: the report then says so."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    platform_, asked = platform_of(TARGETS[target]), TARGETS[target]
    assert list(map(str, devices_of(asked, request()))) == ["macho"]
    assert devices_of(asked, request(on_macs=True)) == ()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    native = target.endswith("x86_64")
    assert bool(devices_of(asked, request())) is native
    assert ("qemu-user-static" in platform_.nowhere(asked)) is not native
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    assert devices_of(asked, request()) == ()


@pytest.mark.parametrize("target", ["linux-arm64", "linux-arm64-musl", "linux-armhf", "linux-riscv64"])
def test_every_baseline_of_a_buildspec_has_defaults_that_run_it(target: str) -> None:
    """Each name that `cpu` takes leads to emulators that have all its instructions, or to a refusal before any work."""
    emulation = platform_of(TARGETS[target]).emulation_of(TARGETS[target])
    assert emulation is not None
    assert set(emulation.baselines) == set(CPUS[TARGETS[target].architecture])
    for cpu, able in emulation.baselines.items():
        found = devices_of(TARGETS[target], request(), cpu)
        assert {device.detail for device in found} <= set(able), cpu
        assert bool(found) is (cpu != "spacemit-x60"), cpu


@pytest.mark.parametrize(
    ("target", "cpu", "names"),
    [
        ("linux-arm64", "cortex-a53", ARM64_DEFAULTS),
        ("linux-arm64", "cortex-a72", ARM64_DEFAULTS),
        ("linux-arm64", "cortex-a76", ["qemu-user:cortex-a76", "qemu-system:cortex-a76"]),
        ("linux-arm64-musl", "cortex-a55", ["qemu-user:cortex-a76", "qemu-system:cortex-a76"]),
        ("linux-armhf", "", ["qemu-user:cortex-a7", "qemu-system:cortex-a53"]),
        ("linux-armhf", "cortex-a8", ["qemu-user:cortex-a7", "qemu-system:cortex-a53"]),
        ("linux-armhf", "cortex-a72", ["qemu-user:max", "qemu-system:cortex-a53"]),
        ("linux-riscv64", "sifive-u74", ["qemu-user:rv64"]),
        ("linux-riscv64", "spacemit-x60", []),
    ],
)
def test_defaults_are_not_below_the_floor(target: str, cpu: str, names: list[str]) -> None:
    """The usual ones where they have its instructions, else the first emulated processor that does."""
    assert list(map(str, devices_of(TARGETS[target], request(), cpu))) == names


def test_a_baseline_that_nothing_here_emulates_is_refused_before_any_work() -> None:
    """As for any target without a default; a board will do."""
    baseline = TargetSpec(id="linux-riscv64", cpu="spacemit-x60")
    with pytest.raises(VerifyError) as caught:
        require_devices([baseline], request(), X64)
    assert (caught.value.code, caught.value.where) == ("no-device", "linux-riscv64")
    require_devices([baseline], request("ssh:pi@board"), X64)


def test_a_named_device_below_the_baseline_is_refused() -> None:
    """Before a library is compiled that would end with an illegal instruction there."""
    baseline = TargetSpec(id="linux-arm64", cpu="cortex-a76")
    with pytest.raises(UsageError) as caught:
        require_devices([baseline], request("qemu-user:cortex-a53"), X64)
    assert (caught.value.code, caught.value.where) == ("wrong-device", "--device qemu-user:cortex-a53")
    assert caught.value.hint == "there are: qemu-user:cortex-a76"
    require_devices([baseline], request("qemu-user", "qemu-system@128"), X64)


def test_cores_reach_the_devices_that_have_some() -> None:
    """A board is kept on them; an emulator beside it has no cores of its own."""
    found = devices_of(ARM64, request("adb", "ssh:pi@board", "qemu-user", cores=(4, 5)))
    assert [device.cores for device in found] == [(4, 5), (4, 5), ()]
    assert [device.cores for device in devices_of(X64, request(cores=(0,)))] == [(0,)]


@pytest.mark.parametrize(("devices", "target"), [(("qemu-user",), "linux-arm64"), ((), "linux-riscv64")])
def test_cores_of_nothing_are_refused(devices: tuple[str, ...], target: str) -> None:
    error = refused(request(*devices, cores=(4,)), target)
    assert (error.code, error.where) == ("bad-option", "--cores")
    assert "--device adb" in error.hint


def test_named_devices_take_the_place_of_defaults() -> None:
    asked = request("adb", "qemu-system:cortex-a76")
    assert list(map(str, devices_of(ARM64, asked))) == ["adb", "qemu-system:cortex-a76"]


def test_a_named_device_needs_no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone or a board is enough; whether it is there is found out when it is opened."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    require(request("adb", "ssh:pi@board"), "linux-arm64")
    with pytest.raises(VerifyError) as caught:
        require(request(), "linux-arm64")
    assert (caught.value.code, caught.value.exit_code) == ("no-device", ExitCode.VERIFY)
    assert "--device adb" in caught.value.hint


@pytest.mark.parametrize(
    ("devices", "targets"),
    [((), ("linux-x64",)), (("host",), ("linux-x64",)), (("qemu-user", "adb"), ("linux-arm64",))],
)
def test_no_least_memory_without_a_machine(devices: tuple[str, ...], targets: tuple[str, ...]) -> None:
    error = refused(request(*devices, least_memory=True), *targets)
    assert (error.code, error.where) == ("bad-option", "--least-memory")
    assert "qemu-system" in error.hint


def test_least_memory_where_some_target_has_a_machine() -> None:
    """One is enough, and the default has one for ARM."""
    require(request(least_memory=True), "linux-x64", "linux-arm64")
    require(request("qemu-system@128", "qemu-user", least_memory=True), "linux-armhf")


def test_parts_of_devices_are_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those alone that only parts are made for: a board is not reached for that. What fails is no error yet."""
    opened: list[str] = []

    def open_(target: Target, name: DeviceName, **_: object) -> None:
        opened.append(f"{target.identifier} {name}")
        raise ToolError("tool-missing", "is not installed")

    monkeypatch.setattr("ortrim.planning.devices.open_device", open_)
    targets = [sample_plan(name).targets[0] for name in ("linux-x64", "linux-arm64", "macos-arm64")]
    make_parts(targets, request(), Path("headers"))
    assert opened == [*(f"linux-arm64 {name}" for name in ARM64_DEFAULTS), "macos-arm64 macho"]
    make_parts(targets[1:2], request("ssh:pi@board", "adb"), Path("headers"))
    assert len(opened) == 1 + len(ARM64_DEFAULTS)


def report_of(*names: str, **changes: Any) -> VerifyReport:
    report = on_device(recorded_report(), **changes)
    return replace(report, devices=tuple(replace(report.devices[0], device=name) for name in names))


def misfit_report() -> VerifyReport:
    error = VerifyError(NOT_FOR_DEVICE, "this library is for x86", where="adb:1")
    return replace(recorded_report(), devices=(failed_device("adb:1", "none", error),))


def pinned_report(cores: tuple[int, ...]) -> VerifyReport:
    host = recorded_report().devices[0].host
    assert host is not None
    return report_of("adb:1", host=replace(host, pinned_cores=cores))


@pytest.mark.parametrize(
    ("asked", "report", "enough"),
    [
        (request("adb:1"), report_of("adb:1"), True),
        (request("adb:1"), report_of("adb:1", "adb:2"), True),
        (request("adb:1"), report_of("adb:1", failed_models=(REFUSED,)), False),
        (request("adb:1", "adb:2"), report_of("adb:1"), False),
        (request("adb"), report_of("adb:1"), False),
        (request(), report_of(*ARM64_DEFAULTS), True),
        (request(), report_of(*ARM64_DEFAULTS[:3]), False),
        (request("adb:1", cores=(4, 5)), report_of("adb:1"), False),
        (request("adb:1", cores=(4, 5)), pinned_report((4, 5)), True),
        (request("adb:1"), pinned_report((4, 5)), False),
        (request("adb:1", cores=(4, 5)), misfit_report(), True),
        (request(), report_of(), False),
        (request("qemu-system"), report_of("qemu-system:cortex-a53@64"), False),
        (request("adb:1", trace=True), report_of("adb:1"), False),
        (request("adb:1", trace=True), report_of("adb:1", traces=("outputs/adb_1/m/trace.json",)), True),
        (request("qemu-system", least_memory=True), report_of("qemu-system:cortex-a53"), False),
        (request("qemu-system", least_memory=True), report_of("qemu-system:cortex-a53", least_memory=(LEAST,)), True),
        (request("adb:1", least_memory=True), report_of("adb:1"), True),
    ],
)
def test_a_report_is_enough_when_it_has_all_that_was_asked_for(
    asked: Request, report: VerifyReport, *, enough: bool
) -> None:
    """Each device by its own name; which phone the only phone was cannot be known without asking it."""
    assert answers(report, ARM64, asked) is enough
