"""The inference engines that ortrim knows: what they are called, and how they are installed and used.

- The pins of other inference engines, which `compare` holds models against.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ortrim.buildspec.problems import nearest
from ortrim.errors import UsageError
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
    """Return the engines of these names, the usual ones without any; the full runtime, which all is held to, first.

    Raises `UsageError` (`bad-option`).
    """
    for name in names:
        if name not in ENGINES:
            hint = nearest(name, ENGINES, f"choose from {', '.join(ENGINES)}")
            raise UsageError("bad-option", f"{name[:100]!r} is no engine", where="--engine", hint=hint)
    return tuple(ENGINES[name] for name in dict.fromkeys((ONNXRUNTIME, *(names or USUAL))))


def engine_requirements(name: str) -> str:
    """Return the text of an engine's requirements file, or of its converter's; every line is pinned with hashes."""
    return shipped_text(f"requirements/engine-{name}.txt")
