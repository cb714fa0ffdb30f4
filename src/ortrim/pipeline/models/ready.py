"""A buildspec's models as they are judged and compared: after their steps, as they are shipped, or as given."""

from dataclasses import dataclass

from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.models import PreparedModel
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.converted import prepared_models
from ortrim.pipeline.models.preparations import preparations_of
from ortrim.pipeline.steps.preparation import Preparation
from ortrim.storage.cache import cache_folder
from ortrim.tools.full_runtime import full_runtime
from ortrim.verify.cases import Case, make_cases


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
    pins = runtime_pins(loaded.spec.onnxruntime.version)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    preparations = preparations_of(loaded, originals, runtime, console, shown=False)
    return tuple(
        ReadyModel(model=done.model if done else own, preparation=done)
        for own, done in zip(originals, preparations, strict=True)
    )


def cases_of(ready: ReadyModel, number: int, loaded: LoadedSpec) -> tuple[Case, ...]:
    """Return the cases of the buildspec's model of that number: after steps, those that it still takes.

    Raises as `make_cases` does.
    """
    if ready.preparation:
        return ready.preparation.cases
    return make_cases(ready.model, loaded.spec.models[number], loaded.file.parent, cache_folder("cases"))
