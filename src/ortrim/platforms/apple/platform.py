"""Apple's systems: one library for each architecture of a platform, and one xcframework of all.

See `platforms.platform.Platform`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from ortrim.binaries.apple import slice_of
from ortrim.buildspec.buildspec import FRAMEWORK_LINKAGE, AppleSpec, BuildSpec, TargetSpec
from ortrim.buildspec.problems import Location, Problem
from ortrim.buildspec.rules import DEFAULT_GLIBC, stray_keys
from ortrim.buildspec.targets import CATALYST, TARGETS, OperatingSystem, Target
from ortrim.compiling.execution import JobPaths
from ortrim.compiling.plan import AppleBuild, BuildJob, Toolchain
from ortrim.errors import PlanError, ToolError
from ortrim.pins.runtime import ApplePins, RuntimePins, runtime_pins
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.apple import arguments
from ortrim.platforms.apple.xcode import find_xcode, on_a_mac, require_sdks, sdk_folder, xcode_toolchain
from ortrim.platforms.apple.zig_toolchain import is_cross_built, offer_public_api_alone, zig_apple_toolchain
from ortrim.platforms.platform import Compilation, Platform

if TYPE_CHECKING:
    from ortrim.platforms.delivery import Packaging, Verifying
    from ortrim.verify.verification import Delivery

MAC: Final = "build on a Mac that has Xcode, or with --executor github"


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


class Apple(Platform):
    """Macs, phones, their simulators and Mac Catalyst: Xcode compiles for them, or for Macs zig."""

    NAME = "apple"
    SDK = "xcode"
    IN_AN_APP = ("cp -r {folder} MY-APP/    # a Swift package; a pod as well",)
    KEPT: ClassVar[Mapping[str, Any]] = {"unwind_tables": True, "frame_pointers": True}

    build_arguments = staticmethod(arguments.build_arguments)
    runner_arguments = staticmethod(arguments.runner_arguments)
    finishing = staticmethod(arguments.finishing)
    expected_outputs = staticmethod(arguments.expected_outputs)
    assembly = staticmethod(arguments.assembly)

    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield the keys that Xcode decides, and the deployment target of another system."""
        key, compiled = deployment_key(target.id), "its libraries are compiled by Xcode, or for Macs by zig"
        stray = (
            ("compiler", target.compiler != "zig", compiled, "apple.xcode"),
            ("glibc", target.glibc != DEFAULT_GLIBC, "its C library is the system's", f"apple.{key}"),
            ("cpu", target.cpu is not None, "it has few processors; better ones are detected at run time", ""),
            ("linkage", target.linkage is not None, "an xcframework holds frameworks", "apple.framework"),
        )
        yield from stray_keys(stray, location, "Apple's systems")
        (other,) = {"ios_deployment_target", "macos_deployment_target"} - {key}
        if target.apple is not None and getattr(target.apple, other) is not None:
            what = f"has no meaning for {target.id}, which goes by '{key}'"
            yield Problem(code="stray-key", location=(*location, "apple", other), what=what)

    def linkage(self, spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
        """Return how apps link the framework; a dynamic one is linked as a shared library."""
        framework = apple_of(spec, target).framework
        return target.linkage or (FRAMEWORK_LINKAGE[framework] if framework else spec.linkage)

    def with_defaults(self, spec: BuildSpec, target: TargetSpec) -> TargetSpec:
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

    def providers(self, spec: BuildSpec, target: TargetSpec) -> tuple[str, ...]:
        """Return CoreML, where it is asked for."""
        return tuple(sorted(set(apple_of(spec, target).providers or ())))

    def with_options(self, job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
        """Return the job with its deployment target and its execution providers; see `with_defaults`."""
        minimum = deployment_target_of(spec, target)
        assert minimum is not None
        return replace(job, apple=AppleBuild(deployment_target=minimum, providers=self.providers(spec, target)))

    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return Xcode, which need not be installed, or the hermetic toolchain; see `with_defaults`.

        Xcode's version is the buildspec's, or else this Mac's own, or the one that GitHub's machines are told to take.
        Raises `PlanError` `no-xcode-version`.
        """
        minimum = deployment_target_of(spec, target)
        assert minimum is not None
        if _is_cross_built(target, asked):
            return zig_apple_toolchain(TARGETS[target.id], minimum, dict(tool_versions())["ziglang"])
        return xcode_toolchain(TARGETS[target.id], minimum, self._xcodes_version(spec, target, asked))

    def require_tools(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
        """Refuse what cannot be compiled here.

        Raises `ToolError` `needs-mac` for what only Xcode compiles, and as `find_xcode` and `require_sdks` do.
        """
        if asked.elsewhere or asked.on_macs:
            return
        for target in targets:
            if _is_cross_built(target, asked):
                self._require_simple(spec, target)
            elif asked.container is not None or not on_a_mac():
                raise _needs_mac(target, "it is compiled with Xcode, which runs only on a Mac and in no container")
            else:
                require_sdks(find_xcode(apple_of(spec, target).xcode), (sdk_folder(slice_of(TARGETS[target.id])),))

    def installed(self, toolchain: Toolchain, named: Path | None) -> Mapping[str, Path]:
        """Return the folder of Xcode, where that compiles. Raises `ToolError` as `find_xcode` does."""
        return {"xcode": find_xcode(toolchain.version).folder} if toolchain.kind == "xcode" else {}

    def build_machine(self, target: Target) -> str:
        """Return a Mac, which Xcode needs."""
        return "macos-arm64"

    def require_sdk(self, version: str, targets: Sequence[Target]) -> None:
        """Refuse a Mac without that Xcode, or its SDKs for them. Raises as `find_xcode` and `require_sdks` do."""
        require_sdks(find_xcode(version), tuple(sdk_folder(slice_of(target)) for target in targets))

    def pinned_sdk(self, pins: RuntimePins) -> str | None:
        """Return the version of Xcode that GitHub's machines are told to take."""
        return pins.apple.xcode if pins.apple else None

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Leave a cross-built library the names that upstream has it export. Raises as `offer_public_api_alone`."""
        if is_cross_built(job):
            offer_public_api_alone(job, paths)

    def package(self, packaging: "Packaging") -> "list[Delivery]":
        """Make one package of all slices."""
        from ortrim.platforms.apple.delivery import deliver  # noqa: PLC0415 - see `Platform.package`

        return deliver(packaging)

    def verifying(self) -> "Verifying":
        """Return the rules of Macs, phones and simulators."""
        from ortrim.platforms.apple.devices import AppleDevices  # noqa: PLC0415 - see `Platform.package`

        return AppleDevices()

    def _require_simple(self, spec: BuildSpec, target: TargetSpec) -> None:
        """Refuse what zig cannot do: it has no frameworks of Apple's, and joins no static libraries."""
        if self.linkage(spec, target) == "static":
            raise _needs_mac(target, "a static framework is joined with the linker of Xcode")
        if self.providers(spec, target):
            raise _needs_mac(target, "CoreML is a framework of Apple's, which comes only with Xcode")

    def _xcodes_version(self, spec: BuildSpec, target: TargetSpec, asked: Compilation) -> str:
        named = apple_of(spec, target).xcode
        if named is None and on_a_mac() and not asked.on_macs:
            with suppress(ToolError):  # A plan can be shown without it; `require_tools` says what is wrong.
                named = find_xcode().version
        version = named or self.pinned_sdk(runtime_pins(spec.onnxruntime.version))
        if version is None:
            what = f"no version of Xcode is pinned for ONNX Runtime {spec.onnxruntime.version}"
            hint = 'set one in the buildspec, as apple.xcode = "16.4"'
            raise PlanError("no-xcode-version", what, where=target.id, hint=hint)
        return version


def _is_cross_built(target: TargetSpec, asked: Compilation) -> bool:
    """Whether the hermetic toolchain compiles a library for Macs: on other machines, where GitHub's are not asked.

    Libraries for phones and Mac Catalyst are not: what they are compiled with comes with Xcode alone.
    """
    mac = TARGETS[target.id].system is OperatingSystem.MACOS and target.id != CATALYST
    return mac and not asked.on_macs and not on_a_mac()


def _lowest(pins: ApplePins, target: TargetSpec) -> str:
    if target.id == CATALYST:
        return pins.maccatalyst
    return pins.macos if TARGETS[target.id].system is OperatingSystem.MACOS else pins.ios


def _needs_mac(target: TargetSpec, why: str) -> ToolError:
    return ToolError("needs-mac", "cannot be compiled on this machine", where=target.id, why=why, hint=MAC)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
