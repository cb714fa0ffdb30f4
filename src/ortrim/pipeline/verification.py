"""What verification is given: the package, the models with their references, the devices and the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ortrim.base.console import Console, Step
from ortrim.buildspec.targets import Target
from ortrim.compiling.plan import BuildJob, JobResult, PlannedTarget, digest
from ortrim.devices import kinds
from ortrim.devices.kinds import DeviceName
from ortrim.errors import BudgetMissed, DiagnosticGroup
from ortrim.planning.conversions import changed_outputs, subject_of, with_draws_given, with_float_products
from ortrim.planning.devices import devices_of, open_device
from ortrim.planning.planned import Planned, target_folder
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.report.content import coverage_text
from ortrim.verify.measure import in_turn
from ortrim.verify.reports import Identity, VerifyReport
from ortrim.verify.target import Delivery, ModelUnderTest, Task, verify_target


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
        step.note(f"on {', '.join(map(str, devices))}" if devices else platform_of(target).nowhere(target))
        task = _task(planned, packaged, request, devices, step)
        identity = _identity(planned, packaged.target.job)
        opened = partial(
            open_device,
            target,
            announce=step.note,
            job=packaged.target.job,
            headers=packaged.result.headers,
            folder=target_folder(planned, packaged.target),
        )
        with in_turn(task.folder, devices, step.note):
            return verify_target(identity, task, devices, opened, step.progress)


def _task(planned: Planned, packaged: Packaged, request: Request, devices: Sequence[DeviceName], step: Step) -> Task:
    step.progress(0, 0, "reading the library")
    folder = target_folder(planned, packaged.target) / "outputs"
    job, models = packaged.target.job, planned.models
    platform = platform_of(job.target)
    baseline, baseline_size = platform.baseline(job, models.runtime, models.pins.converter_requirements)
    return Task(
        delivery=packaged.delivery,
        built=packaged.result,
        subjects=_subjects(planned, job.target, step) if devices else (),
        budgets=packaged.target.budgets,
        baseline=baseline,
        baseline_size=baseline_size,
        runner=packaged.runner,
        folder=folder,
        least_memory=request.least_memory,
        trace=request.trace,
        providers=job.provider_names,
    )


def _identity(planned: Planned, job: BuildJob) -> Identity:
    return Identity(
        name=planned.plan.spec_name,
        target=job.target.identifier,
        ort_version=planned.plan.ort_version,
        ortrim_version=planned.plan.ortrim_version,
        plan_digest=digest(planned.plan),
        profile=job.profile,
    )


def make_references(planned: Planned, request: Request, console: Console) -> None:
    """Run every case in the full runtime before anything is compiled, on the models as given and as they ship.

    What ends the command here: a case that the model does not run on, a session that the converted model does not
    stand, a conversion that changes the outputs, and cases that run less of a model's graph than a budget asks for.
    Raises as `subject_of` does, `ParityError` and `BudgetMissed`.
    """
    targets = planned.plan.targets
    least = max((each.budgets.graph_coverage or 0.0 for each in targets), default=0.0)
    used = {device.kind for each in targets for device in devices_of(each.job.target, request, each.job.cpu)}
    # All targets that have the same models need the same outputs.
    for target in {planned.plan.models_for(each.job.target): each.job.target for each in targets}.values():
        with console.step("run the cases in the full runtime") as step:
            subjects = _subjects(planned, target, step)
            step.progress(0, 0, "comparing the outputs before and after conversion")
            models = planned.models.for_target(target)
            changed = changed_outputs(subjects, models.loaded, models.runtime, here=kinds.HOST.name in used)
        if changed:
            raise changed[0] if len(changed) == 1 else DiagnosticGroup(changed)
        _require_coverage(subjects, least)


def _require_coverage(subjects: Sequence[ModelUnderTest], least: float) -> None:
    """Raise `BudgetMissed` for models of whose nodes the cases run less than a share."""
    missed = tuple(
        BudgetMissed(
            "budget-missed",
            f"the cases run {coverage_text(subject.reference.coverage)}",
            where=f"model {subject.prepared.name}",
            why=f"the budget graph_coverage asks for {least:.4g} of them",
            hint="write cases that enter these bodies, or change the budget in the buildspec",
        )
        for subject in subjects
        if subject.reference.coverage.executed < least * subject.reference.coverage.nodes
    )
    if missed:
        raise missed[0] if len(missed) == 1 else DiagnosticGroup(missed)


def _subjects(planned: Planned, target: Target, step: Step) -> tuple[ModelUnderTest, ...]:
    """Return the models of a target with the full runtime's outputs of them, which are kept in the cache."""
    models, plans = planned.models.for_target(target), planned.plan.models_for(target)
    specs = models.loaded.models
    subjects = []
    for prepared, converted, spec, cases, plan in zip(
        models.prepared, models.converted, specs, planned.cases, plans, strict=True
    ):
        step.progress(0, 0, f"outputs of {prepared.name} in the full runtime")
        subject = subject_of(prepared, converted, spec, plan.session, cases, runtime=models.runtime)
        subjects.append(with_float_products(with_draws_given(subject, models.runtime), models.runtime))
    return tuple(subjects)
