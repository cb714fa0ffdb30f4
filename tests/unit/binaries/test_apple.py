"""Targets of Apple's and the slices that they are."""

import pytest

from ortrim.binaries.apple import ApplePlatform, AppleVariant, Slice, slice_of, slices_of
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.platforms.apple.xcode import SDKS, sdk_folder

OURS = {name: target for name, target in TARGETS.items() if target.system in APPLE}


@pytest.mark.parametrize(
    ("target", "identifier", "sdk"),
    [
        ("ios-arm64", "ios-arm64", "iPhoneOS"),
        ("ios-simulator-arm64", "ios-arm64-simulator", "iPhoneSimulator"),
        ("ios-simulator-x86_64", "ios-x86_64-simulator", "iPhoneSimulator"),
        ("macos-arm64", "macos-arm64", "MacOSX"),
        ("macos-x86_64", "macos-x86_64", "MacOSX"),
        ("maccatalyst-arm64", "ios-arm64-maccatalyst", "MacOSX"),
    ],
)
def test_a_target_is_a_slice(target: str, identifier: str, sdk: str) -> None:
    """Each has the folder's name that Xcode gives it, and the SDK that Xcode compiles it with."""
    part = slice_of(TARGETS[target])
    assert part.identifier == identifier
    assert sdk_folder(part) == f"Platforms/{sdk}.platform/Developer/SDKs/{sdk}.sdk"


def test_every_apple_target_is_a_slice_of_its_own() -> None:
    assert len({slice_of(target).identifier for target in OURS.values()}) == len(OURS) == 6
    assert {(part.platform, part.variant) for part in map(slice_of, OURS.values())} == set(SDKS)
    with pytest.raises(KeyError):
        slice_of(TARGETS["linux-arm64"])


def test_architectures_of_one_platform_are_joined() -> None:
    """Both simulators' come into one file, whichever is named first; the order is that of the first of each."""
    names = ("ios-simulator-x86_64", "ios-arm64", "ios-simulator-arm64", "macos-x86_64", "maccatalyst-arm64")
    simulator, phone, mac, catalyst = slices_of(TARGETS[name] for name in names)
    assert simulator.identifier == "ios-arm64_x86_64-simulator"
    assert phone == Slice(platform=ApplePlatform.IOS, architectures=("arm64",))
    assert mac == Slice(platform=ApplePlatform.MACOS, architectures=("x86_64",))
    assert catalyst.variant is AppleVariant.CATALYST
    assert slices_of(()) == ()


def test_both_macs_make_a_universal_library() -> None:
    (mac,) = slices_of((TARGETS["macos-x86_64"], TARGETS["macos-arm64"]))
    assert mac.identifier == "macos-arm64_x86_64"
