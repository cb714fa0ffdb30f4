"""From a buildspec to converted models and the operators that they require."""

from dataclasses import dataclass, replace
from pathlib import Path

from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.operators import RequiredOperators
from ortrim.core.profiles import ProfileName
from ortrim.models.convert import Conversion, convert
from ortrim.models.copies import FACTS_LAYOUT
from ortrim.models.prepare import prepare
from ortrim.models.reduce import reduce_operators
from ortrim.pins.runtime import RuntimePins, runtime_pins
from ortrim.pipeline.models.preparations import preparations_of
from ortrim.pipeline.steps.preparation import Preparation
from ortrim.spec.load import load_spec
from ortrim.storage.cache import cache_folder
from ortrim.tools.containers import ContainerOptions
from ortrim.tools.full_runtime import FullRuntime, full_runtime


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a task was asked for: the buildspec's file, what overrides it, where output goes, and how to verify.

    `version` is that of ONNX Runtime. `ndk` is the folder of Android's NDK; without it, the environment says where
    that is. `container` says how to build in one; None for building on this machine itself. `elsewhere` says that
    another machine compiles, so that this one needs no NDK; `on_macs` that these are GitHub's, Macs for what Apple's
    tools compile. `devices` are names as `ortrim.verify.devices.names` reads
    them; without any, each target has its own defaults. `cores` are those that runs are kept on, where a device has
    any of its own; all of them when it is empty. `training_run` is kept in the history with what is verified.
    """

    spec: Path
    target: str | None = None
    profile: ProfileName | None = None
    version: str | None = None
    jobs: int | None = None
    output: Path = Path("artifacts")
    ndk: Path | None = None
    container: ContainerOptions | None = None
    elsewhere: bool = False
    on_macs: bool = False
    devices: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    least_memory: bool = False
    trace: bool = False
    training_run: str = ""


@dataclass(frozen=True, kw_only=True)
class Models:
    """The buildspec's models through prepare, convert and reduce.

    `preparations` are those of models with steps, None for others; `prepared` are the models after their steps.
    """

    loaded: LoadedSpec
    pins: RuntimePins
    runtime: FullRuntime
    preparations: tuple[Preparation | None, ...]
    prepared: tuple[PreparedModel, ...]
    converted: tuple[OrtModel, ...]
    operators: RequiredOperators


def convert_models(request: Request, console: Console) -> Models:
    """Load the buildspec, take copies of its models, convert them and derive the required operators."""
    return converted_models(load(request), console)


def load(request: Request) -> LoadedSpec:
    """Load the buildspec, with what the request overrides. Raises `SpecError`."""
    loaded = load_spec(request.spec)
    spec = loaded.spec
    runtime = replace(spec.onnxruntime, version=request.version or spec.onnxruntime.version)
    return replace(loaded, spec=replace(spec, profile=request.profile or spec.profile, onnxruntime=runtime))


def converted_models(loaded: LoadedSpec, console: Console) -> Models:
    """Take copies of a buildspec's models, convert them and derive the required operators."""
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    originals = prepared_models(loaded, console)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    preparations = preparations_of(loaded, originals, runtime, console)
    prepared = tuple(done.model if done else own for own, done in zip(originals, preparations, strict=True))
    converted = _convert(loaded, prepared, runtime, console)
    return Models(
        loaded=loaded,
        pins=pins,
        runtime=runtime,
        preparations=preparations,
        prepared=prepared,
        converted=converted,
        operators=reduce_operators(converted),
    )


def prepared_models(loaded: LoadedSpec, console: Console) -> tuple[PreparedModel, ...]:
    """Take copies of a buildspec's models, checked to be what the converter takes. Raises as `prepare` does."""
    root = cache_folder("models") / FACTS_LAYOUT
    prepared = []
    with console.step("prepare models") as step:
        for number, model in enumerate(loaded.spec.models):
            step.progress(number, len(loaded.spec.models), model.name)
            where = f"{loaded.file}: models[{number}]"
            version = loaded.spec.onnxruntime.version
            prepared.append(prepare(model, base=loaded.file.parent, root=root, ort_version=version, where=where))
    return tuple(prepared)


def _convert(
    loaded: LoadedSpec, prepared: tuple[PreparedModel, ...], runtime: FullRuntime, console: Console
) -> tuple[OrtModel, ...]:
    root = cache_folder("conversions")
    converted = []
    with console.step("convert to ORT format") as step:
        for number, (model, spec) in enumerate(zip(prepared, loaded.spec.models, strict=True)):
            step.progress(number, len(prepared), model.name)
            conversion = Conversion(style=spec.style, level=spec.level, layout=spec.layout)
            converted.append(convert(model, conversion, runtime=runtime, root=root))
    return tuple(converted)
