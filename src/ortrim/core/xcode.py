"""What lies where in Xcode, seen from its `Contents/Developer` folder. Pure data."""

from typing import Final

from ortrim.core.apple import ApplePlatform, AppleVariant, Slice

TOOLS: Final = "Toolchains/XcodeDefault.xctoolchain/usr/bin"
PROGRAMS: Final = {
    name: f"{TOOLS}/{name}"
    for name in (
        *("clang", "clang++", "ar", "ranlib", "strip", "libtool", "dsymutil"),
        "install_name_tool",
    )
}
"""Program -> its place."""
SDKS: Final = {
    (ApplePlatform.IOS, AppleVariant.NONE): "iPhoneOS",
    (ApplePlatform.IOS, AppleVariant.SIMULATOR): "iPhoneSimulator",
    (ApplePlatform.IOS, AppleVariant.CATALYST): "MacOSX",
    (ApplePlatform.MACOS, AppleVariant.NONE): "MacOSX",
}
"""Platform and variant -> the name of the SDK's folder; `xcodebuild` writes the same in small letters."""


def sdk_of(part: Slice) -> str:
    """Return the name of the SDK that a slice is compiled with: `iPhoneOS`."""
    return SDKS[part.platform, part.variant]


def sdk_folder(part: Slice) -> str:
    """Return the folder of the SDK that a slice is compiled with; Xcode links it to the version that it has."""
    name = sdk_of(part)
    return f"Platforms/{name}.platform/Developer/SDKs/{name}.sdk"
