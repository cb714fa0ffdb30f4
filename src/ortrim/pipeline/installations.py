"""The NDK of each Android target: which version it is compiled with, and whether that is here.

- What compiles for each Apple target, for which oldest system, and whether it can be done here.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ortrim.binaries.apple import slice_of
from ortrim.build.jni import find_jdk
from ortrim.build.ndk import find_ndk, ndk_toolchain
from ortrim.build.plan import Toolchain
from ortrim.build.xcode import find_xcode, on_a_mac, require_sdks, sdk_folder, xcode_toolchain
from ortrim.build.zig_apple import zig_apple_toolchain
from ortrim.errors import PlanError, ToolError, UsageError
from ortrim.pins.runtime import ApplePins, runtime_pins
from ortrim.pins.shipped import tool_versions
from ortrim.pipeline.request import Request
from ortrim.spec.buildspec import (
    AppleSpec,
    BuildSpec,
    TargetSpec,
    android_of,
    apple_of,
    deployment_key,
    deployment_target_of,
    linkage_of,
)
from ortrim.spec.targets import APPLE, CATALYST, TARGETS, OperatingSystem


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


MAC: Final = "build on a Mac that has Xcode, or with --executor github"


def is_apple(target: TargetSpec) -> bool:
    """Whether a target of a buildspec is for one of Apple's systems."""
    return TARGETS[target.id].system in APPLE


def with_deployment_targets(spec: BuildSpec, targets: Iterable[TargetSpec]) -> tuple[TargetSpec, ...]:
    """Return targets with a deployment target for each of Apple's: the one that is asked for, or the lowest there is.

    Raises `PlanError`: `no-deployment-target` (none is asked for and the version's lowest is not known),
    `deployment-target-too-low`.
    """
    return tuple(_with_deployment_target(spec, target) if is_apple(target) else target for target in targets)


def is_cross_built(target: TargetSpec, request: Request) -> bool:
    """Whether the hermetic toolchain compiles a library for Macs: on other machines, where GitHub's are not asked.

    Libraries for phones and Mac Catalyst are not: what they are compiled with comes with Xcode alone.
    """
    mac = TARGETS[target.id].system is OperatingSystem.MACOS and target.id != CATALYST
    return mac and not request.on_macs and not on_a_mac()


def toolchain_for_apple(spec: BuildSpec, target: TargetSpec, request: Request) -> Toolchain:
    """Return Xcode as what compiles for an Apple target, which need not be installed; see `with_deployment_targets`.

    Its version is the buildspec's, or else this Mac's own, or the one that GitHub's machines are told to take. Raises
    `PlanError` `no-xcode-version`.
    """
    floor = deployment_target_of(spec, target)
    assert floor is not None
    return xcode_toolchain(TARGETS[target.id], floor, _xcodes_version(spec, target, request))


def toolchain_for_macs(spec: BuildSpec, target: TargetSpec) -> Toolchain:
    """Return the hermetic toolchain for a target that `is_cross_built`; see `with_deployment_targets`."""
    floor = deployment_target_of(spec, target)
    assert floor is not None
    return zig_apple_toolchain(TARGETS[target.id], floor, dict(tool_versions())["ziglang"])


def require_apple_tools(spec: BuildSpec, targets: Iterable[TargetSpec], request: Request) -> None:
    """Refuse, before any work, what cannot be compiled here.

    Raises `ToolError` `needs-mac` for what only Xcode compiles, and as `find_xcode` and `require_sdks` do.
    """
    if request.elsewhere or request.on_macs:
        return
    for target in filter(is_apple, targets):
        if is_cross_built(target, request):
            _require_simple(spec, target)
        elif request.container is not None or not on_a_mac():
            raise _needs_mac(target, "it is compiled with Xcode, which runs on a Mac alone and in no container")
        else:
            require_sdks(find_xcode(apple_of(spec, target).xcode), (sdk_folder(slice_of(TARGETS[target.id])),))


def _with_deployment_target(spec: BuildSpec, target: TargetSpec) -> TargetSpec:
    key, asked = deployment_key(target.id), deployment_target_of(spec, target)
    pins = runtime_pins(spec.onnxruntime.version).apple
    lowest = _lowest(pins, target) if pins else None
    if asked is None and lowest is None:
        what = f"the lowest that ONNX Runtime {spec.onnxruntime.version} is made for is not known"
        hint = f"say which one in the buildspec, as apple.{key}"
        raise PlanError("no-deployment-target", what, where=target.id, hint=hint)
    if asked is not None and lowest is not None and _number(asked) < _number(lowest):
        what = f"apple.{key} is {asked}, and ONNX Runtime {spec.onnxruntime.version} is made for {lowest} and newer"
        why = "on older systems the C++ library lacks what it uses"
        hint = f'say apple.{key} = "{lowest}", or leave it out'
        raise PlanError("deployment-target-too-low", what, where=target.id, why=why, hint=hint)
    floor, chosen = asked or lowest, target.apple or AppleSpec()
    if key == "ios_deployment_target":
        return replace(target, apple=replace(chosen, ios_deployment_target=floor))
    return replace(target, apple=replace(chosen, macos_deployment_target=floor))


def _lowest(pins: ApplePins, target: TargetSpec) -> str:
    if target.id == CATALYST:
        return pins.maccatalyst
    return pins.macos if TARGETS[target.id].system is OperatingSystem.MACOS else pins.ios


def _xcodes_version(spec: BuildSpec, target: TargetSpec, request: Request) -> str:
    named = apple_of(spec, target).xcode
    if named is None and on_a_mac() and not request.on_macs:
        with suppress(ToolError):  # A plan can be shown without it; `require_apple_tools` says what is wrong.
            named = find_xcode().version
    pins = runtime_pins(spec.onnxruntime.version).apple
    version = named or (pins.xcode if pins else None)
    if version is None:
        what = f"no version of Xcode is pinned for ONNX Runtime {spec.onnxruntime.version}"
        hint = 'say which one in the buildspec, as apple.xcode = "16.4"'
        raise PlanError("no-xcode-version", what, where=target.id, hint=hint)
    return version


def _require_simple(spec: BuildSpec, target: TargetSpec) -> None:
    """Refuse what the hermetic toolchain cannot do: it has no frameworks of Apple's, and joins no static libraries."""
    if linkage_of(spec, target) == "static":
        raise _needs_mac(target, "a static framework is joined with the linker of Xcode")
    if apple_of(spec, target).providers:
        raise _needs_mac(target, "CoreML is a framework of Apple's, which comes with Xcode alone")


def _needs_mac(target: TargetSpec, why: str) -> ToolError:
    return ToolError("needs-mac", "cannot be compiled on this machine", where=target.id, why=why, hint=MAC)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
