"""From finished builds to packages: of one target, or one of several targets together.

- From the finished builds of some ABIs to one AAR that is fit to ship.
- From the finished builds of some slices to one package for Apple's systems that is fit to ship.
- What the slices of an xcframework may take, by the budgets of the targets that they are made of.
- What is delivered: the package's library, read and held against what every library must be.
- What the packages of targets are made from: their builds, models and licences.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.base.console import Console, Step
from ortrim.base.scripts import packages_folder
from ortrim.binaries.archives import archive_members
from ortrim.binaries.elf import read_library
from ortrim.binaries.elf_objects import visible_symbols
from ortrim.binaries.libraries import LibraryFacts
from ortrim.binaries.macho_image import read_apple_library
from ortrim.binaries.xcframework import read_xcframework
from ortrim.build.jni import JAVA, Jdk, JniLibrary, find_jdk
from ortrim.build.plan import ARCHIVE, AssemblyJob, BuildJob, BuildPlan, JobResult, Package, PlannedTarget
from ortrim.build.sources import licences, sound_sources
from ortrim.build.toolchains import RUNTIME_LICENCES
from ortrim.build.trees import LIBRARY
from ortrim.build.xcode import find_codesign, sign
from ortrim.models.ort_format import misaligned_tensors
from ortrim.package.aar_contents import AarFacts, AbiSize, read_aar
from ortrim.package.manifest import ComponentLicence, PackageInputs
from ortrim.package.package import make_package
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.executors import builder_for
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.pipeline.request import Request
from ortrim.pipeline.verification import Packaged
from ortrim.platforms.android.aar import (
    FOLDERS,
    AarInputs,
    AarPart,
    AndroidPackage,
    companions_of,
    make_android_package,
)
from ortrim.platforms.android.gates import check_aar, require_sound_aar
from ortrim.platforms.android.platform import SYMBOLS
from ortrim.platforms.android.rules import Promise
from ortrim.platforms.apple.gates import check_xcframework, require_sound_xcframework
from ortrim.platforms.apple.inputs import OBJECTIVE_C, AppleInputs, AppleManifest, ApplePart
from ortrim.platforms.apple.package import ApplePackage, make_apple_package
from ortrim.platforms.apple.platform import ASSEMBLY as APPLE
from ortrim.platforms.apple.platform import SYMBOLS as APPLE_SYMBOLS
from ortrim.platforms.apple.rules import ApplePromise
from ortrim.size.library import library_size
from ortrim.spec.buildspec import IN_PLACE
from ortrim.spec.targets import ABIS, Architecture
from ortrim.verify.gates import check_archive, check_library, check_tensors
from ortrim.verify.measurements import Comparison, Gate, Verdict
from ortrim.verify.verification import Delivery


@dataclass(frozen=True, kw_only=True)
class SoundAar:
    """An AAR that passed every gate, with what was read from it."""

    package: AndroidPackage
    facts: AarFacts
    gates: tuple[Gate, ...]


def aar_part(inputs: PackageInputs, binding: JniLibrary) -> AarPart:
    """Return one ABI of an AAR: what its build left, and the JNI library."""
    symbols = (inputs.result.folder / SYMBOLS, binding.symbols)
    return AarPart(
        inputs=inputs,
        binding=binding.library,
        symbols=tuple(path for path in symbols if path is not None and path.is_file()),
    )


def deliver_aar(
    parts: Sequence[AarPart], sources: Path, jdk: Jdk, destination: Path, *, models_as_assets: bool = False
) -> SoundAar:
    """Make the AAR of all ABIs with everything beside it, in the folder `destination`, and pass it through every gate.

    `sources` is the folder of the source tree. Raises as `make_android_package` does, and a `DiagnosticGroup` of all
    that is wrong with the AAR; the package is then gone.
    """
    inputs = AarInputs(
        parts=tuple(parts),
        java=tuple(sources / JAVA / name for name in FOLDERS),
        ndk=parts[0].inputs.job.toolchain.version if parts else "",
        models_as_assets=models_as_assets,
    )
    package = make_android_package(inputs, jdk, destination)
    promise = Promise(api_level=inputs.api, abis=tuple(part.abi for part in parts), whole_relro=True)
    try:
        facts = read_aar(package.aar)
        require_sound_aar(facts, promise)
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(package.folder)
        raise
    return SoundAar(package=package, facts=facts, gates=check_aar(facts, promise))


def slice_budgets(inputs: AppleInputs) -> tuple[tuple[str, int], ...]:
    """Return the most bytes of each slice by its identifier: what its targets may take together, if each has a budget.

    A static library has none: its own bytes are relocations and names as well, which do not come into an app.
    """
    planned = {target.job.target.identifier: target.budgets for target in inputs.first.plan.targets}
    found = []
    for each in () if inputs.static else inputs.slices:
        limits = [planned[part.inputs.job.target.identifier].library_bytes for part in each.parts]
        known = [limit for limit in limits if limit is not None]
        if len(known) == len(limits):
            found.append((each.slice.identifier, sum(known)))
    return tuple(found)


IDENTITY: Final = "ORTRIM_CODESIGN_IDENTITY"
"""The environment variable that names who signs; nobody does without it."""


@dataclass(frozen=True, kw_only=True)
class SoundXcframework:
    """A package whose xcframework passed every gate, but for those of budgets."""

    package: ApplePackage
    gates: tuple[Gate, ...]


def apple_part(inputs: PackageInputs) -> ApplePart:
    """Return one architecture of a package: what its build left, with what a dSYM of it holds."""
    symbols = inputs.result.folder / APPLE_SYMBOLS
    return ApplePart(inputs=inputs, symbols=symbols if symbols.is_file() else None)


def deliver_apple(
    parts: Sequence[ApplePart], sources: Path, destination: Path, environment: Mapping[str, str] = os.environ
) -> SoundXcframework:
    """Make the package of all slices in the folder `destination`, and pass its xcframework through every gate.

    `sources` is the folder of the source tree; the xcframework is signed if the environment names an identity. Raises
    as `make_apple_package` does, `ToolError` (`codesign-missing`) and `PackageError` (`not-signed`) where it is to be
    signed, and a `DiagnosticGroup` of all that is wrong with the xcframework. A package that has not passed is gone.
    """
    inputs = AppleInputs(parts=tuple(parts), objective_c=sources / "onnxruntime" / OBJECTIVE_C)
    package = make_apple_package(inputs, destination, _signing(environment.get(IDENTITY, "")))
    try:
        facts, promise = read_xcframework(package.xcframework), _promise(inputs, package)
        require_sound_xcframework(facts, replace(promise, budgets=()))  # those are for the report to judge
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(package.folder)
        raise
    return SoundXcframework(package=package, gates=check_xcframework(facts, promise))


def apple_delivery(result: JobResult, sound: SoundXcframework) -> Delivery:
    """Return what a package holds for one of its targets; the gates are those of the whole xcframework."""
    facts, size = read_apple_library(result.library)
    return Delivery(
        archive=sound.package.xcframework, library=result.library, facts=facts, gates=sound.gates, size=size
    )


def _promise(inputs: AppleInputs, package: ApplePackage) -> ApplePromise:
    manifest: AppleManifest = package.manifest
    return ApplePromise(
        slices=tuple(each.slice for each in inputs.slices),
        minimum_os=tuple((f"{each.platform}-{each.variant}".rstrip("-"), each.minimum_os) for each in manifest.slices),
        version=manifest.ort_version,
        budgets=slice_budgets(inputs),
        package_swift=(package.swift_package / "Package.swift").read_text(encoding="utf-8"),
    )


def _signing(identity: str) -> Callable[[Path], None] | None:
    return partial(sign, find_codesign(), identity) if identity else None


AAR_SIZES: Final = (
    ("libraries of the ABI", "library_bytes"),
    ("libraries in the AAR", "compressed_bytes"),
    ("app's download", "download_bytes"),
)
"""Measures of a report -> what `AbiSize` calls them."""


def linux_delivery(planned: Planned, job: BuildJob, result: JobResult, package: Package) -> Delivery:
    """Return what the package holds; a static library is sized by the shared one of the same objects.

    An archive's own bytes are relocations and names as well, which do not come into the program that links it.
    """
    delivered = package.folder / "lib" / (ARCHIVE if job.linkage == "static" else LIBRARY)
    shared = result.library if job.linkage == "static" else delivered
    facts = read_library(shared)
    return Delivery(
        archive=package.archive,
        library=delivered,
        facts=facts,
        gates=(*_gates(job, facts), *_static_gates(job, delivered, facts), *_model_gates(planned, job)),
        size=library_size(shared, result.link_map),
    )


def android_delivery(planned: Planned, job: BuildJob, result: JobResult, sound: SoundAar) -> Delivery:
    """Return what an AAR holds for one ABI; its gates are those of the whole AAR."""
    sizes = next(size for size in sound.facts.sizes if size.abi == ABIS[job.target.architecture])
    return Delivery(
        archive=sound.package.aar,
        library=result.library,
        facts=read_library(result.library),
        gates=(*sound.gates, *_model_gates(planned, job)),
        size=library_size(result.library, result.link_map),
        sizes=tuple(_size_line(measure, sizes, name) for measure, name in AAR_SIZES),
        companions=companions_of(job, result),
    )


def _gates(job: BuildJob, facts: LibraryFacts) -> tuple[Gate, ...]:
    return check_library(
        facts,
        architecture=job.target.architecture,
        minimum_glibc=job.minimum_glibc,
        compiler_libraries=job.toolchain.kind != "zig",
    )


def _static_gates(job: BuildJob, delivered: Path, shared: LibraryFacts) -> tuple[Gate, ...]:
    if job.linkage != "static":
        return ()
    return tuple(check_archive(*visible_symbols(content, name), shared) for name, content in archive_members(delivered))


def _model_gates(planned: Planned, job: BuildJob) -> tuple[Gate, ...]:
    """Return the gate of the tensors' places for processors that fault where others are only slower."""
    if job.target.architecture is not Architecture.ARM:
        return ()
    both = zip(planned.models.converted, planned.plan.models, strict=True)
    return tuple(
        check_tensors(model.name, misaligned_tensors(model.path), in_place=IN_PLACE in plan.session.configuration)
        for model, plan in both
    )


