"""Platforms: all that depends on the operating system, in a folder and behind a `Platform` each."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeVar

from ortrim.buildspec.buildspec import TargetSpec
from ortrim.buildspec.problems import Location, Problem
from ortrim.buildspec.rules import stray_tables
from ortrim.buildspec.targets import OperatingSystem, Target
from ortrim.platforms.android.platform import Android
from ortrim.platforms.apple.platform import Apple
from ortrim.platforms.linux.platform import Linux
from ortrim.platforms.platform import Platform

__all__ = [
    "ANDROID", "APPLE", "BY_SYSTEM", "LINUX", "PLATFORMS", "Platform", "by_platform", "platform_of", "target_problems",
]  # fmt: skip

T = TypeVar("T")

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


def by_platform(items: Iterable[T], target_of: Callable[[T], Target]) -> tuple[tuple[Platform, tuple[T, ...]], ...]:
    """Return each platform with those of some items whose target is its own, which may be none."""
    every = tuple(items)
    return tuple((each, tuple(item for item in every if platform_of(target_of(item)) is each)) for each in PLATFORMS)


def target_problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what is wrong with a known target of a buildspec; see `buildspec.rules.TargetRules`."""
    platform = platform_of(target.target)
    yield from platform.problems(target, location, linkage)
    yield from stray_tables(target, location, platform.NAME)
