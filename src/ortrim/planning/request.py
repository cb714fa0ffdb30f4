"""From a buildspec to converted models and the operators that they require.

- Names that a user gives of what a buildspec has.
- The steps of all models of a buildspec, with what they did shown.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.base.cache import cache_folder
from ortrim.base.console import Console
from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import Layout, LoadedSpec
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.problems import nearest
from ortrim.buildspec.targets import Target
from ortrim.buildspec.values import VERSION
from ortrim.compiling.containers.engines import ContainerOptions
from ortrim.errors import UsageError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import ModelFacts, OrtModel, PreparedModel
from ortrim.models.operators import RequiredOperators, reduce_operators
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import RuntimePins, exact_version, runtime_pins
from ortrim.planning.layouts import chosen_layouts, with_layout
from ortrim.platforms import target_problems
from ortrim.report.steps import steps_table
from ortrim.steps.preparation import Ingredients, Preparation, prepare_by_steps, step_name, with_default_case

if TYPE_CHECKING:
    from ortrim.parity.cases.found import FoundCases


def preparations_of(
    loaded: LoadedSpec,
    originals: tuple[PreparedModel, ...],
    runtime: FullRuntime,
    console: Console,
    *,
    shown: bool = True,
) -> tuple[Preparation | None, ...]:
    """Do the steps of those models that have some, and show what they did if that is wanted; None for the others.

    Raises `SpecError` and `VerifyError` for cases, as `cases_made` does, and what `prepare_by_steps` raises.
    """
    found = []
    for number, own in enumerate(originals):
        done = _prepared(loaded, number, own, runtime, console)
        if done and shown:
            console.render(steps_table(done.report))
        found.append(done)
    return tuple(found)


def _prepared(
    loaded: LoadedSpec, number: int, original: PreparedModel, runtime: FullRuntime, console: Console
) -> Preparation | None:
    spec = loaded.spec.models[number]
    if not spec.steps:
        return None
    given = Ingredients(
        original=original,
        cases=cases_made(original, with_default_case(spec, original), loaded.file.parent, lambda: runtime),
        spec=spec,
        base=loaded.file.parent,
        runtime=runtime,
        where=f"{loaded.file}: models[{number}]",
    )
    with console.step(f"steps of {spec.name}") as step:
        total = len(spec.steps)
        return prepare_by_steps(
            given,
            cache_folder("steps"),
            lambda at, choices: step.progress(at - 1, total, step_name(at, choices)),
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a task was asked for: the buildspec's file, what overrides it, where output goes, and how to verify.

    `version` is that of ONNX Runtime. `ndk` is the folder of Android's NDK; without it, the environment says where
    that is. `container` says how to build in one; None for building on this machine itself. `elsewhere` says that
    another machine compiles, so that this one needs no NDK; `on_macs` that these are GitHub's, Macs for what Apple's
    tools compile. `devices` are names as `ortrim.devices.names` reads
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
    `nchwc` are the same in NCHWc layout, for the targets that run it, when others of the build do not.
    """

    loaded: LoadedSpec
    pins: RuntimePins
    runtime: FullRuntime
    preparations: tuple[Preparation | None, ...]
    prepared: tuple[PreparedModel, ...]
    converted: tuple[OrtModel, ...]
    operators: RequiredOperators
    nchwc: "Models | None" = None

    def for_target(self, target: Target) -> "Models":
        """Return the models as they are for a target."""
        return self.nchwc if self.nchwc and target.runs_nchwc else self


def convert_models(request: Request, console: Console) -> Models:
    """Load the buildspec, take copies of its models, convert them and derive the required operators."""
    return converted_models(load(request), console)


def load(request: Request) -> LoadedSpec:
    """Load the buildspec, with what the request overrides. Raises `SpecError`, and `UsageError` (`bad-option`)."""
    if request.version and not re.fullmatch(VERSION, request.version):
        hint = "give a version such as 1.30.0 or 1.30, or newest"
        raise UsageError("bad-option", f"{request.version[:100]!r} is no version", where="--version", hint=hint)
    loaded = load_spec(request.spec, target_problems)
    spec = loaded.spec
    runtime = replace(spec.onnxruntime, version=exact_version(request.version or spec.onnxruntime.version))
    return replace(loaded, spec=replace(spec, profile=request.profile or spec.profile, onnxruntime=runtime))


