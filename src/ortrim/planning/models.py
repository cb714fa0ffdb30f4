"""The models of a buildspec: their copies, after their steps, converted for targets, and the operators they require.

A layout that a buildspec leaves to ortrim is NCHWc where convolutions decide. On x64 the official library changes every
model to it at load, which a minimal build cannot: without it convolutional models take 1.6 to 4.1 times as long
(docs/reference/session.md). On ARM64 the official library has no kernels for it, and ortrim its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.base.cache import cache_folder
from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.base.json import to_json
from ortrim.buildspec.buildspec import (
    BuildSpec,
    Layout,
    LoadedSpec,
    ModelSpec,
    provider_names,
    providers_of,
    session_json,
    session_of,
    settings_of,
)
from ortrim.buildspec.targets import Target
from ortrim.errors import Diagnostic, ToolError, UsageError
from ortrim.models.convert import Conversion, convert, converter_for
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import ModelFacts, OrtModel, PreparedModel
from ortrim.models.one_axis import OneAxis, faster_in_two_axes
from ortrim.models.operators import RequiredOperators, reduce_operators
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.package.package import SESSION
from ortrim.parity.inputs import Case, input_shapes
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import RuntimePins, runtime_pins
from ortrim.planning.request import require_known
from ortrim.report.terminal import steps_table
from ortrim.steps.preparation import Ingredients, Preparation, prepare_by_steps, step_name, with_default_case
from ortrim.steps.report import PreparationReport

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
    """Do the steps of those models that have some, and show what they did if that is wanted; None for the others."""
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
    spec = loaded.models[number]
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


OneAxes = Mapping[str, OneAxis]
"""By the names of models."""


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


def converted_models(loaded: LoadedSpec, console: Console, targets: Collection[Target] = ()) -> Models:
    """Take copies of a buildspec's models, convert them for these targets and derive the required operators.

    Without targets, models are such as run everywhere.
    """
    pins = runtime_pins(loaded.onnxruntime.version)
    originals = prepared_models(loaded, console)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    loaded = _with_cases(loaded, originals, runtime, console)
    preparations = preparations_of(loaded, originals, runtime, console)
    prepared = tuple(done.model if done else own for own, done in zip(originals, preparations, strict=True))
    able = [target.runs_nchwc for target in targets]
    one_axis = {own.name: _one_axis(loaded, at, own, preparations[at], runtime) for at, own in enumerate(prepared)}

    def made(layouts: Mapping[str, Layout]) -> Models:
        models = tuple(with_layout(model, layouts) for model in loaded.models)
        whole = replace(loaded, models=models)
        converted = _convert(whole, prepared, one_axis, runtime, console)
        return Models(
            loaded=whole,
            pins=pins,
            runtime=runtime,
            preparations=preparations,
            prepared=prepared,
            converted=converted,
            operators=reduce_operators(converted),
        )

    layouts = chosen_layouts(loaded, prepared, one_axis, runtime, console) if any(able) else {}
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
        for spec, own in zip(loaded.models, originals, strict=True)
    ]
    return replace(loaded, models=tuple(models))


def found_for(model: PreparedModel, runtime: FullRuntime, console: Console) -> "FoundCases":
    """Return the cases that are found for a model, and show what was chosen."""
    from ortrim.parity.cases.found import found_cases  # noqa: PLC0415 - it imports onnx

    with console.step(f"find test cases for {model.name}") as step:
        return found_cases(model, runtime, step.note)


def prepared_models(loaded: LoadedSpec, console: Console) -> tuple[PreparedModel, ...]:
    """Take copies of a buildspec's models, checked to be what the converter takes."""
    root = cache_folder("models") / FACTS_LAYOUT
    prepared = []
    with console.step("prepare models") as step:
        for number, model in enumerate(loaded.models):
            step.progress(number, len(loaded.models), model.name)
            where = f"{loaded.file}: models[{number}]"
            version = loaded.onnxruntime.version
            own = prepare(model, base=loaded.file.parent, root=root, ort_version=version, where=where, note=step.note)
            prepared.append(own)
    return tuple(prepared)


