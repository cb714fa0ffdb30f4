"""The hermetic toolchain for Apple's systems."""

import pytest

from ortrim.buildspec.targets import TARGETS
from ortrim.platforms.apple.arguments import zig_apple_toolchain


@pytest.mark.parametrize(
    ("target", "triple"),
    [
        ("macos-arm64", "aarch64-macos.13.3"),
        ("macos-x86_64", "x86_64-macos.13.3"),
        ("ios-arm64", "aarch64-ios.13.3"),
        ("ios-simulator-arm64", "aarch64-ios.13.3-simulator"),
        ("ios-simulator-x86_64", "x86_64-ios.13.3-simulator"),
        ("maccatalyst-arm64", "aarch64-maccatalyst.13.3"),
    ],
)
def test_the_oldest_system_is_in_the_triple(target: str, triple: str) -> None:
    """The linker writes it into the library."""
    toolchain = zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0")
    assert (toolchain.kind, toolchain.version, toolchain.triple) == ("zig", "0.17.0", triple)
    compilers = dict(toolchain.wrappers)
    assert all(f"-target {triple} " in compilers[name] for name in ("cc", "c++"))
    assert f"# zig 0.17.0 {triple} " in compilers["ar"]


@pytest.mark.parametrize("target", ["macos-arm64", "macos-x86_64"])
def test_frames_have_pointers(target: str) -> None:
    """Apple's systems ask for them, and without them each frame is described twice."""
    compilers = dict(zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0").wrappers)
    flags = "-fno-omit-frame-pointer -femit-dwarf-unwind=no-compact-unwind"
    assert all(flags in compilers[name] for name in ("cc", "c++"))


def test_flags_that_zig_refuses_are_said_in_its_words() -> None:
    """Upstream asks for the dot product, which every arm64 Mac has, and for int8 matrix products, which M1 has not.

    The first phones to have them are those with an A13 and an A15.
    """
    arm64, intel, phone = (
        dict(zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0").wrappers)
        for target in ("macos-arm64", "macos-x86_64", "ios-arm64")
    )
    assert '-march=armv8.2-a+dotprod) set -- "$@" -mcpu=apple_a13 ;;' in phone["c++"]
    assert '-march=armv8.2-a+i8mm) set -- "$@" -mcpu=apple_a15 ;;' in phone["c++"]
    assert '-march=armv8.2-a+dotprod) set -- "$@" -mcpu=apple_m1 ;;' in arm64["c++"]
    assert '-march=armv8.2-a+i8mm) set -- "$@" -mcpu=apple_m1+i8mm ;;' in arm64["c++"]
    assert "-mcpu" not in intel["c++"]


def test_wrappers_hold_no_path() -> None:
    """They are the same on every machine, so that the compiler cache serves all of them."""
    toolchain = zig_apple_toolchain(TARGETS["macos-arm64"], "13.3", "0.17.0")
    assert not any("/home" in text or "/root" in text or "/work" in text for _, text in toolchain.wrappers)
    assert {value for _, value in toolchain.environment} == {"${tools}/ziglang/zig", "${apple}"}


def test_levels_that_zig_takes_for_others_are_reported_to_clang() -> None:
    """As on Linux: zig takes `-Oz` for `-Os` and `-O3` for `-O2` without a word."""
    for target in ("macos-arm64", "macos-x86_64"):
        compiler = dict(zig_apple_toolchain(TARGETS[target], "13.3", "0.17.0").wrappers)["c++"]
        assert '-Oz) set -- "$@" -Os -Xclang -Oz ;;' in compiler
        assert '-O3) set -- "$@" -O2 -Xclang -O3 ;;' in compiler
