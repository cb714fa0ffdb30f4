"""Verification on one device: parity, what runs take, and what else was asked for.

- Verification of one target on all its devices, from the package to the report's data.
- What a verification is about: the models, the package, what the report says of both, and what to do with them.
- How far several devices are together, whichever thread says so.
- Which devices may be at work at the same time without spoiling each other's measurements. Pure.
- What identifies the files that are verified.
"""

import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.base.files import sha256_of, storage_errors
from ortrim.binaries.elf import LibraryFacts, LibrarySize, build_id_of
from ortrim.buildspec.buildspec import Budgets, ModelSpec, SessionSettings
from ortrim.buildspec.tolerances import (
    CONVERSION,
    QUANTIZED_ELSEWHERE,
    SAME_GRAPH,
    SAME_GRAPH_ELSEWHERE,
    Bounds,
    for_float32_weights,
)
from ortrim.compiling.plan import CompiledUnits, CompilerCacheUse
from ortrim.devices.device import Device, HeatedDevice, PreparedDevice, SimulatedDevice
from ortrim.devices.farms.farm import FarmDevice
from ortrim.devices.host import Host, saturates_here
from ortrim.devices.names import DeviceName
from ortrim.devices.qemu_system import DEFAULT_MEMORY_MIB, REPETITION, QemuSystem, least_memory, tries
from ortrim.devices.several import OnDevice, on_each
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.parity import measurements
from ortrim.parity.compare import (
    compare,
    is_drawn,
    not_computed,
    with_draws_given,
    with_same_graph,
    within_conversion_bounds,
)
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import Comparison, Gate, LeastMemory, OutputParity, Verdict
from ortrim.parity.reference import References, SavedOutputs
from ortrim.parity.runner import DEFAULT_REPETITION, Repetition
from ortrim.parity.runner_output import OF_ONE_MODEL
from ortrim.verify.batch import batch_requests
from ortrim.verify.judge import (
    NotMeasurable,
    ended_with,
    failed_device,
    failure_of,
    library_comparisons,
    model_comparisons,
    overall,
    parity_of,
    settled,
)
from ortrim.verify.measure import (
    ONCE,
    Baseline,
    Measurement,
    Round,
    Rounds,
    device_folder,
    measure,
    our_outputs,
    request_of,
    results,
    trace_of,
    without_failing,
)
from ortrim.verify.reports import DeviceReport, ReportedArtifact, VerifiedModel, VerifyReport


@dataclass(frozen=True, kw_only=True)
class ModelUnderTest:
    """One model to verify: as given, as converted, what the buildspec says of it, its cases, and their outputs.

    `reference` are the full runtime's outputs of the original model, `same_graph` those of the converted one;
    `session` are the package's settings. `draws_given` is the model with the random numbers that it draws as inputs,
    None for one that draws none, or none that can be given.
    """

    prepared: PreparedModel
    converted: OrtModel
    spec: ModelSpec
    cases: tuple[Case, ...]
    reference: References
    same_graph: SavedOutputs
    session: SessionSettings
    draws_given: "ModelUnderTest | None" = None


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
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is verified: the package's archive, its library, and what was read from both.

    `gates` are the properties that it must have; `sizes` are lines of the report that tell more of its size;
    `companions` are the libraries in the package that its library needs, as `RunRequest` has them.
    """

    archive: Path
    library: Path
    facts: LibraryFacts
    gates: tuple[Gate, ...]
    size: LibrarySize
    sizes: tuple[Comparison, ...] = ()
    companions: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every device is given alike: the library, the models, and what it is all compared with.

    Outputs are kept below `folder`, each device's in a folder of its own. `least_memory` is searched for where there
    is a ceiling to be lowered; with `trace`, each model is run once more with the profile of single operators.
    """

    delivery: Delivery
    subjects: tuple[ModelUnderTest, ...]
    budgets: Budgets
    baseline: Baseline
    baseline_size: LibrarySize
    runner: Path
    folder: Path
    repetition: Repetition = DEFAULT_REPETITION
    least_memory: bool = False
    trace: bool = False


OnProgress = Callable[[int, int, str], None]
"""Called with the number of runs done, of how many, and what is done next."""


