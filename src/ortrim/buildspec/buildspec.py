"""What the user asks for: a buildspec as written, checked but not interpreted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field
from pydantic.dataclasses import dataclass

from ortrim.base.json import to_json
from ortrim.buildspec import problems
from ortrim.buildspec.build_options import BuildOptions, Optimization, ProfileName, profile_for
from ortrim.buildspec.step_specs import Step
from ortrim.buildspec.targets import TARGETS, Target
from ortrim.buildspec.tolerances import ElementType, Tolerance
from ortrim.pins.runtime import default_version

Layout = Literal["plain", "nchwc8", "nchwc16", "s8s8"]
BLOCKS: Final[Mapping[str, Literal[8, 16]]] = MappingProxyType({"nchwc8": 8, "nchwc16": 16})
"""Channels in a block, by the layouts in NCHWc blocks."""


@plain_dataclass(frozen=True, kw_only=True)
class Replaceable:
    """Choices of which some can be left open, with None."""

    def replaced_by(self, own: Self) -> Self:
        """Return these choices with the ones that `own` makes in their place."""
        return replace(self, **{key: value for key, value in vars(own).items() if value is not None})


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class InputSpec:
    """How to make one input of a test case."""

    shape: tuple[problems.Dimension, ...] | None = None
    """Shape, when it cannot be derived from the model and `dimensions`."""
    value: problems.Scalar | None = None
    """One value that fills the whole tensor; excludes the keys below."""
    choices: tuple[problems.Scalar | tuple[problems.Scalar, ...], ...] | None = None
    """Values to draw from, such as the words that a model knows; each occurs before any does again, and a case with
    `seed = 1` goes on where `seed = 0` ends. As arrays, the values for each position of the last axis. For floats,
    `"nan"` is not-a-number. Excludes `low` and `high`."""
    low: float | None = None
    """Smallest random value (default: -1 for floats, 0 for integers)."""
    high: float | None = None
    """Largest random value (default: 1 for floats, 9 for integers)."""
    count_from: Annotated[int, Field(ge=0)] | str | None = None
    """Numbers that count up along the last axis from this one, or from the size of the dimension of this name, such as
    `position_ids` from `past_sequence_length`. Excludes the keys above but `shape`."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class CaseSpec:
    """One set of inputs: recorded (`data`) or random from a seed."""

    name: problems.Name
    """Name in logs and reports, unique in the model."""
    data: Path | None = None
    """Recorded inputs, relative to the buildspec: an `.npz` keyed by input name, or an ONNX `test_data_set_*` folder.

    Excludes the other keys but `name`.
    """
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the random inputs."""
    dimensions: dict[str, problems.Dimension] = Field(default_factory=dict)
    """Values of the model's dynamic dimensions, by their name in the model."""
    inputs: dict[str, InputSpec] = Field(default_factory=dict)
    """Exceptions for single inputs, by input name."""
    after: problems.Name | None = None
    """The case of this model that runs before: its outputs in the full runtime become the inputs that they feed, such
    as `present.0.key` the input `past_key_values.0.key`, but for those that `inputs` names. Excludes `data`.
    """
    states: dict[str, str] = Field(default_factory=dict)
    """Which output of the case before feeds which input, by the input's name, where names do not tell."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class SessionSpec(Replaceable):
    """How applications create a model's session (docs/reference/session.md). A model's own key replaces these."""

    load: Literal["map", "bytes", "file"] | None = None
    """How the model reaches the runtime: the application maps the file (`map`, by default) or reads it (`bytes`), or
    the runtime reads it (`file`).
    """
    in_place: bool | None = None
    """Leave the weights in the mapped or read bytes, which then outlive the session; by default, if all can."""
    prepacking: bool | None = None
    """Lay weights out for the processor when the model is loaded; by default it is done, for shorter runs."""
    arena: bool | None = None
    """Keep memory for later runs; by default it is kept."""
    memory_pattern: bool | None = None
    """Take the memory of a run in one piece, by what a run of the same shapes took; by default it is done."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads within an operator; by default 1."""
    inter_op_threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Operators that may run at the same time; by default 1, one after the other."""
    spinning: bool | None = None
    """Let threads without work burn time to be quick; by default they sleep, for batteries and for other threads."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class ModelSpec:
    """One ONNX model, where it comes from and how it is converted and tested.

    Exactly one of `path`, `url` and `wheel` is given.
    """

    name: problems.Name
    """Name of the model in packages and reports, unique in the buildspec."""
    path: Path | None = None
    """File, relative to the buildspec."""
    url: str | None = None
    """HTTPS address (plain HTTP on loopback only); `sha256` is required."""
    wheel: Annotated[str, Field(pattern=problems.REQUIREMENT)] | None = None
    """A requirement `name==version` whose wheel holds the model; `member` and `sha256` are required."""
    member: str | None = None
    """Path of the model inside the wheel."""
    sha256: problems.Sha256 | None = None
    """Digest of the model file."""
    allow_links: bool = False
    """Follow links that lead from the model's external data out of its folder."""
    style: Literal["fixed", "runtime"] = "fixed"
    """Optimization style of the conversion."""
    level: Literal["disable", "basic", "extended", "all"] = "extended"
    """Optimization level of the conversion; one that changes the outputs is refused before anything is compiled."""
    layout: Layout | Literal["auto"] = "auto"
    """Write the model for some processors, see docs/reference/session.md: `nchwc8` for x64 and arm64, where
    convolutions take the NCHWc layout with block size 8, `nchwc16` for x64 with AVX-512 (both need level `all`); `s8s8`
    for ARM, where quantized operators stay signed (needs `extended` or `all`). `plain` runs everywhere; `auto` is
    `nchwc8` where that pays: for models of convolutions, on Linux on x64 and on arm64.
    """
    steps: tuple[Step, ...] = ()
    """What is done to the model before it is converted, in order, see docs/guides/prepare.md."""
    cases: tuple[CaseSpec, ...] = ()
    """Test cases; without any, they are found for a model with dynamic dimensions (but for one with steps, which then
    are 1); another has one of seeded random values.
    """
    tolerances: dict[ElementType, Tolerance] = Field(default_factory=dict)
    """Tolerances by element type of the output."""
    expect: Literal["empty"] | None = None
    """`empty` for a model of which no case gives an output that could be judged: without it, such a model leaves the
    whole package inconclusive, see docs/explanation/how-it-measures.md.
    """
    session: SessionSpec | None = None
    """Choices for this model's session; keys given here replace the buildspec's."""
    reference: bool = False
    """Reckon from this model how long the others should take on a device, see docs/guides/models.md; true for one at
    most.
    """


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class Budgets(Replaceable):
    """The most that a target may use, and the least that its cases run. A budget that is not given is not checked."""

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
    instructions: Annotated[int, Field(gt=0)] | None = None
    """Instructions of an inference, median, where the processor counts them, as `qemu-system` devices do."""
    instructions_ratio: Annotated[float, Field(gt=0)] | None = None
    """Instructions of an inference divided by the baseline's."""
    deadline_ms: Annotated[float, Field(gt=0)] | None = None
    """Real-time budget: the time for one run, input and output included, in milliseconds; see
    docs/explanation/how-it-measures.md.
    """
    graph_coverage: Annotated[float, Field(gt=0, le=1)] | None = None
    """Least share of each model's nodes that its cases run, such as 0.9; checked before anything is compiled, see
    docs/explanation/how-it-measures.md.
    """


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class AndroidSpec(Replaceable):
    """What is chosen for Android. A target's own key replaces the buildspec's."""

    api: Annotated[int, Field(ge=21, le=99)] | None = None
    """API level of the oldest Android that the library runs on, `minSdk` or less; by default 24, Android 7."""
    stl: Literal["c++_static", "c++_shared"] | None = None
    """C++ library: inside (`c++_static`, by default), or in `libc++_shared.so` beside it, of which an app has one."""
    toolchain: Literal["zig", "ndk"] | None = None
    """What compiles: `zig`, with which nothing need be installed, or Android's NDK; by default the NDK where one is."""
    ndk: Annotated[str, Field(pattern=problems.NDK)] | None = None
    """Version of the NDK, or its major alone (`27`). By default the one that upstream builds this ONNX Runtime with; if
    that is not installed and others from 26 to 28 are, the newest of these, with a warning."""
    models_as_assets: bool | None = None
    """Put the converted models into the AAR, as assets of the app; by default they lie beside it."""
    java: bool | None = None
    """Put the Java API into the AAR, its classes and its JNI library; by default if there is a JDK. With `true`, a
    machine without one is refused; an AAR without the Java API is for C and C++."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class AppleSpec(Replaceable):
    """What is chosen for Apple's systems. A target's own key replaces the buildspec's."""

    ios_deployment_target: Annotated[str, Field(pattern=problems.APPLE_VERSION)] | None = None
    """Oldest iOS that the library runs on, also for Mac Catalyst; by default the oldest that upstream supports."""
    macos_deployment_target: Annotated[str, Field(pattern=problems.APPLE_VERSION)] | None = None
    """Oldest macOS that the library runs on; by default the oldest that upstream supports."""
    framework: Literal["dynamic", "static"] | None = None
    """Kind of framework; by default as `linkage` says: `shared` is `dynamic`."""
    xcode: Annotated[str, Field(pattern=problems.XCODE)] | None = None
    """Version of Xcode; by default the Mac's own, and on GitHub the one that is pinned for the ONNX Runtime version."""


