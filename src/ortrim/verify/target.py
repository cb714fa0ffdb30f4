"""Verification of one target on all its devices, from the package to the report's data."""

import os
import re
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ortrim.base.command import stopped_by, termination_raises
from ortrim.base.files import sha256_of, storage_errors
from ortrim.binaries.elf import LibraryFacts, LibrarySize, build_id_of
from ortrim.buildspec.buildspec import Budgets, ModelSpec, SessionSettings, as_the_official
from ortrim.buildspec.tolerances import (
    CONVERSION,
    QUANTIZED_ELSEWHERE,
    SAME_GRAPH,
    SAME_GRAPH_BY_FOURS,
    SAME_GRAPH_CONVOLVED,
    SAME_GRAPH_ELSEWHERE,
    Bounds,
    for_float32_weights,
)
from ortrim.compiling.plan import JobResult
from ortrim.devices.device import Device, Outcome, device_folder
from ortrim.devices.host import adds_by_fours_here, saturates_here
from ortrim.devices.kinds import DEFAULT_MEMORY_MIB, HOST, DeviceName
from ortrim.devices.qemu import REPETITION, least_memory, tries
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.parity.compare import (
    as_near_to_floats,
    compare,
    is_drawn,
    not_computed,
    with_draws_given,
    with_float_products,
    with_same_graph,
    within_conversion_bounds,
)
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import Comparison, Gate, OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, References, SavedOutputs
from ortrim.parity.runner import DEFAULT_REPETITION, OF_ONE_MODEL, TRACE, Repetition, RunnerOutput, RunRequest
from ortrim.verify import judge
from ortrim.verify.measure import (
    ONCE,
    ROUNDS,
    Baseline,
    DeviceRuns,
    Measurement,
    Measuring,
    OnProgress,
    Round,
    Rounds,
    Run,
    carry_out,
    results,
)
from ortrim.verify.operator_times import nodes_by_provider
from ortrim.verify.reports import DeviceReport, Identity, Placement, ReportedArtifact, VerifiedModel, VerifyReport


@dataclass(frozen=True, kw_only=True)
class ModelUnderTest:
    """One model to verify: as given, as converted, what the buildspec says of it, its cases, and their outputs.

    `reference` are the full runtime's outputs of the original model, `same_graph` those of the converted one;
    `session` are the package's settings. `draws_given` is the model with the random numbers that it draws as inputs,
    None for one that draws none, or none that can be given. `float_products` is the model with products of floats where
    kernels round these to 8 bits in every run, None where none do.
    """

    prepared: PreparedModel
    converted: OrtModel
    spec: ModelSpec
    cases: tuple[Case, ...]
    reference: References
    same_graph: SavedOutputs
    session: SessionSettings
    draws_given: "ModelUnderTest | None" = None
    float_products: "ModelUnderTest | None" = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is verified: the package's archive, its library, and what was read from both.

    `gates` are the properties that it must have; `sizes` are lines of the report that tell more of its size;
    `companions` are the libraries in the package that its library needs, as `RunRequest` has them; `wheel` is what was
    made of the same for Python.
    """

    archive: Path
    library: Path
    facts: LibraryFacts
    gates: tuple[Gate, ...]
    size: LibrarySize
    sizes: tuple[Comparison, ...] = ()
    companions: tuple[Path, ...] = ()
    wheel: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every device is given alike: the library, how it was `built`, the models, and what it is all compared with.

    Outputs are kept below `folder`, each device's in a folder of its own. `least_memory` is searched for where there
    is a ceiling to be lowered; with `trace`, each model is run once more with the profile of single operators. Sessions
    of the library have the execution `providers`, as the C API calls them.
    """

    delivery: Delivery
    built: JobResult
    subjects: tuple[ModelUnderTest, ...]
    budgets: Budgets
    baseline: Baseline
    baseline_size: LibrarySize
    runner: Path
    folder: Path
    repetition: Repetition = DEFAULT_REPETITION
    least_memory: bool = False
    trace: bool = False
    providers: tuple[str, ...] = ()


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


MEMORY_ROUNDS: Final = 3
"""Enough where time means nothing: an emulated machine takes the same memory each time, to a few pages."""
MEMORY_REPETITION: Final = Repetition(runs=10, warmup=1, seconds=0.2)
"""Seconds of the machine's own clock, which goes by instructions where these are counted.

One run of a large model tells as much as ten.
"""


