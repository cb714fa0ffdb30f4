"""From a plan to verified packages, one after the other: what compiles where a request says, and what they hold."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path

from ortrim.base.cache import cache_damages, cache_folder, is_kept
from ortrim.base.command import meanwhile
from ortrim.base.console import Console, Step
from ortrim.base.files import require_space, require_writable, shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.buildspec import UNITY
from ortrim.compiling import workspace
from ortrim.compiling.container_engines import ContainerOptions
from ortrim.compiling.containers import Opener, environments_in_containers
from ortrim.compiling.executor import TREE_BYTES, Executor
from ortrim.compiling.plan import AssemblyJob, BuildJob, BuildPlan, JobResult, PlannedTarget
from ortrim.compiling.toolchains import LLVM, RUNTIME_LICENCES, libcxx_version
from ortrim.errors import VerifyError
from ortrim.package.manifest import ComponentLicence, PackageInputs
from ortrim.package.unity import UnityPlugin, make_unity_package
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.finished import finished_report, lacks_unity
from ortrim.pipeline.history import record_build
from ortrim.pipeline.transfer import is_compiled
from ortrim.pipeline.verification import Packaged, make_references, verify
from ortrim.planning.devices import make_parts, require_ready
from ortrim.planning.models import write_steps
from ortrim.planning.planned import TARGETS_OF, Planned, planned_for, target_folder, with_compilers
from ortrim.planning.prediction import predictions, remember, require_reachable
from ortrim.planning.request import Request, inputs_of
from ortrim.platforms import Platform, platform_of
from ortrim.platforms.platform import Packaging
from ortrim.report.write import JSON_NAME, write_reports
from ortrim.sources.sources import licences, sound_sources
from ortrim.verify.reports import VerifyReport


@dataclass(frozen=True, kw_only=True)
class PackageGroup:
    """Targets that are packaged together, and the assembly that does it; None for a target that is by itself."""

    targets: tuple[PlannedTarget, ...]
    assembly: AssemblyJob | None


def groups(plan: BuildPlan) -> Iterator[PackageGroup]:
    """Yield the targets of a plan as they are packaged: each assembly's together, every other one by itself."""
    assemblies = {target: assembly for assembly in plan.assemblies for target in assembly.targets}
    for target in plan.targets:
        assembly = assemblies.get(target.identifier)
        if assembly is None:
            yield PackageGroup(targets=(target,), assembly=None)
        elif assembly.targets[0] == target.identifier:
            together = tuple(each for each in plan.targets if each.identifier in assembly.targets)
            yield PackageGroup(targets=together, assembly=assembly)


def build(request: Request, console: Console, planned: Planned | None = None) -> tuple[VerifyReport, ...]:
    """Do everything: plan unless it is `planned` already, then build, package, verify and report each target.

    A target whose report is there already, with every device asked for, is not touched again. The verdicts are in the
    reports; a missed budget or a device that fails is not raised here, so that every target gets its report.
    """
    require_writable(request.output)
    planned = planned or planned_for(request, console, to_run=True)
    for_unity = lacks_unity(planned.folder, planned.plan.packages)
    before = [
        (group, [None] * len(group.targets) if for_unity else _finished(planned, group, request, console.note))
        for group in groups(planned.plan)
    ]
    ahead = tuple(target for group, found in before if not all(found) for target in group.targets)
    if ahead:
        check_first(planned, ahead, request, console)
    reports: list[VerifyReport] = []
    made: list[Packaged] = []
    for group, found in before:
        if all(found):
            reports += filter(None, found)
            continue
        headers, results = sound_sources(planned.sources) / workspace.INCLUDE / "core" / "session", []
        # A core or two have nothing to do while CMake configures.
        with meanwhile(partial(make_parts, group.targets, request, headers)):
            for target in group.targets:
                results.append(_build(planned, target, request, console))  # noqa: PERF401 - hours, one by one
        for report, each in zip(found, packaged(planned, group, results, request, console), strict=True):
            made.append(each)
            reports.append(report or _verify(planned, each, request, console))
    if for_unity:
        _package_for_unity(planned, made, console)
    return tuple(reports)


def _package_for_unity(planned: Planned, made: Sequence[Packaged], console: Console) -> None:
    """Make one package for Unity of those that all targets have; it says which have no place in it."""
    with console.step("package unity") as step:
        parts: list[PackageInputs] = []
        plugins: list[UnityPlugin] = []
        for archive, each in groupby(made, lambda packaged: packaged.delivery.archive):
            own = [package_inputs(planned, packaged.target.job, packaged.result) for packaged in each]
            platform = platform_of(own[0].job.target)
            taken = [part for part in own if UNITY in platform.extra_packages(part.job.target, part.job.linkage)]
            for part in own:
                if part not in taken:
                    step.note(f"without {part.job.target.identifier}: it can have {TARGETS_OF[UNITY]}")
            if taken:
                parts += taken
                plugins += platform.unity_plugins(taken, archive)
        step.note(str(make_unity_package(parts, plugins, planned.folder / UNITY)))