FRAMEWORK_LINKAGE: Final[dict[str, Literal["shared", "static"]]] = {"dynamic": "shared", "static": "static"}
"""What a framework is, as Apple names it -> as other systems do."""
DEFAULT_ANDROID: Final = AndroidSpec(api=24, stl="c++_static", models_as_assets=False)


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class BuildOptionChoices:
    """BuildOptions that are to stand otherwise than the profile has them; what each brings is in docs/guides/size.md.

    Profile `upstream` takes none: beside `profile = "upstream"` they are refused, `--profile upstream` sets them aside.
    """

    cold: Optimization | None = None
    """Optimization level of sources that run seldom."""
    hot: Optimization | None = None
    """Optimization level of sources that run in every inference: kernels, MLAS, executor, memory, tensors."""
    frame_pointers: bool | None = None
    """Keep the frame pointer in every function, for profilers: on for Apple's systems, whose ABI asks for it."""
    lto: bool | None = None
    """Link-time optimization of everything but MLAS: smaller, and linking takes ten times as long."""
    precompiled_headers: bool | None = None
    """Precompile the common headers: a faster build, the same code."""
    icf: bool | None = None
    """Identical code folding (lld's `--icf=all`, ortrim's own for Mach-O): functions with the same code become one."""
    compression_ordering: bool | None = None
    """Order sections so that the library compresses better, for a smaller download."""
    unwind_tables: bool | None = None
    """Keep in the library what crash reporters walk a stack by: on for Android and Apple's systems, and with exceptions
    always. Without, the symbols have it (Linux, Android)."""
    hash_style_both: bool | None = None
    """Keep the System V hash table beside the GNU one (`--hash-style=both`)."""
    packed_relocations: bool | None = None
    """Pack relocations (RELR, or Android's own form) as far as every loader of the target reads it."""
    libcxx_no_exceptions: bool | None = None
    """Compile libc++ from source, without exceptions and wide characters (zig only)."""
    type_reduction: bool | None = None
    """Leave out the tensor kinds and element types that no model uses."""
    dead_kernel_elimination: bool | None = None
    """Leave out the MLAS kernels that nothing in the library can reach."""
    avx512_kernels: bool | None = None
    """Include MLAS's AVX-512 kernels, which minimal builds leave out, where they were measured to be faster."""
    lean_errors: Literal["places"] | bool | None = None
    """Make messages of errors and logs in one place for the whole library: smaller, with the same sentences. `places`
    leaves the sentences out: an error says its code, file and line.
    """
    api: Literal["all", "inference"] | tuple[str, ...] | None = None
    """Functions of the C API that are kept: `all`, `inference`, or a list of names, which may begin with `"inference"`.
    The others return `ORT_NOT_IMPLEMENTED` with their name; `ortrim api` reads the list out of an app's sources.
    """
    demangler: bool | None = None
    """Make C++ names readable in the last message of a program that ends by an exception (never on Android)."""