def _size_line(measure: str, sizes: AbiSize, name: str) -> Comparison:
    """Return a line of the report that tells a size; budgets are for the runtime's library, as on other systems."""
    return Comparison(
        measure=measure,
        model="",
        unit="bytes",
        ours=getattr(sizes, name),
        baseline=None,
        ratio=None,
        spread=None,
        budget=None,
        budget_is_ratio=False,
        verdict=Verdict.NOT_JUDGED,
    )


def package_inputs(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    """Return what the package of a target is made from, and what its part of an assembly is."""
    upstream = sound_sources(planned.sources) / "onnxruntime"
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=planned.models.converted,
        operators=planned.models.operators,
        licence=upstream / "LICENSE",
        notices=upstream / "ThirdPartyNotices.txt",
        licences=tuple(
            ComponentLicence(component=component, identifier=identifier, path=path)
            for component, identifier, path in (*_source_licences(planned, job), *_toolchain_licences(job))
        ),
    )


def _source_licences(planned: Planned, job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the job compiles, which may be less than was fetched."""
    compiled = {source.name for source in job.sources}
    return tuple(entry for entry in licences(planned.sources) if entry[0] in compiled)


def _toolchain_licences(job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the compiler itself puts into the library; the system's gcc puts it beside."""
    if job.toolchain.kind not in RUNTIME_LICENCES:
        return ()
    tools = packages_folder("tools", tool_requirements())
    return tuple(
        (component, identifier, tools / text) for component, identifier, text in RUNTIME_LICENCES[job.toolchain.kind]
    )


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
