"""Property lists: what Apple's tools and its store look for in them."""

import plistlib

import pytest

from ortrim.binaries.apple import ApplePlatform, AppleVariant, Slice
from ortrim.platforms.apple.framework import catalyst_macos, framework_plist, symbols_plist, xcframework_plist

PHONE = Slice(platform=ApplePlatform.IOS, architectures=("arm64",))
SIMULATOR = Slice(platform=ApplePlatform.IOS, variant=AppleVariant.SIMULATOR, architectures=("arm64", "x86_64"))
CATALYST = Slice(platform=ApplePlatform.IOS, variant=AppleVariant.CATALYST, architectures=("arm64",))
MAC = Slice(platform=ApplePlatform.MACOS, architectures=("arm64", "x86_64"))


@pytest.mark.parametrize(
    ("part", "minimum", "platform", "key", "value"),
    [
        (PHONE, "15.1", "iPhoneOS", "MinimumOSVersion", "15.1"),
        (SIMULATOR, "15.1", "iPhoneSimulator", "MinimumOSVersion", "15.1"),
        (CATALYST, "15.1", "MacOSX", "LSMinimumSystemVersion", "12.0"),
        (MAC, "13.3", "MacOSX", "LSMinimumSystemVersion", "13.3"),
    ],
)
def test_a_framework_says_what_it_is_for(part: Slice, minimum: str, platform: str, key: str, value: str) -> None:
    """The oldest system stands under the key that the platform has for it, and under no other."""
    content = plistlib.loads(framework_plist(part, minimum, "1.21.0"))
    assert content["CFBundleSupportedPlatforms"] == [platform]
    assert {name for name in content if "inimum" in name} == {key}
    assert content[key] == value
    assert (content["CFBundlePackageType"], content["CFBundleExecutable"]) == ("FMWK", "onnxruntime")
    assert content["CFBundleIdentifier"].replace(".", "").replace("-", "").isalnum()


@pytest.mark.parametrize(("version", "shown"), [("1.21.0", "1.21.0"), ("1.30.0rc1", "1.30.0"), ("2.0", "2.0")])
def test_versions_are_numbers(version: str, shown: str) -> None:
    """The store refuses letters in them."""
    content = plistlib.loads(framework_plist(PHONE, "15.1", version))
    assert content["CFBundleVersion"] == content["CFBundleShortVersionString"] == shown


def test_an_xcframework_lists_its_slices_in_order() -> None:
    """Whatever order they come in; a device and a Mac have no variant."""
    content = plistlib.loads(xcframework_plist([SIMULATOR, MAC, PHONE, CATALYST]))
    assert xcframework_plist([SIMULATOR, MAC, PHONE, CATALYST]) == xcframework_plist([CATALYST, PHONE, MAC, SIMULATOR])
    found = {each["LibraryIdentifier"]: each for each in content["AvailableLibraries"]}
    assert list(found) == [
        "ios-arm64",
        "ios-arm64-maccatalyst",
        "ios-arm64_x86_64-simulator",
        "macos-arm64_x86_64",
    ]
    assert {name: each.get("SupportedPlatformVariant") for name, each in found.items()} == {
        "ios-arm64": None,
        "ios-arm64-maccatalyst": "maccatalyst",
        "ios-arm64_x86_64-simulator": "simulator",
        "macos-arm64_x86_64": None,
    }
    assert found["macos-arm64_x86_64"]["BinaryPath"] == "onnxruntime.framework/Versions/A/onnxruntime"
    assert found["ios-arm64_x86_64-simulator"]["SupportedArchitectures"] == ["arm64", "x86_64"]
    assert (content["CFBundlePackageType"], content["XCFrameworkFormatVersion"]) == ("XFWK", "1.0")


@pytest.mark.parametrize(
    ("ios", "macos"),
    [
        ("13.1", "10.15"), ("14.0", "11.0"), ("14.2", "11.0"), ("14.3", "11.1"), ("14.7", "11.5"), ("14.9", "11.5"),
        ("15.1", "12.0"), ("15.2", "12.1"), ("16.4", "13.3"), ("17.1", "14.1"), ("18.5", "15.5"), ("26.0", "26.0"),
        ("15", "12.0"),
    ],
)  # fmt: skip
def test_catalyst_is_counted_as_apple_does(ios: str, macos: str) -> None:
    """By the table in its SDK."""
    assert catalyst_macos(ios) == macos


def test_a_dsym_is_known_as_one() -> None:
    """By its package type."""
    assert plistlib.loads(symbols_plist("1.21.0"))["CFBundlePackageType"] == "dSYM"
