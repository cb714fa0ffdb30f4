"""Apple's words for what is built: platforms, variants and the slices of an xcframework. Pure data."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ortrim.buildspec.targets import APPLE_ARCHITECTURES, CATALYST, OperatingSystem, Target


class ApplePlatform(StrEnum):
    """`SupportedPlatform` in an xcframework's `Info.plist`."""

    IOS = "ios"
    MACOS = "macos"


class AppleVariant(StrEnum):
    """`SupportedPlatformVariant` in an xcframework's `Info.plist`; the key is absent for a device or a Mac."""

    NONE = ""
    SIMULATOR = "simulator"
    CATALYST = "maccatalyst"


PLATFORMS: Final = {OperatingSystem.IOS: ApplePlatform.IOS, OperatingSystem.MACOS: ApplePlatform.MACOS}


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One entry of an xcframework's `AvailableLibraries`: a platform, a variant, and the architectures in one file."""

    platform: ApplePlatform
    variant: AppleVariant = AppleVariant.NONE
    architectures: tuple[str, ...]
    """As Mach-O tools call them (`arm64`, `x86_64`), sorted."""

    @property
    def on_mac(self) -> bool:
        """Whether it runs on Macs, where frameworks must have `Versions`, Mac Catalyst's too; a phone's must not."""
        return self.platform is ApplePlatform.MACOS or self.variant is AppleVariant.CATALYST

    @property
    def identifier(self) -> str:
        """Return `LibraryIdentifier`, the name of the slice's folder: `ios-arm64_x86_64-simulator`."""
        name = f"{self.platform}-{'_'.join(self.architectures)}"
        return f"{name}-{self.variant}" if self.variant else name


SIMULATOR: Final = "ios-simulator-"  # how the identifiers of targets for the simulator begin


def is_simulated(target: Target) -> bool:
    """Whether a target's programs run in a simulator of a phone, and on no phone."""
    return target.identifier.startswith(SIMULATOR)


def slice_of(target: Target) -> Slice:
    """Return the slice that one Apple target is, or is a part of. Raises KeyError for a target of another system."""
    architectures = (APPLE_ARCHITECTURES[target.architecture],)
    if target.identifier == CATALYST:
        return Slice(platform=ApplePlatform.IOS, variant=AppleVariant.CATALYST, architectures=architectures)
    if is_simulated(target):
        return Slice(platform=ApplePlatform.IOS, variant=AppleVariant.SIMULATOR, architectures=architectures)
    return Slice(platform=PLATFORMS[target.system], architectures=architectures)


def slices_of(targets: Iterable[Target]) -> tuple[Slice, ...]:
    """Return the slices that Apple targets come to, in their order; both Macs' make `macos-arm64_x86_64`."""
    joined: dict[tuple[ApplePlatform, AppleVariant], set[str]] = {}
    for part in map(slice_of, targets):
        joined.setdefault((part.platform, part.variant), set()).update(part.architectures)
    return tuple(
        Slice(platform=platform, variant=variant, architectures=tuple(sorted(architectures)))
        for (platform, variant), architectures in joined.items()
    )


EXPORTS: Final = "${build}/MinSizeRel/onnxruntime.lds"
"""The names that upstream's `gen_def.py` has exported, each with the underscore that Mach-O puts before names of C."""


XCFRAMEWORK: Final = ".xcframework.zip"