class AggregateProgress:
    """Sums up what each of `devices` says of itself, and names the one that speaks when there are several.

    Those that have not begun are taken to be like the others, so that the sum does not fall back when they do.
    """

    def __init__(self, show: OnProgress, devices: int) -> None:
        self._show = show
        self._devices = devices
        self._states: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> OnProgress:
        """Return what one device tells its progress."""

        def tell(done: int, total: int, text: str) -> None:
            with self._lock:
                self._states[name] = (done, total)
                all_done, known = (sum(numbers) for numbers in zip(*self._states.values(), strict=True))
                all_there_is = round(known * self._devices / len(self._states))
                self._show(all_done, all_there_is, f"{name}: {text}" if self._devices > 1 else text)

        return tell


class DeviceRuns:
    """Counts the runs of one device."""

    def __init__(self, total: int, tell: OnProgress) -> None:
        self._done = 0
        self._total = total
        self._tell = tell

    def doing(self, text: str) -> None:
        """Say what comes next."""
        self._tell(self._done, self._total, text)

    def done(self, text: str) -> None:
        """Say that a run of this has ended."""
        self._done += 1
        self._tell(self._done, self._total, text)

    @contextmanager
    def one(self, text: str) -> Iterator[None]:
        """Say what the run inside is about, and count it."""
        self.doing(text)
        yield
        self.done(text)


MEMORY_ROUNDS: Final = 3
"""Enough where time means nothing: an emulated machine takes the same memory each time, to a few pages."""
MEMORY_REPETITION: Final = Repetition(runs=10, warmup=1, seconds=0.2)
"""Seconds of the machine's own clock, which goes by instructions where these are counted.

One run of a large model tells as much as ten.
"""


def verify_on(device: Device, task: Task, tell: OnProgress = lambda *_: None) -> DeviceReport:
    """Return all that was found out on a device, whatever it says of the library.

    A model that the library does not run is reported as failed, and the others are verified.

    Our library's outputs are compared with the references. Where memory or time mean something it runs in turn with the
    baseline, under the same settings; what means nothing is not measured again and not judged. Raises `VerifyError`
    and whatever else `Device.run` raises when something cannot be carried out.
    """
    plans = tuple(_measurement(subject, task) for subject in task.subjects)
    timed = _timed(plans, device)
    if isinstance(device, PreparedDevice):
        given = tuple(_measurement(each.draws_given, task) for each in task.subjects if each.draws_given is not None)
        device.prepare((*batch_requests(plans, timed, trace=task.trace), *batch_requests(given, (), trace=False)))
    work = _Work(device=device, task=task, runs=DeviceRuns(_count(plans, timed, device, task), tell))
    proofs, failures = work.proofs(plans)
    plans = tuple(plan for plan in plans if plan.model not in failures)
    # A phone that has become hot by now is spared the rounds; what a farm was told of cannot be changed any more.
    timed = timed if isinstance(device, FarmDevice) else _timed(plans, device)
    timed = tuple(plan for plan in timed if plan.model not in failures)
    timed, baseline = without_failing(timed, task.baseline, device)
    measured = tuple(map(work.measured, timed)) or tuple(proof.once for proof in proofs)
    traces = tuple(map(work.trace, plans)) if task.trace else ()
    least = tuple(map(work.least_memory, plans)) if task.least_memory and isinstance(device, QemuSystem) else ()
    comparisons = model_comparisons(task.budgets, measured, _not_measurable(device))
    parity = tuple(output for proof in proofs for output in proof.parity)
    exit_code, signal = ended_with(next(iter(failures.values()))) if failures else (0, None)
    return DeviceReport(
        device=device.name,
        exit_code=exit_code,
        signal=signal,
        host=_described(device),
        baseline=baseline.name,
        comparisons=comparisons,
        parity=parity,
        runs=tuple(result for rounds in measured for result in results(rounds, task.budgets.deadline_ms)),
        least_memory=least,
        traces=traces,
        failed_models=tuple(failure_of(error, model) for model, error in failures.items()),
        verdict=overall(
            (line.verdict for line in comparisons),
            (*(proof.verdict for proof in proofs), *(Verdict.FAIL for _ in failures)),
        ),
    )