def converted_models(loaded: LoadedSpec, console: Console, targets: Collection[Target] = ()) -> Models:
    """Take copies of a buildspec's models, convert them for these targets and derive the required operators.

    Without targets, models are such as run everywhere.
    """
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    originals = prepared_models(loaded, console)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    loaded = _with_cases(loaded, originals, runtime, console)
    preparations = preparations_of(loaded, originals, runtime, console)
    prepared = tuple(done.model if done else own for own, done in zip(originals, preparations, strict=True))

    def made(layouts: Mapping[str, Layout]) -> Models:
        models = tuple(with_layout(model, layouts) for model in loaded.spec.models)
        whole = replace(loaded, spec=replace(loaded.spec, models=models))
        converted = _convert(whole, prepared, runtime, console)
        return Models(
            loaded=whole,
            pins=pins,
            runtime=runtime,
            preparations=preparations,
            prepared=prepared,
            converted=converted,
            operators=reduce_operators(converted),
        )

    able = [target.runs_nchwc for target in targets]
    layouts = chosen_layouts(loaded.spec, prepared, runtime, console) if any(able) else {}
    nchwc = made(layouts) if layouts else None
    return nchwc if nchwc and all(able) else replace(made({}), nchwc=nchwc)


def _with_cases(
    loaded: LoadedSpec, originals: tuple[PreparedModel, ...], runtime: FullRuntime, console: Console
) -> LoadedSpec:
    """Return the buildspec with cases for those models that have none, nor steps, and want some."""
    models = [
        replace(spec, cases=found_for(own, runtime, console).cases)
        if not (spec.cases or spec.steps) and wants_cases(own.facts)
        else spec
        for spec, own in zip(loaded.spec.models, originals, strict=True)
    ]
    return replace(loaded, spec=replace(loaded.spec, models=tuple(models)))


def found_for(model: PreparedModel, runtime: FullRuntime, console: Console) -> "FoundCases":
    """Return the cases that are found for a model, and show what was chosen. Raises as `found_cases` does."""
    from ortrim.parity.cases.found import found_cases  # noqa: PLC0415 - it imports onnx

    with console.step(f"find test cases for {model.name}") as step:
        return found_cases(model, runtime, step.note)


def prepared_models(loaded: LoadedSpec, console: Console) -> tuple[PreparedModel, ...]:
    """Take copies of a buildspec's models, checked to be what the converter takes. Raises as `prepare` does."""
    root = cache_folder("models") / FACTS_LAYOUT
    prepared = []
    with console.step("prepare models") as step:
        for number, model in enumerate(loaded.spec.models):
            step.progress(number, len(loaded.spec.models), model.name)
            where = f"{loaded.file}: models[{number}]"
            version = loaded.spec.onnxruntime.version
            own = prepare(model, base=loaded.file.parent, root=root, ort_version=version, where=where, note=step.note)
            prepared.append(own)
    return tuple(prepared)


def _convert(
    loaded: LoadedSpec, prepared: tuple[PreparedModel, ...], runtime: FullRuntime, console: Console
) -> tuple[OrtModel, ...]:
    root = cache_folder("conversions")
    converted = []
    with console.step("convert to ORT format") as step:
        for number, (model, spec) in enumerate(zip(prepared, loaded.spec.models, strict=True)):
            step.progress(number, len(prepared), model.name)
            assert spec.layout != "auto"
            conversion = Conversion(style=spec.style, level=spec.level, layout=spec.layout)
            converted.append(convert(model, conversion, runtime=runtime, root=root))
            if not converted[-1].reads_in_place:
                step.note(f"{model.name}: in_place is off: sparse or misaligned weights are copied when it loads")
    return tuple(converted)


def require_known(code: str, option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not known; the hint has one that is close, else all of them.

    Raises `UsageError` with this code.
    """
    for name in names:
        if name not in known:
            hint = nearest(name, known, f"there are: {', '.join(known)}")
            raise UsageError(code, f"there is no {name[:100]!r}", where=option, hint=hint)


BUILDSPEC: Final = ".toml"


def is_buildspec(path: Path) -> bool:
    """Whether a buildspec is meant, and not a model's file."""
    return path.suffix == BUILDSPEC


def wants_cases(facts: ModelFacts) -> bool:
    """Whether one case of ortrim's default values would show little: sizes are open, or values may be looked up."""
    return any(domain == "ai.onnx.ml" for domain, _ in facts.opsets) or any(
        info.shape is None
        or any(not isinstance(size, int) for size in info.shape)
        or not info.element_type.startswith(("float", "bfloat"))
        for info in facts.inputs
    )
