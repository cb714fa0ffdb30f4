"""From what is asked for to what will be done: `make_plan`. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ortrim.buildspec.build_options import applicable
from ortrim.buildspec.buildspec import BLOCKS, BuildSpec, TargetSpec, build_options_of, merged_budgets, providers_of
from ortrim.buildspec.targets import (
    FIRST_ANDROID,
    TARGETS,
    Architecture,
    OperatingSystem,
    Target,
    minimum_glibc,
    selected,
)
from ortrim.compiling import plan
from ortrim.compiling.upstream_arguments import compiled_sources, require_providers
from ortrim.errors import PlanError, UsageError
from ortrim.models.operators import RequiredOperators, needs_wide_characters, render_config
from ortrim.pins.runtime import SourcePin
from ortrim.platforms import by_platform, platform_of
from ortrim.platforms.android.platform import android_of

AVX512: Final = "x86-64-v4"
"""The least processor, as buildspecs name it, that has AVX-512."""


def require_layouts(job: plan.BuildJob, models: Iterable[plan.PlannedModel]) -> None:
    """Refuse models that the target's processors, or one library, cannot run."""
    laid_out = [model for model in models if model.layout in BLOCKS]
    for model in laid_out:
        known = model.layout == "nchwc8" and job.target.runs_nchwc
        if job.target.architecture is not Architecture.X64 and not known:
            names = "x64 and arm64" if model.layout == "nchwc8" else "x64"
            what = f"model {model.name} is laid out for {names} (layout = '{model.layout}')"
            why = f"the runtime has kernels for that layout only on {names}"
            hint = "leave 'layout' out: each target then gets the model as it runs it best"
            raise PlanError("layout-elsewhere", what, where=job.target.identifier, why=why, hint=hint)
        if model.layout == "nchwc16" and job.cpu != AVX512:
            what = f"model {model.name} is laid out for AVX-512 (layout = 'nchwc16')"
            why = "the target's baseline CPU does not have it"
            # The platform's rules refuse a baseline elsewhere.
            can = job.toolchain.kind == "zig" and not platform_of(job.target).SDK
            promise = f"give the target cpu = '{AVX512}' if every processor has it, or " if can else ""
            hint = f"{promise}take layout = 'nchwc8'"
            raise PlanError("layout-elsewhere", what, where=job.target.identifier, why=why, hint=hint)
    _require_one_width(job, laid_out)


