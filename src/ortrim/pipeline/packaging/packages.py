"""From finished builds to packages: of one target, or one of several targets together."""

from collections.abc import Iterator
from dataclasses import dataclass

from ortrim.console import Console, Step
from ortrim.core.artifacts import JobResult
from ortrim.core.plan import AssemblyJob, BuildPlan, PlannedTarget
from ortrim.package.layout import make_package
from ortrim.pipeline.builders import builder_for
from ortrim.pipeline.converted import Request
from ortrim.pipeline.packaging.android import aar_part, deliver_aar
from ortrim.pipeline.packaging.apple import apple_delivery, apple_part, deliver_apple
from ortrim.pipeline.packaging.delivery import android_delivery, linux_delivery
from ortrim.pipeline.packaging.inputs import package_inputs
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.pipeline.verification.verify import Packaged
from ortrim.platforms.apple import ASSEMBLY as APPLE
from ortrim.sources.fetch import sound_sources
from ortrim.tools.javac import find_jdk
from ortrim.verify.subjects import Delivery

Results = tuple[JobResult, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Targets that are packaged together, and the assembly that does it; None for a target that is by itself."""

    targets: tuple[PlannedTarget, ...]
    assembly: AssemblyJob | None


def groups(plan: BuildPlan) -> Iterator[Group]:
    """Yield the targets of a plan as they are packaged: each assembly's together, every other one by itself."""
    assemblies = {target: assembly for assembly in plan.assemblies for target in assembly.targets}
    for target in plan.targets:
        assembly = assemblies.get(target.job.target.identifier)
        if assembly is None:
            yield Group(targets=(target,), assembly=None)
        elif assembly.targets[0] == target.job.target.identifier:
            together = tuple(each for each in plan.targets if each.job.target.identifier in assembly.targets)
            yield Group(targets=together, assembly=assembly)


def packaged(
    planned: Planned, group: Group, results: Results, request: Request, console: Console
) -> Iterator[Packaged]:
    """Package a group's builds, and yield for each target what of that is to be verified, with its runner.

    Raises what building, packaging and the gates raise.
    """
    deliveries = (
        [_own_package(planned, target, result, console) for target, result in zip(group.targets, results, strict=True)]
        if group.assembly is None
        else _assembled(planned, group, results, request, console)
    )
    for target, result, delivery in zip(group.targets, results, deliveries, strict=True):
        with console.step("compile the runner") as step:
            runner = builder_for(planned, target, request, step).run_runner(target.runner)
        yield Packaged(target=target, result=result, delivery=delivery, runner=runner)


def _own_package(planned: Planned, target: PlannedTarget, result: JobResult, console: Console) -> Delivery:
    with console.step(f"package {target.job.target.identifier}"):
        package = make_package(package_inputs(planned, target.job, result), target_folder(planned, target))
        return linux_delivery(planned, target.job, result, package)


def _assembled(planned: Planned, group: Group, results: Results, request: Request, console: Console) -> list[Delivery]:
    assembly = group.assembly
    assert assembly is not None
    with console.step(f"package {assembly.identifier}: {', '.join(assembly.targets)}") as step:
        if assembly.identifier == APPLE:
            return _for_apple(planned, group, results, step)
        return _for_android(planned, group, results, request, step)


def _for_android(planned: Planned, group: Group, results: Results, request: Request, step: Step) -> list[Delivery]:
    assembly, jdk, parts = group.assembly, find_jdk(), []
    assert assembly is not None
    for target, result in zip(group.targets, results, strict=True):
        step.progress(0, 0, f"JNI library of {target.job.target.identifier}")
        binding = builder_for(planned, target, request, step).run_jni(target.job, result, jdk)
        parts.append(aar_part(package_inputs(planned, target.job, result), binding))
    step.progress(0, 0, "classes and AAR")
    folder = planned.folder / assembly.identifier
    assets = assembly.models_as_assets
    sound = deliver_aar(parts, sound_sources(planned.sources), jdk, folder, models_as_assets=assets)
    step.note(f"{sound.package.folder}: {sound.package.manifest.coordinates}")
    both = zip(group.targets, results, strict=True)
    return [android_delivery(planned, target.job, result, sound) for target, result in both]


def _for_apple(planned: Planned, group: Group, results: Results, step: Step) -> list[Delivery]:
    both = tuple(zip(group.targets, results, strict=True))
    parts = [apple_part(package_inputs(planned, target.job, result)) for target, result in both]
    sound = deliver_apple(parts, sound_sources(planned.sources), planned.folder / APPLE)
    step.note(f"{sound.package.folder}: checksum {sound.package.checksum}")
    return [apple_delivery(result, sound) for _, result in both]
