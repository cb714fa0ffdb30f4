"""What holds between the keys of a buildspec, beyond their types."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ortrim.core.buildspec import RuntimeSpec
from ortrim.core.model_spec import ModelSpec, SessionSpec
from ortrim.core.target_spec import Budgets, LeverChoices, TargetSpec
from ortrim.spec.files import exists
from ortrim.spec.model_rules import model_problems
from ortrim.spec.problems import Location, Problem, listed, shown
from ortrim.spec.session_rules import session_problems
from ortrim.spec.target_rules import target_problems


@dataclass(frozen=True, kw_only=True)
class SoundParts:
    """The parts of a buildspec whose keys and types are right; models and targets with their index."""

    runtime: RuntimeSpec
    profile: str
    levers: LeverChoices
    models: tuple[tuple[int, ModelSpec], ...]
    targets: tuple[tuple[int, TargetSpec], ...]
    linkage: Literal["shared", "static"]
    budgets: Budgets
    session: SessionSpec


def semantic_problems(parts: SoundParts, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the sound parts; relative paths are seen from `folder`."""
    yield from _runtime(parts.runtime, folder)
    yield from _levers(parts.profile, parts.levers)
    yield from _budgets(parts.budgets, ("budgets",))
    yield from session_problems(parts.session, ("session",))
    yield from _duplicates((("models", index, "name"), model.name) for index, model in parts.models)
    yield from _references(index for index, model in parts.models if model.reference)
    for index, model in parts.models:
        yield from model_problems(model, ("models", index), folder)
        yield from session_problems(model.session or SessionSpec(), ("models", index, "session"))
        cases = enumerate(model.cases)
        yield from _duplicates((("models", index, "cases", number, "name"), case.name) for number, case in cases)
    yield from _duplicates((("targets", index, "id"), target.id) for index, target in parts.targets)
    for index, target in parts.targets:
        yield from target_problems(target, ("targets", index), parts.linkage)
        yield from _target_budgets(target, ("targets", index), parts.budgets)


def _runtime(runtime: RuntimeSpec, folder: Path) -> Iterator[Problem]:
    place = ("onnxruntime", "path")
    if runtime.path is None:
        if runtime.source == "path":
            hint = "give the folder of an ONNX Runtime checkout"
            yield Problem(reference="missing-key", location=place, what="is missing", hint=hint)
    elif runtime.source != "path":
        hint = "add source = 'path', or leave 'path' out"
        yield Problem(
            reference="stray-key", location=place, what="has a meaning only beside source = 'path'", hint=hint
        )
    elif not exists(folder / runtime.path, folder=True):
        what = f"names {shown(str(runtime.path))}, which is not a folder"
        hint = "paths are relative to the buildspec's folder"
        yield Problem(reference="source-missing", location=place, what=what, hint=hint)


def _levers(profile: str, levers: LeverChoices) -> Iterator[Problem]:
    chosen = [repr(name) for name, value in vars(levers).items() if value is not None]
    if profile == "upstream" and chosen:
        what = "has no meaning beside profile = 'upstream'"
        why = "that profile is exactly upstream's own flags"
        hint = f"leave {listed(chosen, 'and')} out, or take another profile"
        yield Problem(reference="stray-key", location=("levers",), what=what, why=why, hint=hint)


def _references(found: Iterable[int]) -> Iterator[Problem]:
    for index in list(found)[1:]:
        place = ("models", index, "reference")
        yield Problem(reference="second-reference", location=place, what="is true for the second time")


def _duplicates(names: Iterable[tuple[Location, str]]) -> Iterator[Problem]:
    seen = set()
    for location, name in names:
        if name in seen:
            yield Problem(reference="duplicate-name", location=location, what=f"is {shown(name)} for the second time")
        seen.add(name)


def _target_budgets(target: TargetSpec, location: Location, budgets: Budgets) -> Iterator[Problem]:
    if target.budgets is not None and (target.budgets.p50_ms or target.budgets.p99_ms):
        yield from _budgets(budgets.replaced_by(target.budgets), (*location, "budgets"))


def _budgets(budgets: Budgets, location: Location) -> Iterator[Problem]:
    median, tail = budgets.p50_ms, budgets.p99_ms
    if median is not None and tail is not None and tail < median:
        what = f"allow {tail:g} ms at the 99th percentile, less than the {median:g} ms of the median"
        yield Problem(reference="bad-value", location=location, what=what)
