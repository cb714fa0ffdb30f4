"""Linux: one library, shared or static, for each architecture and C library. See `platforms.platform.Platform`."""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ortrim.base.tools import EMULATIONS, Emulation
from ortrim.buildspec.buildspec import BuildSpec, ExtraPackage, TargetSpec
from ortrim.buildspec.problems import Location, Problem, listed, shown
from ortrim.buildspec.rules import DEFAULT_GLIBC, system_compiler_problems
from ortrim.buildspec.targets import CPUS, Architecture, CLibrary, Target, minimum_glibc
from ortrim.compiling.plan import SYMBOLS, BuildJob, Toolchain
from ortrim.compiling.toolchains import system_toolchain, zig_toolchain
from ortrim.compiling.workspace import JobPaths
from ortrim.devices import kinds
from ortrim.errors import PlanError
from ortrim.models import full_runtime
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.linux import arguments
from ortrim.platforms.platform import Compilation, Packaging, Platform

if TYPE_CHECKING:
    from ortrim.binaries.elf import LibrarySize
    from ortrim.devices.device import ProgramDevice
    from ortrim.package.manifest import PackageInputs
    from ortrim.package.unity import UnityPlugin
    from ortrim.verify.measure import Baseline
    from ortrim.verify.target import Delivery


class Linux(Platform):
    """Linux on this machine's processor or another; its toolchain comes with ortrim, or is the system's own.

    This machine, emulators and real devices run its programs; what runs apps alone does not.
    """

    NAME = "linux"
    IN_AN_APP = (
        "mkdir -p third_party/ortrim && tar xzf {package} --strip-components=1 -C third_party/ortrim",
        "CMakeLists.txt: find_package(onnxruntime REQUIRED CONFIG PATHS third_party/ortrim)",
        "                target_link_libraries(app onnxruntime::onnxruntime)",
    )

    build_arguments = staticmethod(arguments.build_arguments)
    runner_arguments = staticmethod(arguments.runner_arguments)
    expected_outputs = staticmethod(arguments.expected_outputs)

    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield what the C library, the processor or the compiler of a target cannot follow."""
        known = target.target
        if known.c_library is not CLibrary.GLIBC and target.glibc != DEFAULT_GLIBC:
            what, why = "has no meaning for this target", f"{target.id} is built against {known.c_library}"
            yield Problem(code="stray-key", location=(*location, "glibc"), what=what, why=why)
        cpus = CPUS[known.architecture]
        if target.cpu is not None and target.cpu not in cpus:
            what = f"is {shown(target.cpu)}, which is not a processor that {target.id} can be built for"
            hint = f"choose among {listed(list(cpus), 'and')}, or leave 'cpu' out for any processor of the architecture"
            yield Problem(code="unknown-cpu", location=(*location, "cpu"), what=what, hint=hint)
        yield from system_compiler_problems(target, location, linkage)

    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return zig, or the system's own compiler. Raises `PlanError` `no-cross-compiler`."""
        if target.compiler == "zig":
            glibc = minimum_glibc(target.target, target.glibc)
            return zig_toolchain(target.target, glibc, dict(tool_versions())["ziglang"], target.cpu)
        here = host()
        if here is None or target.id != here.identifier:
            what = f"the system's {target.compiler} compiles for {here.identifier if here else 'its own Linux'} only"
            hint = 'use compiler = "zig", which compiles for every target'
            raise PlanError("no-cross-compiler", what, where=target.id, hint=hint)
        return system_toolchain(target.compiler)

    def build_machine(self, target: Target) -> str:
        """Return a machine of the target's own kind where there is one; what runs on musl is made on x86-64."""
        own = target.c_library is CLibrary.GLIBC and target.architecture is Architecture.ARM64
        return "linux-arm64" if own else "linux-x64"

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Strip what was linked, and keep its symbols apart."""
        if arguments.keeps_symbols(job):
            from ortrim.binaries.elf import take_apart  # noqa: PLC0415 - see `Platform`

            linked = paths.build / arguments.linked(job)
            take_apart(linked, paths.build / arguments.LIBRARY, paths.build / SYMBOLS)

    def extra_packages(self, target: Target, linkage: str) -> frozenset[ExtraPackage]:
        """Return what can be made for Python, and for Unity's one player and editor on Linux."""
        wheel: frozenset[ExtraPackage] = frozenset(("wheel",)) if linkage == "shared" else frozenset()
        return wheel | ({"unity"} if target.identifier == "linux-x64" else set())

    def package(self, packaging: Packaging) -> "list[Delivery]":
        from ortrim.package.package import make_package  # noqa: PLC0415 - see `Platform`
        from ortrim.package.wheel import make_wheel  # noqa: PLC0415 - see `Platform`
        from ortrim.platforms.linux.delivery import delivery  # noqa: PLC0415 - see `Platform`

        folder, note = packaging.folder, packaging.step.note
        made = [delivery(part, make_package(part, folder, note)) for part in packaging.parts]
        return [
            replace(each, wheel=make_wheel(part, folder))
            if "wheel" in part.plan.packages and part.job.linkage == "shared"
            else each
            for part, each in zip(packaging.parts, made, strict=True)
        ]

    def unity_plugins(self, parts: "Sequence[PackageInputs]", archive: Path) -> "Iterator[UnityPlugin]":
        from ortrim.package.package import LIBRARY, PROGRAM_MODE  # noqa: PLC0415 - see `Platform`
        from ortrim.package.unity import PLUGINS, UnityPlugin  # noqa: PLC0415 - see `Platform`

        (part,) = parts
        editor = {"CPU": "x86_64", "DefaultValueInitialized": "true", "OS": "Linux"}
        yield UnityPlugin(
            path=f"{PLUGINS}/Linux/x64/{LIBRARY}",
            content=part.result.library,
            mode=PROGRAM_MODE,
            players={"Editor": editor, "Linux64": {"CPU": "x86_64"}},
        )

    def runs_here(self, target: Target) -> bool:
        return platform.system() != kinds.DARWIN and kinds.has_processor_of(target)

    def emulation_of(self, target: Target) -> Emulation | None:
        return EMULATIONS.get(target.architecture.value)

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        here = (kinds.HOST.name,) if self.runs_here(target) else ()
        found = (*here, *kinds.emulator_kinds(self.emulation_of(target), cpu), kinds.ADB.name)
        return f"{', '.join(found)} or {kinds.SSH.form}"

    def default_devices(self, target: Target, cpu: str = "", *, on_macs: bool = False) -> tuple[str, ...]:
        emulation = self.emulation_of(target)
        if self.runs_here(target):
            return (kinds.HOST.name,)
        return tuple(kinds.default_emulators(emulation, cpu)) if emulation else ()

    def needs_device(self) -> bool:
        return True  # nothing would be proved of a library that was run nowhere, and an emulator is soon installed

    def open_host(self, target: Target, cores: Sequence[int]) -> "ProgramDevice":
        from ortrim.devices.host import Host  # noqa: PLC0415 - see `Platform`

        return Host(tuple(cores))

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        return () if self.runs_here(target) else full_runtime.WHEEL_PLATFORMS.get(target.architecture.value, ())

    def baseline(
        self, job: BuildJob, runtime: full_runtime.FullRuntime, requirements: str | None
    ) -> "tuple[Baseline, LibrarySize]":
        """Return the official library for the target's own machine, without one where there is no such wheel."""
        from ortrim.size.library import library_size  # noqa: PLC0415 - see `Platform`
        from ortrim.verify.measure import NO_SIZE, Baseline, own_baseline  # noqa: PLC0415 - see `Platform`

        if self.runs_here(job.target):
            found = own_baseline(runtime)
        else:
            architecture = job.target.architecture.value
            library = full_runtime.foreign_library(runtime.version, requirements, architecture)
            name = f"onnxruntime {runtime.version} (official wheel for {architecture})"
            none = f"none: there is no official wheel for {architecture}"
            found = Baseline(library=library, name=name if library else none)
        return found, NO_SIZE if found.library is None else library_size(found.library, None)
