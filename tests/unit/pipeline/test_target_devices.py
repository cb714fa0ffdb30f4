"""Which devices a target is verified on."""

import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.core.buildspec import TargetSpec
from ortrim.core.measurements import LeastMemory, VerifyReport
from ortrim.core.targets import TARGETS
from ortrim.errors import ExitCode, UsageError, VerifyError
from ortrim.pipeline.converted import Request
from ortrim.pipeline.devices import answers, devices_of, require_devices
from sample_reports import on_device, recorded_report

ARM64 = TARGETS["linux-arm64"]
X64 = TARGETS["linux-x64"]
LEAST = LeastMemory(model="m", enough_mib=58, too_little_mib=56, usable_bytes=1, tried=())


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend an x86-64 machine on which every emulator is installed."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def request(*devices: str, **changes: Any) -> Request:
    """Make a request."""
    return Request(spec=Path("a.toml"), devices=devices, **changes)


def require(request: Request, *targets: str) -> None:
    """Check a request for targets on x86-64."""
    require_devices([TargetSpec(id=target) for target in targets], request, X64)


def refused(request: Request, *targets: str) -> UsageError:
    """Return why a request is not possible."""
    with pytest.raises(UsageError) as caught:
        require(request, *targets)
    return caught.value


def test_all_defaults_are_taken() -> None:
    """The host alone, or both kinds of emulation."""
    assert list(map(str, devices_of(X64, request()))) == ["host"]
    assert list(map(str, devices_of(ARM64, request()))) == ["qemu-user:cortex-a53", "qemu-system:cortex-a53"]


def test_named_devices_take_the_place_of_defaults() -> None:
    """In their order."""
    asked = request("adb", "qemu-system:cortex-a76")
    assert list(map(str, devices_of(ARM64, asked))) == ["adb", "qemu-system:cortex-a76"]


@pytest.mark.parametrize(
    ("devices", "targets", "reference"),
    [
        (("phone",), ("linux-x64",), "unknown-device"),
        (("qemu-user",), ("linux-x64",), "wrong-device"),
        (("host",), ("linux-x64", "linux-arm64"), "wrong-device"),
        (("adb", "adb:"), ("linux-x64",), "device-twice"),
        (("ssh",), ("linux-x64",), "bad-destination"),
    ],
)
def test_names_are_checked_before_anything_is_compiled(
    devices: tuple[str, ...], targets: tuple[str, ...], reference: str
) -> None:
    """A slip of the pen does not cost a build, whichever target it is wrong for."""
    error = refused(request(*devices), *targets)
    assert (error.reference, error.exit_code) == (reference, ExitCode.USAGE)


def test_a_named_device_needs_no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone or a board is enough; whether it is there is found out when it is opened."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    require(request("adb", "ssh:pi@board"), "linux-arm64")
    with pytest.raises(VerifyError) as caught:
        require(request(), "linux-arm64")
    assert (caught.value.reference, caught.value.exit_code) == ("no-device", ExitCode.VERIFY)
    assert "--device adb" in caught.value.hint


def test_a_target_with_no_default_says_to_name_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an ARM machine nothing runs x86-64."""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(VerifyError) as caught:
        require_devices([TargetSpec(id="linux-x64")], request(), ARM64)
    assert caught.value.reference == "no-device"
    assert caught.value.hint.startswith("name a device that runs it: --device adb, or --device ssh:USER@HOST")


@pytest.mark.parametrize(
    ("devices", "targets"),
    [((), ("linux-x64",)), (("host",), ("linux-x64",)), (("qemu-user", "adb"), ("linux-arm64",))],
)
def test_no_least_memory_without_a_machine(devices: tuple[str, ...], targets: tuple[str, ...]) -> None:
    """It would be asked for in vain."""
    error = refused(request(*devices, least_memory=True), *targets)
    assert (error.reference, error.where) == ("bad-option", "--least-memory")
    assert "qemu-system" in error.hint


def test_least_memory_where_some_target_has_a_machine() -> None:
    """One is enough, and the default has one for ARM."""
    require(request(least_memory=True), "linux-x64", "linux-arm64")
    require(request("qemu-system@128", "qemu-user", least_memory=True), "linux-armhf")


def report_of(*names: str, **changes: Any) -> VerifyReport:
    """Make a report of some devices."""
    report = on_device(recorded_report(), **changes)
    return replace(report, devices=tuple(replace(report.devices[0], device=name) for name in names))


@pytest.mark.parametrize(
    ("asked", "report", "enough"),
    [
        (request("adb:1"), report_of("adb:1"), True),
        (request("adb:1"), report_of("adb:1", "adb:2"), True),
        (request("adb:1", "adb:2"), report_of("adb:1"), False),
        (request("adb"), report_of("adb:1"), False),
        (request(), report_of("qemu-user:cortex-a53", "qemu-system:cortex-a53"), True),
        (request(), report_of("qemu-user:cortex-a53"), False),
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