Provider = Literal["coreml", "xnnpack"]
PROVIDER_NAMES: Final[Mapping[Provider, str]] = {"coreml": "CoreML", "xnnpack": "XNNPACK"}
"""What the C API calls each (SessionOptionsAppendExecutionProvider)."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class TargetSpec:
    """One target and what is chosen for it."""

    id: str
    """Target identifier, for example `linux-x64`."""
    compiler: Literal["zig", "gcc", "clang"] = "zig"
    """`zig` is the pinned hermetic toolchain; the others are the system's. Android and Apple have their own."""
    glibc: Annotated[str, Field(pattern=problems.GLIBC)] = "2.17"
    """Oldest glibc on which the library loads (zig only); at least the first that the architecture has."""
    cpu: Annotated[str, Field(pattern=problems.NAME)] | None = None
    """Least processor that the library runs on, such as `cortex-a53` (zig only); without, any of the architecture."""
    linkage: Literal["shared", "static"] | None = None
    """`static` packages one archive, `libonnxruntime.a`, instead of the shared library; by default the buildspec's."""
    providers: tuple[Provider, ...] | None = None
    """Execution providers beside the CPU's for this target; by default the buildspec's."""
    android: AndroidSpec | None = None
    """Choices for this Android target; keys given here replace the buildspec's."""
    apple: AppleSpec | None = None
    """Choices for this Apple target; keys given here replace the buildspec's."""
    budgets: Budgets | None = None
    """Budgets for this target; keys given here replace the buildspec's."""

    @property
    def target(self) -> Target:
        """What the identifier names. Raises KeyError for one that is none, which no loaded buildspec has."""
        return TARGETS[self.id]


