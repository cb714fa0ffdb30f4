"""Plans that come from another machine: what may be decided there, and what is decided here, again.

Whoever may dispatch a workflow may not therefore run commands of his own in it. Of a plan that arrives, operators,
models' digests, targets and budgets are taken. Everything that is executed (arguments, wrappers of compilers, tools,
sources) is decided anew by this ortrim and has to come out the same; it does when both are of one version.
"""

import re
from dataclasses import dataclass, fields, replace
from importlib.metadata import version as installed_version
from typing import Final

from ortrim.console import Console
from ortrim.core.hot_operators import OPERATOR
from ortrim.core.operator_config import parse_config, render_config
from ortrim.core.plan import BuildJob, BuildPlan, PlannedTarget, RunnerJob, SourcePin, Toolchain, digest
from ortrim.core.profiles import PROFILES
from ortrim.core.targets import TARGETS
from ortrim.core.unused_types import KINDS
from ortrim.errors import Diagnostic, PlanError
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.tools import tool_versions
from ortrim.pipeline.planned import hooks_digest, runner_digest
from ortrim.planning import with_arguments
from ortrim.platforms import PLATFORMS
from ortrim.platforms.layouts import AVX512
from ortrim.platforms.providers import providers_of
from ortrim.platforms.upstream import compiled_sources
from ortrim.sources.fetch import fetch_sources
from ortrim.sources.tree import SourceTree
from ortrim.toolchains.ndk import ndk_toolchain
from ortrim.toolchains.xcode import xcode_toolchain
from ortrim.toolchains.zig import zig_toolchain
from ortrim.toolchains.zig_apple import zig_apple_toolchain

ELSEWHERE: Final = ("archive", "git", "debian")
"""Kinds of sources that another machine can fetch, too."""
VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+){1,2}")
SPEC_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
REFERENCE: Final = "plan-not-ours"


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A plan that was made elsewhere and would have been made here, and the sources that it is for."""

    plan: BuildPlan
    sources: SourceTree


def accept(plan: BuildPlan, console: Console) -> Accepted:
    """Fetch the sources of a plan from elsewhere and check that this ortrim decides the same.

    Raises `PlanError` `plan-not-ours`, and as `fetch_sources` does.
    """
    if plan.ortrim_version != installed_version("ortrim"):
        raise _differs("the whole", f"ortrim {plan.ortrim_version} made it, this is {installed_version('ortrim')}")
    if not plan.targets or not SPEC_NAME.fullmatch(plan.spec_name):
        raise _differs("the whole", "it has no target, or a name that no buildspec has")
    kinds = {target.job.sources[0].kind if target.job.sources else "none" for target in plan.targets}
    if len(kinds) != 1 or not kinds <= set(ELSEWHERE):
        raise _differs(
            "the sources", f"of the kind {', '.join(sorted(kinds)) or 'none'}; possible: {', '.join(ELSEWHERE)}"
        )
    with console.step("fetch sources") as step:
        tree = fetch_sources(runtime_pins(plan.ort_version), kinds.pop(), announce=step.note)
    for target in plan.targets:
        require_ours(target, plan.ort_version, tree.pins)
    return Accepted(plan=plan, sources=tree)


def require_ours(target: PlannedTarget, ort_version: str, sources: tuple[SourcePin, ...]) -> None:
    """Check that this ortrim plans the jobs of a target in the same way. Raises `PlanError` `plan-not-ours`."""
    job = target.job
    known = TARGETS.get(job.target.identifier)
    if known is None or known != job.target or job.ort_version != ort_version:
        raise _differs(job.target.identifier, "no target or no version that this ortrim knows")
    _require_plain(job)
    ours = _job(job, sources)
    _require_same(job, ours, job.target.identifier)
    _require_same(target.runner, _runner(ours), f"the runner for {job.target.identifier}")


def _require_plain(job: BuildJob) -> None:
    """Refuse words that are no versions: they become part of the compilers' wrappers, which are scripts."""
    floor = job.apple.deployment_target if job.apple else ""
    words = {
        "minimum_glibc": job.minimum_glibc,
        "toolchain.version": job.toolchain.version,
        "apple.deployment_target": floor,
    }
    for name, word in words.items():
        if word and not VERSION.fullmatch(word):
            raise _differs(job.target.identifier, f"{name} is no version")
    if job.profile not in PROFILES:
        raise _differs(job.target.identifier, "profile is none that this ortrim knows")
    if not set(job.without_types) <= set(KINDS):
        raise _differs(job.target.identifier, "without_types has what is no kind of value")
    if job.wide_blocks and job.cpu != AVX512:
        raise _differs(job.target.identifier, "wide_blocks is for a processor that has AVX-512")
    if not all(map(OPERATOR.fullmatch, job.hot_operators)):
        raise _differs(job.target.identifier, "hot_operators has what is no operator's name")


def _job(job: BuildJob, sources: tuple[SourcePin, ...]) -> BuildJob:
    where = job.target.identifier
    try:
        config = render_config(parse_config(job.operator_config, where))
        return with_arguments(
            replace(
                job,
                operator_config=config,
                toolchain=_toolchain(job),
                tools=tool_versions(),
                hooks_sha256=hooks_digest(),
                sources=compiled_sources(job.target, sources, providers_of(job)),
            )
        )
    except (KeyError, ValueError, AssertionError, Diagnostic) as error:
        raise _differs(where, f"{type(error).__name__}: {error}") from error


def _toolchain(job: BuildJob) -> Toolchain:
    if job.toolchain.kind == "zig" and job.apple:
        return zig_apple_toolchain(job.target, job.apple.deployment_target, dict(tool_versions())["ziglang"])
    if job.toolchain.kind == "zig":
        return zig_toolchain(job.target, job.minimum_glibc, dict(tool_versions())["ziglang"], job.cpu or None)
    if job.toolchain.kind == "ndk" and job.android:
        return ndk_toolchain(job.target, job.android.api, job.toolchain.version)
    if job.toolchain.kind == "xcode" and job.apple:
        return xcode_toolchain(job.target, job.apple.deployment_target, job.toolchain.version)
    raise _differs(job.target.identifier, f"{job.toolchain.kind} is a compiler of the machine that made the plan")


def _runner(job: BuildJob) -> RunnerJob:
    return RunnerJob(
        target=job.target,
        toolchain=job.toolchain,
        headers=job.sources[0],
        runner_sha256=runner_digest(),
        arguments=PLATFORMS[job.target.system].runner_arguments(job),
        links=digest(job) if job.linkage == "static" else "",
    )


def _require_same(theirs: BuildJob | RunnerJob, ours: BuildJob | RunnerJob, where: str) -> None:
    different = [each.name for each in fields(theirs) if getattr(theirs, each.name) != getattr(ours, each.name)]
    if different:
        raise _differs(where, f"decided otherwise here: {', '.join(different)}")


def _differs(where: str, why: str) -> PlanError:
    what, hint = (
        "the plan is not one that this ortrim makes",
        "dispatch with the version of ortrim that the workflow runs",
    )
    return PlanError(REFERENCE, what, where=where, why=why, hint=hint)
