"""Platforms: all that depends on the operating system, in a folder and behind a `Platform` each."""

from collections.abc import Iterator
from typing import Final, Literal

from ortrim.platforms.android.platform import Android
from ortrim.platforms.apple.platform import Apple
from ortrim.platforms.linux.platform import Linux
from ortrim.platforms.platform import Platform
from ortrim.spec.buildspec import TargetSpec
from ortrim.spec.problems import Location, Problem
from ortrim.spec.rules import stray_tables
from ortrim.spec.targets import TARGETS, OperatingSystem, Target

__all__ = ["ANDROID", "APPLE", "BY_SYSTEM", "LINUX", "PLATFORMS", "Platform", "platform_of", "target_problems"]

LINUX: Final = Linux()
ANDROID: Final = Android()
APPLE: Final = Apple()

BY_SYSTEM: Final[dict[OperatingSystem, Platform]] = {
    OperatingSystem.LINUX: LINUX,
    OperatingSystem.ANDROID: ANDROID,
    OperatingSystem.IOS: APPLE,
    OperatingSystem.MACOS: APPLE,
}
PLATFORMS: Final = (LINUX, ANDROID, APPLE)


def platform_of(target: Target) -> Platform:
    """Return the platform that a target belongs to."""
    return BY_SYSTEM[target.system]


def target_problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what is wrong with a known target of a buildspec; see `spec.rules.TargetRules`."""
    platform = platform_of(TARGETS[target.id])
    yield from platform.problems(target, location, linkage)
    yield from stray_tables(target, location, platform.NAME)