def check_first(planned: Planned, targets: tuple[PlannedTarget, ...], request: Request, console: Console) -> None:
    """Say what is expected of targets that are to be built, and find now what would fail after the compiler.

    Where nothing is left to compile, a device may be away: the others are verified, and the report names it. The output
    folder has to have room for packages, as folders and as archives, and the cache for a tree.
    """
    expected = predictions(targets, request)
    for each in expected:
        console.note(each.text)
    require_reachable(planned, zip(targets, expected, strict=True))
    models = sum(model.size_bytes for model in planned.models.converted)
    require_space(request.output, sum(2 * (each.most + models) for each in expected), "packaging")
    if not request.elsewhere and not all(each.builds for each in expected):
        require_space(cache_folder("trees"), TREE_BYTES, "building")
    unbuilt = [target.job.target for target, each in zip(targets, expected, strict=True) if not each.is_built]
    require_ready(unbuilt, request)
    make_references(planned, request, console)


def to_compile(planned: Planned, request: Request) -> tuple[PlannedTarget, ...]:
    """Return the targets that `build` would have to compile something for, their runners included."""
    unfinished = (
        group for group in groups(planned.plan) if not all(_finished(planned, group, request, lambda _: None))
    )
    return tuple(target for group in unfinished for target in group.targets if not is_compiled(target))


def verify_again(request: Request, console: Console, planned: Planned | None = None) -> tuple[VerifyReport, ...]:
    """Measure what was built before, here or elsewhere, once more and write its reports anew."""
    require_writable(request.output)
    request = replace(request, elsewhere=True)
    planned, built = (planned, _results(planned)) if planned else _built_before(request, console)
    make_references(planned, request, console)
    return tuple(
        _verify(planned, each, request, console)
        for group, results in built
        for each in packaged(planned, group, results, request, console)
    )


Built = list[tuple[PackageGroup, list[JobResult]]]


def _built_before(request: Request, console: Console) -> tuple[Planned, Built]:
    """Return the plan of what was built before and its results: as this machine plans it, or else as GitHub's do.

    They differ in compilers, since GitHub's machines and containers have NDKs and an Xcode that this one may lack.
    """
    planned = planned_for(request, console, to_run=True)
    inputs = planned.inputs
    try:
        return planned, _results(planned)
    except VerifyError:
        there = inputs_of(inputs.loaded, inputs.loaded.targets, replace(request, on_macs=True))
        if there.toolchains == inputs.toolchains:
            raise
        planned = with_compilers(planned, there, request.output)
        return planned, _results(planned)


def _results(planned: Planned) -> Built:
    return [
        (group, [compiled_before(target, group.assembly) for target in group.targets]) for group in groups(planned.plan)
    ]


def compiled_before(target: PlannedTarget, assembly: AssemblyJob | None) -> JobResult:
    """Return what an earlier build of a target left, of which nothing needs an NDK or Xcode any more.

    It may have been compiled in a container, or on another machine.
    """
    by_sdk = target.job.toolchain.kind == platform_of(target.job.target).SDK
    if by_sdk and not is_compiled(target, java=assembly is None or assembly.java is not False):
        raise _not_built(target.job)
    return built_before(target.job)


def built_before(job: BuildJob) -> JobResult:
    """Return what an earlier build of a job left."""
    folder = workspace.finished_build(job)
    if not is_kept(folder):
        raise _not_built(job)
    return workspace.result_of(folder)


def _not_built(job: BuildJob) -> VerifyError:
    what, hint = "there is no finished build to verify", "run: invoke build"
    return VerifyError("not-built", what, where=job.target.identifier, hint=hint)


def _finished(
    planned: Planned, group: PackageGroup, request: Request, say: Callable[[str], None]
) -> list[VerifyReport | None]:
    """Return the report of each target of which nothing is left to do, None for the others."""
    jobs = [target.job for target in group.targets]
    return [finished_report(planned.folder, job.target, job.cpu, request, say) for job in jobs]