def verify_on(
    device: Device, task: Task, tell: OnProgress = lambda *_: None, began: judge.Beginning | None = None
) -> DeviceReport:
    """Return all that was found out on a device, whatever it says of the library, and close it.

    A model that the library does not run is reported as failed, and the others are verified.

    Our library's outputs are compared with the references. Where memory or time mean something it runs in turn with the
    baseline, under the same settings; what means nothing is not measured again and not judged.
    """
    began = began or judge.Beginning()
    models = tuple(_Model(device, task, subject) for subject in task.subjects)
    progress = DeviceRuns(_count(models, device, task), tell)
    with ExitStack() as scratch:
        carry_out(device, _runs(device, task, models, scratch), progress)
    failures = {model.name: model.failure for model in models if model.failure}
    proved = tuple(model for model in models if not model.failure)
    measured = tuple(model.rounds for model in proved)
    searched = proved if task.least_memory and device.ceiling_mib else ()
    least = tuple(
        least_memory(
            device,
            replace(model.plan.ours, repetition=REPETITION),
            model=model.name,
            upper_mib=_most_memory(device),
            on_try=partial(_tried, progress, model.name),
        )
        for model in searched
    )
    comparisons = judge.model_comparisons(task.budgets, measured, _not_measurable(device))
    exit_code, signal = judge.ended_with(next(iter(failures.values()))) if failures else (0, None)
    refusals = dict.fromkeys(model.measuring.refusal for model in proved if model.measuring.refusal)
    host = replace(device.facts(), memory_meaningful=device.memory_meaningful, time_meaningful=device.time_meaningful)
    device.close()
    return DeviceReport(
        device=device.name,
        run_id=str(uuid.uuid4()),
        started=began.started,
        duration_s=began.seconds,
        exit_code=exit_code,
        signal=signal,
        provider_url=device.url or None,
        log=_log(device, task),
        host=host,
        baseline="; ".join((task.baseline.name, *(f"it does not run on {device.name}: {why}" for why in refusals))),
        comparisons=comparisons,
        parity=tuple(output for model in proved for output in model.parity),
        runs=tuple(result for rounds in measured for result in results(rounds, task.budgets.deadline_ms)),
        least_memory=least,
        traces=tuple(model.trace for model in proved if model.trace),
        placements=tuple(Placement(model=each.name, nodes=each.placed) for each in proved if task.providers),
        failed_models=tuple(judge.failure_of(error, model) for model, error in failures.items()),
        verdict=judge.overall(
            (line.verdict for line in comparisons),
            (*(model.verdict for model in proved), *(Verdict.FAIL for _ in failures)),
        ),
    )


def _tried(progress: DeviceRuns, model: str, mib: int) -> None:
    progress.done(f"{model} in {mib} MiB")


def _runs(device: Device, task: Task, models: Sequence["_Model"], scratch: ExitStack) -> Iterator[Run]:
    """Yield all runs of a verification in their order; those that have ended decide what is still run.

    Of a device that takes all first none has ended: a model or a baseline that does not run there is found out too late
    for its rounds to be left out, and no verdict is in doubt yet.
    """
    for model in models:
        yield model.proof()
    timed = [model for model in models if not model.failure and model.measure()]
    for model in timed:
        yield from model.measuring.trial()
    for model in timed:
        yield from model.measuring.runs()
        if device.time_meaningful and model.measuring.is_whole:
            yield from judge.settling(model.measuring, task.budgets, not_measurable=partial(_not_measurable, device))
    for model in models if task.trace or task.providers else ():
        if not model.failure:
            yield model.profile(scratch)
    for model in models:
        if model.subject.draws_given is not None and not model.failure:
            yield model.with_draws_given(model.subject.draws_given)
        if model.subject.float_products is not None and not model.failure:
            yield model.with_float_products(model.subject.float_products)


