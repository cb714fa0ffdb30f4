"""Verification of one target on all its devices, from the package to the report's data."""

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

from ortrim.core.reports import Artifact, DeviceReport, VerifiedModel, VerifyReport
from ortrim.errors import Diagnostic
from ortrim.verify.artifacts import artifacts_of
from ortrim.verify.devices.base import Device
from ortrim.verify.devices.farms.batch import FarmDevice
from ortrim.verify.devices.names import DeviceName
from ortrim.verify.devices.several import OnDevice, on_each
from ortrim.verify.judge import library_comparisons
from ortrim.verify.one_device import verify_on
from ortrim.verify.progress import OnProgress, Together
from ortrim.verify.subjects import Identity, Subject, Task
from ortrim.verify.turns import turns
from ortrim.verify.verdicts import failed_device, overall

Open = Callable[[DeviceName], Device]


def verify_target(
    identity: Identity,
    task: Task,
    devices: Sequence[DeviceName],
    open_device: Open,
    on_progress: OnProgress = lambda *_: None,
) -> VerifyReport:
    """Verify one target on each device and return all that was found out, failed or not.

    Devices that do not disturb each other are at work at the same time. One that fails, or cannot even be opened, has
    its failure in its report and leaves the others theirs; a missed budget or a lack of parity is a verdict, not an
    error. `on_progress` is told how many runs are done, of about how many.
    """
    artifacts = artifacts_of(task.delivery)
    together = Together(on_progress, len(devices))
    found: dict[DeviceName, DeviceReport] = {}
    for turn in turns(devices, os.cpu_count() or 1):
        found.update(zip(turn, _one_turn(task, turn, open_device, together), strict=True))
    return _report(identity, task, artifacts, tuple(found[device] for device in devices))


def _one_turn(task: Task, turn: Sequence[DeviceName], open_device: Open, together: Together) -> Iterator[DeviceReport]:
    def opener(name: DeviceName) -> Callable[[], Device]:
        return lambda: open_device(name)

    def action(device: Device) -> DeviceReport:
        try:
            report = verify_on(device, task, together.of(device.name))
        except Diagnostic as error:
            report = failed_device(device.name, task.baseline.name, error)
        return _with_farms_own(report, device, task) if isinstance(device, FarmDevice) else report

    ended = on_each([(str(name), opener(name)) for name in turn], action)
    return (_report_of(each, task) for each in ended)


def _with_farms_own(report: DeviceReport, device: FarmDevice, task: Task) -> DeviceReport:
    """Add what a farm keeps of a run, well ended or not."""
    log = os.path.relpath(device.log, task.folder.parent) if device.log else None
    return replace(report, provider_url=device.url or None, log=log)


def _report_of(ended: OnDevice[DeviceReport], task: Task) -> DeviceReport:
    report = ended.result
    if report is None:
        assert ended.error is not None
        report = failed_device(ended.name, task.baseline.name, ended.error)
    started = ended.started.isoformat(timespec="seconds")
    return replace(report, run_id=str(uuid.uuid4()), started=started, duration_s=ended.seconds)


def _report(
    identity: Identity, task: Task, artifacts: tuple[Artifact, ...], devices: tuple[DeviceReport, ...]
) -> VerifyReport:
    delivery = task.delivery
    package_bytes = artifacts[0].size_bytes
    sizes = library_comparisons(task.budgets, delivery.size, task.baseline_size, package_bytes)
    lines = (*sizes, *delivery.sizes)
    return VerifyReport(
        **{field.name: getattr(identity, field.name) for field in fields(identity)},
        baseline=task.baseline.name,
        package=os.path.relpath(delivery.archive, task.folder.parent),
        package_bytes=package_bytes,
        artifacts=artifacts,
        models=tuple(_verified(subject) for subject in task.subjects),
        parity_reference=f"ort-full@{identity.ort_version}",
        library=delivery.facts,
        size=delivery.size,
        baseline_size=task.baseline_size,
        comparisons=lines,
        gates=delivery.gates,
        devices=devices,
        verdict=overall(
            (*(line.verdict for line in lines), *(gate.verdict for gate in delivery.gates)),
            (device.verdict for device in devices),
        ),
    )


def _verified(subject: Subject) -> VerifiedModel:
    prepared, converted = subject.prepared, subject.converted
    return VerifiedModel(
        name=prepared.name,
        original_sha256=prepared.facts.sha256,
        sha256=converted.sha256,
        coverage=subject.reference.coverage,
        expect=subject.spec.expect,
    )
