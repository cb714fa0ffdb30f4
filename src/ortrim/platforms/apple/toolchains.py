"""What compiles for each Apple target, for which oldest system, and whether it can be done here."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.binaries.apple import slice_of
from ortrim.build.plan import BuildJob, Toolchain
from ortrim.errors import PlanError, ToolError
from ortrim.pins.runtime import ApplePins, RuntimePins, runtime_pins
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.apple.spec import apple_of, deployment_key, deployment_target_of, linkage
from ortrim.platforms.apple.xcode import find_xcode, on_a_mac, require_sdks, sdk_folder, xcode_toolchain
from ortrim.platforms.apple.zig_toolchain import zig_apple_toolchain
from ortrim.platforms.platform import Compilation
from ortrim.spec.buildspec import AppleSpec, BuildSpec, TargetSpec
from ortrim.spec.targets import CATALYST, TARGETS, OperatingSystem, Target

MAC: Final = "build on a Mac that has Xcode, or with --executor github"


def toolchain(spec: BuildSpec, target: TargetSpec, asked: Compilation, _host: Callable[[], Target]) -> Toolchain:
    """Return Xcode, which need not be installed, or the hermetic toolchain; see `with_defaults`.

    Xcode's version is the buildspec's, or else this Mac's own, or the one that GitHub's runners select.
    Raises `PlanError` `no-xcode-version`.
    """
    minimum = deployment_target_of(spec, target)
    assert minimum is not None
    if _is_cross_built(target, asked):
        return zig_apple_toolchain(TARGETS[target.id], minimum, dict(tool_versions())["ziglang"])
    return xcode_toolchain(TARGETS[target.id], minimum, _xcodes_version(spec, target, asked))


def toolchain_of(job: BuildJob) -> Toolchain | None:
    """Return what compiles a job, Xcode or zig."""
    if job.apple is None:
        return None
    if job.toolchain.kind == "xcode":
        return xcode_toolchain(job.target, job.apple.deployment_target, job.toolchain.version)
    if job.toolchain.kind == "zig":
        return zig_apple_toolchain(job.target, job.apple.deployment_target, dict(tool_versions())["ziglang"])
    return None


def require_tools(spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
    """Refuse what cannot be compiled here.

    Raises `ToolError` `needs-mac` for what only Xcode compiles, and as `find_xcode` and `require_sdks` do.
    """
    if asked.elsewhere or asked.on_macs:
        return
    for target in targets:
        if _is_cross_built(target, asked):
            _require_simple(spec, target)
        elif asked.container is not None or not on_a_mac():
            raise _needs_mac(target, "it is compiled with Xcode, which runs only on a Mac and in no container")
        else:
            require_sdks(find_xcode(apple_of(spec, target).xcode), (sdk_folder(slice_of(TARGETS[target.id])),))


def installed(toolchain: Toolchain, _named: Path | None) -> Mapping[str, Path]:
    """Return the folder of Xcode, where that compiles. Raises `ToolError` as `find_xcode` does."""
    return {"xcode": find_xcode(toolchain.version).folder} if toolchain.kind == "xcode" else {}


def require_sdk(version: str, targets: Sequence[Target]) -> None:
    """Refuse a Mac without that Xcode, or its SDKs for the targets. Raises as `find_xcode` and `require_sdks` do."""
    require_sdks(find_xcode(version), tuple(sdk_folder(slice_of(target)) for target in targets))


def pinned_sdk(pins: RuntimePins) -> str | None:
    """Return the version of Xcode that GitHub's machines are told to take."""
    return pins.apple.xcode if pins.apple else None


def build_machine(_target: Target) -> str:
    """Return a Mac, which Xcode needs."""
    return "macos-arm64"


def _is_cross_built(target: TargetSpec, asked: Compilation) -> bool:
    """Whether the hermetic toolchain compiles a library for Macs: on other machines, where GitHub's are not asked.

    Libraries for phones and Mac Catalyst are not: what they are compiled with comes with Xcode alone.
    """
    mac = TARGETS[target.id].system is OperatingSystem.MACOS and target.id != CATALYST
    return mac and not asked.on_macs and not on_a_mac()


def with_defaults(spec: BuildSpec, target: TargetSpec) -> TargetSpec:
    """Return a target with its deployment target: the one that is asked for, or the lowest there is.

    Raises `PlanError`: `no-deployment-target` (none is asked for and the version's lowest is not known),
    `deployment-target-too-low`.
    """
    key, asked = deployment_key(target.id), deployment_target_of(spec, target)
    pins = runtime_pins(spec.onnxruntime.version).apple
    lowest = _lowest(pins, target) if pins else None
    if asked is None and lowest is None:
        what = f"the lowest that ONNX Runtime {spec.onnxruntime.version} is made for is not known"
        hint = f"set one in the buildspec, as apple.{key}"
        raise PlanError("no-deployment-target", what, where=target.id, hint=hint)
    if asked is not None and lowest is not None and _number(asked) < _number(lowest):
        what = f"apple.{key} is {asked}, and ONNX Runtime {spec.onnxruntime.version} is made for {lowest} and newer"
        why = "on older systems the C++ library lacks what it uses"
        hint = f'say apple.{key} = "{lowest}", or leave it out'
        raise PlanError("deployment-target-too-low", what, where=target.id, why=why, hint=hint)
    minimum, chosen = asked or lowest, target.apple or AppleSpec()
    if key == "ios_deployment_target":
        return replace(target, apple=replace(chosen, ios_deployment_target=minimum))
    return replace(target, apple=replace(chosen, macos_deployment_target=minimum))


def _lowest(pins: ApplePins, target: TargetSpec) -> str:
    if target.id == CATALYST:
        return pins.maccatalyst
    return pins.macos if TARGETS[target.id].system is OperatingSystem.MACOS else pins.ios


def _xcodes_version(spec: BuildSpec, target: TargetSpec, asked: Compilation) -> str:
    named = apple_of(spec, target).xcode
    if named is None and on_a_mac() and not asked.on_macs:
        with suppress(ToolError):  # A plan can be shown without it; `require_tools` says what is wrong.
            named = find_xcode().version
    version = named or pinned_sdk(runtime_pins(spec.onnxruntime.version))
    if version is None:
        what = f"no version of Xcode is pinned for ONNX Runtime {spec.onnxruntime.version}"
        hint = 'set one in the buildspec, as apple.xcode = "16.4"'
        raise PlanError("no-xcode-version", what, where=target.id, hint=hint)
    return version


def _require_simple(spec: BuildSpec, target: TargetSpec) -> None:
    """Refuse what the hermetic toolchain cannot do: it has no frameworks of Apple's, and joins no static libraries."""
    if linkage(spec, target) == "static":
        raise _needs_mac(target, "a static framework is joined with the linker of Xcode")
    if apple_of(spec, target).providers:
        raise _needs_mac(target, "CoreML is a framework of Apple's, which comes only with Xcode")


def _needs_mac(target: TargetSpec, why: str) -> ToolError:
    return ToolError("needs-mac", "cannot be compiled on this machine", where=target.id, why=why, hint=MAC)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
