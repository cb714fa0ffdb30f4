"""Verification of one target, from the package to the report's data."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import CompiledUnits, CompilerCacheUse
from ortrim.core.buildspec import Budgets, ModelSpec
from ortrim.core.measurements import Comparison, Gate, LibraryFacts, LibrarySize, OutputParity, Verdict, VerifyReport
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.storage.files import storage_errors
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.baseline import Baseline, own_baseline, without_failing
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import DEFAULT_REPETITION, Device, Repetition, RunnerOutput
from ortrim.verify.devices.host import Host
from ortrim.verify.judge import Meaningless, compare_budgets
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.verify.rounds import Measurement, Round, Rounds, measure, request_of, results

ONCE: Final = Repetition(runs=1, warmup=0)
MEMORY_ROUNDS: Final = 3
"""Enough where time means nothing: an emulated machine takes the same memory each time, to a few pages."""
MEMORY_REPETITION: Final = Repetition(runs=10, warmup=1)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One model to verify: as given, as converted, what the buildspec says of it, and its cases."""

    prepared: PreparedModel
    converted: OrtModel
    spec: ModelSpec
    cases: tuple[Case, ...]


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a report says of its subject; the names are those of `VerifyReport`."""

    name: str
    target: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    profile: str
    build_seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is verified: the package's archive, its library, and what was read from both and from the baseline's.

    `gates` are the library's, from `gates.check_library`.
    """

    archive: Path
    library: Path
    facts: LibraryFacts
    gates: tuple[Gate, ...]
    size: LibrarySize
    baseline_size: LibrarySize


def verify_target(
    identity: Identity,
    delivery: Delivery,
    subjects: tuple[Subject, ...],
    budgets: Budgets,
    *,
    device: Device,
    runner: Path,
    runtime: FullRuntime,
    folder: Path,
    baseline: Baseline | None = None,
    repetition: Repetition = DEFAULT_REPETITION,
    on_progress: Callable[[int, int, str], None] = lambda *_: None,
) -> VerifyReport:
    """Verify one target and return all that was measured, failed or not.

    The baseline, by default `runtime`'s library, runs the original models, in turn with ours under the same settings;
    `delivery.baseline_size` is its size. Outputs are held against those of `runtime` on this machine, and are kept
    below `folder`. What means nothing on the device is not measured again and not judged. `on_progress` is told how
    many rounds are done, of how many, and what is done next. Raises `VerifyError` when something cannot be carried
    out; a missed budget or a lack of parity is a verdict, not an error.
    """
    baseline = baseline or own_baseline(runtime)
    plans = [_measurement(subject, delivery, runner, baseline, repetition) for subject in subjects]
    proofs = []
    for subject, plan in zip(subjects, plans, strict=True):
        on_progress(0, 0, f"parity of {plan.model}")
        proofs.append(_proof(subject, plan, device, runtime, folder))
    measured = tuple(proof.once for proof in proofs)
    if device.memory_meaningful or device.time_meaningful:
        plans, baseline = without_failing([_as_meaningful(plan, device) for plan in plans], baseline, device)
        measured = _measure_all(plans, device, on_progress)
    evidence = _Evidence(
        comparisons=_comparisons(budgets, delivery, measured, device),
        parity=tuple(output for proof in proofs for output in proof.parity),
        measured=measured,
        baseline=baseline.name,
    )
    return _report(identity, delivery, evidence, device)


def _comparisons(
    budgets: Budgets, delivery: Delivery, measured: tuple[Rounds, ...], device: Device
) -> tuple[Comparison, ...]:
    why = f"what it takes on {device.name} says nothing of a real device"
    meaningless = Meaningless(
        memory="" if device.memory_meaningful else f"memory: {why}",
        time="" if device.time_meaningful else f"time: {why}",
    )
    archive_bytes = delivery.archive.stat().st_size
    return compare_budgets(
        budgets, delivery.size, delivery.baseline_size, archive_bytes, measured, meaningless=meaningless
    )


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """All that was found out."""

    comparisons: tuple[Comparison, ...]
    parity: tuple[OutputParity, ...]
    measured: tuple[Rounds, ...]
    baseline: str


