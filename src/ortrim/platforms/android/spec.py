"""What of a buildspec concerns Android: the choices for a target, and what is wrong with them. Pure."""

from collections.abc import Iterator
from typing import Literal

from ortrim.spec.buildspec import DEFAULT_ANDROID, AndroidSpec, BuildSpec, TargetSpec
from ortrim.spec.problems import Location, Problem
from ortrim.spec.rules import DEFAULT_GLIBC, stray_keys


def linkage(spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
    """Return how apps link the library; `problems` refuses a static one."""
    return target.linkage or spec.linkage


def android_of(spec: BuildSpec, target: TargetSpec) -> AndroidSpec:
    """Return the choices for one Android target; all are made but `ndk`, which is None for the pinned version."""
    common = DEFAULT_ANDROID.replaced_by(spec.android)
    return common.replaced_by(target.android) if target.android else common


def problems(target: TargetSpec, location: Location, linkage: Literal["shared", "static"]) -> Iterator[Problem]:
    """Yield the keys that the NDK decides; an ABI is a floor already, and packages hold shared libraries."""
    stray = (
        ("compiler", target.compiler != "zig", "libraries for Android are compiled by the NDK", "android.ndk"),
        ("glibc", target.glibc != DEFAULT_GLIBC, "Android's C library is bionic", "android.api"),
        ("cpu", target.cpu is not None, "the ABI defines the baseline CPU; better ones are detected at run time", ""),
    )
    yield from stray_keys(stray, location, "Android")
    if (target.linkage or linkage) == "static":
        key = "id" if target.linkage is None else "linkage"
        what = "cannot be a static library, as 'linkage' says" if key == "id" else "has no meaning for Android"
        why = "an AAR holds shared libraries, which Java loads"
        hint = "use linkage = 'shared' for this target"
        yield Problem(code="stray-key", location=(*location, key), what=what, why=why, hint=hint)
