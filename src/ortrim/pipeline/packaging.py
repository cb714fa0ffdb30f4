"""From finished builds to packages: of one target, or one of several targets together.

- What the packages of targets are made from: their builds, models and licences.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ortrim.base.console import Console
from ortrim.base.scripts import packages_folder
from ortrim.compiling.native import Executor
from ortrim.compiling.plan import AssemblyJob, BuildJob, BuildPlan, JobResult, PlannedTarget
from ortrim.compiling.toolchains import LLVM, RUNTIME_LICENCES, libcxx_version
from ortrim.package.manifest import ComponentLicence, PackageInputs
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.executors import executor_for
from ortrim.pipeline.verification import Packaged
from ortrim.planning.planned import Planned, target_folder
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.platforms.platform import Packaging
from ortrim.sources.sources import licences, sound_sources
from ortrim.verify.verification import Delivery


def package_inputs(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    """Return what the package of a target is made from, and what its part of an assembly is."""
    models = planned.models.for_target(job.target)
    upstream = sound_sources(planned.sources) / "onnxruntime"
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=models.converted,
        operators=models.operators,
        licence=upstream / "LICENSE",
        notices=upstream / "ThirdPartyNotices.txt",
        licences=(*_source_licences(planned, job), *_toolchain_licences(job)),
        wheels={model.name: model.wheel for model in planned.models.loaded.spec.models if model.wheel},
    )


def _source_licences(planned: Planned, job: BuildJob) -> tuple[ComponentLicence, ...]:
    """Return the licences of what the job compiles, which may be less than was fetched."""
    compiled = {source.name for source in job.sources}
    return tuple(
        ComponentLicence(component=component, identifier=identifier, path=path)
        for component, identifier, path in licences(planned.sources)
        if component in compiled
    )


def _toolchain_licences(job: BuildJob) -> tuple[ComponentLicence, ...]:
    """Return the licences of what the compiler itself puts into the library; the system's gcc puts it beside."""
    kind = job.toolchain.kind
    if kind not in RUNTIME_LICENCES:
        return ()
    tools = packages_folder("tools", tool_requirements())
    brought = {LLVM: libcxx_version(tools)} if kind == "zig" else {}
    libraries = (
        ComponentLicence(
            component=component,
            identifier=identifier,
            path=tools / text,
            version=brought.get(identifier, job.toolchain.version),
        )
        for component, identifier, text in RUNTIME_LICENCES[kind]
    )
    start_files = (
        ComponentLicence(component=component, identifier=identifier, path=path, version=version)
        for component, identifier, path, version in platform_of(job.target).start_files(job)
    )
    return (*libraries, *start_files)


Results = tuple[JobResult, ...]


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


def packaged(
    planned: Planned, group: PackageGroup, results: Results, request: Request, console: Console
) -> Iterator[Packaged]:
    """Package a group's builds, and yield for each target what of that is to be verified, with its runner.

    Raises what building, packaging and the gates raise.
    """
    deliveries = _delivered(planned, group, results, request, console)
    for target, result, delivery in zip(group.targets, results, deliveries, strict=True):
        with console.step("compile the runner") as step:
            runner = executor_for(planned, target, request, step).run_runner(target.runner)
        yield Packaged(target=target, result=result, delivery=delivery, runner=runner)


def _delivered(
    planned: Planned, group: PackageGroup, results: Results, request: Request, console: Console
) -> list[Delivery]:
    targets = {target.identifier: target for target in group.targets}
    first, assembly = group.targets[0], group.assembly
    folder = planned.folder / assembly.identifier if assembly else target_folder(planned, first)
    heading = f"{assembly.identifier}: {', '.join(assembly.targets)}" if assembly else first.identifier
    with console.step(f"package {heading}") as step:

        def executor_of(job: BuildJob) -> Executor:
            return executor_for(planned, targets[job.target.identifier], request, step)

        packaging = Packaging(
            parts=tuple(
                package_inputs(planned, target.job, result)
                for target, result in zip(group.targets, results, strict=True)
            ),
            sources=sound_sources(planned.sources),
            folder=folder,
            assembly=assembly,
            executor_of=executor_of,
            step=step,
        )
        return platform_of(first.job.target).package(packaging)
