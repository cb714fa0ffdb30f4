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
