"""What of a buildspec concerns Apple's systems: the choices for a target, and what is wrong with them. Pure."""

from collections.abc import Iterator
from typing import Literal

from ortrim.spec.buildspec import FRAMEWORK_LINKAGE, AppleSpec, BuildSpec, TargetSpec
from ortrim.spec.problems import Location, Problem
from ortrim.spec.rules import DEFAULT_GLIBC, stray_keys
from ortrim.spec.targets import CATALYST, TARGETS, OperatingSystem


def linkage(spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
    """Return how apps link the framework; a dynamic one is linked as a shared library."""
    framework = apple_of(spec, target).framework
    return target.linkage or (FRAMEWORK_LINKAGE[framework] if framework else spec.linkage)


def apple_of(spec: BuildSpec, target: TargetSpec) -> AppleSpec:
    """Return the choices for one Apple target; None where the default depends on more than the buildspec."""
    return spec.apple.replaced_by(target.apple) if target.apple else spec.apple


def deployment_key(identifier: str) -> Literal["ios_deployment_target", "macos_deployment_target"]:
    """Return the key that holds an Apple target's deployment target; Mac Catalyst goes by versions of iOS."""
    mac = TARGETS[identifier].system is OperatingSystem.MACOS and identifier != CATALYST
    return "macos_deployment_target" if mac else "ios_deployment_target"


def deployment_target_of(spec: BuildSpec, target: TargetSpec) -> str | None:
    """Return the oldest system that is asked for of an Apple target; None when nothing is asked."""
    chosen = apple_of(spec, target)
    asked: str | None = getattr(chosen, deployment_key(target.id))
    return asked


def problems(target: TargetSpec, location: Location, _linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that Xcode decides, and the deployment target of another system."""
    stray = (
        (
            "compiler",
            target.compiler != "zig",
            "its libraries are compiled by Xcode, or for Macs by zig",
            "apple.xcode",
        ),
        (
            "glibc",
            target.glibc != DEFAULT_GLIBC,
            "its C library is the system's",
            f"apple.{deployment_key(target.id)}",
        ),
        ("cpu", target.cpu is not None, "it has few processors; better ones are detected at run time", ""),
        ("linkage", target.linkage is not None, "an xcframework holds frameworks", "apple.framework"),
    )
    yield from stray_keys(stray, location, "Apple's systems")
    other = {"ios_deployment_target", "macos_deployment_target"} - {deployment_key(target.id)}
    for key in other:
        if target.apple is not None and getattr(target.apple, key) is not None:
            what = f"has no meaning for {target.id}, which goes by '{deployment_key(target.id)}'"
            yield Problem(code="stray-key", location=(*location, "apple", key), what=what)
