"""The matrix of a workflow, made of a plan: which jobs there are, and on which machines they run. Pure."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ortrim.core.plan import BuildPlan
from ortrim.core.targets import APPLE, TARGETS, Architecture, CLibrary, OperatingSystem, Target
from ortrim.errors import PlanError

UBUNTU: Final = "ubuntu-24.04"
UBUNTU_ARM: Final = "ubuntu-24.04-arm"
MACOS: Final = "macos-15"
"""A Mac with Apple's own processor, which compiles for Intel's too; it has the Xcode that the pins name."""
MOST_JOBS: Final = 256
"""What GitHub takes of a matrix."""
COMPILING_MINUTES: Final = 120
DELIVERING_MINUTES: Final = 60


@dataclass(frozen=True, kw_only=True)
class CompileJob:
    """One target to be compiled, the name of its artifact, the label of its runner, and how long it may take."""

    target: str
    artifact: str
    runner: str
    minutes: int


@dataclass(frozen=True, kw_only=True)
class DeliverJob:
    """What is packaged, verified and handed over together: a target, or all those of an assembly.

    `targets` are their identifiers with commas between; `artifacts` is the pattern of the artifacts that hold them
    compiled, `artifact` the name of the delivery's own.
    """

    name: str
    targets: str
    artifacts: str
    artifact: str
    runner: str
    minutes: int


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The jobs of a run: all of `compiled` come before any of `delivered`."""

    compiled: tuple[CompileJob, ...]
    delivered: tuple[DeliverJob, ...]


def matrix_of(plan: BuildPlan, *, delivered: bool = True) -> Matrix:
    """Return the jobs that a plan comes to; without `delivered`, compiling is all.

    Raises `PlanError` `matrix-too-large`.
    """
    targets = tuple(planned.job.target for planned in plan.targets)
    compiled = tuple(
        CompileJob(
            target=target.identifier,
            artifact=compiled_artifact(plan, target.identifier),
            runner=runner_of(target),
            minutes=COMPILING_MINUTES,
        )
        for target in targets
    )
    if len(compiled) > MOST_JOBS:
        what = f"{len(compiled)} targets are more than the {MOST_JOBS} jobs that GitHub takes at once"
        raise PlanError("matrix-too-large", what, where=plan.spec_name, hint="select fewer targets")
    return Matrix(compiled=compiled, delivered=tuple(_deliveries(plan, targets)) if delivered else ())


def runner_of(target: Target) -> str:
    """Return the label of the runner on which a target is compiled: one of its own kind where there is one.

    Only NDKs for x86-64 exist. What a glibc of another kind runs is emulated on x86-64. Xcode is on Macs alone.
    """
    if target.system in APPLE:
        return MACOS
    own_kind = target.system is OperatingSystem.LINUX and target.c_library is CLibrary.GLIBC
    return UBUNTU_ARM if own_kind and target.architecture is Architecture.ARM64 else UBUNTU


def compiled_artifact(plan: BuildPlan, target: str) -> str:
    """Return the name of the artifact of a compiled target; several buildspecs may be built in one run.

    What one assembly joins has names that begin alike.
    """
    family = "apple-" if TARGETS[target].system in APPLE else ""
    return f"compiled-{plan.spec_name}-{family}{target}"


def matrix_json(jobs: tuple[CompileJob, ...] | tuple[DeliverJob, ...]) -> str:
    """Return jobs as the matrix that `fromJSON` reads, in one line."""
    return json.dumps({"include": [asdict(job) for job in jobs]}, separators=(",", ":"))


def _deliveries(plan: BuildPlan, targets: tuple[Target, ...]) -> Iterator[DeliverJob]:
    assembled = {identifier for assembly in plan.assemblies for identifier in assembly.targets}
    for target in targets:
        if target.identifier not in assembled:
            artifacts = compiled_artifact(plan, target.identifier)
            yield _delivery(plan, target.identifier, (target.identifier,), artifacts, runner_of(target))
    for assembly in plan.assemblies:
        artifacts = f"compiled-{plan.spec_name}-{assembly.identifier}-*"
        runner = MACOS if TARGETS[assembly.targets[0]].system in APPLE else UBUNTU
        yield _delivery(plan, assembly.identifier, assembly.targets, artifacts, runner)


def _delivery(plan: BuildPlan, name: str, targets: tuple[str, ...], artifacts: str, runner: str) -> DeliverJob:
    return DeliverJob(
        name=name,
        targets=",".join(targets),
        artifacts=artifacts,
        artifact=f"delivered-{plan.spec_name}-{name}",
        runner=runner,
        minutes=DELIVERING_MINUTES,
    )
