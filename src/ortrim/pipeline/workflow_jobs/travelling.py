"""What of a plan leaves this machine when another one compiles: as little as compiling takes."""

from dataclasses import replace
from typing import Final

from ortrim.core.plan import BuildPlan, PlannedTarget
from ortrim.core.target_spec import Budgets
from ortrim.errors import PlanError
from ortrim.pipeline.workflow_jobs.dispatched import ELSEWHERE, SPEC_NAME

COMPILERS: Final = ("zig", "ndk", "xcode")
"""Those that another machine can have, too."""


def travelling(plan: BuildPlan, targets: tuple[PlannedTarget, ...]) -> BuildPlan:
    """Return the plan of `targets` alone, without names and digests of models, assemblies and budgets.

    Raises `PlanError` `plan-cannot-travel` for what only this machine can build.
    """
    if not SPEC_NAME.fullmatch(plan.spec_name):
        raise _stays(plan.spec_name, "the name of the buildspec has letters that the workflow does not take", "name")
    for target in targets:
        _require_possible(target)
    return replace(plan, models=(), assemblies=(), targets=tuple(replace(each, budgets=Budgets()) for each in targets))


def _require_possible(target: PlannedTarget) -> None:
    job = target.job
    if not job.sources or job.sources[0].kind not in ELSEWHERE:
        raise _stays(job.target.identifier, "its sources are a folder of this machine", "onnxruntime.source")
    if job.toolchain.kind not in COMPILERS:
        raise _stays(job.target.identifier, f"{job.toolchain.kind} is a compiler of this machine", "targets.compiler")


def _stays(where: str, why: str, key: str) -> PlanError:
    hint = f"change {key} in the buildspec, or build here: leave out --executor github"
    return PlanError("plan-cannot-travel", "can be built on this machine alone", where=where, why=why, hint=hint)