def _convert(
    loaded: LoadedSpec, prepared: tuple[PreparedModel, ...], one_axis: OneAxes, runtime: FullRuntime, console: Console
) -> tuple[OrtModel, ...]:
    root = cache_folder("conversions")
    converted = []
    with console.step("convert to ORT format") as step:
        for number, (model, spec) in enumerate(zip(prepared, loaded.models, strict=True)):
            step.progress(number, len(prepared), model.name)
            assert spec.layout != "auto"
            own = one_axis[spec.name]
            two_axes = own.anywhere + own.in_blocks if spec.layout == "nchwc8" else own.anywhere
            conversion = Conversion(style=spec.style, level=spec.level, layout=spec.layout, two_axes=two_axes)
            converted.append(convert(model, conversion, runtime=runtime, root=root))
            if not converted[-1].reads_in_place:
                step.note(f"{model.name}: in_place is off: sparse or misaligned weights are copied when it loads")
    return tuple(converted)


def wants_cases(facts: ModelFacts) -> bool:
    """Whether one case of ortrim's default values would show little: sizes are open, or values may be looked up."""
    return any(domain == "ai.onnx.ml" for domain, _ in facts.opsets) or any(
        info.shape is None
        or any(not isinstance(size, int) for size in info.shape)
        or not info.element_type.startswith(("float", "bfloat"))
        for info in facts.inputs
    )


LEAST_SHARE: Final = 0.05
"""Share of the weights that convolutions have at least where the layout pays.

A convolution's weights are used for every pixel, those of a product once, so that this is a larger share of the time.
Below it, as where a transformer cuts an image into pieces, the kernels would make the library larger for nothing.
"""


def chosen_layouts(
    spec: BuildSpec, prepared: tuple[PreparedModel, ...], one_axis: OneAxes, runtime: FullRuntime, console: Console
) -> dict[str, Layout]:
    """Return the layout of each model that NCHWc makes faster on a target that runs it, by its name; say which.

    A library has one block size: where a buildspec asks for 16, no other is chosen beside it.
    """
    if any(model.layout == "nchwc16" for model in spec.models):
        return {}
    models = zip(spec.models, prepared, strict=True)
    names = [
        model.name
        for model, own in models
        if spec.profile != "upstream"
        and model.layout == "auto"
        and model.style == "fixed"
        and model.level in ("extended", "all")
        and own.facts.convolution_share + one_axis[model.name].share >= LEAST_SHARE
    ]
    if names and (refusal := _refusal(runtime)):
        console.note(f"{', '.join(names)}: not in NCHWc layout, the faster one for convolutions: {refusal}")
        return {}
    for name in names:
        console.note(f"{name}: in NCHWc layout, the faster one for convolutions (layout = 'plain': without it)")
    return dict.fromkeys(names, "nchwc8")


def _one_axis(
    loaded: LoadedSpec, number: int, model: PreparedModel, done: Preparation | None, runtime: FullRuntime
) -> OneAxis:
    if not model.facts.one_axis_share:
        return OneAxis()
    cases = done.cases if done else cases_made(model, loaded.models[number], loaded.file.parent, lambda: runtime)
    return one_axis_of(model, cases, loaded.profile)


def one_axis_of(model: PreparedModel, cases: Sequence[Case], profile: str | None) -> OneAxis:
    """Return the convolutions along one axis of a model that are faster along two in all these cases.

    None are where a build's `profile` is `upstream`, which is there to compare with.
    """
    if profile == "upstream" or not model.facts.one_axis_share:
        return OneAxis()
    names = [each.name for each in model.facts.inputs]
    shapes = [dict(zip(names, input_shapes(model.facts, case), strict=True)) for case in cases]
    return faster_in_two_axes(model, shapes, cache_folder("conversions"))


def _refusal(runtime: FullRuntime) -> str:
    try:
        converter_for("nchwc8", runtime, "")
    except Diagnostic as error:
        hint = error.hint if isinstance(error, ToolError) else ""
        return "; ".join(filter(None, (f"{error.where} {error.what}".strip(), hint)))
    return ""


def with_layout(model: ModelSpec, layouts: Mapping[str, Layout]) -> ModelSpec:
    """Return a model with the layout that was chosen for it, or plain where that was left open."""
    if model.name in layouts:
        return replace(model, layout=layouts[model.name], level="all")
    return replace(model, layout="plain") if model.layout == "auto" else model


