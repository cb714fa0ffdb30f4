"""The targets of a buildspec as written: what is chosen for each, and what it may use."""

import dataclasses
from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.core.profiles import Optimization
from ortrim.core.spec_words import APPLE_VERSION, CONFIG, GLIBC, NAME, NDK, XCODE


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Budgets:
    """The most that a target may use. A budget that is not given is not checked."""

    library_bytes: Annotated[int, Field(gt=0)] | None = None
    """Stripped library, bytes."""
    library_ratio: Annotated[float, Field(gt=0)] | None = None
    """Stripped library divided by the official one of the same version (none for Android: no ratio is judged there)."""
    peak_rss_bytes: Annotated[int, Field(gt=0)] | None = None
    """Peak resident memory of a process that loads and runs the model, bytes."""
    peak_rss_ratio: Annotated[float, Field(gt=0)] | None = None
    """Peak resident memory divided by the baseline's."""
    load_ms: Annotated[float, Field(gt=0)] | None = None
    """Session creation, milliseconds, median, without waiting for a processor that other programs had."""
    load_ratio: Annotated[float, Field(gt=0)] | None = None
    """Session creation divided by the baseline's."""
    p50_ms: Annotated[float, Field(gt=0)] | None = None
    """Median latency of an inference, milliseconds."""
    p50_ratio: Annotated[float, Field(gt=0)] | None = None
    """Median latency divided by the baseline's."""
    p99_ms: Annotated[float, Field(gt=0)] | None = None
    """99th percentile of latency, milliseconds."""
    deadline_ms: Annotated[float, Field(gt=0)] | None = None
    """Real-time budget: the time for one run, input and output included, in milliseconds; see docs/runner.md."""

    def replaced_by(self, own: "Budgets") -> "Budgets":
        """Return these budgets with the ones that `own` gives in their place."""
        given = {key: value for key, value in dataclasses.asdict(own).items() if value is not None}
        return dataclasses.replace(self, **given)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class AndroidSpec:
    """What is chosen for Android. A target's own key replaces the buildspec's."""

    api: Annotated[int, Field(ge=21, le=99)] | None = None
    """API level of the oldest Android that the library runs on, `minSdk` or less; by default 24, Android 7."""
    stl: Literal["c++_static", "c++_shared"] | None = None
    """C++ library: inside (`c++_static`, by default), or in `libc++_shared.so` beside it, of which an app has one."""
    ndk: Annotated[str, Field(pattern=NDK)] | None = None
    """Version of the NDK; by default the one that upstream builds this ONNX Runtime with."""
    providers: tuple[Literal["nnapi", "xnnpack"], ...] | None = None
    """Execution providers beside the CPU's, by default none; see docs/targets.md. Android 15 deprecates NNAPI."""

    models_as_assets: bool | None = None
    """Put the converted models into the AAR, as assets of the app; by default they lie beside it."""

    def replaced_by(self, own: "AndroidSpec") -> "AndroidSpec":
        """Return these choices with the ones that `own` gives in their place."""
        given = {key: value for key, value in dataclasses.asdict(own).items() if value is not None}
        return dataclasses.replace(self, **given)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class AppleSpec:
    """What is chosen for Apple's systems. A target's own key replaces the buildspec's."""

    ios_deployment_target: Annotated[str, Field(pattern=APPLE_VERSION)] | None = None
    """Oldest iOS that the library runs on, also for Mac Catalyst; by default the oldest that upstream supports."""
    macos_deployment_target: Annotated[str, Field(pattern=APPLE_VERSION)] | None = None
    """Oldest macOS that the library runs on; by default the oldest that upstream supports."""
    framework: Literal["dynamic", "static"] | None = None
    """Kind of framework; by default as `linkage` says: `shared` is `dynamic`."""
    providers: tuple[Literal["coreml"], ...] | None = None
    """Execution providers beside the CPU's, by default none; they make the library larger: see docs/targets.md."""
    xcode: Annotated[str, Field(pattern=XCODE)] | None = None
    """Version of Xcode; by default the Mac's own, and on GitHub the one that is pinned for the ONNX Runtime version."""

    def replaced_by(self, own: "AppleSpec") -> "AppleSpec":
        """Return these choices with the ones that `own` gives in their place."""
        given = {key: value for key, value in dataclasses.asdict(own).items() if value is not None}
        return dataclasses.replace(self, **given)


FRAMEWORK_LINKAGE: Final[dict[str, Literal["shared", "static"]]] = {"dynamic": "shared", "static": "static"}
"""What a framework is, as Apple names it -> as other systems do."""
DEFAULT_ANDROID: Final = AndroidSpec(api=24, stl="c++_static", providers=(), models_as_assets=False)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class LeverChoices:
    """Levers that are to stand otherwise than the profile has them; what each brings is in docs/profiles.md.

    Profile `upstream` takes none: beside `profile = "upstream"` they are refused, `--profile upstream` sets them aside.
    """

    cold: Optimization | None = None
    """How sources are optimised that run seldom."""
    hot: Optimization | None = None
    """How sources are optimised that run in every inference: kernels, MLAS, the executor, memory and tensors."""
    frame_pointers: bool | None = None
    """Keep a register in every function for profilers."""
    link_time: bool | None = None
    """Optimise once more when everything is linked, MLAS aside: smaller, and a link takes ten times as long."""
    precompiled: bool | None = None
    """Compile common headers once: a faster build, the same code."""
    folding: bool | None = None
    """Keep one of several functions of the same code."""
    compressible: bool | None = None
    """Lay functions and data out so that the library compresses better, for a smaller download."""
    unwinding: bool | None = None
    """Keep tables of unwinding; a library with exceptions always does."""
    both_hashes: bool | None = None
    """Keep System V's table of symbols beside GNU's."""
    packing: bool | None = None
    """Pack relocations in the best form that every loader of the target reads."""
    lean_runtime: bool | None = None
    """Compile the C++ library along, without exceptions and wide characters (zig only)."""
    unused_types: bool | None = None
    """Keep kinds of tensors and of elements that none of the models has."""
    unreached_kernels: bool | None = None
    """Keep the kernels of MLAS's table that nothing in the library can reach."""
    wide_vectors: bool | None = None
    """Bring MLAS's kernels for AVX-512, which minimal builds go without, where they were measured to be quicker."""
    demangler: bool | None = None
    """Make C++ names readable in the last message of a program that ends by an exception (never on Android)."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class TargetSpec:
    """One target and what is chosen for it."""

    id: str
    """Target identifier, for example `linux-x64`."""
    compiler: Literal["zig", "gcc", "clang"] = "zig"
    """`zig` is the pinned hermetic toolchain; the others are the system's. Android and Apple have their own."""
    glibc: Annotated[str, Field(pattern=GLIBC)] = "2.17"
    """Oldest glibc on which the library loads (zig only); at least the first that the architecture has."""
    cpu: Annotated[str, Field(pattern=NAME)] | None = None
    """Least processor that the library runs on, such as `cortex-a53` (zig only); without, any of the architecture."""
    linkage: Literal["shared", "static"] | None = None
    """`static` packages one archive, `libonnxruntime.a`, instead of the shared library; by default the buildspec's."""
    android: AndroidSpec | None = None
    """Choices for this Android target; keys given here replace the buildspec's."""
    apple: AppleSpec | None = None
    """Choices for this Apple target; keys given here replace the buildspec's."""
    budgets: Budgets | None = None
    """Budgets for this target; keys given here replace the buildspec's."""