def _report(identity: Identity, delivery: Delivery, evidence: _Evidence, device: Device) -> VerifyReport:
    verdicts = [
        *(comparison.verdict for comparison in evidence.comparisons),
        *(output.verdict for output in evidence.parity),
        *(gate.verdict for gate in delivery.gates),
    ]
    return VerifyReport(
        **{field.name: getattr(identity, field.name) for field in fields(identity)},
        device=device.name,
        host=replace(
            device.facts(), memory_meaningful=device.memory_meaningful, time_meaningful=device.time_meaningful
        ),
        baseline=evidence.baseline,
        package=delivery.archive.name,
        package_bytes=delivery.archive.stat().st_size,
        library=delivery.facts,
        size=delivery.size,
        baseline_size=delivery.baseline_size,
        comparisons=evidence.comparisons,
        parity=evidence.parity,
        gates=delivery.gates,
        runs=tuple(result for rounds in evidence.measured for result in results(rounds)),
        verdict=overall(verdicts),
    )


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on everything: one failure fails, and doubt about a budget does not."""
    return Verdict.FAIL if Verdict.FAIL in set(verdicts) else Verdict.PASS


def _measurement(
    subject: Subject, delivery: Delivery, runner: Path, baseline: Baseline, repetition: Repetition
) -> Measurement:
    return Measurement(
        model=subject.prepared.name,
        runner=runner,
        library=delivery.library,
        ort_model=subject.converted.path,
        baseline_library=baseline.library,
        onnx_model=subject.prepared.path,
        cases=subject.cases,
        repetition=repetition,
    )


def _measure_all(
    plans: list[Measurement], device: Device, on_progress: Callable[[int, int, str], None]
) -> tuple[Rounds, ...]:
    done, total = 0, sum(plan.rounds for plan in plans)
    measured = []
    for plan in plans:

        def on_round(model: str = plan.model) -> None:
            nonlocal done
            done += 1
            on_progress(done, total, f"timing of {model}")

        on_progress(done, total, f"timing of {plan.model}")
        measured.append(measure(device, plan, on_round))
    return tuple(measured)


def _as_meaningful(plan: Measurement, device: Device) -> Measurement:
    """Return a plan that spends no time on times that mean nothing."""
    if device.time_meaningful:
        return plan
    return replace(plan, repetition=MEMORY_REPETITION, rounds=MEMORY_ROUNDS)


@dataclass(frozen=True, kw_only=True)
class _Proof:
    """What one run of our library showed: its outputs' parity, and what that run took."""

    parity: tuple[OutputParity, ...]
    once: Rounds


def _proof(subject: Subject, plan: Measurement, device: Device, runtime: FullRuntime, folder: Path) -> _Proof:
    reference = reference_outputs(subject.prepared, subject.cases, runtime, folder / "reference")
    ours, ran = our_outputs(plan, device, folder / _folder_of(device) / plan.model)
    parity = compare(plan.model, reference, ours, subject.spec.tolerances)
    return _Proof(parity=parity, once=Rounds(model=plan.model, rounds=(Round(ours=ran, baseline=None),)))


def _folder_of(device: Device) -> str:
    """Return where a device's outputs go, so that those of several stay beside each other."""
    return "ours" if device.name == Host.name else f"ours-{re.sub(r'[^A-Za-z0-9._-]', '_', device.name)}"


def our_outputs(plan: Measurement, device: Device, outputs: Path) -> tuple[SavedOutputs, RunnerOutput]:
    """Run our library once and return its outputs, which stay in `outputs`, and what it took.

    Raises what `Device.run` raises.
    """
    with storage_errors(outputs):
        outputs.mkdir(parents=True, exist_ok=True)
    request = request_of(replace(plan, repetition=ONCE), plan.library, plan.ort_model)
    ran = device.run(replace(request, outputs=outputs))
    cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in ran.cases)
    return SavedOutputs(folder=outputs, cases=cases), ran