class _Model:
    """One model on one device: its runs, and what they showed."""

    def __init__(self, device: Device, task: Task, subject: ModelUnderTest) -> None:
        self.subject = subject
        self.name = subject.prepared.name
        self.plan = _measurement(subject, task)
        self.measuring = Measuring(self.plan)
        self.failure: VerifyError | None = None
        self.parity: tuple[OutputParity, ...] = ()
        self.trace = ""
        self.placed: dict[str, int] = {}
        self._once: Rounds
        self._device = device
        self._folder = task.folder / device_folder(device.name) / self.name
        self._reports = task.folder.parent
        self._task = task

    @property
    def rounds(self) -> Rounds:
        """What its figures are of: the rounds, or the one run that showed its outputs when there are none."""
        return self.measuring.rounds if self.measuring.is_whole else self._once

    @property
    def verdict(self) -> Verdict:
        """The verdict on its outputs."""
        found = judge.parity_of(self.parity)
        expected = found is Verdict.INCONCLUSIVE and self.subject.spec.expect == "empty"
        return Verdict.PASS if expected else found

    def measure(self) -> bool:
        """Prepare to measure what means something on the device, as it is now; return whether anything does."""
        if not self._device.time_meaningful:
            self.measuring = Measuring(self.plan.repeated(MEMORY_REPETITION, MEMORY_ROUNDS))
        return self._device.time_meaningful or self._device.memory_meaningful

    def proof(self) -> Run:
        """Return the run that saves its outputs."""
        folder = _made(self._folder)
        request = replace(self.plan.ours, repetition=ONCE, outputs=folder)
        return Run(request=request, text=f"parity of {self.name}", note=partial(self._proved, folder))

    def profile(self, scratch: ExitStack) -> Run:
        """Return the run that leaves a profile beside the outputs."""
        with storage_errors(self._folder):
            folder = Path(scratch.enter_context(tempfile.TemporaryDirectory(dir=self._folder, prefix=".trace-")))
        request = replace(self.plan.ours, repetition=ONCE, outputs=folder, trace=True)
        return Run(request=request, text=f"profile of {self.name}", note=partial(self._profiled, folder))

    def with_draws_given(self, given: ModelUnderTest) -> Run:
        """Return the run of the model that is given its random numbers."""
        return self._copy(given, "draws-given", self._drawn)

    def with_float_products(self, floats: ModelUnderTest) -> Run:
        """Return the run of the model that multiplies floats as they are."""
        return self._copy(floats, "float-products", self._multiplied)

    def _copy(self, copy: ModelUnderTest, name: str, note: Callable[[ModelUnderTest, Path, Outcome], None]) -> Run:
        folder = _made(self._folder.with_name(f"{self.name}~{name}"))
        request = replace(_measurement(copy, self._task).ours, repetition=ONCE, outputs=folder)
        return Run(request=request, text=f"parity of {self.name}", note=partial(note, copy, folder))

    def _proved(self, folder: Path, outcome: Outcome) -> None:
        """Compare the outputs with the reference; a model that does not run leaves the others theirs."""
        try:
            self.parity = self._compared(self.subject, folder, outcome)
        except VerifyError as error:
            if error.code not in OF_ONE_MODEL:
                raise
            self.failure, self.measuring.left_out = error, True
        else:
            assert isinstance(outcome, RunnerOutput)
            once = Round(ours=outcome, baseline=None)
            self._once = Rounds(model=self.name, rounds=(once,), warmup=ONCE.warmup)

    def _drawn(self, given: ModelUnderTest, folder: Path, outcome: Outcome) -> None:
        """Judge what depends on random numbers by the model that is given them, if the library runs that."""
        if self.failure:
            return
        reference = self.subject.reference
        drawn = {(case.name, each.name) for case in reference.cases for each in case.outputs if is_drawn(each)}
        try:
            self.parity = with_draws_given(self.parity, self._compared(given, folder, outcome), drawn)
        except VerifyError as error:
            if error.code not in OF_ONE_MODEL:
                raise
            why = f"; with them as inputs, {error.what} ({error.code})"
            self.parity = tuple(
                replace(each, reason=each.reason + why) if (each.case, each.output) in drawn else each
                for each in self.parity
            )

    def _multiplied(self, floats: ModelUnderTest, folder: Path, outcome: Outcome) -> None:
        """Fail what fails with products of floats: rounding would hide small faults of all else."""
        if not self.failure:
            self.parity = with_float_products(self.parity, self._compared(floats, folder, outcome))

    def _profiled(self, folder: Path, outcome: Outcome) -> None:
        if isinstance(outcome, VerifyError):
            if not self.failure:
                raise outcome
            return
        with storage_errors(self._folder):
            kept = (folder / TRACE).replace(self._folder / TRACE)
        self.trace = kept.relative_to(self._reports).as_posix()
        if self._task.providers:
            self.placed = nodes_by_provider(kept, self.name)

    def _compared(self, subject: ModelUnderTest, folder: Path, outcome: Outcome) -> tuple[OutputParity, ...]:
        if isinstance(outcome, VerifyError):
            raise outcome
        cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in outcome.cases)
        ours = SavedOutputs(folder=folder, cases=cases)
        return judged_outputs(subject, ours, _same_graph_bounds(self._device, subject))


