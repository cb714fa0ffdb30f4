"""Android: one library for each ABI, and one AAR of all. See `platforms.platform.Platform`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from ortrim.base.tools import install_command
from ortrim.buildspec.buildspec import DEFAULT_ANDROID, AndroidSpec, BuildSpec, ExtraPackage, TargetSpec
from ortrim.buildspec.problems import Location, Problem
from ortrim.buildspec.rules import DEFAULT_GLIBC, stray_keys
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.plan import SYMBOLS, AndroidBuild, BuildJob, JobResult, Toolchain
from ortrim.compiling.workspace import JobPaths
from ortrim.devices import kinds
from ortrim.errors import PlanError, UsageError, VerifyError
from ortrim.pins.runtime import CommitPin, RuntimePins, runtime_pins
from ortrim.pins.shipped import shipped_file, tool_versions
from ortrim.platforms.android import arguments, jni
from ortrim.platforms.android.arguments import LICENCE, bionic_pin, require_zig, zig_android_toolchain
from ortrim.platforms.android.ndk import chosen_version, find_ndk, installed_versions, names_ndk, ndk_toolchain
from ortrim.platforms.platform import Compilation, Packaging, Platform

if TYPE_CHECKING:
    from ortrim.binaries.elf import LibrarySize
    from ortrim.compiling.containers import Images
    from ortrim.compiling.executor import Executor
    from ortrim.devices.device import ProgramDevice
    from ortrim.models.full_runtime import FullRuntime
    from ortrim.package.manifest import PackageInputs
    from ortrim.package.unity import UnityPlugin
    from ortrim.parity.measurements import HostFacts
    from ortrim.verify.measure import Baseline
    from ortrim.verify.target import Delivery

JNI: Final = "jni"


def android_of(spec: BuildSpec, target: TargetSpec) -> AndroidSpec:
    """Return the choices for one Android target; all are made but `ndk`, which is None for the pinned version."""
    common = DEFAULT_ANDROID.replaced_by(spec.android)
    return common.replaced_by(target.android) if target.android else common


def is_compiled_by_zig(spec: BuildSpec, target: TargetSpec, asked: Compilation) -> bool:
    """Whether zig compiles for an Android target: if the buildspec says so, or else where nobody names an NDK.

    Containers' images and GitHub's machines have NDKs of their own, and some choices are for an NDK alone.
    """
    chosen = android_of(spec, target)
    if chosen.toolchain is not None:
        return chosen.toolchain == "zig"
    elsewhere = asked.container is not None or asked.on_macs
    of_the_ndk = chosen.ndk or chosen.stl == "c++_shared"
    return not (elsewhere or of_the_ndk or asked.ndk or names_ndk())


class Android(Platform):
    """Phones: the NDK compiles for them, or zig with what is made of bionic; neither need be installed to plan."""

    NAME = "android"
    SDK = "ndk"
    IN_AN_APP = (
        "mkdir -p third_party/ortrim && cp -r {folder}/maven third_party/ortrim/",
        'app/build.gradle.kts: implementation("ortrim:onnxruntime-android-NAME:VERSION"): see {folder}/manifest.json',
    )
    TYPES_LEFT_OUT = ("float8",)
    KEPT: ClassVar[Mapping[str, Any]] = {"unwind_tables": "compressed"}

    build_arguments = staticmethod(arguments.build_arguments)
    runner_arguments = staticmethod(arguments.runner_arguments)
    finishing = staticmethod(arguments.finishing)
    expected_outputs = staticmethod(arguments.expected_outputs)
    assembly = staticmethod(arguments.assembly)

    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield the keys that have no meaning: the NDK and the ABI decide them, and packages hold shared libraries."""
        compiled = "libraries for Android are compiled by the NDK, or by zig"
        baseline = "the ABI defines the baseline CPU; better ones are detected at run time"
        stray = (
            ("compiler", target.compiler != "zig", compiled, "android.toolchain"),
            ("glibc", target.glibc != DEFAULT_GLIBC, "Android's C library is bionic", "android.api"),
            ("cpu", target.cpu is not None, baseline, ""),
        )
        yield from stray_keys(stray, location, "Android")
        if (target.linkage or linkage) == "static":
            key = "id" if target.linkage is None else "linkage"
            what = "cannot be a static library, as 'linkage' says" if key == "id" else "has no meaning for Android"
            why = "an AAR holds shared libraries, which Java loads"
            hint = "use linkage = 'shared' for this target"
            yield Problem(code="stray-key", location=(*location, key), what=what, why=why, hint=hint)

    def with_options(self, job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
        chosen = android_of(spec, target)
        assert chosen.api is not None
        assert chosen.stl is not None
        return replace(job, android=AndroidBuild(api=chosen.api, stl=chosen.stl))

    def described(self, job: BuildJob) -> tuple[tuple[str, str], ...]:
        android = jni.android_build(job)
        return ((self.NAME, f"API level {android.api}, {android.stl}"),)

    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return the NDK or zig, neither of which need be installed; see `is_compiled_by_zig`.

        An NDK's version is the buildspec's, or else the one that upstream builds with, unless this machine compiles and
        has others alone: see `chosen_version`.
        """
        chosen = android_of(spec, target)
        assert chosen.api is not None
        if is_compiled_by_zig(spec, target, asked):
            require_zig(target.target, chosen)
            return zig_android_toolchain(target.target, chosen.api, dict(tool_versions())["ziglang"])
        return ndk_toolchain(target.target, chosen.api, self._version(spec, target, asked))

    def require_tools(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> None:
        """Refuse what cannot be made here: a library for want of an NDK, the Java API of an AAR for want of a JDK.

        A container's image and another machine have NDKs of their own; classes are compiled here in any case.
        """
        if asked.ndk is not None and not targets:
            hint = "leave it out, or choose a target of Android's: --target android"
            raise UsageError("bad-option", "none of the targets is compiled with an NDK", where="--ndk", hint=hint)
        if asked.container is None and not asked.elsewhere:
            for target in targets:
                if not is_compiled_by_zig(spec, target, asked):
                    find_ndk(self._version(spec, target, asked), named=asked.ndk, api=android_of(spec, target).api)
        for target in targets:
            jni.chosen_jdk(wanted=android_of(spec, target).java)

    def warnings(self, spec: BuildSpec, targets: Sequence[TargetSpec], asked: Compilation) -> tuple[str, ...]:
        """Return warnings of NDKs that are not the pinned one, and of a missing JDK."""
        ndks = (text for target in targets if (text := self._other_ndk(spec, target, asked)))
        without_java = (
            "there is no JDK, so the AAR has no Java API, which Java and Kotlin need; C and C++ do without. To have it,"
            f" run: {install_command(jni.PACKAGE)}; or set JAVA_HOME. To do without, say android.java = false"
        )
        left_open = any(android_of(spec, target).java is None for target in targets)
        is_missed = left_open and not asked.on_macs and not jni.jdk_is_here()  # GitHub's machines have a JDK
        return (*ndks, *((without_java,) if is_missed else ()))

    def _other_ndk(self, spec: BuildSpec, target: TargetSpec, asked: Compilation) -> str:
        if is_compiled_by_zig(spec, target, asked) or android_of(spec, target).ndk is not None:
            return ""
        pinned, taken = self.pinned_sdk(runtime_pins(spec.onnxruntime.version)), self._version(spec, target, asked)
        if pinned in {None, taken}:
            return ""
        return (
            f"{target.id}: NDK {pinned}, which upstream builds this ONNX Runtime with, is not installed; {taken} is"
            f' taken, and gives another library. To keep to it, say android.ndk = "{taken}"'
        )

    def sysroot_sources(
        self, spec: BuildSpec, target: TargetSpec, announce: Callable[[str], None]
    ) -> tuple[tuple[CommitPin, Path], ...]:
        if android_of(spec, target).toolchain == "ndk":
            return ()
        from ortrim.platforms.android.bionic import bionic_source  # noqa: PLC0415 - see `Platform`

        return ((bionic_pin(), bionic_source(announce)),)

    def installed(self, toolchain: Toolchain, named: Path | None) -> Mapping[str, Path]:
        """Return the folders of the NDK, or the sysroot that zig compiles with, made if it is not there."""
        if toolchain.kind == "zig":
            from ortrim.platforms.android.bionic import sysroot_of  # noqa: PLC0415 - see `Platform`

            return {"bionic": sysroot_of(toolchain)}
        ndk = find_ndk(toolchain.version, named=named)
        return {"ndk": ndk.folder, "ndk_prebuilt": ndk.prebuilt}

    def build_machine(self, target: Target) -> str:
        return "linux-x64"  # Google publishes no NDK for another Linux machine

    def require_sdk(self, version: str, targets: Sequence[Target]) -> None:
        find_ndk(version)

    def sdk_package(self, version: str) -> str:
        return f"ndk;{version}"

    def require_package_tools(self, targets: Sequence[Target]) -> None:
        """Refuse a machine without a JDK, which makes JNI libraries and the classes of an AAR."""
        if targets:
            jni.find_jdk()

    def pinned_sdk(self, pins: RuntimePins) -> str | None:
        return pins.ndk

    def images(self) -> "Images":
        from ortrim.platforms.android.image import AndroidImages  # noqa: PLC0415 - see `Platform`

        return AndroidImages()

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Strip what zig linked, which has no command that does, and give the library its unwind tables."""
        from ortrim.binaries import elf  # noqa: PLC0415 - see `Platform`

        library, symbols = (paths.build / name for name in (arguments.LIBRARY, SYMBOLS))
        if job.toolchain.kind == "zig":
            elf.take_apart(Path(paths.resolve(arguments.LINKED)), library, symbols)
        if job.build_options.unwind_tables == "compressed":
            elf.add_unwind_tables(library, symbols)

    def start_files(self, job: BuildJob) -> tuple[tuple[str, str, Path, str], ...]:
        """Return bionic's, which zig links; those of the NDK are the same."""
        component, identifier, text = LICENCE
        version = bionic_pin().commit if job.toolchain.kind == "zig" else job.toolchain.version
        return ((component, identifier, shipped_file(text), version),)

    def compile_beside(self, job: BuildJob, result: JobResult, executor: "Executor") -> None:
        jni.build_jni_library(job, result, executor, jni.find_jdk())

    def beside(self, job: BuildJob) -> Mapping[str, Path]:
        """Return the folder of the JNI library; none on a machine without a JDK, whose AARs have no Java API."""
        return {JNI: jni.finished_jni(job)} if jni.jdk_is_here() else {}

    def check_beside(self, folder: Path) -> None:
        jni.jni_library_in(folder)

    def extra_packages(self, target: Target, linkage: str) -> frozenset[ExtraPackage]:
        return frozenset(("unity",))

    def package(self, packaging: Packaging) -> "list[Delivery]":
        from ortrim.platforms.android.aar import deliver  # noqa: PLC0415 - see `Platform`

        return deliver(packaging)

    def unity_plugins(self, parts: "Sequence[PackageInputs]", archive: Path) -> "Iterator[UnityPlugin]":
        from ortrim.package.unity import PLUGINS, UnityPlugin  # noqa: PLC0415 - see `Platform`

        # Unity writes the ABI of a single library for an AAR, too, and does not use it.
        players = {"Android": {"AndroidSharedLibraryType": "Executable", "CPU": "ARMv7"}}
        yield UnityPlugin(path=f"{PLUGINS}/Android/onnxruntime.aar", content=archive, players=players)

    def runs_here(self, target: Target) -> bool:
        return False  # nothing is compiled on a phone

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        return f"{kinds.ADB}, or a device farm's: {kinds.FARMS}"

    def refusal(self, target: Target, kind: kinds.Kind) -> str:
        """Refuse this machine, and Apple's devices; the emulator is reached as a phone is."""
        return super().refusal(target, kind) if kind.reach in {"here", "apple"} else ""

    def require_fitting(self, device: "ProgramDevice", target: Target, job: BuildJob | None) -> None:
        """Refuse a phone of another ABI or older than the job's API level; what it translates is not measured."""
        api, facts = job.android.api if job and job.android else None, device.facts()
        require_fitting(facts, device.name, target, api)
        if is_translated(target, facts.machine):
            device.memory_meaningful = device.time_meaningful = False
            device.caveat = "includes the translation of ARM's code"

    def baseline(
        self, job: BuildJob, runtime: "FullRuntime", requirements: str | None
    ) -> "tuple[Baseline, LibrarySize]":
        """Return none, and say why."""
        from ortrim.verify.measure import NO_SIZE, Baseline  # noqa: PLC0415 - see `Platform`

        return Baseline(library=None, name="none: no official package for Android is pinned"), NO_SIZE

    def _version(self, spec: BuildSpec, target: TargetSpec, asked: Compilation) -> str:
        # A container's image and GitHub's machines get the NDK that the plan names, whatever this machine has.
        here = asked.container is None and not asked.on_macs
        wanted, pinned = android_of(spec, target).ndk, self.pinned_sdk(runtime_pins(spec.onnxruntime.version))
        version = chosen_version(wanted, pinned, installed_versions(asked.ndk) if here else ())
        if version is None:
            what = f"no NDK is pinned for ONNX Runtime {spec.onnxruntime.version}"
            if wanted is not None:
                what = f"no NDK {wanted} is installed, and which version of it is meant is not known"
            hint = 'set one in the buildspec, as android.ndk = "27.2.12479018"'
            raise PlanError("no-ndk-version", what, where=target.id, hint=hint)
        return version


def is_translated(target: Target, machine: str) -> bool:
    """Return whether a machine, in the kernel's words, has no such processor and translates a target's code.

    Android's emulators for x86-64 and Chromebooks do so with libraries for ARM.
    """
    return target.architecture in {Architecture.ARM, Architecture.ARM64} and machine in {"i686", "x86_64"}


def require_fitting(host: "HostFacts", name: str, target: Target, api: int | None) -> None:
    """Refuse a device whose ABIs or API level are not a target's, before anything is pushed to it.

    `api` is the level that the library needs; levels that are not known are not compared. Raises `VerifyError`
    `not-for-this-device`.
    """
    from ortrim.verify.reports import NOT_FOR_DEVICE  # noqa: PLC0415 - see `Platform`

    abi, known = target.identifier.removeprefix("android-"), tuple(filter(None, host.abi.split(",")))
    if abi not in known:
        what = f"this library is for {abi}, and the device runs {', '.join(known) or 'an unknown ABI'}"
        offered = f"android-{known[0] if known else 'arm64-v8a'}"
        hint = f"name a device or an emulator of that ABI too, or choose its own: --target {offered}"
        raise VerifyError(NOT_FOR_DEVICE, what, where=name, hint=hint)
    if api is not None and host.api_level is not None and host.api_level < api:
        what = f"this library needs API level {api}, and the device has {host.api_level} ({host.os_version})"
        hint = "name a newer device, or lower android.api in the buildspec"
        raise VerifyError(NOT_FOR_DEVICE, what, where=name, hint=hint)
