"""The main job for other processors, through the command line: the demo is compiled here and verified on emulated ones.

The caches of what was fetched and of compiled objects are the user's; all else starts empty, so that the library is
compiled and linked in every run of these tests.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.base.command import Completed, run
from own_caches import own_cache

pytestmark = [pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
SHARED: Final = ("apt", "compiler", "conversions", "downloads", "machines", "packages", "sources", "zig")
"""Parts of the cache that hold only what was fetched or compiled before."""
BUILD_SECONDS: Final = 2400.0
USER: Final = ("qemu-user:cortex-a53", "qemu-user:cortex-a76")
SYSTEM: Final = ("qemu-system:cortex-a76",)
"""With the older processor, `test_emulated_build_adb.py` has a whole machine."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The report of a build, and each device's part of it by the device's name."""

    report: dict[str, Any]
    devices: dict[str, dict[str, Any]]


def build(target: str, devices: tuple[str, ...], folder: Path, *options: str) -> Completed:
    (folder / "cache").mkdir()
    named = [word for device in devices for word in ("--device", device)]
    words = [sys.executable, "-m", "invoke", "build", "--target", target, "--json", *named, *options]
    output = ("--output", str(folder / "output"))
    with own_cache(folder / "cache", *SHARED) as environment:
        return run((*words, *output), cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS)


def verified(done: Completed) -> Verified:
    """Return what standard output says of the one target."""
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    return Verified(report=report, devices={device["device"]: device for device in report["devices"]})


@pytest.fixture(scope="module")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Build the demo for 64-bit ARM and verify it on three machines."""
    return verified(build("linux-arm64", (*USER, *SYSTEM), tmp_path_factory.mktemp("arm64"), "--least-memory"))


@pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64")
def test_the_demo_is_in_parity_on_every_machine(arm64: Verified) -> None:
    """Old processor or new, emulated alone or with a whole machine: the outputs are the full runtime's."""
    assert tuple(arm64.devices) == (*USER, *SYSTEM)
    assert {name: len(device["parity"]) for name, device in arm64.devices.items()} == dict.fromkeys(arm64.devices, 16)
    assert {output["verdict"] for device in arm64.devices.values() for output in device["parity"]} == {"pass"}
    assert arm64.report["verdict"] == "pass"


@pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64")
def test_only_a_whole_machine_says_what_memory_the_demo_takes(arm64: Verified) -> None:
    """Ten megabytes at most, in the kernel's own accounting; what an emulated process takes is the emulator's."""
    peaks = {
        name: line["ours"]
        for name, device in arm64.devices.items()
        for line in device["comparisons"]
        if line["measure"] == "peak RSS" and device["host"]["memory_meaningful"]
    }
    assert tuple(peaks) == SYSTEM
    assert max(peaks.values()) < 12e6


@pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64")
def test_the_least_memory_of_the_demo(arm64: Verified) -> None:
    """It runs in a machine of 64 MiB, of which the kernel takes half."""
    found = {name: device["least_memory"] for name, device in arm64.devices.items() if device["least_memory"]}
    assert tuple(found) == SYSTEM
    for (least,) in found.values():
        assert least["enough_mib"] - least["too_little_mib"] <= 2
        assert least["enough_mib"] <= 64, least


@pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64")
def test_the_library_for_arm64_is_pruned(arm64: Verified) -> None:
    """By the index that comes with ortrim: a third of all files."""
    units = arm64.report["units"]
    assert units["compiled"] * 3 < units["total"] + 30, units
    assert arm64.report["library"]["machine"] == "arm64"


@pytest.mark.slow
@pytest.mark.needs("apt-get", "qemu-arm-static")
def test_the_demo_on_32_bit_arm(tmp_path: Path) -> None:
    """Hard float and NEON, where a load in the wrong place is a bus error."""
    found = verified(build("linux-armhf", ("qemu-user",), tmp_path))
    (device,) = found.devices.values()
    assert {output["verdict"] for output in device["parity"]} == {"pass"}
    assert found.report["verdict"] == "pass"