def _require_one_width(job: plan.BuildJob, laid_out: list[plan.PlannedModel]) -> None:
    first = {model.layout: model.name for model in reversed(laid_out)}
    if len(first) > 1:
        what = " and ".join(f"model {first[layout]} has layout = '{layout}'" for layout in BLOCKS)
        why = "a library takes NCHWc layout with block size 8 or 16, for all its models"
        hint = "give both the same layout, or build them from separate buildspecs"
        raise PlanError("layouts-mixed", what, where=job.target.identifier, why=why, hint=hint)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a library is for: models, their operators, those that are hot, and the kinds of values that none has.

    `hot_operators` are those that `invoke hot` found, none for all; `tiled`, `depthwise` and `few_bits` are as in
    `BuildJob`.
    """

    operators: RequiredOperators
    models: tuple[plan.PlannedModel, ...]
    unused_types: tuple[str, ...] = ()
    hot_operators: tuple[str, ...] = ()
    tiled: bool = False
    depthwise: bool = False
    few_bits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanInput:
    """What a plan is decided from: a buildspec with the targets that are to be planned, and what their libraries hold.

    `nchwc` are the contents in NCHWc layout, for the targets that run it, when others do not. Apple targets have their
    deployment targets, which depend on the version of ONNX Runtime.
    """

    spec: BuildSpec
    contents: Contents
    nchwc: Contents | None = None


def make_plan(
    given: PlanInput,
    *,
    sources: tuple[SourcePin, ...],
    tools: tuple[tuple[str, str], ...],
    toolchains: Mapping[str, plan.Toolchain],
    runner_sha256: str,
    hooks_sha256: str,
    ortrim_version: str,
) -> plan.BuildPlan:
    """Decide every job that a buildspec comes to.

    `toolchains` maps each target's identifier to what compiles for it; `sources` begins with ONNX Runtime itself;
    `runner_sha256` is the digest of the runner's source, `hooks_sha256` that of what ortrim itself puts into a build.
    """
    spec, contents, nchwc = given.spec, given.contents, given.nchwc
    targets = spec.targets
    own = tuple(nchwc if nchwc and target.target.runs_nchwc else contents for target in targets)
    job_of = partial(_job, tools=tools, hooks_sha256=hooks_sha256, sources=sources)
    jobs = tuple(
        job_of(spec, target, inside, toolchains[target.id]) for target, inside in zip(targets, own, strict=True)
    )
    for job, inside in zip(jobs, own, strict=True):
        require_providers(job, inside.models)
        require_layouts(job, inside.models)
    return plan.BuildPlan(
        ortrim_version=ortrim_version,
        spec_name=spec.name,
        ort_version=spec.onnxruntime.version,
        models=contents.models,
        nchwc_models=nchwc.models if nchwc else (),
        targets=tuple(
            _target(spec, target, with_arguments(job), runner_sha256) for target, job in zip(targets, jobs, strict=True)
        ),
        assemblies=_assemblies(spec, targets, jobs),
        packages=spec.packages,
    )


def _job(
    spec: BuildSpec,
    target: TargetSpec,
    inside: Contents,
    toolchain: plan.Toolchain,
    *,
    tools: tuple[tuple[str, str], ...],
    hooks_sha256: str,
    sources: tuple[SourcePin, ...],
) -> plan.BuildJob:
    """Return a target's job with its platform's options, and of the sources those that it then compiles."""
    known, platform = target.target, platform_of(target.target)
    chosen, linkage = build_options_of(spec, platform.KEPT), platform.linkage(spec, target)
    job = plan.BuildJob(
        target=known,
        ort_version=spec.onnxruntime.version,
        profile=spec.profile,
        build_options=applicable(
            chosen,
            toolchain=toolchain.kind,
            elf=known.is_elf,
            x64=known.architecture is Architecture.X64,
            exceptions=spec.exceptions,
            wide_characters=needs_wide_characters(inside.operators),
            static=linkage == "static",
        ),
        exceptions=spec.exceptions,
        # Only zig promises a glibc; what a compiler of the system makes loads where its own does.
        minimum_glibc=minimum_glibc(known, target.glibc) if toolchain.kind == "zig" else "",
        cpu=target.cpu or "",
        linkage=linkage,
        providers=providers_of(spec, target),
        operator_config=render_config(inside.operators),
        without_types=inside.unused_types if chosen.type_reduction else (),
        # In an order of their own, where what is hot is compiled otherwise than the rest.
        hot_operators=tuple(sorted(set(inside.hot_operators))) if chosen.hot != chosen.cold else (),
        nchwc_block_size=max((BLOCKS[model.layout] for model in inside.models if model.layout in BLOCKS), default=0),
        tiled=inside.tiled,
        depthwise=inside.depthwise,
        few_bits=inside.few_bits if chosen.dead_kernel_elimination and known.architecture is Architecture.X64 else (),
        toolchain=toolchain,
        tools=tools,
        hooks_sha256=hooks_sha256,
        sources=sources,
    )
    job = platform.with_options(job, spec, target)
    return replace(job, sources=compiled_sources(job.target, job.sources, job.providers))


def select_targets(
    spec: BuildSpec, pattern: str | None, host: Target | None, note: Callable[[str], None] = lambda _: None
) -> tuple[TargetSpec, ...]:
    """Return the buildspec's targets that `pattern` (globs or dash-bounded prefixes, with commas between) selects.

    Without a pattern that is the host's target, when the buildspec has it or names no targets at all; `host` is None
    where no target runs. A buildspec without targets offers every one, and then `android` is the ABI that every phone
    of today has, not all four. Which targets other names stand for is reported to `note`.
    """
    offered = spec.targets or tuple(TargetSpec(id=identifier) for identifier in TARGETS)
    wanted = ((host.identifier if host else "") if pattern is None else pattern).split(",")
    if not spec.targets:
        wanted = [FIRST_ANDROID if each == OperatingSystem.ANDROID else each for each in wanted]
    names = tuple(target.id for target in offered)
    found = {name for each in wanted for name in selected(each, names, note=note)}
    if not found:
        what = f"no target matches {pattern!r}"
        if pattern is None:
            what = (
                f"the host's target {wanted[0]} is not among the targets" if host else "no target runs on this machine"
            )
        hint = f"choose with --target among: {', '.join(names)}"
        raise UsageError("no-such-target", what, where=f"buildspec {spec.name}", hint=hint)
    return tuple(target for target in offered if target.id in found)


def _assemblies(
    spec: BuildSpec, targets: tuple[TargetSpec, ...], jobs: tuple[plan.BuildJob, ...]
) -> tuple[plan.AssemblyJob, ...]:
    made = (platform.assembly(own) for platform, own in by_platform(jobs, lambda job: job.target))
    return tuple(
        replace(
            assembly,
            models_as_assets=bool(_agreed(spec, targets, assembly, "models_as_assets")),
            java=_agreed(spec, targets, assembly, "java"),
        )
        for assembly in made
        if assembly is not None
    )


IN_AN_AAR: Final = {"models_as_assets": ("mixed-assets", "the models"), "java": ("mixed-java", "the Java API")}
"""Keys about the AAR of all ABIs, the code of the error where ABIs differ in one, and what each puts into the AAR."""


def _agreed(spec: BuildSpec, targets: tuple[TargetSpec, ...], assembly: plan.AssemblyJob, key: str) -> bool | None:
    own = (android_of(spec, target) for target in targets if target.id in assembly.targets)
    asked: set[bool | None] = {getattr(chosen, key) for chosen in own}
    if len(asked) > 1:
        code, inside = IN_AN_AAR[key]
        what = f"some ABIs want {inside} in the AAR and others do not"
        hint = f"choose once: android.{key} at the top of the buildspec, and in no target"
        raise PlanError(code, what, where=", ".join(assembly.targets), hint=hint)
    return next(iter(asked))


def _target(spec: BuildSpec, target: TargetSpec, job: plan.BuildJob, runner_sha256: str) -> plan.PlannedTarget:
    runner = plan.RunnerJob(
        target=job.target,
        toolchain=job.toolchain,
        headers=job.sources[0],
        runner_sha256=runner_sha256,
        arguments=platform_of(job.target).runner_arguments(job),
        links=plan.digest(job) if job.linkage == "static" else "",
    )
    return plan.PlannedTarget(job=job, runner=runner, budgets=merged_budgets(spec, target))


def with_arguments(job: plan.BuildJob) -> plan.BuildJob:
    """Return a job with the arguments that its operator configuration and options come to on its platform."""
    platform = platform_of(job.target)
    return replace(
        job,
        arguments=platform.build_arguments(job),
        finishing=platform.finishing(job),
        expected_outputs=platform.expected_outputs(job),
    )
