"""Platforms: all that depends on the operating system. One module or folder each, with the same names in each."""

from collections.abc import Iterator
from typing import Final, Literal

from ortrim.platforms import android, apple, linux
from ortrim.platforms.platform import Platform
from ortrim.spec.buildspec import TargetSpec
from ortrim.spec.problems import Location, Problem
from ortrim.spec.rules import stray_tables
from ortrim.spec.targets import TARGETS, OperatingSystem, Target

__all__ = ["BY_SYSTEM", "PLATFORMS", "Platform", "platform_of", "target_problems"]

BY_SYSTEM: Final[dict[OperatingSystem, Platform]] = {
    OperatingSystem.LINUX: linux,
    OperatingSystem.ANDROID: android,
    OperatingSystem.IOS: apple,
    OperatingSystem.MACOS: apple,
}
PLATFORMS: Final = tuple(dict.fromkeys(BY_SYSTEM.values()))


def platform_of(target: Target) -> Platform:
    """Return the platform that a target belongs to."""
    return BY_SYSTEM[target.system]


def target_problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what is wrong with a known target of a buildspec; see `spec.rules.TargetRules`."""
    platform = platform_of(TARGETS[target.id])
    yield from platform.problems(target, location, linkage)
    yield from stray_tables(target, location, platform.NAME)
