"""What zig is told for Android, where no link shows it."""

from dataclasses import replace

import pytest

from aar_samples import NDK, android_plan
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import zig_for
from ortrim.platforms import platform_of
from ortrim.platforms.android.arguments import bionic_pin, zig_android_toolchain


@pytest.mark.parametrize(
    ("name", "api", "realigned"),
    [("android-x86", 21, True), ("android-x86", 23, True), ("android-x86", 24, False), ("android-x86_64", 21, False)],
)
def test_old_devices_with_32_bit_x86_get_their_stack_realigned(name: str, api: int, *, realigned: bool) -> None:
    """Whatever is compiled or linked: what is aligned for vectors would end the app on them."""
    driver = dict(zig_android_toolchain(TARGETS[name], api, "0.17.0").wrappers)["driver"]
    script = [line for line in driver.splitlines() if not line.startswith("#")]
    assert sum("-mstackrealign" in line for line in script) == (2 if realigned else 0)


def test_another_driver_is_another_compiler() -> None:
    """A compiler cache looks at the wrapper alone, which only calls the driver."""
    texts = {
        driver: dict(zig_for("x86_64-linux-android.24", "0.17.0", (), driver=driver).wrappers)
        for driver in ("exec one\n", "exec another\n")
    }
    one, another = texts.values()
    assert all(one[name] != another[name] for name in ("cc", "c++"))


def test_start_files_have_the_version_of_what_they_come_from() -> None:
    """Those of bionic's pinned commit, which zig compiles, or of the NDK, which brings its own."""
    job = android_plan().targets[0].job
    of_zig = replace(job, toolchain=zig_android_toolchain(job.target, 24, "0.17.0"))
    versions = [version for each in (job, of_zig) for *_, version in platform_of(each.target).start_files(each)]
    assert versions == [NDK, bionic_pin().commit]
