"""The NDK of each Android target: which version it is compiled with, and whether that is here."""

from collections.abc import Iterable

from ortrim.core.buildspec import BuildSpec
from ortrim.core.buildspec_choices import android_of
from ortrim.core.plan import Toolchain
from ortrim.core.target_spec import TargetSpec
from ortrim.core.targets import TARGETS, OperatingSystem
from ortrim.errors import PlanError, UsageError
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.converted import Request
from ortrim.toolchains.ndk import ndk_toolchain
from ortrim.tools.javac import find_jdk
from ortrim.tools.ndk import find_ndk


def is_android(target: TargetSpec) -> bool:
    """Whether a target of a buildspec is compiled with the NDK."""
    return TARGETS[target.id].system is OperatingSystem.ANDROID


def toolchain_for_android(spec: BuildSpec, target: TargetSpec) -> Toolchain:
    """Return what compiles for an Android target, which need not be installed. Raises `PlanError` `no-ndk-version`."""
    api = android_of(spec, target).api
    assert api is not None
    return ndk_toolchain(TARGETS[target.id], api, _version(spec, target))


def require_android_tools(spec: BuildSpec, targets: Iterable[TargetSpec], request: Request) -> None:
    """Refuse, before any work, what cannot be made here: a library for want of an NDK, an AAR for want of a JDK.

    A container's image and another machine have NDKs of their own; classes are compiled here in any case. Raises
    `ToolError` as `find_ndk` and `find_jdk` do, and `UsageError` for an NDK that nothing would be compiled with.
    """
    android = tuple(filter(is_android, targets))
    if request.ndk is not None and not android:
        hint = "leave it out, or choose a target of Android's: --target android"
        raise UsageError("bad-option", "none of the targets is compiled with an NDK", where="--ndk", hint=hint)
    if request.container is None and not request.elsewhere:
        for target in android:
            find_ndk(_version(spec, target), named=request.ndk, api=android_of(spec, target).api)
    if android:
        find_jdk()


def warnings_on_android(spec: BuildSpec, targets: Iterable[TargetSpec]) -> tuple[str, ...]:
    """Return what should be said aloud of choices that are possible and not wise."""
    return tuple(
        f"{target.id}: Android 15 deprecates nnapi; xnnpack, on the processor's cores, is what stays"
        for target in filter(is_android, targets)
        if "nnapi" in (android_of(spec, target).providers or ())
    )


def _version(spec: BuildSpec, target: TargetSpec) -> str:
    version = android_of(spec, target).ndk or runtime_pins(spec.onnxruntime.version).ndk
    if version is None:
        what = f"no NDK is pinned for ONNX Runtime {spec.onnxruntime.version}"
        hint = 'say which one in the buildspec, as android.ndk = "27.2.12479018"'
        raise PlanError("no-ndk-version", what, where=target.id, hint=hint)
    return version
