"""Measuring both libraries in turn, so that whatever the machine does besides falls on both alike.

- What our library is measured beside, where the device runs it.
- What runs of our library leave below a folder of this machine: outputs to compare, and profiles of operators.
- What keeps measurements of this user on this machine from disturbing each other, and from sharing files.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from ortrim.base.cache import cache_folder, locked
from ortrim.base.files import storage_errors
from ortrim.binaries.elf import LibrarySize
from ortrim.buildspec.buildspec import SessionSettings, as_the_official
from ortrim.devices.device import Device
from ortrim.devices.names import DeviceName
from ortrim.errors import VerifyError
from ortrim.models.full_runtime import FullRuntime
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import CaseTiming, Distribution, RunnerResult, distribution, median
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import DEFAULT_REPETITION, DEFAULT_SESSION, CaseRun, Repetition, RunnerOutput, RunRequest
from ortrim.parity.runner_output import TRACE

ROUNDS: Final = 9
"""From nine on, the interval that holds the true median can leave out the extreme round on either side."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What to measure: our library with the converted model, the baseline with the original one.

    Ours has the `session` that goes with the model, the baseline one with as many threads and for the rest its own
    defaults. Without a baseline, ours alone is measured. `companions` are those of our library.
    """

    model: str
    runner: Path
    library: Path
    ort_model: Path
    baseline_library: Path | None
    onnx_model: Path
    cases: tuple[Case, ...]
    companions: tuple[Path, ...] = ()
    session: SessionSettings = DEFAULT_SESSION
    repetition: Repetition = DEFAULT_REPETITION
    rounds: int = ROUNDS


@dataclass(frozen=True, kw_only=True)
class Round:
    """One process of each library, one right after the other; the baseline's is None when there is none.

    A round of `measure` is good for every measure; a shorter one, made for a verdict in doubt, for those `only`.
    """

    ours: RunnerOutput
    baseline: RunnerOutput | None
    only: frozenset[str] | None = None

    def is_for(self, measure: str) -> bool:
        """Whether it tells of a measure."""
        return self.only is None or measure in self.only


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """All rounds of one model, with `warmup` runs of each case before those that are timed.

    `shorter` ones came after them, where a verdict was in doubt; in these some cases may be missing, or all.
    """

    model: str
    rounds: tuple[Round, ...]
    warmup: int = DEFAULT_REPETITION.warmup
    shorter: tuple[Round, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """Names of the cases."""
        return tuple(case.name for case in self.rounds[0].ours.cases)

    def of(self, measure: str) -> tuple[Round, ...]:
        """Return the rounds that tell of a measure, in their order."""
        return tuple(turn for turn in (*self.rounds, *self.shorter) if turn.is_for(measure))


def measure(device: Device, measurement: Measurement, on_round: Callable[[], None] = lambda: None) -> Rounds:
    """Run both libraries in turn, each time in a process of its own; which goes first alternates.

    `on_round` is called after each round, for a progress bar. Raises what `Device.run` raises.
    """
    rounds = []
    for number in range(measurement.rounds):
        rounds.append(one_round(device, measurement, ours_first=number % 2 == 0))
        on_round()
    return Rounds(model=measurement.model, rounds=tuple(rounds), warmup=measurement.repetition.warmup)


def one_round(device: Device, measurement: Measurement, *, ours_first: bool) -> Round:
    """Run both libraries once. Raises what `Device.run` raises."""
    requests = {"ours": request_of(measurement, measurement.library, measurement.ort_model)}
    if measurement.baseline_library is not None:
        requests["baseline"] = request_of(measurement, measurement.baseline_library, measurement.onnx_model)
    order = tuple(requests) if ours_first else tuple(reversed(requests))
    outputs = {side: device.run(requests[side]) for side in order}
    return Round(ours=outputs["ours"], baseline=outputs.get("baseline"))


def request_of(measurement: Measurement, library: Path, model: Path) -> RunRequest:
    """Return the run of one library; companions and the settings that go with the model are our library's."""
    ours = library == measurement.library
    return RunRequest(
        runner=measurement.runner,
        library=library,
        model=model,
        cases=measurement.cases,
        name=measurement.model,
        companions=measurement.companions if ours else (),
        session=measurement.session if ours else as_the_official(measurement.session),
        repetition=measurement.repetition,
    )


def results(rounds: Rounds, deadline_ms: float | None) -> tuple[RunnerResult, ...]:
    """Sum up all rounds: ours, then the baseline's when there is one. Without a deadline no run misses it."""
    baseline = [turn.baseline for turn in rounds.rounds if turn.baseline is not None]
    return (
        _result("ours", rounds, [turn.ours for turn in rounds.rounds], deadline_ms),
        *([_result("baseline", rounds, baseline, deadline_ms)] if baseline else []),
    )


def missed_runs(run: CaseRun, deadline_ms: float | None) -> int:
    """Count the runs of a case that took longer, input and output included, than the deadline."""
    return 0 if deadline_ms is None else sum(total > deadline_ms for total in run.total_ms)


