"""The NDK of each Android target: which version it is compiled with, and whether that is here."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ortrim.build.plan import BuildJob, Toolchain
from ortrim.errors import PlanError, UsageError
from ortrim.pins.runtime import RuntimePins, runtime_pins
from ortrim.platforms.android.jni import find_jdk
from ortrim.platforms.android.ndk import find_ndk, ndk_toolchain
from ortrim.platforms.android.spec import android_of
from ortrim.platforms.platform import Compilation
from ortrim.spec.buildspec import BuildSpec, TargetSpec
from ortrim.spec.targets import TARGETS, Target


def toolchain(spec: BuildSpec, target: TargetSpec, _asked: Compilation, _host: Callable[[], Target]) -> Toolchain:
    """Return the NDK, which need not be installed. Raises `PlanError` `no-ndk-version`."""
    api = android_of(spec, target).api
    assert api is not None
    return ndk_toolchain(TARGETS[target.id], api, _version(spec, target))


def toolchain_of(job: BuildJob) -> Toolchain | None:
    """Return the NDK of the job's version and API level."""
    if job.android is None or job.toolchain.kind != "ndk":
        return None
    return ndk_toolchain(job.target, job.android.api, job.toolchain.version)


def require_tools(spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
    """Refuse what cannot be made here: a library for want of an NDK, an AAR for want of a JDK.

    A container's image and another machine have NDKs of their own; classes are compiled here in any case. Raises
    `ToolError` as `find_ndk` and `find_jdk` do, and `UsageError` for an NDK that nothing would be compiled with.
    """
    if asked.ndk is not None and not targets:
        hint = "leave it out, or choose a target of Android's: --target android"
        raise UsageError("bad-option", "none of the targets is compiled with an NDK", where="--ndk", hint=hint)
    if asked.container is None and not asked.elsewhere:
        for target in targets:
            find_ndk(_version(spec, target), named=asked.ndk, api=android_of(spec, target).api)
    if targets:
        find_jdk()


def installed(toolchain: Toolchain, named: Path | None) -> Mapping[str, Path]:
    """Return the folder of the NDK. Raises `ToolError` as `find_ndk` does."""
    return {"ndk": find_ndk(toolchain.version, named=named).folder}


def require_sdk(version: str, _targets: Sequence[Target]) -> None:
    """Refuse a machine without the NDK. Raises as `find_ndk` does."""
    find_ndk(version)


def sdk_package(version: str) -> str:
    """Return the NDK's name."""
    return f"ndk;{version}"


def require_package_tools(targets: Sequence[Target]) -> None:
    """Refuse a machine without a JDK, with which JNI libraries and the classes of an AAR are made. See `find_jdk`."""
    if targets:
        find_jdk()


def pinned_sdk(pins: RuntimePins) -> str | None:
    """Return the version of the NDK that upstream builds with."""
    return pins.ndk


def warnings(spec: BuildSpec, targets: Sequence[TargetSpec]) -> tuple[str, ...]:
    """Return a warning for each target with NNAPI."""
    return tuple(
        f"{target.id}: Android 15 deprecates nnapi; xnnpack, on the processor's cores, is what stays"
        for target in targets
        if "nnapi" in (android_of(spec, target).providers or ())
    )


def build_machine(_target: Target) -> str:
    """Return x86-64: Google publishes no NDK for another Linux machine."""
    return "linux-x64"


def _version(spec: BuildSpec, target: TargetSpec) -> str:
    version = android_of(spec, target).ndk or pinned_sdk(runtime_pins(spec.onnxruntime.version))
    if version is None:
        what = f"no NDK is pinned for ONNX Runtime {spec.onnxruntime.version}"
        hint = 'set one in the buildspec, as android.ndk = "27.2.12479018"'
        raise PlanError("no-ndk-version", what, where=target.id, hint=hint)
    return version
