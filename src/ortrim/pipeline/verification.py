"""What verification is given: the package, the models with their references, the devices and the baseline.

- What the verdicts of reports come to: the diagnostics with which a command ends.
- Devices of farms: the app that runs there is made of what is to be verified, and compiled by Gradle.
- What a library for Macs is held against: the official one of the same version, by its size.
- iPhones on this Mac's cable: the app that runs there is made of what is to be verified, and compiled by Xcode.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from ortrim.base.console import Console, Step
from ortrim.binaries.libraries import LibrarySize
from ortrim.binaries.macho_image import architecture_size
from ortrim.build.plan import BuildJob, JobResult, PlannedTarget, digest
from ortrim.errors import BinaryError, BudgetMissed, Diagnostic, DiagnosticGroup, Inconclusive, ParityError, ToolError
from ortrim.models.full_runtime import foreign_library, mac_library
from ortrim.pipeline.devices import devices_of, open_device
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.pipeline.request import Request
from ortrim.platforms.android.harness import HarnessInputs, find_apks, make_harness
from ortrim.platforms.apple.devicectl import ARCHIVE, PhoneDevice, open_phone
from ortrim.platforms.apple.harness import PhoneHarness, find_app, make_phone_harness
from ortrim.platforms.apple.rules import SLICE_SIZES
from ortrim.report.summary import unproved_models
from ortrim.size.library import library_size
from ortrim.spec.targets import ABIS, APPLE, APPLE_ARCHITECTURES, CATALYST, Architecture, OperatingSystem, Target
from ortrim.verify.devices.batch import Farm, FarmDevice, Tell
from ortrim.verify.devices.device import Device
from ortrim.verify.devices.emulators import runs_here
from ortrim.verify.devices.harness import HarnessApks, HarnessContent, PhoneApp
from ortrim.verify.devices.names import DeviceName, FarmKind, is_farm
from ortrim.verify.gates import gate_hint
from ortrim.verify.judge import diagnostic_of
from ortrim.verify.measure import NO_SIZE, Baseline, device_folder, in_turn, own_baseline
from ortrim.verify.measurements import Comparison, Verdict
from ortrim.verify.reference import converted_outputs, reference_outputs
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceFailure, DeviceReport, VerifyReport
from ortrim.verify.verification import Delivery, Identity, Subject, Task, verify_target

HARNESS: Final = "harness"
RESULTS: Final = "farms"


def farm_device(job: BuildJob, kind: FarmKind, name: DeviceName, folder: Path, tell: Tell) -> FarmDevice:
    """Return a device of a farm; nothing is asked of the farm before the device is told what to run.

    `folder` is the target's: the app's Gradle project is written into it, and what comes back from the farm. When the
    app has not been compiled, or is an older one, `prepare` raises as `find_apks` does.
    """
    return FarmDevice(
        farm=_farm(kind),
        device=name.detail,
        make_apks=lambda content: _apks(job, content, folder / HARNESS),
        folder=folder / RESULTS / device_folder(str(name)),
        tell=tell,
    )


def _apks(job: BuildJob, content: HarnessContent, folder: Path) -> HarnessApks:
    assert job.android is not None
    abi = ABIS[job.target.architecture]
    return find_apks(make_harness(HarnessInputs(content=content, abi=abi, api=job.android.api), folder))


def _farm(kind: FarmKind) -> Farm:
    match kind:
        case "firebase":
            from ortrim.farms.firebase import FirebaseFarm, find_gcloud  # noqa: PLC0415 - loaded when asked for

            return FirebaseFarm(gcloud=find_gcloud())
        case "devicefarm":
            from ortrim.farms.device_farm import DeviceFarm  # noqa: PLC0415 - as above

            return DeviceFarm()
        case "browserstack":
            from ortrim.farms.browserstack import BrowserStack  # noqa: PLC0415 - as above

            return BrowserStack()
        case _:
            assert_never(kind)


def is_for_mac(target: Target) -> bool:
    """Whether a target is for Macs' own programs; Catalyst's are apps of iPads, of which there is no official wheel."""
    return target.system is OperatingSystem.MACOS and target.identifier != CATALYST


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> tuple[Baseline, LibrarySize]:
    """Return the official library for one kind of Mac, none to be run, and its sizes.

    Not every version has a wheel for either kind, nor its digest among the pins; the name then says so. Raises as
    `mac_library` and `architecture_size` do.
    """
    try:
        library = mac_library(version, requirements, architecture.value)
    except ToolError as error:
        if error.reference != "install-failed":
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])


def phone_device(job: BuildJob, headers: Path, name: DeviceName, folder: Path) -> PhoneDevice:
    """Return a phone; nothing is asked of it before the device is told what to run.

    `headers` is the folder of the runtime's headers, `folder` the target's: the app's Xcode project is written into it.
    When the app has not been compiled, or is an older one, `prepare` raises as `find_app` does. Raises as `open_phone`
    does.
    """
    return open_phone(name.detail, lambda content: _app(job, headers, content, folder / HARNESS))


def _app(job: BuildJob, headers: Path, content: HarnessContent, folder: Path) -> PhoneApp:
    assert job.apple is not None
    inputs = PhoneHarness(
        content=content,
        headers={path.name: path for path in sorted(headers.glob("*.h"))},
        architecture=APPLE_ARCHITECTURES[job.target.architecture],
        minimum=job.apple.deployment_target,
        linked=ARCHIVE in content.libraries,
    )
    return find_app(make_phone_harness(inputs, folder))


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


Reports = tuple[VerifyReport, ...]


def gravest_failure(reports: Reports) -> Diagnostic | None:
    """Return the gravest failures in the reports, None without any.

    Bad libraries are gravest; then devices that could not finish, after which nobody knows the rest; then lost parity;
    then missed budgets; then what could not be judged.
    """
    for find in (_bad_libraries, _failed_devices, _lost_parity, _missed_budgets, _unproved):
        if failures := find(reports):
            return failures[0] if len(failures) == 1 else DiagnosticGroup(tuple(failures))
    return None


def _bad_libraries(reports: Reports) -> list[Diagnostic]:
    """Return the gates that failed, but for that of budgets, which `_missed_budgets` tells target by target."""
    return [
        BinaryError("gate-failed", f"{gate.name}: {gate.detail}", where=report.target, hint=gate_hint(gate))
        for report in reports
        for gate in report.gates
        if gate.verdict is Verdict.FAIL and gate.name != SLICE_SIZES
    ]


def _failed_devices(reports: Reports) -> list[Diagnostic]:
    """Return the failures of the class of the first; those of other classes are in the reports.

    That one of several targets is not for a device is no failure when another one was.
    """
    used = {device.device for _, device in _devices(reports) if not _is_for_another(device.failure)}
    failures = [device.failure for _, device in _devices(reports) if device.failure]
    found = [diagnostic_of(each) for each in failures if not (_is_for_another(each) and each.where in used)]
    return [diagnostic for diagnostic in found if diagnostic.exit_code == found[0].exit_code]


def _is_for_another(failure: DeviceFailure | None) -> bool:
    return failure is not None and failure.reference == NOT_FOR_DEVICE


def _lost_parity(reports: Reports) -> list[Diagnostic]:
    hint = "report.html shows every output; if the difference is acceptable, say so in the model's tolerances"
    return [
        ParityError(
            "parity-lost",
            f"output {output.output} of case {output.case} differs from the full runtime's",
            where=f"{report.target} on {device.device}, model {output.model}",
            why=output.reason,
            hint=hint,
        )
        for report, device in _devices(reports)
        for output in device.parity
        if output.verdict is Verdict.FAIL
    ]


def _unproved(reports: Reports) -> list[Diagnostic]:
    hint = 'give the model cases whose outputs depend on the input; expect = "empty" says that there is none'
    return [
        Inconclusive("parity-inconclusive", text, where=report.target, hint=hint)
        for report in reports
        if report.verdict is Verdict.INCONCLUSIVE
        for text in unproved_models(report)
    ]


def _missed_budgets(reports: Reports) -> list[Diagnostic]:
    of_libraries = [_missed(line, report.target) for report in reports for line in report.comparisons]
    of_models = [
        _missed(line, f"{report.target} on {device.device}, model {line.model}")
        for report, device in _devices(reports)
        for line in device.comparisons
    ]
    return [missed for missed in (*of_libraries, *of_models) if missed]


def _missed(line: Comparison, where: str) -> Diagnostic | None:
    if line.verdict is not Verdict.FAIL:
        return None
    measured = line.ratio if line.budget_is_ratio else line.ours
    return BudgetMissed(
        "budget-missed",
        f"{line.measure} is over its budget",
        where=where,
        why=f"measured {_amount(line, measured)}, budget {_amount(line, line.budget)}",
        hint="report.html shows where it goes; mend the cause or change the budget in the buildspec",
    )


def _devices(reports: Reports) -> Iterator[tuple[VerifyReport, DeviceReport]]:
    for report in reports:
        for device in report.devices:
            yield report, device


def _amount(line: Comparison, value: float | None) -> str:
    """Write a measurement or a budget with its unit; nothing was measured when it is None."""
    if value is None:
        return "nothing"
    if line.budget_is_ratio:
        return f"{value:.1%} of the baseline's"
    match line.unit:
        case "bytes":
            return f"{value:,.0f} bytes"
        case "ms":
            return f"{value:.4g} ms"
        case "runs":
            return f"{value:g} runs"
