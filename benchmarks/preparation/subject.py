"""A buildspec without the steps of its models and with them, built for this machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from footprint.contenders import Contender, Contest
from footprint.subject import Model, Subject, build_first, built_of, contender_of, subject_of

from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.errors import UsageError
from ortrim.parity.inputs import Case
from ortrim.planning.planned import Planned, looked_at, make_planned
from ortrim.planning.request import Request
from ortrim.steps.report import PreparationReport

GIVEN: Final = "given"
"""The library for the models as the user gave them, with these models."""
PREPARED: Final = "prepared"
"""The library for the models after their steps, with these."""
PROFILE: Final[ProfileName] = "balanced"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both builds of a spec; their models are in the same order, as are `reports`, None for a model without steps."""

    given: Subject
    prepared: Subject
    reports: tuple[PreparationReport | None, ...]

    @property
    def name(self) -> str:
        return self.given.name

    def contests(self) -> tuple[Contest, ...]:
        """Return what is to be measured of each model: both builds with the same cases, in the same runner."""
        both = zip(self.given.models, self.prepared.models, strict=True)
        return tuple(self._contest(given, prepared) for given, prepared in both)

    def _contest(self, given: Model, prepared: Model) -> Contest:
        return Contest(
            spec=self.name,
            model=given.prepared.name,
            runner=self.given.runner,
            runner_sha256=sha256_of(self.given.runner),
            cases=given.cases,
            contenders=(_contender(self.given, GIVEN, given), _contender(self.prepared, PREPARED, prepared)),
        )


def built_pair(spec: Path, jobs: int | None, output: Path, console: Console) -> Pair:
    """Build a spec for this machine without and with its models' steps; what was built before is taken as it is."""
    request = Request(spec=spec, profile=PROFILE, jobs=jobs, output=output)
    prepared_from = looked_at(request, console, to_run=True)
    loaded = prepared_from.loaded
    if not any(model.steps for model in loaded.models):
        what, hint = "no model of it has steps, so that there is nothing to measure", "see docs/guides/prepare.md"
        raise UsageError("no-steps", what, where=str(spec), hint=hint)
    given = make_planned(replace(prepared_from, loaded=without_steps(loaded)), request, console)
    prepared = make_planned(prepared_from, request, console)
    for name, before, after in zip(_names(given), given.cases, prepared.cases, strict=True):
        require_same_cases(f"{spec}: model '{name}'", before, after)
    return Pair(
        given=_built(given, GIVEN, request, console),
        prepared=_built(prepared, PREPARED, request, console),
        reports=tuple(done.report if done else None for done in prepared.models.preparations),
    )


def without_steps(loaded: LoadedSpec) -> LoadedSpec:
    """Return a buildspec whose models are taken as they are given."""
    models = tuple(replace(model, steps=()) for model in loaded.models)
    return replace(loaded, models=models)


def require_same_cases(where: str, given: tuple[Case, ...], prepared: tuple[Case, ...]) -> None:
    """Raise `UsageError` (`cases-differ`) unless both have the same cases with the same inputs in the same order."""
    before, after = _inputs_by_case(given), _inputs_by_case(prepared)
    if before == after:
        return
    others = sorted(name for name in before | after if before.get(name) != after.get(name))
    raise UsageError(
        "cases-differ",
        "after its steps the model takes other inputs than before, so that the two cannot be compared",
        where=where,
        why=f"cases that differ: {', '.join(others)}",
        hint="measure a spec without the steps that change, reorder or drop inputs, and whose cases all stay",
    )


def _inputs_by_case(cases: tuple[Case, ...]) -> dict[str, dict[str, str]]:
    """Return the digests of the input files, which are in the model's order, whatever its inputs are called."""
    return {case.name: {file.name: sha256_of(file) for file in sorted(case.folder.glob("input_*"))} for case in cases}


def _names(planned: Planned) -> tuple[str, ...]:
    return tuple(model.name for model in planned.models.prepared)


def _built(planned: Planned, contender: str, request: Request, console: Console) -> Subject:
    library, runner = build_first(planned, request, f"with its models {contender}", console)
    return subject_of(planned, {contender: built_of(planned, library)}, runner, request.output)


def _contender(subject: Subject, name: str, model: Model) -> Contender:
    return contender_of(
        name, subject.libraries[name].path, (model.converted.path, model.converted.sha256), model.session
    )
