"""`prepare`: the steps of a buildspec's models alone, and their results where the user wants them.

- Converted models and their `session.json` where the user wants them.
- A buildspec's models as they are judged and compared: after their steps, as they are shipped, or as given.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.base.json import to_json
from ortrim.buildspec.buildspec import LoadedSpec, session_json, session_of, settings_of
from ortrim.errors import UsageError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.package.package import SESSION
from ortrim.parity.inputs import Case
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.models import Models, preparations_of, prepared_models
from ortrim.planning.request import require_known
from ortrim.steps.preparation import Preparation
from ortrim.steps.report import PreparationReport

SUFFIX: Final = ".steps.json"


def prepare_models(whole: LoadedSpec, only: tuple[str, ...], console: Console) -> tuple[Preparation, ...]:
    """Do the steps of all models of a buildspec that have some, or `only` of those named.

    Raises `UsageError` (`no-such-model`, `no-steps`) and what the steps raise.
    """
    loaded = _chosen(whole, only)
    originals = prepared_models(loaded, console)
    return tuple(filter(None, preparations_of(loaded, originals, _runtime_of(loaded), console)))


def write_prepared(prepared: tuple[Preparation, ...], folder: Path, console: Console) -> None:
    """Write each model and its report into a folder, all or nothing of each. Raises `StorageError`."""
    for each in prepared:
        path = folder / f"{each.model.name}.onnx"
        write_atomically(path, each.model.path.read_bytes())
        report = write_steps(each.report, folder)
        console.note(f"{path}: {each.model.facts.size_bytes:,} bytes; {report.name}")


def write_converted(models: Models, folder: Path) -> tuple[OrtModel, ...]:
    """Write converted models and their `session.json` into a folder; return the copies. Raises `StorageError`."""
    whole = models.loaded.spec
    settings = {
        model.name: settings_of(session_of(whole, spec), style=model.style, reads_in_place=model.reads_in_place)
        for model, spec in zip(models.converted, whole.models, strict=True)
    }
    copies = tuple(replace(model, path=folder / f"{model.name}.ort") for model in models.converted)
    for model, copy in zip(models.converted, copies, strict=True):
        write_atomically(copy.path, model.path.read_bytes())
    write_atomically(folder / SESSION, session_json(models.runtime.version, settings))
    return copies


def write_steps(report: PreparationReport, folder: Path) -> Path:
    """Write the report of a model's steps into a folder and return its file. Raises `StorageError`."""
    path = folder / f"{report.model}{SUFFIX}"
    write_atomically(path, to_json(report))
    return path


def _chosen(loaded: LoadedSpec, only: tuple[str, ...]) -> LoadedSpec:
    """Return the buildspec with the models alone that are to be prepared."""
    require_known("no-such-model", "--only", only, [model.name for model in loaded.spec.models])
    wanted = [model for model in loaded.spec.models if not only or model.name in only]
    without = [model.name for model in wanted if not model.steps]
    if without and (only or len(without) == len(wanted)):
        what = f"model '{without[0]}' has no steps" if only else "no model has steps"
        hint = "write [[models.steps]] into the buildspec; invoke schema lists them"
        raise UsageError("no-steps", what, where=str(loaded.file), hint=hint)
    models = tuple(model for model in wanted if model.steps)
    return replace(loaded, spec=replace(loaded.spec, models=models))


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
    """Return a buildspec's models after their steps, which are done unless they were before; `given` is before them.

    Raises as `prepared_models` and `preparations_of` do, and `ToolError` when the full runtime cannot be had.
    """
    originals = prepared_models(loaded, console)
    if given or not any(model.steps for model in loaded.spec.models):
        return tuple(ReadyModel(model=own) for own in originals)
    preparations = preparations_of(loaded, originals, _runtime_of(loaded), console, shown=False)
    return tuple(
        ReadyModel(model=done.model if done else own, preparation=done)
        for own, done in zip(originals, preparations, strict=True)
    )


def cases_of(ready: ReadyModel, number: int, loaded: LoadedSpec) -> tuple[Case, ...]:
    """Return the cases of the buildspec's model of that number: after steps, those that it still takes.

    Raises as `cases_made` does.
    """
    if ready.preparation:
        return ready.preparation.cases
    return cases_made(ready.model, loaded.spec.models[number], loaded.file.parent, lambda: _runtime_of(loaded))


def _runtime_of(loaded: LoadedSpec) -> FullRuntime:
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    return full_runtime(pins.version, pins.converter_requirements)
