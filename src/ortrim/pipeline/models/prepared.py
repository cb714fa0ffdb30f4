"""`prepare`: the steps of a buildspec's models alone, and their results where the user wants them."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.serialization import to_json
from ortrim.core.steps_report import PreparationReport
from ortrim.errors import UsageError
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.converted import Request, load, prepared_models
from ortrim.pipeline.models.choosing import require_known
from ortrim.pipeline.models.preparations import preparations_of
from ortrim.pipeline.steps.preparation import Preparation
from ortrim.storage.files import write_atomically
from ortrim.tools.full_runtime import full_runtime

SUFFIX: Final = ".steps.json"


def prepare_models(request: Request, only: tuple[str, ...], console: Console) -> tuple[Preparation, ...]:
    """Do the steps of all models that have some, or `only` of those named.

    Raises `UsageError` (`no-such-model`, `no-steps`) and what the steps raise.
    """
    loaded = _chosen(load(request), only)
    originals = prepared_models(loaded, console)
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    return tuple(filter(None, preparations_of(loaded, originals, runtime, console)))


def write_prepared(prepared: tuple[Preparation, ...], folder: Path, console: Console) -> None:
    """Write each model and its report into a folder, all or nothing of each. Raises `StorageError`."""
    for each in prepared:
        path = folder / f"{each.model.name}.onnx"
        write_atomically(path, each.model.path.read_bytes())
        report = write_steps(each.report, folder)
        console.note(f"{path}: {each.model.facts.size_bytes:,} bytes; {report.name}")


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
        hint = "write [[models.steps]] into the buildspec, see docs/prepare.md"
        raise UsageError("no-steps", what, where=str(loaded.file), hint=hint)
    models = tuple(model for model in wanted if model.steps)
    return replace(loaded, spec=replace(loaded.spec, models=models))