def _result(
    library: Literal["ours", "baseline"], rounds: Rounds, outputs: list[RunnerOutput], deadline_ms: float | None
) -> RunnerResult:
    memory = [output.memory for output in outputs]
    return RunnerResult(
        library=library,
        model=rounds.model,
        runtime_version=outputs[0].runtime_version,
        warmup=rounds.warmup,
        load_ms=distribution(output.own_load_ms for output in outputs),
        loaded_rss_bytes=_known([use.loaded_rss_bytes for use in memory]),
        peak_rss_bytes=distribution(use.peak_rss_bytes for use in memory),
        inference_peak_rss_bytes=_known([use.inference_peak_rss_bytes for use in memory]),
        peak_source=memory[0].peak_source,
        cases=tuple(
            _timing([output.cases[index] for output in outputs], deadline_ms) for index in range(len(outputs[0].cases))
        ),
    )


def _known(samples: list[int | None]) -> Distribution | None:
    """Sum up what is known in every round: of some rounds alone it would not be comparable."""
    known = [sample for sample in samples if sample is not None]
    return distribution(known) if len(known) == len(samples) else None


def _timing(runs: list[CaseRun], deadline_ms: float | None) -> CaseTiming:
    inference = _joined(run.inference_ms for run in runs)
    total = distribution(_joined(run.total_ms for run in runs))
    counted = () if any(run.instructions is None for run in runs) else _joined(run.instructions or () for run in runs)
    return CaseTiming(
        case=runs[0].name,
        first_run_ms=median([run.first_run_ms for run in runs]),
        input_ms=distribution(_joined(run.input_ms for run in runs)),
        inference_ms=distribution(inference),
        output_ms=distribution(_joined(run.output_ms for run in runs)),
        total_ms=total,
        jitter_ms=total.p99 - total.p50,
        deadline_ms=deadline_ms,
        missed=sum(missed_runs(run, deadline_ms) for run in runs),
        samples_ms=inference,
        instructions=distribution(counted) if counted else None,
    )


def _joined(samples: Iterable[Sequence[float]]) -> tuple[float, ...]:
    return tuple(sample for run in samples for sample in run)


NO_SIZE: Final = LibrarySize(file_bytes=0, loadable_bytes=0, compressed_bytes=0, components=(), largest_symbols=())
TRIAL: Final = Repetition(runs=1, warmup=0)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A library for a target, None when there is none, and its name in reports.

    It is tried first: the official library may not run on the very processor that ours is for
    (microsoft/onnxruntime#23957), and some models only without its optimizations.
    """

    library: Path | None
    name: str


def own_baseline(runtime: FullRuntime) -> Baseline:
    """Return the full runtime's own library, which this machine runs."""
    name = f"onnxruntime {runtime.version} (official wheel)"
    return Baseline(library=runtime.library, name=name)


def without_failing(
    plans: tuple[Measurement, ...], baseline: Baseline, device: Device
) -> tuple[tuple[Measurement, ...], Baseline]:
    """Return the plans, without a baseline where it does not run, and the baseline with that in its name."""
    if baseline.library is None:
        return plans, baseline
    failures = [_failure(plan, baseline.library, device) for plan in plans]
    kept = tuple(
        replace(plan, baseline_library=None) if failure else plan for plan, failure in zip(plans, failures, strict=True)
    )
    said = dict.fromkeys(failure for failure in failures if failure)
    name = "; ".join((baseline.name, *(f"it does not run on {device.name}: {failure}" for failure in said)))
    return kept, replace(baseline, name=name)


def _failure(plan: Measurement, library: Path, device: Device) -> str:
    """Return why the baseline does not run a model there, or nothing."""
    request = request_of(replace(plan, repetition=TRIAL), library, plan.onnx_model)
    try:
        device.run(request)
    except VerifyError as error:
        return f"{error.what} ({error.code})"
    return ""


ONCE: Final = Repetition(runs=1, warmup=0)


def device_folder(name: str) -> str:
    """Return the name of the folder of a device's files; different devices have different ones."""
    return quote(name.replace(":", "_", 1), safe="@")


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


def trace_of(plan: Measurement, device: Device, outputs: Path) -> Path:
    """Run our library once more with the profile of single operators, and return that file, beside the outputs.

    Raises what `Device.run` raises, which sees to it that the file is a trace.
    """
    request = request_of(replace(plan, repetition=ONCE), plan.library, plan.ort_model)
    with storage_errors(outputs), tempfile.TemporaryDirectory(dir=outputs, prefix=".trace-") as name:
        device.run(replace(request, outputs=Path(name), trace=True))
        return (Path(name) / TRACE).replace(outputs / TRACE)


OF_THIS_MACHINE: Final = frozenset({"host", "qemu-user", "qemu-system"})
"""Kinds of devices whose runs take this machine's own cores."""


@contextmanager
def alone(tell: Callable[[str], None]) -> Iterator[None]:
    """Hold what only one of `bench`, `compare` and a verification may hold: two at once would measure each other.

    Waits for another one, which is reported to `tell`.
    """
    with locked(cache_folder("bench") / "machine", partial(tell, "waits for another measurement on this machine")):
        yield


@contextmanager
def in_turn(folder: Path, devices: Sequence[DeviceName], tell: Callable[[str], None]) -> Iterator[None]:
    """Hold, for a verification, the folder of its outputs, and this machine if it runs anything here.

    Waits for another one that does, which is reported to `tell`.
    """
    with ExitStack() as held:
        waits = partial(tell, "waits for another verification in the same folder")
        name = sha256(str(folder.resolve()).encode()).hexdigest()
        held.enter_context(locked(cache_folder("bench") / name, waits))
        if any(device.kind in OF_THIS_MACHINE for device in devices):
            held.enter_context(alone(tell))
        yield