ExtraPackage = Literal["wheel", "unity"]
"""What can be made beside the packages that targets have of their own."""
UNITY: Final = "unity"


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class RuntimeSpec:
    """Which ONNX Runtime to build and where its sources come from."""

    version: Annotated[str, Field(pattern=problems.VERSION)] = Field(default_factory=default_version)
    """ONNX Runtime version; models are converted by the full runtime of exactly this version. `1.30` is its newest
    patch that ortrim knows, `newest` the newest version whose sources are pinned; by default the newest that ortrim's
    own CI has proved.
    """
    source: Literal["auto", "upstream", "debian", "path"] = "auto"
    """Kind of source; `auto` takes the first that is pinned and can be reached here."""
    path: Path | None = None
    """Checkout to build from when `source` is `path`, relative to the buildspec."""


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class BuildSpec:
    """A buildspec: which models, for which targets, within which budgets."""

    name: problems.Name
    """Name of the product in packages and reports; by default the file's stem."""
    onnxruntime: RuntimeSpec = Field(default_factory=RuntimeSpec)
    """ONNX Runtime version and source."""
    profile: ProfileName = "balanced"
    """Set of build options; see docs/guides/size.md."""
    build_options: BuildOptionChoices = Field(default_factory=BuildOptionChoices)
    """Single build options that differ from the profile's."""
    exceptions: bool = False
    """Compile with C++ exceptions: errors become a status instead of an abort, for a larger library."""
    linkage: Literal["shared", "static"] = "shared"
    """How applications link the runtime, for every target that does not say it itself."""
    providers: tuple[Provider, ...] = ()
    """Execution providers beside the CPU's, which enlarge the library (docs/reference/targets.md): `xnnpack`, and for
    Apple's systems `coreml`; for every target that does not say it itself.
    """
    packages: tuple[ExtraPackage, ...] = ()
    """What is made beside the packages of targets: `wheel`, for Python, of each Linux target that links `shared`;
    `unity`, one package for Unity of linux-x64, Android, macOS, and iOS with static frameworks.
    """
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


@dataclass(frozen=True, kw_only=True, config=problems.CONFIG)
class LoadedSpec(BuildSpec):
    """A valid buildspec and the file that it was read from; `notes` say what in it was read as something else."""

    file: Path
    notes: tuple[str, ...] = ()

    def resolve(self, path: Path) -> Path:
        """Return `path`, as written in the buildspec, seen from where the program runs."""
        return self.file.parent / path

    def as_written(self) -> BuildSpec:
        """Return the buildspec alone, which is the same wherever its file lies."""
        return BuildSpec(**{field.name: getattr(self, field.name) for field in fields(BuildSpec)})


def build_options_of(spec: BuildSpec, kept: Mapping[str, Any]) -> BuildOptions:
    """Return the build options of a buildspec on a platform that keeps some (`Platform.KEPT`).

    They are its profile's, but for those it chooses. Profile `upstream` is upstream's own flags, whatever a buildspec
    for another profile chooses.
    """
    chosen = {name: value for name, value in vars(spec.build_options).items() if value is not None}
    if chosen.get("unwind_tables"):
        chosen["unwind_tables"] = kept.get("unwind_tables", True)
    base = profile_for(spec.profile, kept)
    return base if spec.profile == "upstream" else replace(base, **chosen)


def providers_of(spec: BuildSpec, target: TargetSpec) -> tuple[Provider, ...]:
    """Return the execution providers beside the CPU's that a target asks for, sorted."""
    return tuple(sorted(set(spec.providers if target.providers is None else target.providers)))


def provider_names(providers: Iterable[Provider]) -> tuple[str, ...]:
    """Return execution providers as the C API calls them, sorted, for a session's settings."""
    return tuple(PROVIDER_NAMES[name] for name in sorted(providers))


def session_of(spec: BuildSpec, model: ModelSpec) -> SessionSpec:
    """Return the choices for one model's session: its own where it makes them, the buildspec's for the rest."""
    return spec.session.replaced_by(model.session) if model.session else spec.session


