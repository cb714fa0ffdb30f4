"""Verification on one device: parity, what runs take, and what else was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.core.measurements import LeastMemory, OutputParity, Verdict
from ortrim.core.reports import DeviceReport
from ortrim.core.tolerances import SAME_GRAPH, SAME_GRAPH_ELSEWHERE, Bounds
from ortrim.verify.baseline import without_failing
from ortrim.verify.batch_requests import batch_requests
from ortrim.verify.devices.base import Device, Repetition
from ortrim.verify.devices.cooling import CooledDevice
from ortrim.verify.devices.devicectl import PhoneDevice
from ortrim.verify.devices.farms.batch import FarmDevice
from ortrim.verify.devices.host import Host, saturates_here
from ortrim.verify.devices.least_memory import REPETITION, least_memory, tries
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB, QemuSystem
from ortrim.verify.devices.simctl import SimulatorDevice
from ortrim.verify.judge import Meaningless, model_comparisons
from ortrim.verify.outputs import ONCE, device_folder, our_outputs, trace_of
from ortrim.verify.parity import compare, not_computed, with_same_graph
from ortrim.verify.progress import OnProgress, Runs
from ortrim.verify.rounds import Measurement, Round, Rounds, measure, request_of, results
from ortrim.verify.settling import settled
from ortrim.verify.subjects import Subject, Task
from ortrim.verify.verdicts import overall, parity_of

MEMORY_ROUNDS: Final = 3
"""Enough where time means nothing: an emulated machine takes the same memory each time, to a few pages."""
MEMORY_REPETITION: Final = Repetition(runs=10, warmup=1)


def verify_on(device: Device, task: Task, tell: OnProgress = lambda *_: None) -> DeviceReport:
    """Return all that was found out on a device, whatever it says of the library.

    Our library's outputs are compared with the references. Where memory or time mean something it runs in turn with the
    baseline, under the same settings; what means nothing is not measured again and not judged. Raises `VerifyError`
    and whatever else `Device.run` raises when something cannot be carried out.
    """
    plans = tuple(_measurement(subject, task) for subject in task.subjects)
    timed = _timed(plans, device)
    if isinstance(device, FarmDevice | PhoneDevice):
        device.prepare(batch_requests(plans, timed, trace=task.trace))
    work = _Work(device=device, task=task, runs=Runs(_count(plans, timed, device, task), tell))
    proofs = tuple(work.proof(subject, plan) for subject, plan in zip(task.subjects, plans, strict=True))
    # A phone that has become hot by now is spared the rounds; what a farm was told of cannot be changed any more.
    timed = timed if isinstance(device, FarmDevice) else _timed(plans, device)
    timed, baseline = without_failing(timed, task.baseline, device)
    measured = tuple(map(work.measured, timed)) or tuple(proof.once for proof in proofs)
    traces = tuple(map(work.trace, plans)) if task.trace else ()
    least = tuple(map(work.least_memory, plans)) if task.least_memory and isinstance(device, QemuSystem) else ()
    comparisons = model_comparisons(task.budgets, measured, _meaningless(device))
    parity = tuple(output for proof in proofs for output in proof.parity)
    return DeviceReport(
        device=device.name,
        exit_code=0,
        host=_described(device),
        baseline=baseline.name,
        comparisons=comparisons,
        parity=parity,
        runs=tuple(result for rounds in measured for result in results(rounds, task.budgets.deadline_ms)),
        least_memory=least,
        traces=traces,
        verdict=overall((line.verdict for line in comparisons), (proof.verdict for proof in proofs)),
    )


def _measurement(subject: Subject, task: Task) -> Measurement:
    return Measurement(
        model=subject.prepared.name,
        runner=task.runner,
        library=task.delivery.library,
        ort_model=subject.converted.path,
        baseline_library=task.baseline.library,
        onnx_model=subject.prepared.path,
        cases=subject.cases,
        companions=task.delivery.companions,
        session=subject.session,
        repetition=task.repetition,
    )


def _timed(plans: tuple[Measurement, ...], device: Device) -> tuple[Measurement, ...]:
    """Return the plans to be measured: none where that says nothing, and few runs where times say nothing."""
    if device.time_meaningful:
        return plans
    short = tuple(replace(plan, repetition=MEMORY_REPETITION, rounds=MEMORY_ROUNDS) for plan in plans)
    return short if device.memory_meaningful else ()


def _count(plans: tuple[Measurement, ...], timed: tuple[Measurement, ...], device: Device, task: Task) -> int:
    """Return how many runs there will be, for a progress bar."""
    searched = tries(_most_memory(device)) if task.least_memory and isinstance(device, QemuSystem) else 0
    return len(plans) * (1 + int(task.trace) + searched) + sum(plan.rounds for plan in timed)


@dataclass(frozen=True, kw_only=True)
class _Proof:
    """What one run of our library showed of a model: its outputs' parity with the verdict, and what that run took."""

    parity: tuple[OutputParity, ...]
    verdict: Verdict
    once: Rounds


