"""What the user asks for: a buildspec as written, checked but not interpreted."""

import dataclasses
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ortrim.core.profiles import PROFILES, Levers, Optimization, ProfileName
from ortrim.core.targets import APPLE, CATALYST, TARGETS, OperatingSystem

CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False)

NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SHA256: Final = r"^[0-9a-f]{64}$"
VERSION: Final = r"^[0-9]+\.[0-9]+\.[0-9]+$"
GLIBC: Final = r"^2\.[0-9]+$"
NDK: Final = r"^[1-9][0-9]\.[0-9]{1,2}\.[0-9]{6,9}$"
XCODE: Final = r"^[1-9][0-9]\.[0-9]{1,2}(\.[0-9]{1,2})?$"
APPLE_VERSION: Final = r"^[1-9][0-9]?\.[0-9]{1,2}$"
REQUIREMENT: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
"""`name==version`; a leading dash is refused, since pip would take it for an option."""

Name = Annotated[str, Field(pattern=NAME)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
Dimension = Annotated[int, Field(ge=0, le=2**31 - 1)]
Scalar = bool | int | float | str
Layout = Literal["nchwc8", "s8s8"]
ElementType = Literal[
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "string",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RuntimeSpec:
    """Which ONNX Runtime to build and where its sources come from."""

    version: Annotated[str, Field(pattern=VERSION)] = "1.21.0"
    """ONNX Runtime version; models are converted by the full runtime of exactly this version."""
    source: Literal["auto", "archive", "git", "debian", "path"] = "auto"
    """Kind of source; `auto` takes the first that is pinned and can be reached here."""
    path: Path | None = None
    """Checkout to build from when `source` is `path`, relative to the buildspec."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class InputSpec:
    """How to make one input of a test case."""

    shape: tuple[Dimension, ...] | None = None
    """Shape, when it cannot be derived from the model and `dimensions`."""
    value: Scalar | None = None
    """One value that fills the whole tensor; excludes `low` and `high`."""
    low: float | None = None
    """Smallest random value (default: -1 for floats, 0 for integers)."""
    high: float | None = None
    """Largest random value (default: 1 for floats, 9 for integers)."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CaseSpec:
    """One set of inputs: recorded (`data`) or random from a seed."""

    name: Name
    """Name in logs and reports, unique in the model."""
    data: Path | None = None
    """Recorded inputs, relative to the buildspec: an `.npz` keyed by input name, or an ONNX `test_data_set_*` folder.

    Excludes `seed`, `dimensions` and `inputs`.
    """
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random inputs."""
    dimensions: dict[str, Dimension] = Field(default_factory=dict)
    """Values of the model's dynamic dimensions, by their name in the model."""
    inputs: dict[str, InputSpec] = Field(default_factory=dict)
    """Exceptions for single inputs, by input name."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Tolerance:
    """The largest differences from the full runtime that count as parity, for one element type.

    An element passes when its absolute *or* its relative difference is within bounds. A key that is left out has the
    element type's own default.
    """

    absolute: Annotated[float, Field(ge=0)] | None = None
    """Largest absolute difference of an element."""
    relative: Annotated[float, Field(ge=0)] | None = None
    """Largest relative difference of an element."""
    cosine: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Smallest cosine similarity of a whole output."""
    argmax_agreement: Annotated[float, Field(ge=0, le=1)] | None = None
    """Smallest share of rows (last axis) whose largest element is the same."""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SessionSpec:
    """How applications create a model's session, see docs/session.md. A model's own key replaces the buildspec's."""

    load: Literal["map", "bytes", "file"] | None = None
    """How the model reaches the runtime: the application maps the file (`map`, by default) or reads it (`bytes`), or
    the runtime reads it (`file`).
    """
    in_place: bool | None = None
    """Leave the weights in the mapped or read bytes, which then outlive the session; by default, if all are aligned."""
    prepacking: bool | None = None
    """Lay weights out for the processor when the model is loaded; by default it is done, for shorter runs."""
    arena: bool | None = None
    """Keep memory for later runs; by default it is kept."""
    memory_pattern: bool | None = None
    """Take the memory of a run in one piece, by what a run of the same shapes took; by default it is done."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads within an operator; by default 1."""
    branches: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Operators that may run at the same time; by default 1, one after the other."""
    spinning: bool | None = None
    """Let threads without work burn time to be quick; by default they sleep, for batteries and for other threads."""

    def replaced_by(self, own: "SessionSpec") -> "SessionSpec":
        """Return these choices with the ones that `own` gives in their place."""
        given = {key: value for key, value in dataclasses.asdict(own).items() if value is not None}
        return dataclasses.replace(self, **given)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ModelSpec:
    """One ONNX model, where it comes from and how it is converted and tested.

    Exactly one of `path`, `url` and `wheel` is given.
    """

    name: Name
    """Name of the model in packages and reports, unique in the buildspec."""
    path: Path | None = None
    """File, relative to the buildspec."""
    url: str | None = None
    """HTTPS address (plain HTTP on loopback only); `sha256` is required."""
    wheel: Annotated[str, Field(pattern=REQUIREMENT)] | None = None
    """A requirement `name==version` whose wheel holds the model; `member` and `sha256` are required."""
    member: str | None = None
    """Path of the model inside the wheel."""
    sha256: Sha256 | None = None
    """Digest of the model file."""
    style: Literal["fixed", "runtime"] = "fixed"
    """Optimization style of the conversion."""
    level: Literal["disable", "basic", "extended", "all"] = "extended"
    """Optimization level of the conversion."""
    layout: Layout | None = None
    """Write the model for one kind of processor, see docs/session.md: `nchwc8` for x64, where convolutions take their
    channels in blocks of 8 (needs level `all`); `s8s8` for ARM, where quantized operators stay signed (needs `extended`
    or `all`).
    """
    cases: tuple[CaseSpec, ...] = ()
    """Test cases; without any, one seeded random case with every dynamic dimension 1."""
    tolerances: dict[ElementType, Tolerance] = Field(default_factory=dict)
    """Tolerances by element type of the output."""
    session: SessionSpec | None = None
    """Choices for this model's session; keys given here replace the buildspec's."""


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
    """Session creation, milliseconds, median."""
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
    """Levers that are to stand otherwise than the profile has them; what each brings is in docs/profiles.md."""

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
    demangler: bool | None = None
    """Keep what makes a C++ name readable in the last message of a program that ends by an exception."""


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


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class BuildSpec:
    """A buildspec: which models, for which targets, within which budgets."""

    name: Name
    """Name of the product in packages and reports; by default the file's stem."""
    onnxruntime: RuntimeSpec = Field(default_factory=RuntimeSpec)
    """ONNX Runtime version and source."""
    profile: ProfileName = "balanced"
    """Set of levers; see docs/profiles.md."""
    levers: LeverChoices = Field(default_factory=LeverChoices)
    """Single levers that are to stand otherwise than the profile has them."""
    exceptions: bool = False
    """Compile with C++ exceptions: errors become a status instead of an abort, for a larger library."""
    linkage: Literal["shared", "static"] = "shared"
    """How applications link the runtime, for every target that does not say it itself."""
    android: AndroidSpec = Field(default_factory=AndroidSpec)
    """Choices for every Android target."""
    apple: AppleSpec = Field(default_factory=AppleSpec)
    """Choices for every Apple target."""
    budgets: Budgets = Field(default_factory=Budgets)
    """Budgets for every target."""
    session: SessionSpec = Field(default_factory=SessionSpec)
    """Choices for the session of every model."""
    models: Annotated[tuple[ModelSpec, ...], Field(min_length=1)]
    """Models that share the runtime."""
    targets: tuple[TargetSpec, ...] = ()
    """Targets; without any, the host's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedSpec:
    """A valid buildspec and the file that it was read from."""

    spec: BuildSpec
    file: Path

    def resolve(self, path: Path) -> Path:
        """Return `path`, as written in the buildspec, seen from where the program runs."""
        return self.file.parent / path


def levers_of(spec: BuildSpec) -> Levers:
    """Return the levers of a buildspec: its profile's, but for those that it chooses itself."""
    chosen = {name: value for name, value in vars(spec.levers).items() if value is not None}
    return dataclasses.replace(PROFILES[spec.profile], **chosen)


def linkage_of(spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
    """Return how applications link the runtime of one target; a dynamic framework is linked as a shared library."""
    known = TARGETS.get(target.id)
    framework = apple_of(spec, target).framework if known and known.system in APPLE else None
    return target.linkage or (FRAMEWORK_LINKAGE[framework] if framework else spec.linkage)


def session_of(spec: BuildSpec, model: ModelSpec) -> SessionSpec:
    """Return the choices for one model's session: its own where it makes them, the buildspec's for the rest."""
    return spec.session.replaced_by(model.session) if model.session else spec.session


def android_of(spec: BuildSpec, target: TargetSpec) -> AndroidSpec:
    """Return the choices for one Android target; all are made but `ndk`, which is None for the pinned version."""
    common = DEFAULT_ANDROID.replaced_by(spec.android)
    return common.replaced_by(target.android) if target.android else common


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


def merged_budgets(spec: BuildSpec, target: TargetSpec) -> Budgets:
    """Return the budgets of one target: its own where it gives them, the buildspec's for the rest."""
    return spec.budgets.replaced_by(target.budgets) if target.budgets else spec.budgets