def _build(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> JobResult:
    job = target.job
    with console.step(f"build {job.target.identifier}") as step:
        done = workspace.finished_build(job)
        if is_kept(done):
            step.skip("built before")
            return workspace.result_of(done)
        executor = executor_for(planned, target, request, step)
        step.note(f"{executor.parallelism.jobs} at a time ({executor.parallelism.reason}); log: {executor.log}")
        step.progress(0, 0, "tools and configuration")
        result = executor.run(job)
        remember(job, result, console.warn)
        return result


def packaged(
    planned: Planned, group: PackageGroup, results: Sequence[JobResult], request: Request, console: Console
) -> Iterator[Packaged]:
    """Package a group's builds, and yield for each target what of that is to be verified, with its runner."""
    targets = {target.identifier: target for target in group.targets}
    first, assembly = group.targets[0], group.assembly
    heading = f"{assembly.identifier}: {', '.join(assembly.targets)}" if assembly else first.identifier
    parts = zip(group.targets, results, strict=True)
    with console.step(f"package {heading}") as step:
        packaging = Packaging(
            parts=tuple(package_inputs(planned, target.job, result) for target, result in parts),
            sources=sound_sources(planned.sources),
            folder=planned.folder / (assembly.identifier if assembly else first.identifier),
            assembly=assembly,
            executor_of=lambda job: executor_for(planned, targets[job.target.identifier], request, step),
            step=step,
        )
        deliveries = platform_of(first.job.target).package(packaging)
    for target, result, delivery in zip(group.targets, results, deliveries, strict=True):
        with console.step("compile the runner") as step:
            runner = executor_for(planned, target, request, step).run_runner(target.runner)
        yield Packaged(target=target, result=result, delivery=delivery, runner=runner)


def _verify(planned: Planned, subject: Packaged, request: Request, console: Console) -> VerifyReport:
    folder = target_folder(planned, subject.target)
    report = replace(verify(planned, subject, request, console), damaged_cache=cache_damages())
    with console.step("report") as step:
        write_reports(report, folder)
        for preparation in filter(None, planned.models.preparations):
            write_steps(preparation.report, folder)
        step.note(f"{folder}: {subject.delivery.archive.name}, report.html, report.md, {JSON_NAME}")
    record_build(report, request.output, console.warn, request.training_run)
    return report


def executor_for(planned: Planned, target: PlannedTarget, request: Request, step: Step) -> Executor:
    """Return what builds a target where the request says, telling `step` how far it is."""
    log = target_folder(planned, target) / "build.log"
    sources = sound_sources(planned.sources, step.note)
    platform = platform_of(target.job.target)
    native = native_executor(sources, log, step, platform, jobs=request.jobs, ndk=request.ndk)
    return native if request.container is None else replace(native, execution=_containers(request.container, platform))


@cache  # A container's image is made, and its engine tried, once for all that is compiled in it.
def _containers(options: ContainerOptions, platform: Platform) -> Opener:
    return environments_in_containers(options, platform.images())


def native_executor(
    sources: Path, log: Path, step: Step, platform: Platform, *, jobs: int | None = None, ndk: Path | None = None
) -> Executor:
    """Return what builds for a platform on this machine itself; without `jobs`, as many at once as it can bear."""
    return Executor(
        inputs=build_inputs(sources, platform, ndk),
        log=log.absolute(),
        parallelism=workspace.choose_parallelism(jobs),
        on_progress=step.progress,
        on_note=step.note,
    )


def build_inputs(sources: Path, platform: Platform, sdk: Path | None = None) -> workspace.BuildInputs:
    """Return what builds for a platform read, and how that platform ends them."""
    return workspace.BuildInputs(
        sources=sources,
        tools=packages_folder("tools", tool_requirements()),
        runner=shipped_folder("runner"),
        hooks=shipped_folder("cmake"),
        sdk=sdk,
        installed=platform.installed,
        finish=platform.finish,
        made_of=platform.made_of,
    )


def package_inputs(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    """Return what the package of a target is made from, and what its part of an assembly is."""
    models = planned.models.for_target(job.target)
    upstream = sound_sources(planned.sources) / "onnxruntime"
    compiled = {source.name for source in job.sources}  # It may be less than was fetched.
    of_sources = (
        ComponentLicence(component=component, identifier=identifier, path=path)
        for component, identifier, path in licences(planned.sources)
        if component in compiled
    )
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=models.converted,
        operators=models.operators,
        licence=upstream / "LICENSE",
        notices=upstream / "ThirdPartyNotices.txt",
        licences=(*of_sources, *_toolchain_licences(job)),
        wheels={model.name: model.wheel for model in planned.models.loaded.models if model.wheel},
    )


def _toolchain_licences(job: BuildJob) -> Iterator[ComponentLicence]:
    """Yield the licences of what the compiler itself puts into the library; the system's gcc puts it beside."""
    kind = job.toolchain.kind
    if kind not in RUNTIME_LICENCES:
        return
    tools = packages_folder("tools", tool_requirements())
    brought = {LLVM: libcxx_version(tools)} if kind == "zig" else {}
    for component, identifier, text in RUNTIME_LICENCES[kind]:
        version = brought.get(identifier, job.toolchain.version)
        yield ComponentLicence(component=component, identifier=identifier, path=tools / text, version=version)
    for component, identifier, path, version in platform_of(job.target).start_files(job):
        yield ComponentLicence(component=component, identifier=identifier, path=path, version=version)