def _made(folder: Path) -> Path:
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _measurement(subject: ModelUnderTest, task: Task) -> Measurement:
    """Return what is run of a model; companions and the settings that go with the model are our library's."""
    ours = RunRequest(
        runner=task.runner,
        library=task.delivery.library,
        model=subject.converted.path,
        cases=subject.cases,
        name=subject.prepared.name,
        companions=task.delivery.companions,
        session=replace(subject.session, providers=task.providers),
        repetition=task.repetition,
    )
    if task.baseline.library is None:
        return Measurement(ours=ours, baseline=None)
    session = as_the_official(subject.session)
    baseline = replace(ours, library=task.baseline.library, model=subject.prepared.path, companions=(), session=session)
    return Measurement(ours=ours, baseline=baseline)


def _count(models: Sequence[_Model], device: Device, task: Task) -> int:
    """Return how many steps there will be, for a progress bar."""
    rounds = ROUNDS if device.time_meaningful else MEMORY_ROUNDS if device.memory_meaningful else 0
    searched = tries(_most_memory(device)) if task.least_memory and device.ceiling_mib else 0
    subjects = [model.subject for model in models]
    given = sum(copy is not None for each in subjects for copy in (each.draws_given, each.float_products))
    return given + len(models) * (1 + int(task.trace or bool(task.providers)) + searched + rounds)


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
        if subject.float_products:
            again = as_near_to_floats(again, ours, subject.same_graph, subject.float_products.reference)
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
    here = device.name == HOST.name
    if here and subject.spec.layout != "nchwc8":
        convolved = SAME_GRAPH_BY_FOURS if adds_by_fours_here() else SAME_GRAPH_CONVOLVED
        return convolved if subject.reference.convolves else SAME_GRAPH
    if not subject.reference.quantized:
        return for_float32_weights(SAME_GRAPH_ELSEWHERE) if subject.reference.float32_weights else SAME_GRAPH_ELSEWHERE
    return None if saturates_here() and not here and not subject.float_products else QUANTIZED_ELSEWHERE


def _most_memory(device: Device) -> int:
    return max(DEFAULT_MEMORY_MIB, device.ceiling_mib)


def _not_measurable(device: Device) -> judge.NotMeasurable:
    why = f"what it takes on {device.name} {device.caveat}"
    return judge.NotMeasurable(
        memory="" if device.memory_meaningful else f"memory: {why}",
        time="" if device.time_meaningful else f"time: {device.heat or why}",
    )


LOOPBACK: Final = re.compile(r"(?:ssh://)?(?:[^@]*@)?(?:localhost|127\.[0-9.]+|\[?::1\]?)(?::[0-9]+)?")


def turns(devices: Sequence[DeviceName], cores: int) -> tuple[tuple[DeviceName, ...], ...]:
    """Return groups of devices that may run side by side, one group after the other.

    A device that measures time on this machine runs alone, first, while nothing else does. Emulators take this
    machine's processor and measure no time: no more of them run at once than there are `cores`, since one that gets
    no processor reaches its time limits. Other machines do not feel each other, nor emulators here.
    """
    alone = [
        device
        for device in devices
        if device.row.reach == "here" or (device.row.reach == "remote" and LOOPBACK.fullmatch(device.detail))
    ]
    emulated = [device for device in devices if device.is_emulator]
    elsewhere = [device for device in devices if device not in (*alone, *emulated)]
    size = max(1, cores)
    groups = [emulated[start : start + size] for start in range(0, len(emulated), size)] or [[]]
    first, *rest = [[*elsewhere, *groups[0]], *groups[1:]]
    groups = [*([device] for device in alone), first, *rest]
    return tuple(tuple(group) for group in groups if group)


