"""What a case builds: a spec as planned for this host, and the spec that it is exchanged for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build_time.cases import Case, Recipe
from build_time.jobs import read_operators, recipe_digest, with_more_operators, with_operators
from ortrim.base.console import Console
from ortrim.compiling.plan import BuildJob, digest
from ortrim.models.operators import OperatorId
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request

OPERATORS: Final = Path(__file__).resolve().with_name("operators.txt")
DIGITS: Final = 16


@dataclass(frozen=True, kw_only=True)
class Subject:
    name: str
    file: Path
    job: BuildJob
    plan_digest: str
    sources: Path


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The spec that is measured and the other one; `commit` is ortrim's."""

    own: Subject
    other: Subject
    commit: str

    def subject(self, case: Case) -> Subject:
        return self.other if case.other else self.own

    def job(self, case: Case) -> BuildJob:
        job = self.subject(case).job
        if case.first:
            return with_operators(job, all_operators()[: case.first])
        return with_more_operators(job, case.more) if case.more else job

    def key(self, case: Case) -> str:
        """Return the name of what a case measures; ortrim's commit is in it wherever ortrim does the work."""
        if case.recipe is Recipe.UPSTREAM:
            return recipe_digest(self.job(case))[:DIGITS]
        what = self.own.plan_digest if case.recipe is Recipe.COMMAND else digest(self.job(case))
        return f"{what[:DIGITS]}-{self.commit}"

    @property
    def folder_name(self) -> str:
        return f"{digest(self.own.job)[:DIGITS]}-{self.commit}"


def planned_subject(spec: Path, console: Console) -> Subject:
    planned = planned_for(Request(spec=spec), console, to_run=True)
    return Subject(
        name=planned.plan.spec_name,
        file=spec.absolute(),
        job=planned.plan.targets[0].job,
        plan_digest=digest(planned.plan),
        sources=planned.sources.folder,
    )


def all_operators() -> tuple[OperatorId, ...]:
    """Return the operators behind the graph, in their fixed order."""
    return read_operators(OPERATORS.read_text(encoding="utf-8"))
