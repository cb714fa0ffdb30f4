"""What is asked of upstream's build for Macs on another machine."""

from pathlib import PurePosixPath

import pytest

from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.platforms.apple.arguments import is_cross_built, zig_apple_toolchain
from sample_plans import sample_plan


def job(target: str = "macos-arm64") -> BuildJob:
    toolchain = zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0")
    return sample_plan(target, toolchain=toolchain).targets[0].job


@pytest.mark.parametrize(("target", "processor"), [("macos-arm64", "arm64"), ("macos-x86_64", "x86_64")])
def test_upstream_is_reported_of_a_mac_without_apples_tools(target: str, processor: str) -> None:
    """No SDK, no Xcode, no oldest system: zig knows what it compiles for."""
    arguments = job(target).arguments
    words = {f"CMAKE_{name}={processor}" for name in ("SYSTEM_PROCESSOR", "OSX_ARCHITECTURES")}
    assert {"CMAKE_SYSTEM_NAME=Darwin", "ORTRIM_APPLE_CROSS=ON", *words} <= {*arguments}
    assert not any("SYSROOT" in word or "DEPLOYMENT" in word or "xcode" in word for word in arguments)


def test_the_library_is_called_as_a_framework_holds_it() -> None:
    """Its name cannot be changed later: zig leaves no room for a longer one."""
    assert "ORTRIM_INSTALL_NAME=@rpath/onnxruntime.framework/Versions/A/onnxruntime" in job().arguments
    assert job().expected_outputs == (
        PurePosixPath("libonnxruntime.dylib"),
        PurePosixPath("libonnxruntime.dylib.dwarf"),
    )
    assert job().finishing == ()


def test_only_zigs_libraries_for_macs_are_cross_built() -> None:
    """Those of Xcode are not, and no library for Linux is."""
    assert is_cross_built(job())
    assert not is_cross_built(sample_plan("macos-arm64").targets[0].job)
    assert not is_cross_built(sample_plan("linux-arm64").targets[0].job)
