"""What a case builds: a spec as planned for this host, and the spec that it is exchanged for."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from build_time.cases import Case, Recipe
from ortrim.base.console import Console
from ortrim.base.json import to_canonical_json
from ortrim.buildspec.build_options import PROFILES
from ortrim.compiling.plan import BuildJob, digest
from ortrim.models.operators import OperatorId, RequiredOperators, merge, parse_config, render_config
from ortrim.planning.planned import planned_for
from ortrim.planning.planner import with_arguments
from ortrim.planning.request import Request

OURS: Final = ("CMAKE_PROJECT_onnxruntime_INCLUDE=", "ORTRIM_", "FLATBUFFERS_BUILD_FLATC=")
"""How the CMake definitions begin with which ortrim makes a build shorter."""
PLACES: Final = "ORTRIM_DEPENDENCIES="
"""How the one begins that says where the dependencies are; without our hook CMake reads that list by itself."""
PHASES: Final = ("--update", "--build")

ADDITIONS: Final = """\
ai.onnx;13;Softmax{"inputs": {"0": ["float"]}}
ai.onnx;13;Clip{"inputs": {"0": ["float"]}}
ai.onnx;17;LayerNormalization
ai.onnx;11;TopK{"inputs": {"0": ["float"]}}
ai.onnx;16;LeakyRelu
ai.onnx;14;CumSum{"inputs": {"0": ["float"]}}
ai.onnx;22;InstanceNormalization
ai.onnx;13;ArgMax{"inputs": {"0": ["float"]}}
ai.onnx;14;GRU
"""
"""Operators that a changed model may bring, with types as a converted model's configuration has them."""


def upstream_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return `build.py`'s arguments as upstream's documentation has them: all default targets, flatc, no hook."""
    kept: list[str] = []
    for word in arguments:
        if kept and kept[-1] == "--target":
            kept.pop()
        elif word.startswith(PLACES):
            kept.append(f"CMAKE_PROJECT_onnxruntime_INCLUDE={word.removeprefix(PLACES)}")
        elif word not in PHASES and not word.startswith(OURS):
            kept.append(word)
    return (*PHASES, *kept)


def upstream_job(job: BuildJob) -> BuildJob:
    recipe = with_arguments(replace(job, profile="upstream", build_options=PROFILES["upstream"], without_types=()))
    return replace(recipe, arguments=upstream_arguments(recipe.arguments))


def library_of(job: BuildJob) -> PurePosixPath:
    return job.expected_outputs[0]


def recipe_digest(job: BuildJob) -> str:
    """Digest of all that upstream's recipe depends on: nothing of ortrim but the wrappers around the compiler."""
    parts = (job.target, job.operator_config, job.toolchain, job.tools, job.sources, upstream_job(job).arguments)
    return hashlib.sha256("\n".join(to_canonical_json(part) for part in parts).encode()).hexdigest()


def with_more_operators(job: BuildJob, count: int) -> BuildJob:
    own = parse_config(job.operator_config)
    names = {(operator.domain, operator.name) for operator in own.operators}
    lines = [line for line in ADDITIONS.splitlines() if _named(line).isdisjoint(names)]
    if len(lines) < count:
        raise ValueError(f"{count} operators are wanted and {len(lines)} are new")
    return _with(job, merge(own, parse_config("\n".join(lines[:count]))))


def with_operators(job: BuildJob, operators: Iterable[OperatorId]) -> BuildJob:
    return _with(replace(job, without_types=()), RequiredOperators(operators=tuple(sorted(operators))))


def operator_types(job: BuildJob) -> int:
    required = parse_config(job.operator_config)
    return len({(operator.domain, operator.name) for operator in required.operators})


def read_operators(text: str) -> tuple[OperatorId, ...]:
    """Return the operators of a list, one a line, in the order of the lines."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(operator for line in lines for operator in parse_config(line).operators)


def _named(line: str) -> set[tuple[str, str]]:
    return {(operator.domain, operator.name) for operator in parse_config(line).operators}


def _with(job: BuildJob, operators: RequiredOperators) -> BuildJob:
    return with_arguments(replace(job, operator_config=render_config(operators)))


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
