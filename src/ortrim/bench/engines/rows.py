"""The inference engines that ortrim knows, and what each took for a model. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from ortrim.buildspec.problems import nearest
from ortrim.errors import UsageError
from ortrim.parity.measurements import Distribution, HostFacts, Verdict
from ortrim.pins.shipped import shipped_text

ONNXRUNTIME: Final = "onnxruntime"
TRIMMED: Final = "trimmed"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine. `use` says how it is set up; `package` and `converter` name requirements files in the pins.

    Without a `package` it is not installed for a comparison: the full runtime and the trimmed one are there anyway.
    `converts` says that the model is brought into a form of the engine's own first, by the engine's packages unless
    there is a `converter`. One that is not `usual` is compared only when it is named, for what it takes to install.
    """

    name: str
    title: str
    use: str
    package: str = ""
    converts: bool = False
    converter: str = ""
    usual: bool = True


_ALL: Final = (
    Engine(name=ONNXRUNTIME, title="ONNX Runtime", use="all optimizations"),
    Engine(name=TRIMMED, title="ONNX Runtime, trimmed", use="C API, converted model, its session.json"),
    Engine(name="openvino", title="OpenVINO", use="CPU, latency hint, float32", package="openvino"),
    Engine(name="tract", title="tract", use="shapes of the case where the model allows it", package="tract"),
    Engine(name="mnn", title="MNN", use="converted by mnnconvert, precision high", package="mnn", converts=True),
    Engine(name="ncnn", title="ncnn", use="converted by pnnx, float32", package="ncnn", converts=True),
    Engine(
        name="litert",
        title="LiteRT",
        use="converted by onnx2tf, XNNPACK",
        package="litert",
        converts=True,
        converter="litert-converter",
        usual=False,
    ),
)
ENGINES: Final[Mapping[str, Engine]] = MappingProxyType({engine.name: engine for engine in _ALL})
USUAL: Final = tuple(engine.name for engine in _ALL if engine.usual)


def engines_named(names: tuple[str, ...]) -> tuple[Engine, ...]:
    """Return the engines of these names, the usual ones without any; the full runtime, which all is held to, first."""
    for name in names:
        if name not in ENGINES:
            hint = nearest(name, ENGINES, f"choose from {', '.join(ENGINES)}")
            raise UsageError("bad-option", f"{name[:100]!r} is no engine", where="--engine", hint=hint)
    return tuple(ENGINES[name] for name in dict.fromkeys((ONNXRUNTIME, *(names or USUAL))))


def engine_requirements(name: str) -> str:
    """Return the text of an engine's requirements file, or of its converter's; every line is pinned with hashes."""
    return shipped_text(f"requirements/engine-{name}.txt")


Stage = Literal["install", "import", "convert", "load", "run", "start"]
"""Where an engine came to its end; `start` for one that did not even begin."""
STAGES: Final[tuple[Stage, ...]] = ("install", "import", "convert", "load", "run", "start")


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """An engine: its name on the command line and in tables, its version, and how it was used.

    `installed_bytes` are those of all native libraries of its package; None for one that could not be had.
    `version` is empty as long as the engine has not said it.
    """

    name: str
    title: str
    version: str = ""
    use: str = ""
    installed_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class EngineLibrary:
    """A native library of an engine that a run had opened."""

    name: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class EngineParity:
    """The outputs of a case against the full runtime's without optimizations; the worst of them."""

    verdict: Verdict
    max_absolute: float
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineTimes:
    """What one engine took for one case, over all rounds; times in milliseconds.

    `latency_ms` has every timed run, from NumPy arrays to NumPy arrays; `processor_ms` is what one run took of the
    processor, all threads together. `open_ms` is the import of the engine or the opening of its library, `load_ms` from
    a model's file to one that can run. Memory is what the process grew by, from before the engine was there. `ratio` is
    the median over the rounds of its median latency by the first engine's, `spread` that ratio's relative half-width.
    """

    rounds: int
    open_ms: float
    load_ms: float
    first_run_ms: float
    latency_ms: Distribution
    processor_ms: float
    loaded_bytes: int
    peak_bytes: int
    convert_ms: float | None
    libraries: tuple[EngineLibrary, ...]
    ratio: float | None
    spread: float | None
    parity: EngineParity

    @property
    def library_bytes(self) -> int:
        """Size of the native libraries that the run had opened."""
        return sum(library.bytes for library in self.libraries)


@dataclass(frozen=True, kw_only=True)
class EngineRow:
    """One engine and one case: what it took, or at which stage it ended, and why."""

    engine: str
    times: EngineTimes | None = None
    stage: Stage | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """One case of one model in all engines, in the requested order."""

    model: str
    model_sha256: str
    case: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    rows: tuple[EngineRow, ...]


@dataclass(frozen=True, kw_only=True)
class EngineComparison:
    """A whole comparison, as it is written to a file. `load_average` is the machine's when it began."""

    schema: Literal["ortrim-compare/1"] = "ortrim-compare/1"
    name: str
    recorded_at: str
    ortrim_version: str
    reference: str
    machine: HostFacts
    load_average: float
    threads: int
    rounds: int
    engines: tuple[EngineFacts, ...]
    cases: tuple[ComparedCase, ...]
