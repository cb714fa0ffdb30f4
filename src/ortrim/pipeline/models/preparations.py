"""The steps of all models of a buildspec, with what they did shown."""

from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.models import PreparedModel
from ortrim.pipeline.steps.defaults import with_default_case
from ortrim.pipeline.steps.preparation import Ingredients, Preparation, prepare_by_steps
from ortrim.pipeline.steps.words import step_name
from ortrim.report.steps_terminal import steps_table
from ortrim.storage.cache import cache_folder
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.cases import make_cases


def preparations_of(
    loaded: LoadedSpec,
    originals: tuple[PreparedModel, ...],
    runtime: FullRuntime,
    console: Console,
    *,
    shown: bool = True,
) -> tuple[Preparation | None, ...]:
    """Do the steps of those models that have some, and show what they did if that is wanted; None for the others.

    Raises `SpecError` and `VerifyError` for cases, as `make_cases` does, and what `prepare_by_steps` raises.
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
        cases=make_cases(original, with_default_case(spec, original), loaded.file.parent, cache_folder("cases")),
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
