"""What holds between the keys of one target of a buildspec."""

from collections.abc import Iterator
from typing import Final, Literal

from ortrim.core.buildspec_choices import deployment_key
from ortrim.core.processors import CPUS
from ortrim.core.target_spec import TargetSpec
from ortrim.core.targets import APPLE, TARGETS, CLibrary, OperatingSystem, meant_by
from ortrim.spec.problems import Location, Problem, listed, nearest, shown

DEFAULT_GLIBC: Final = TargetSpec(id="").glibc
ZIG_ONLY: Final = "has a meaning only with compiler = 'zig'"


def target_problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield what is wrong with a target whose keys and types are right; `linkage` is what holds for all targets."""
    if target.id not in TARGETS:
        several = f"choose {listed(meant)}" if (meant := meant_by(target.id)) else ""
        hint = several or nearest(target.id, TARGETS, otherwise=f"the targets are {listed(list(TARGETS), 'and')}")
        what = f"is {shown(target.id)}, which is not a target"
        yield Problem(reference="unknown-target", location=(*location, "id"), what=what, hint=hint)
    elif TARGETS[target.id].system is OperatingSystem.ANDROID:
        yield from _android(target, location, linkage)
        yield from _no_apple(target, location)
        return
    elif TARGETS[target.id].system in APPLE:
        yield from _apple(target, location)
        yield from _no_android(target, location)
        return
    else:
        yield from _c_library(target, location)
        yield from _processor(target, location)
        yield from _no_android(target, location)
        yield from _no_apple(target, location)
    if target.compiler != "zig":
        yield from _system_compiler(target, location, linkage)


def _c_library(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if TARGETS[target.id].c_library is not CLibrary.GLIBC and target.glibc != DEFAULT_GLIBC:
        what, why = "has no meaning for this target", f"{target.id} is built against {TARGETS[target.id].c_library}"
        yield Problem(reference="stray-key", location=(*location, "glibc"), what=what, why=why)


def _processor(target: TargetSpec, location: Location) -> Iterator[Problem]:
    known = CPUS[TARGETS[target.id].architecture]
    if target.cpu is not None and target.cpu not in known:
        what = f"is {shown(target.cpu)}, which is no processor that {target.id} can be built for"
        hint = f"choose among {listed(list(known), 'and')}, or leave 'cpu' out for any processor of the architecture"
        yield Problem(reference="unknown-cpu", location=(*location, "cpu"), what=what, hint=hint)


def _system_compiler(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that only the pinned toolchain can follow."""
    if target.glibc != DEFAULT_GLIBC:
        why = f"{target.compiler} links against the glibc of the system that it runs on"
        yield Problem(reference="stray-key", location=(*location, "glibc"), what=ZIG_ONLY, why=why)
    if target.cpu is not None:
        why = f"{target.compiler} compiles for what it takes for this machine's architecture"
        yield Problem(reference="stray-key", location=(*location, "cpu"), what=ZIG_ONLY, why=why)
    if (target.linkage or linkage) == "static":
        key = "compiler" if target.linkage is None else "linkage"
        what = "cannot make a static library" if target.linkage is None else ZIG_ONLY
        why = f"the archive is joined with zig's linker; {target.compiler}'s C++ library would be missing from it"
        hint = "use compiler = 'zig', or linkage = 'shared' for this target"
        yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)


def _no_android(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if target.android is not None:
        what = f"has a meaning only for Android, and the target is {target.id}"
        yield Problem(reference="stray-key", location=(*location, "android"), what=what)


def _no_apple(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if target.apple is not None:
        what = f"has a meaning only for Apple's systems, and the target is {target.id}"
        yield Problem(reference="stray-key", location=(*location, "apple"), what=what)


def _apple(target: TargetSpec, location: Location) -> Iterator[Problem]:
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
            "its C library is the system's own",
            f"apple.{deployment_key(target.id)}",
        ),
        ("cpu", target.cpu is not None, "its processors are few; better ones are found at run time", ""),
        ("linkage", target.linkage is not None, "an xcframework holds frameworks", "apple.framework"),
    )
    for key, given, why, instead in stray:
        if given:
            hint = f"leave it out; '{instead}' is what there is to choose" if instead else "leave it out"
            what = "has no meaning for Apple's systems"
            yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)
    other = {"ios_deployment_target", "macos_deployment_target"} - {deployment_key(target.id)}
    for key in other:
        if target.apple is not None and getattr(target.apple, key) is not None:
            what = f"has no meaning for {target.id}, which goes by '{deployment_key(target.id)}'"
            yield Problem(reference="stray-key", location=(*location, "apple", key), what=what)


def _android(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that the NDK decides; an ABI is a floor already, and packages hold shared libraries."""
    stray = (
        ("compiler", target.compiler != "zig", "libraries for Android are compiled by the NDK", "android.ndk"),
        ("glibc", target.glibc != DEFAULT_GLIBC, "Android's C library is bionic", "android.api"),
        ("cpu", target.cpu is not None, "the ABI is the least processor; better ones are found at run time", ""),
    )
    for key, given, why, instead in stray:
        if given:
            hint = f"leave it out; '{instead}' is what there is to choose" if instead else "leave it out"
            what = "has no meaning for Android"
            yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)
    if (target.linkage or linkage) == "static":
        key = "id" if target.linkage is None else "linkage"
        what = "cannot be a static library, which 'linkage' asks for" if key == "id" else "has no meaning for Android"
        why = "an AAR holds shared libraries, which Java loads"
        hint = "use linkage = 'shared' for this target"
        yield Problem(reference="stray-key", location=(*location, key), what=what, why=why, hint=hint)
