"""From what is asked for to what will be done: `make_plan`. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from ortrim.core.buildspec import BuildSpec, TargetSpec, linkage_of, merged_budgets
from ortrim.core.operator_config import render_config
from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import (
    BuildJob,
    BuildPlan,
    PlannedModel,
    PlannedTarget,
    RunnerJob,
    SourcePin,
    Toolchain,
    digest,
)
from ortrim.core.targets import TARGETS, Target, matches, minimum_glibc
from ortrim.errors import UsageError
from ortrim.platforms import PLATFORMS
from ortrim.platforms.upstream import compiled_sources


def make_plan(
    spec: BuildSpec,
    operators: RequiredOperators,
    *,
    targets: tuple[TargetSpec, ...],
    models: tuple[PlannedModel, ...],
    sources: tuple[SourcePin, ...],
    tools: tuple[tuple[str, str], ...],
    toolchains: Mapping[str, Toolchain],
    runner_sha256: str,
    hooks_sha256: str,
    ortrim_version: str,
) -> BuildPlan:
    """Decide every job that a buildspec comes to, for the `targets` selected from it.

    `toolchains` maps each target's identifier to what compiles for it; `sources` begins with ONNX Runtime itself;
    `runner_sha256` is the digest of the runner's source, `hooks_sha256` that of ortrim's CMake files.
    """
    config = render_config(operators)
    jobs = [
        BuildJob(
            target=TARGETS[target.id],
            ort_version=spec.onnxruntime.version,
            profile=spec.profile,
            exceptions=spec.exceptions,
            minimum_glibc=_promised_glibc(target, toolchains[target.id]),
            cpu=target.cpu or "",
            linkage=linkage_of(spec, target),
            operator_config=config,
            toolchain=toolchains[target.id],
            tools=tools,
            hooks_sha256=hooks_sha256,
            sources=compiled_sources(TARGETS[target.id], sources),
        )
        for target in targets
    ]
    return BuildPlan(
        ortrim_version=ortrim_version,
        spec_name=spec.name,
        ort_version=spec.onnxruntime.version,
        models=models,
        targets=tuple(
            _target(spec, target, with_arguments(job), runner_sha256) for target, job in zip(targets, jobs, strict=True)
        ),
    )


def select_targets(spec: BuildSpec, pattern: str | None, host: Target) -> tuple[TargetSpec, ...]:
    """Return the buildspec's targets that `pattern` (a glob or a dash-bounded prefix) selects.

    Without a pattern that is the host's target, when the buildspec has it or names no targets at all. Raises
    `UsageError` `no-such-target` when nothing is selected.
    """
    offered = spec.targets or tuple(TargetSpec(id=identifier) for identifier in TARGETS)
    wanted = host.identifier if pattern is None else pattern
    selected = tuple(target for target in offered if matches(wanted, target.id))
    if not selected:
        what = (
            f"the host's target {host.identifier} is not among the targets"
            if pattern is None
            else f"no target matches {pattern!r}"
        )
        hint = f"choose among: {', '.join(target.id for target in offered)}"
        raise UsageError("no-such-target", what, where=f"buildspec {spec.name}", hint=hint)
    return selected


def _promised_glibc(target: TargetSpec, toolchain: Toolchain) -> str:
    """Only zig promises a glibc; what a compiler of the system makes loads where its own does."""
    return minimum_glibc(TARGETS[target.id], target.glibc) if toolchain.kind == "zig" else ""


def _target(spec: BuildSpec, target: TargetSpec, job: BuildJob, runner_sha256: str) -> PlannedTarget:
    runner = RunnerJob(
        target=job.target,
        toolchain=job.toolchain,
        headers=job.sources[0],
        runner_sha256=runner_sha256,
        arguments=PLATFORMS[job.target.system].runner_arguments(job),
        links=digest(job) if job.linkage == "static" else "",
    )
    return PlannedTarget(job=job, runner=runner, budgets=merged_budgets(spec, target))


def with_arguments(job: BuildJob) -> BuildJob:
    """Return a job with the arguments that its operator configuration and options come to on its platform."""
    platform = PLATFORMS[job.target.system]
    return replace(
        job,
        arguments=platform.build_arguments(job),
        expected_outputs=platform.expected_outputs(job),
    )