def _artifact(path: Path) -> ReportedArtifact:
    with storage_errors(path):
        size_bytes, sha256 = path.stat().st_size, sha256_of(path)
    return ReportedArtifact(name=path.name, size_bytes=size_bytes, sha256=sha256, build_id=build_id_of(path))


Result = TypeVar("Result")


def at_once(works: Sequence[Callable[[], Result]]) -> tuple[Result, ...]:
    """Do several works at the same time, and return what each gave, in their order.

    A single one gets no thread, so that nothing else is at work while it measures. What one raises is raised when all
    have ended; Ctrl-C, SIGTERM and SIGHUP stop what they run.
    """
    if len(works) < 2:
        return tuple(work() for work in works)
    asked = threading.Event()

    def in_thread(work: Callable[[], Result]) -> Result:
        with stopped_by(asked):
            return work()

    with ThreadPoolExecutor(max_workers=len(works), thread_name_prefix="device") as threads, termination_raises():
        try:
            futures = [threads.submit(in_thread, work) for work in works]
            return tuple(future.result() for future in futures)
        except (KeyboardInterrupt, SystemExit):
            asked.set()
            raise


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
    wheels = () if delivery.wheel is None else (delivery.wheel,)
    artifacts = tuple(map(_artifact, (delivery.archive, delivery.library, *delivery.companions, *wheels)))
    aggregate = AggregateProgress(on_progress, len(devices))
    opened: dict[str, DeviceName] = {}
    found: dict[DeviceName, DeviceReport] = {}
    for turn in turns(devices, os.cpu_count() or 1):
        works = [partial(_verified, name, opened, open_device, task, aggregate) for name in turn]
        found.update(zip(turn, at_once(works), strict=True))
    return _report(identity, task, artifacts, tuple(found[device] for device in devices))


def _verified(
    name: DeviceName, opened: dict[str, DeviceName], open_device: Open, task: Task, aggregate: AggregateProgress
) -> DeviceReport:
    """Open a device, verify on it and close it; a diagnostic is all that its report has then."""
    began = judge.Beginning()
    device: Device | None = None
    try:
        with closing(open_device(name)) as reached:
            if opened.setdefault(reached.name, name) != name:
                where = f"--device {reached.name}"
                raise UsageError("device-twice", "the same device is given twice", where=where)
            device = reached
            return verify_on(device, task, aggregate.of(device.name), began)
    except Diagnostic as error:
        url, log = (device.url, _log(device, task)) if device else ("", None)
        return judge.failed_device(
            device.name if device else str(name), task.baseline.name, error, began, url=url, log=log
        )


def _log(device: Device, task: Task) -> str | None:
    return os.path.relpath(device.log, task.folder.parent) if device.log else None


def _report(
    identity: Identity, task: Task, artifacts: tuple[ReportedArtifact, ...], devices: tuple[DeviceReport, ...]
) -> VerifyReport:
    delivery = task.delivery
    package_bytes = artifacts[0].size_bytes
    sizes = judge.library_comparisons(task.budgets, delivery.size, task.baseline_size, package_bytes)
    lines = (*sizes, *delivery.sizes)
    return VerifyReport(
        **vars(identity),
        baseline=task.baseline.name,
        package=os.path.relpath(delivery.archive, task.folder.parent),
        package_bytes=package_bytes,
        artifacts=artifacts,
        models=tuple(
            VerifiedModel(
                name=subject.prepared.name,
                original_sha256=subject.prepared.facts.sha256,
                sha256=subject.converted.sha256,
                coverage=subject.reference.coverage,
                expect=subject.spec.expect,
                layout="" if subject.spec.layout in {"auto", "plain"} else subject.spec.layout,
            )
            for subject in task.subjects
        ),
        parity_reference=f"ort-full@{identity.ort_version}",
        library=delivery.facts,
        size=delivery.size,
        baseline_size=task.baseline_size,
        comparisons=lines,
        gates=delivery.gates,
        devices=devices,
        build_seconds=task.built.seconds,
        compiler_cache=task.built.compiler_cache,
        units=task.built.units,
        left_out=task.built.left_out,
        verdict=judge.overall(
            (*(line.verdict for line in lines), *(gate.verdict for gate in delivery.gates)),
            (device.verdict for device in devices),
        ),
    )