SUFFIX: Final = ".steps.json"


def prepare_models(whole: LoadedSpec, only: tuple[str, ...], console: Console) -> tuple[Preparation, ...]:
    """Do the steps of all models of a buildspec that have some, or `only` of those named."""
    loaded = _chosen(whole, only)
    originals = prepared_models(loaded, console)
    return tuple(filter(None, preparations_of(loaded, originals, _runtime_of(loaded), console)))


def write_prepared(prepared: tuple[Preparation, ...], folder: Path, console: Console) -> None:
    """Write each model and its report into a folder, all or nothing of each."""
    for each in prepared:
        path = folder / f"{each.model.name}.onnx"
        write_atomically(path, each.model.path.read_bytes())
        report = write_steps(each.report, folder)
        console.note(f"{path}: {each.model.facts.size_bytes:,} bytes; {report.name}")


def write_converted(models: Models, folder: Path) -> tuple[OrtModel, ...]:
    """Write converted models and their `session.json` into a folder; return the copies.

    It names the execution providers that the buildspec gives all targets, as a session cannot add one that its library
    does not have; whether a build can have them is for `plan` to say.
    """
    whole = models.loaded
    of_targets = [providers_of(whole, target) for target in whole.targets] or [whole.providers]
    providers = provider_names(set(of_targets[0]).intersection(*of_targets))
    settings = {
        model.name: replace(
            settings_of(session_of(whole, spec), style=model.style, reads_in_place=model.reads_in_place),
            providers=providers,
        )
        for model, spec in zip(models.converted, whole.models, strict=True)
    }
    copies = tuple(replace(model, path=folder / f"{model.name}.ort") for model in models.converted)
    for model, copy in zip(models.converted, copies, strict=True):
        write_atomically(copy.path, model.path.read_bytes())
    write_atomically(folder / SESSION, session_json(models.runtime.version, settings))
    return copies


def write_steps(report: PreparationReport, folder: Path) -> Path:
    """Write the report of a model's steps into a folder and return its file."""
    path = folder / f"{report.model}{SUFFIX}"
    write_atomically(path, to_json(report))
    return path


def _chosen(loaded: LoadedSpec, only: tuple[str, ...]) -> LoadedSpec:
    require_known("no-such-model", "--only", only, [model.name for model in loaded.models])
    wanted = [model for model in loaded.models if not only or model.name in only]
    without = [model.name for model in wanted if not model.steps]
    if without and (only or len(without) == len(wanted)):
        what = f"model '{without[0]}' has no steps" if only else "no model has steps"
        hint = "write [[models.steps]] into the buildspec; invoke schema lists them"
        raise UsageError("no-steps", what, where=str(loaded.file), hint=hint)
    models = tuple(model for model in wanted if model.steps)
    return replace(loaded, models=models)


@dataclass(frozen=True, kw_only=True)
class ReadyModel:
    """A model to look at; `preparation` is what its steps did, None when it has none or is taken as given."""

    model: PreparedModel
    preparation: Preparation | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that were done, in words."""
        return self.preparation.steps_done if self.preparation else ()


def ready_models(loaded: LoadedSpec, console: Console, *, given: bool = False) -> tuple[ReadyModel, ...]:
    """Return a buildspec's models after their steps, which are done unless they were before; `given` is before them."""
    originals = prepared_models(loaded, console)
    if given or not any(model.steps for model in loaded.models):
        return tuple(ReadyModel(model=own) for own in originals)
    preparations = preparations_of(loaded, originals, _runtime_of(loaded), console, shown=False)
    return tuple(
        ReadyModel(model=done.model if done else own, preparation=done)
        for own, done in zip(originals, preparations, strict=True)
    )


def cases_of(ready: ReadyModel, number: int, loaded: LoadedSpec) -> tuple[Case, ...]:
    """Return the cases of the buildspec's model of that number: after steps, those that it still takes."""
    if ready.preparation:
        return ready.preparation.cases
    return cases_made(ready.model, loaded.models[number], loaded.file.parent, lambda: _runtime_of(loaded))


def _runtime_of(loaded: LoadedSpec) -> FullRuntime:
    pins = runtime_pins(loaded.onnxruntime.version)
    return full_runtime(pins.version, pins.converter_requirements)