def merged_budgets(spec: BuildSpec, target: TargetSpec) -> Budgets:
    """Return the budgets of one target: its own where it gives them, the buildspec's for the rest."""
    return spec.budgets.replaced_by(target.budgets) if target.budgets else spec.budgets


Load = Literal["map", "bytes", "file"]
Entry = tuple[str, str]
DIRECTLY: Final[Entry] = ("session.use_ort_model_bytes_directly", "1")
"""The entry of a session's configuration with which a model is read from the application's bytes, not from a copy."""
IN_PLACE: Final[Entry] = ("session.use_ort_model_bytes_for_initializers", "1")
"""The entry with which tensors stay in those bytes, which then have to outlive the session."""
NO_PREPACKING: Final[Entry] = ("session.disable_prepacking", "1")
DEFAULTS: Final = SessionSpec(
    load="map", prepacking=True, arena=True, memory_pattern=True, threads=1, inter_op_threads=1, spinning=False
)
"""What is chosen where a buildspec leaves it open; benchmarks/results/session.md has the measurements."""
SPINNING: Final = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")


@plain_dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """How a session is created. `inter_op_threads` are the parts of a model that may run at the same time.

    Without an `optimization_level` the runtime's own default holds. `providers` are execution providers beside the
    CPU's, by the names that the C API has for them. `configuration` holds what has a key of its own in ONNX Runtime,
    spinning apart.
    """

    load: Load = "file"
    threads: int = 1
    inter_op_threads: int = 1
    allow_spinning: bool = False
    arena: bool = True
    memory_pattern: bool = True
    optimization_level: Literal["none", "basic", "extended", "all"] | None = None
    providers: tuple[str, ...] = ()
    configuration: tuple[Entry, ...] = ()


def settings_of(chosen: SessionSpec, *, style: str, reads_in_place: bool) -> SessionSettings:
    """Return the settings that a buildspec's choices come to.

    A model of the `style` `fixed` was optimized when it was converted, one of `runtime` has that saved for the device.
    `reads_in_place` is the converted model's; if it is false, nothing is read in place unless the buildspec says so.
    """
    made = DEFAULTS.replaced_by(chosen)
    load = made.load or "map"
    in_place = reads_in_place if made.in_place is None else made.in_place
    return SessionSettings(
        load=load,
        threads=made.threads or 1,
        inter_op_threads=made.inter_op_threads or 1,
        allow_spinning=bool(made.spinning),
        arena=bool(made.arena),
        memory_pattern=bool(made.memory_pattern),
        optimization_level="none" if style == "fixed" else "all",
        configuration=(
            *((DIRECTLY,) if load != "file" else ()),
            *((IN_PLACE,) if load != "file" and in_place else ()),
            *(() if made.prepacking else (NO_PREPACKING,)),
        ),
    )


def as_the_official(settings: SessionSettings) -> SessionSettings:
    """Return what the official library is measured with: the same threads, and for the rest what it does unasked.

    That is what an application has before it takes a trimmed library; its model in ONNX format cannot be used in place.
    """
    return replace(
        settings,
        load="file",
        allow_spinning=True,
        arena=True,
        memory_pattern=True,
        optimization_level=None,
        providers=(),
        configuration=(),
    )


def session_json(ort_version: str, models: Mapping[str, SessionSettings]) -> str:
    """Return `session.json`: for each model its file beside it, how it is to be loaded, and its session's options."""
    sessions = {name: _session_options(name, settings) for name, settings in models.items()}
    return to_json({"schema": "ortrim-session/1", "onnxruntime": ort_version, "models": sessions})


def _session_options(name: str, settings: SessionSettings) -> dict[str, Any]:
    spinning = dict.fromkeys(SPINNING, str(int(settings.allow_spinning)))
    return {
        "file": f"{name}.ort",
        "load": settings.load,
        "intra_op_num_threads": settings.threads,
        "inter_op_num_threads": settings.inter_op_threads,
        "execution_mode": "ORT_PARALLEL" if settings.inter_op_threads > 1 else "ORT_SEQUENTIAL",
        "graph_optimization_level": "ORT_DISABLE_ALL" if settings.optimization_level == "none" else "ORT_ENABLE_ALL",
        "enable_cpu_mem_arena": settings.arena,
        "enable_mem_pattern": settings.memory_pattern,
        **({"execution_providers": list(settings.providers)} if settings.providers else {}),
        "session_configuration": spinning | dict(settings.configuration),
    }