def _measurement(subject: ModelUnderTest, task: Task) -> Measurement:
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
    given = sum(subject.draws_given is not None for subject in task.subjects)
    return given + len(plans) * (1 + int(task.trace) + searched) + sum(plan.rounds for plan in timed)


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
    runs: DeviceRuns

    def proofs(self, plans: tuple[Measurement, ...]) -> tuple[tuple[_Proof, ...], dict[str, VerifyError]]:
        """Compare each model's outputs with the reference; return, too, the error of each that does not run."""
        found, failures = [], {}
        for subject, plan in zip(self.task.subjects, plans, strict=True):
            try:
                found.append(self.proof(subject, plan))
            except VerifyError as error:
                if error.code not in OF_ONE_MODEL:
                    raise
                failures[plan.model] = error
        return tuple(found), failures

    def proof(self, subject: ModelUnderTest, plan: Measurement, suffix: str = "") -> _Proof:
        """Compare one model's outputs with the reference; they stay in its folder, whose name `suffix` ends."""
        with self.runs.one(f"parity of {plan.model}"):
            ours, ran = our_outputs(plan, self.device, Path(f"{self._outputs(plan)}{suffix}"))
        parity = judged_outputs(subject, ours, _same_graph_bounds(self.device, subject))
        if subject.draws_given is not None:
            parity = self._with_draws_given(parity, subject.draws_given, subject.reference)
        found = parity_of(parity)
        expected = found is Verdict.INCONCLUSIVE and subject.spec.expect == "empty"
        once = Rounds(model=plan.model, rounds=(Round(ours=ran, baseline=None),), warmup=ONCE.warmup)
        return _Proof(parity=parity, verdict=Verdict.PASS if expected else found, once=once)

    def _with_draws_given(
        self, parity: tuple[OutputParity, ...], given: ModelUnderTest, reference: References
    ) -> tuple[OutputParity, ...]:
        """Judge what depends on random numbers by the model that is given them, if the library runs that."""
        drawn = {(case.name, each.name) for case in reference.cases for each in case.outputs if is_drawn(each)}
        try:
            found = self.proof(given, _measurement(given, self.task), "~draws-given")
        except VerifyError as error:
            if error.code not in OF_ONE_MODEL:
                raise
            whys = dict.fromkeys(drawn, f"; with them as inputs, {error.what} ({error.code})")
            return tuple(replace(each, reason=each.reason + whys.get((each.case, each.output), "")) for each in parity)
        return with_draws_given(parity, found.parity, drawn)

    def measured(self, plan: Measurement) -> Rounds:
        """Measure one model; where all is run as asked for and times mean something, until its verdicts are clear."""
        text = f"measuring {plan.model}"
        self.runs.doing(text)
        rounds = measure(self.device, plan, lambda: self.runs.done(text))
        if isinstance(self.device, PreparedDevice) or not self.device.time_meaningful:
            return rounds
        return settled(
            self.device,
            plan,
            rounds,
            self.task.budgets,
            not_measurable=lambda: _not_measurable(self.device),
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


def judged_outputs(
    subject: ModelUnderTest,
    ours: SavedOutputs,
    same_graph: Mapping[str, Bounds] | None,
    *,
    same_library: bool = False,
) -> tuple[OutputParity, ...]:
    """Compare outputs with both references; `same_graph` are the bounds for the converted model's, None for none.

    With `same_library` they are the full runtime's own.
    """
    name, tolerances = subject.prepared.name, subject.spec.tolerances
    compared = partial(compare, name, ours=ours, tolerances=tolerances, same_library=same_library)
    parity = compared(subject.reference)
    if same_graph:
        again = compared(subject.same_graph, defaults=same_graph)
        if not subject.reference.quantized and any(each.verdict is Verdict.FAIL for each in parity):
            parity = within_conversion_bounds(parity, again, compared(subject.reference, defaults=CONVERSION))
        parity = with_same_graph(parity, again)
    return parity if subject.reference.coverage.nodes else not_computed(parity)


def changed_by_conversion(subject: ModelUnderTest) -> tuple[OutputParity, ...]:
    """Return the outputs that fail in the full runtime already, by the bounds that the library is judged with."""
    parity = judged_outputs(subject, subject.same_graph, SAME_GRAPH, same_library=True)
    return tuple(each for each in parity if each.verdict is Verdict.FAIL)


def _same_graph_bounds(device: Device, subject: ModelUnderTest) -> Mapping[str, Bounds] | None:
    """Return the bounds for outputs of the same converted model; None where those of this machine say nothing.

    A processor with AVX-512 has other kernels in the full runtime than for NCHWc layout, block size 8.
    """
    here = device.name == Host.name
    if here and subject.spec.layout != "nchwc8":
        return SAME_GRAPH
    if not subject.reference.quantized:
        return for_float32_weights(SAME_GRAPH_ELSEWHERE) if subject.reference.float32_weights else SAME_GRAPH_ELSEWHERE
    return None if saturates_here() and not here else QUANTIZED_ELSEWHERE


def _most_memory(device: QemuSystem) -> int:
    return max(DEFAULT_MEMORY_MIB, device.machine.memory_mib)


def _not_measurable(device: Device) -> NotMeasurable:
    says = device.says if isinstance(device, SimulatedDevice) else "says nothing about a real device"
    why = f"what it takes on {device.name} {says}"
    heat = device.heat if isinstance(device, HeatedDevice) else ""
    return NotMeasurable(
        memory="" if device.memory_meaningful else f"memory: {why}",
        time="" if device.time_meaningful else f"time: {heat or why}",
    )


def _described(device: Device) -> measurements.HostFacts:
    return replace(device.facts(), memory_meaningful=device.memory_meaningful, time_meaningful=device.time_meaningful)


EMULATED: Final = re.compile(r"emulator-[0-9]+")
"""How `adb` names Android's emulators, which run on this machine."""
LOOPBACK: Final = re.compile(r"(?:ssh://)?(?:[^@]*@)?(?:localhost|127\.[0-9.]+|\[?::1\]?)(?::[0-9]+)?")


def turns(devices: Sequence[DeviceName], cores: int) -> tuple[tuple[DeviceName, ...], ...]:
    """Return groups of devices that may run side by side, one group after the other.

    A device that measures time on this machine runs alone, first, while nothing else does. Emulators take this
    machine's processor and measure no time: no more of them run at once than there are `cores`, since one that gets
    no processor reaches its time limits. Other machines do not feel each other, nor emulators here.
    """
    alone = [device for device in devices if _times_this_machine(device)]
    emulated = [device for device in devices if _is_emulated_here(device)]
    elsewhere = [device for device in devices if device not in (*alone, *emulated)]
    size = max(1, cores)
    groups = [emulated[start : start + size] for start in range(0, len(emulated), size)] or [[]]
    first, *rest = [[*elsewhere, *groups[0]], *groups[1:]]
    groups = [*([device] for device in alone), first, *rest]
    return tuple(tuple(group) for group in groups if group)


def _is_emulated_here(device: DeviceName) -> bool:
    return device.kind in {"qemu-user", "qemu-system", "simctl"} or _is_android_emulator(device)


def _is_android_emulator(device: DeviceName) -> bool:
    return device.kind == "adb" and bool(EMULATED.fullmatch(device.detail))


def _times_this_machine(device: DeviceName) -> bool:
    """Whether it is this machine, which a network address may lead back to."""
    return device.kind == "host" or (device.kind in {"adb", "ssh"} and bool(LOOPBACK.fullmatch(device.detail)))


def _artifact(path: Path) -> ReportedArtifact:
    with storage_errors(path):
        size_bytes, sha256 = path.stat().st_size, sha256_of(path)
    return ReportedArtifact(name=path.name, size_bytes=size_bytes, sha256=sha256, build_id=build_id_of(path))


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
    error. `on_progress` gets how many runs are done, of about how many.
    """
    delivery = task.delivery
    artifacts = tuple(map(_artifact, (delivery.archive, delivery.library, *delivery.companions)))
    aggregate = AggregateProgress(on_progress, len(devices))
    found: dict[DeviceName, DeviceReport] = {}
    for turn in turns(devices, os.cpu_count() or 1):
        found.update(zip(turn, _one_turn(task, turn, open_device, aggregate), strict=True))
    return _report(identity, task, artifacts, tuple(found[device] for device in devices))


def _one_turn(
    task: Task, turn: Sequence[DeviceName], open_device: Open, aggregate: AggregateProgress
) -> Iterator[DeviceReport]:
    def opener(name: DeviceName) -> Callable[[], Device]:
        return lambda: open_device(name)

    def action(device: Device) -> DeviceReport:
        try:
            report = verify_on(device, task, aggregate.of(device.name))
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
    identity: Identity, task: Task, artifacts: tuple[ReportedArtifact, ...], devices: tuple[DeviceReport, ...]
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


def _verified(subject: ModelUnderTest) -> VerifiedModel:
    prepared, converted = subject.prepared, subject.converted
    return VerifiedModel(
        name=prepared.name,
        original_sha256=prepared.facts.sha256,
        sha256=converted.sha256,
        coverage=subject.reference.coverage,
        expect=subject.spec.expect,
        layout="" if subject.spec.layout in {"auto", "plain"} else subject.spec.layout,
    )
