"""One phone and several Android targets: which of them it runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device_samples import MACHINE
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.devices import adb
from ortrim.devices.facts import ANDROID_SURVEY, adb_host
from ortrim.devices.kinds import DeviceName
from ortrim.errors import ExitCode, VerifyError
from ortrim.parity.measurements import HostFacts, Verdict
from ortrim.planning.devices import open_device
from ortrim.platforms.android.platform import is_translated, require_fitting
from ortrim.verify.judge import failed_device
from ortrim.verify.reports import NOT_FOR_DEVICE
from sample_plans import sample_plan

PHONE = replace(MACHINE, abi="arm64-v8a,armeabi-v7a,armeabi", api_level=28, os_version="Android 9")


def refused(host: HostFacts, target: str, api: int | None = 24) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        require_fitting(host, "adb:R58", TARGETS[target], api)
    assert (caught.value.code, caught.value.where) == (NOT_FOR_DEVICE, "adb:R58")
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value


@pytest.mark.parametrize("target", ["android-arm64-v8a", "android-armeabi-v7a"])
def test_a_phone_runs_what_it_says(target: str) -> None:
    """Its own ABI and the older one, from its API level down; what is not known is not compared."""
    for api in (24, 28, None):
        require_fitting(PHONE, "adb:R58", TARGETS[target], api)
    require_fitting(replace(PHONE, api_level=None), "adb:R58", TARGETS[target], 35)


@pytest.mark.parametrize("target", ["android-x86", "android-x86_64"])
def test_another_abi_is_not_for_it(target: str) -> None:
    error = refused(PHONE, target)
    assert f"is for {target.removeprefix('android-')}, and the device runs arm64-v8a, armeabi-v7a" in error.what
    assert "--target android-arm64-v8a" in error.hint


def test_an_x86_device_translates_what_is_for_arm() -> None:
    """No phone translates the older ABI of its own processor."""
    assert is_translated(TARGETS["android-arm64-v8a"], "x86_64")
    assert is_translated(TARGETS["android-armeabi-v7a"], "i686")
    assert not is_translated(TARGETS["android-armeabi-v7a"], "aarch64")
    assert not is_translated(TARGETS["android-x86"], "x86_64")


def test_a_part_of_a_name_is_not_a_name() -> None:
    assert "runs x86_64" in refused(replace(PHONE, abi="x86_64"), "android-x86").what
    assert "runs an unknown ABI" in refused(replace(PHONE, abi=""), "android-x86").what


def test_a_library_for_newer_phones_is_not_for_it() -> None:
    error = refused(PHONE, "android-arm64-v8a", 29)
    assert error.what == "this library needs API level 29, and the device has 28 (Android 9)"
    assert "android.api" in error.hint


class Phone:
    """A device that was opened, and whether it was closed again."""

    name = "adb:R58"

    def __init__(self, *_: object, **__: object) -> None:
        self.closed = 0

    def facts(self) -> HostFacts:
        return PHONE

    def close(self) -> None:
        self.closed += 1


def job_of(target: str, api: int) -> BuildJob:
    return sample_plan(target, android=AndroidSpec(api=api)).targets[0].job


def test_a_device_is_asked_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """And closed when it is the wrong one; a target for Linux asks nothing."""
    phone: Any = Phone()
    monkeypatch.setattr(adb, "open_adb", lambda *_, **__: phone)
    name = DeviceName(kind="adb", detail="R58")
    opened: Any = open_device(TARGETS["android-arm64-v8a"], name, job=job_of("android-arm64-v8a", 28))
    assert (opened, opened.closed) == (phone, 0)
    for target, api in (("android-x86", 24), ("android-arm64-v8a", 29)):
        with pytest.raises(VerifyError, match="this library"):
            open_device(TARGETS[target], name, job=job_of(target, api))
    assert phone.closed == 2
    monkeypatch.setattr(phone, "facts", lambda: pytest.fail("was asked"), raising=False)
    open_device(TARGETS["linux-arm64"], name)


def test_it_is_not_judged() -> None:
    """Neither the library nor the phone is at fault; any other end of a device is a failure."""
    error = refused(PHONE, "android-x86")
    assert failed_device("adb:R58", "none", error).verdict is Verdict.NOT_JUDGED
    assert failed_device("adb:R58", "none", VerifyError("device-lost", "gone")).verdict is Verdict.FAIL


def test_a_recorded_phone_says_its_abis() -> None:
    printed = (Path(__file__).parents[1] / "devices" / "data" / "adb" / "getprop-phone.txt").read_text()
    assert "getprop" in ANDROID_SURVEY
    host = adb_host(f"\n@@ortrim properties\n{printed}")
    require_fitting(host, "adb:R58", TARGETS["android-armeabi-v7a"], 34)
    assert "API level 35" in refused(host, "android-arm64-v8a", 35).what
