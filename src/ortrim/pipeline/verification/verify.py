"""What verification is given: the package, the models with their references, the devices and the baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.binaries.sizes import library_size
from ortrim.console import Console, Step
from ortrim.core.artifacts import JobResult
from ortrim.core.library_facts import LibrarySize
from ortrim.core.plan import BuildJob, PlannedTarget, digest
from ortrim.core.reports import VerifyReport
from ortrim.core.targets import APPLE, OperatingSystem
from ortrim.pipeline.bench.alone import in_turn
from ortrim.pipeline.converted import Request
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.pipeline.verification.devices import devices_of
from ortrim.pipeline.verification.farms import farm_device
from ortrim.pipeline.verification.mac_baseline import is_for_mac, mac_baseline
from ortrim.pipeline.verification.phones import phone_device
from ortrim.tools.foreign_runtime import foreign_library
from ortrim.verify.baseline import NO_SIZE, Baseline, own_baseline
from ortrim.verify.devices.base import Device
from ortrim.verify.devices.names import DeviceName, is_farm
from ortrim.verify.devices.runnable import runs_here
from ortrim.verify.devices.select import open_device
from ortrim.verify.reference import converted_outputs, reference_outputs
from ortrim.verify.subjects import Delivery, Identity, Subject, Task
from ortrim.verify.target import verify_target

NO_BASELINE: Final = (OperatingSystem.ANDROID, *APPLE)
NOWHERE: Final = "its library was run nowhere: no device was named, such as --device adb or --device devicectl"
NO_MAC: Final = "its library was run nowhere: not verified, needs a Mac"


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """One target, built and packaged, with a compiled runner for it."""

    target: PlannedTarget
    result: JobResult
    delivery: Delivery
    runner: Path


def verify(planned: Planned, packaged: Packaged, request: Request, console: Console) -> VerifyReport:
    """Verify what was packaged for one target on each device asked for; see `verify_target`.

    Another verification that this one would disturb is waited for; see `in_turn`.

    Without a device, as may be on Android, the report is that of the library and its package alone.
    """
    target = packaged.target.job.target
    with console.step(f"verify {target.identifier}") as step:
        devices = devices_of(target, request, packaged.target.job.cpu)
        nowhere = NO_MAC if packaged.target.job.target.system is OperatingSystem.MACOS else NOWHERE
        step.note(f"on {', '.join(map(str, devices))}" if devices else nowhere)
        task = _task(planned, packaged, request, devices, step)
        identity = _identity(planned, packaged.target.job, packaged.result)
        opened = partial(_open, packaged, target_folder(planned, packaged.target), step.note)
        with in_turn(task.folder, devices, step.note):
            return verify_target(identity, task, devices, opened, step.progress)


def _open(packaged: Packaged, folder: Path, tell: Callable[[str], None], name: DeviceName) -> Device:
    job = packaged.target.job
    if name.kind == "devicectl":
        return phone_device(job, packaged.result.headers, name, folder)
    if is_farm(name.kind):
        return farm_device(job, name.kind, name, folder, tell)
    return open_device(job.target, name, announce=tell, api=job.android.api if job.android else None)


def _task(planned: Planned, packaged: Packaged, request: Request, devices: Sequence[DeviceName], step: Step) -> Task:
    step.progress(0, 0, "reading the library")
    folder = target_folder(planned, packaged.target) / "outputs"
    baseline, baseline_size = _held_against(planned, packaged.target.job)
    return Task(
        delivery=packaged.delivery,
        subjects=_subjects(planned, folder / "reference", step) if devices else (),
        budgets=packaged.target.budgets,
        baseline=baseline,
        baseline_size=baseline_size,
        runner=packaged.runner,
        folder=folder,
        least_memory=request.least_memory,
        trace=request.trace,
    )


def _baseline(planned: Planned, job: BuildJob) -> Baseline:
    """Return the official library for the target's own machine, without one where there is no such wheel."""
    runtime, architecture = planned.models.runtime, job.target.architecture.value
    if job.target.system in NO_BASELINE:
        what = "Android" if job.target.system is OperatingSystem.ANDROID else "Apple's phones"
        return Baseline(library=None, name=f"none: there is no official package for {what} to be had by digest")
    if runs_here(job.target):
        return own_baseline(runtime)
    library = foreign_library(runtime.version, planned.models.pins.converter_requirements, architecture)
    name = f"onnxruntime {runtime.version} (official wheel for {architecture})"
    return Baseline(library=library, name=name if library else f"none: there is no official wheel for {architecture}")


def _held_against(planned: Planned, job: BuildJob) -> tuple[Baseline, LibrarySize]:
    """Return the baseline and how large it is; for a Mac it is there for its size alone."""
    models = planned.models
    if is_for_mac(job.target):
        return mac_baseline(models.runtime.version, models.pins.converter_requirements, job.target.architecture)
    baseline = _baseline(planned, job)
    return baseline, NO_SIZE if baseline.library is None else library_size(baseline.library, None)


def _identity(planned: Planned, job: BuildJob, result: JobResult) -> Identity:
    return Identity(
        name=planned.plan.spec_name,
        target=job.target.identifier,
        ort_version=planned.plan.ort_version,
        ortrim_version=planned.plan.ortrim_version,
        plan_digest=digest(planned.plan),
        profile=job.profile,
        build_seconds=result.seconds,
        compiler_cache=result.compiler_cache,
        units=result.units,
    )


def _subjects(planned: Planned, folder: Path, step: Step) -> tuple[Subject, ...]:
    """Return the models with the full runtime's outputs of them, which lie below `folder`, or are made there."""
    models = planned.models
    plans, specs = planned.plan.models, models.loaded.spec.models
    subjects = []
    for prepared, converted, spec, cases, plan in zip(
        models.prepared, models.converted, specs, planned.cases, plans, strict=True
    ):
        step.progress(0, 0, f"outputs of {prepared.name} in the full runtime")
        reference = reference_outputs(prepared, cases, models.runtime, folder)
        same_graph = converted_outputs(converted, prepared, cases, models.runtime, folder)
        subjects.append(
            Subject(
                prepared=prepared,
                converted=converted,
                spec=spec,
                cases=cases,
                reference=reference,
                same_graph=same_graph,
                session=plan.session,
            )
        )
    return tuple(subjects)