@dataclass(frozen=True, kw_only=True)
class _Work:
    """The runs on one device."""

    device: Device
    task: Task
    runs: Runs

    def proof(self, subject: Subject, plan: Measurement) -> _Proof:
        """Compare one model's outputs with the reference."""
        with self.runs.one(f"parity of {plan.model}"):
            ours, ran = our_outputs(plan, self.device, self._outputs(plan))
        parity = compare(plan.model, subject.reference, ours, subject.spec.tolerances)
        if bounds := _same_graph_bounds(self.device, subject):
            again = compare(plan.model, subject.same_graph, ours, subject.spec.tolerances, defaults=bounds)
            parity = with_same_graph(parity, again)
        if not subject.reference.coverage.nodes:
            parity = not_computed(parity)
        found = parity_of(parity)
        expected = found is Verdict.INCONCLUSIVE and subject.spec.expect == "empty"
        once = Rounds(model=plan.model, rounds=(Round(ours=ran, baseline=None),), warmup=ONCE.warmup)
        return _Proof(parity=parity, verdict=Verdict.PASS if expected else found, once=once)

    def measured(self, plan: Measurement) -> Rounds:
        """Measure one model; where all is run as asked for and times mean something, until its verdicts are clear."""
        text = f"measuring {plan.model}"
        self.runs.doing(text)
        rounds = measure(self.device, plan, lambda: self.runs.done(text))
        if isinstance(self.device, FarmDevice | PhoneDevice) or not self.device.time_meaningful:
            return rounds
        return settled(
            self.device,
            plan,
            rounds,
            self.task.budgets,
            meaningless=lambda: _meaningless(self.device),
            tell=self.runs.doing,
        )

    def trace(self, plan: Measurement) -> str:
        """Profile one model, and return the file's path as the report names it."""
        with self.runs.one(f"profile of {plan.model}"):
            trace = trace_of(plan, self.device, self._outputs(plan))
        return trace.relative_to(self.task.folder.parent).as_posix()

    def least_memory(self, plan: Measurement) -> LeastMemory:
        """Find the least memory of one model."""
        assert isinstance(self.device, QemuSystem)
        request = request_of(replace(plan, repetition=REPETITION), plan.library, plan.ort_model)
        return least_memory(
            self.device,
            request,
            model=plan.model,
            upper_mib=_most_memory(self.device),
            on_try=lambda mib: self.runs.done(f"{plan.model} in {mib} MiB"),
        )

    def _outputs(self, plan: Measurement) -> Path:
        return self.task.folder / device_folder(self.device.name) / plan.model


def _same_graph_bounds(device: Device, subject: Subject) -> Mapping[str, Bounds] | None:
    """Return the bounds for outputs of the same converted model; None where those of this machine say nothing."""
    if device.name == Host.name:
        return SAME_GRAPH
    return None if subject.reference.quantized and saturates_here() else SAME_GRAPH_ELSEWHERE


def _most_memory(device: QemuSystem) -> int:
    return max(DEFAULT_MEMORY_MIB, device.machine.memory_mib)


def _meaningless(device: Device) -> Meaningless:
    why = f"what it takes on {device.name} says nothing of a real device"
    if isinstance(device, SimulatorDevice):
        why = f"what it takes on {device.name} is a Mac's number, not a phone's"
    heat = device.heat if isinstance(device, CooledDevice | FarmDevice | PhoneDevice) else ""
    return Meaningless(
        memory="" if device.memory_meaningful else f"memory: {why}",
        time="" if device.time_meaningful else f"time: {heat or why}",
    )


def _described(device: Device) -> measurements.Host:
    return replace(device.facts(), memory_meaningful=device.memory_meaningful, time_meaningful=device.time_meaningful)
