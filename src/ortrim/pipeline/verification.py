"""What verification is given: the package, the cases, the device and the baseline."""

from contextlib import closing
from pathlib import Path
from typing import Final

from ortrim.binaries.archives import archive_members
from ortrim.binaries.elf import read_library
from ortrim.binaries.merged_object import visible_symbols
from ortrim.binaries.sizes import library_size
from ortrim.console import Console
from ortrim.core.artifacts import JobResult, Package
from ortrim.core.measurements import Comparison, Gate, LibraryFacts, LibrarySize, Verdict, VerifyReport
from ortrim.core.plan import BuildJob, PlannedTarget, digest
from ortrim.core.targets import Architecture
from ortrim.errors import BinaryError, BudgetMissed, Diagnostic, DiagnosticGroup, ParityError
from ortrim.executors.results import LIBRARY
from ortrim.models.alignment import misaligned_tensors
from ortrim.pipeline.planned import Planned
from ortrim.platforms.linux import ARCHIVE
from ortrim.tools.foreign_runtime import foreign_library
from ortrim.verify.baseline import Baseline, own_baseline
from ortrim.verify.devices.select import default_devices, devices_for, runs_here
from ortrim.verify.gates import check_archive, check_library, check_tensors
from ortrim.verify.verify import Delivery, Identity, Subject, verify_target

NO_SIZE: Final = LibrarySize(file_bytes=0, loadable_bytes=0, compressed_bytes=0, components=(), largest_symbols=())


def verify(
    planned: Planned, target: PlannedTarget, result: JobResult, *, package: Package, runner: Path, console: Console
) -> VerifyReport:
    """Verify a package of one target with a compiled `runner` on this host, or in an emulator; see `verify_target`."""
    folder, job = package.folder.parent, target.job
    with console.step(f"verify {job.target.identifier}") as step:
        baseline = _baseline(planned, job)
        (device,) = devices_for(job.target, default_devices(job.target)[:1], step.note)
        with closing(device):
            step.progress(0, 0, f"reading the library; device: {device.name}")
            return verify_target(
                _identity(planned, job, result),
                _delivery(planned, job, result, package, baseline),
                _subjects(planned),
                target.budgets,
                device=device,
                runner=runner,
                runtime=planned.models.runtime,
                folder=folder / "outputs",
                baseline=baseline,
                on_progress=step.progress,
            )


def _baseline(planned: Planned, job: BuildJob) -> Baseline:
    """Return the official library for the target's own machine, without one where there is no such wheel."""
    runtime, architecture = planned.models.runtime, job.target.architecture.value
    if runs_here(job.target):
        return own_baseline(runtime)
    library = foreign_library(runtime.version, planned.models.pins.converter_requirements, architecture)
    name = f"onnxruntime {runtime.version} (official wheel for {architecture})"
    return Baseline(library=library, name=name if library else f"none: there is no official wheel for {architecture}")


def gravest_failure(reports: tuple[VerifyReport, ...]) -> Diagnostic | None:
    """Return the gravest failures in the reports: bad libraries, else lost parity, else missed budgets, else None."""
    for failures in (_bad_libraries(reports), _lost_parity(reports), _missed_budgets(reports)):
        if failures:
            return failures[0] if len(failures) == 1 else DiagnosticGroup(tuple(failures))
    return None


def _bad_libraries(reports: tuple[VerifyReport, ...]) -> list[Diagnostic]:
    return [
        BinaryError("gate-failed", f"{gate.name}: {gate.detail}", where=report.target)
        for report in reports
        for gate in report.gates
        if gate.verdict is Verdict.FAIL
    ]


def _lost_parity(reports: tuple[VerifyReport, ...]) -> list[Diagnostic]:
    hint = "report.html shows every output; if the difference is acceptable, say so in the model's tolerances"
    return [
        ParityError(
            "parity-lost",
            f"output {output.output} of case {output.case} differs from the full runtime's",
            where=f"{report.target}, model {output.model}",
            why=output.reason,
            hint=hint,
        )
        for report in reports
        for output in report.parity
        if output.verdict is Verdict.FAIL
    ]


def _missed_budgets(reports: tuple[VerifyReport, ...]) -> list[Diagnostic]:
    return [
        BudgetMissed(
            "budget-missed",
            f"{line.measure} is over its budget",
            where=f"{report.target}, model {line.model}" if line.model else report.target,
            why=f"measured {_amount(line, measured)}, budget {_amount(line, line.budget)}",
            hint="report.html shows where it goes; mend the cause or change the budget in the buildspec",
        )
        for report in reports
        for line in report.comparisons
        if line.verdict is Verdict.FAIL
        for measured in [line.ratio if line.budget_is_ratio else line.ours]
    ]


def _amount(line: Comparison, value: float | None) -> str:
    """Write a measurement or a budget with its unit; nothing was measured when it is None."""
    if value is None:
        return "nothing"
    if line.budget_is_ratio:
        return f"{value:.1%} of the baseline's"
    return f"{value:,.0f} bytes" if line.unit == "bytes" else f"{value:.4g} ms"


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


def _delivery(planned: Planned, job: BuildJob, result: JobResult, package: Package, baseline: Baseline) -> Delivery:
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
        baseline_size=NO_SIZE if baseline.library is None else library_size(baseline.library, None),
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
    return tuple(check_tensors(model.name, misaligned_tensors(model.path)) for model in planned.models.converted)


def _subjects(planned: Planned) -> tuple[Subject, ...]:
    models = planned.models
    together = zip(models.prepared, models.converted, models.loaded.spec.models, planned.cases, strict=True)
    return tuple(
        Subject(prepared=prepared, converted=converted, spec=spec, cases=cases)
        for prepared, converted, spec, cases in together
    )
