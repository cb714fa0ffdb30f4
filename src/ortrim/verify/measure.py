"""Measuring both libraries in turn, so that whatever the machine does besides falls on both alike."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from ortrim.base.cache import cache_folder, locked
from ortrim.binaries.elf import LibrarySize
from ortrim.devices.device import Device, Outcome
from ortrim.devices.kinds import DeviceName
from ortrim.errors import VerifyError
from ortrim.models.full_runtime import FullRuntime
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import CaseTiming, Distribution, RunnerResult, distribution, median
from ortrim.parity.runner import DEFAULT_REPETITION, CaseRun, Repetition, RunnerOutput, RunRequest

ROUNDS: Final = 9
"""From nine on, the interval that holds the true median can leave out the extreme round on either side."""
ONCE: Final = Repetition(runs=1, warmup=0)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What to measure of a model: our library with the converted one, beside the baseline with the original.

    The baseline is None where there is none; then ours alone is measured.
    """

    ours: RunRequest
    baseline: RunRequest | None
    rounds: int = ROUNDS

    @property
    def model(self) -> str:
        """The model's name."""
        return self.ours.name

    def repeated(self, repetition: Repetition, rounds: int, cases: tuple[Case, ...] | None = None) -> "Measurement":
        """Return the same with other repetitions, and of these cases alone."""
        kept = self.ours.cases if cases is None else cases
        ours, baseline = (
            each and replace(each, repetition=repetition, cases=kept) for each in (self.ours, self.baseline)
        )
        assert ours is not None
        return Measurement(ours=ours, baseline=baseline, rounds=rounds)


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


OnProgress = Callable[[int, int, str], None]
"""Called with the number of runs done, of how many, and what is done next."""


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


@dataclass(frozen=True, kw_only=True)
class Run:
    """One process of the runner: what it is asked for, what is shown meanwhile, and what takes note of its end.

    `note` raises when nothing can go on after such an end. `steps` is how much it counts for in a progress bar.
    """

    request: RunRequest
    text: str
    note: Callable[[Outcome], None]
    steps: int = 1


def carry_out(device: Device, runs: Iterable[Run], progress: DeviceRuns) -> None:
    """Run everything on a device, which takes each run when it is its turn, or all of them first."""
    waiting: deque[Run] = deque()

    def requests() -> Iterator[RunRequest]:
        for run in runs:
            if not waiting:
                progress.doing(run.text)
            waiting.append(run)
            yield run.request

    for ended in device.run_all(requests()):
        run = waiting.popleft()
        run.note(ended)
        if run.steps:
            progress.done(run.text)
        if waiting:
            progress.doing(waiting[0].text)


class Measuring:
    """The rounds of one model: which runs these are, and what they ended with.

    The official library may not run on the very processor that ours is for (microsoft/onnxruntime#23957), and some
    models only without its optimizations: it is tried first, and `refusal` says why it is then left out.
    """

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self.refusal = ""
        self.left_out = False
        """Whether ours does not run the model, so that what was asked for all the same means nothing."""
        self._whole: list[Round] = []
        self._shorter: list[Round] = []

    @property
    def is_whole(self) -> bool:
        """Whether all rounds that were planned have ended."""
        return len(self._whole) >= self.measurement.rounds

    @property
    def rounds(self) -> Rounds:
        """What has ended by now."""
        return Rounds(
            model=self.measurement.model,
            rounds=tuple(self._whole),
            warmup=self.measurement.ours.repetition.warmup,
            shorter=tuple(self._shorter),
        )

    def trial(self) -> Iterator[Run]:
        """Yield the run that shows whether the baseline runs there."""
        if self.measurement.baseline is not None:
            request = replace(self.measurement.baseline, repetition=ONCE)
            yield Run(request=request, text=self._text, note=self._tried, steps=0)

    def runs(self) -> Iterator[Run]:
        """Yield those of all rounds: both libraries in turn; which goes first alternates."""
        for number in range(self.measurement.rounds):
            yield from self.one_round(self.measurement, number)

    def one_round(
        self, measurement: Measurement, number: int, only: frozenset[str] | None = None, text: str = ""
    ) -> Iterator[Run]:
        """Yield the runs of one round, of the whole measurement or of what tells of the measures `only`."""
        sides: dict[str, RunRequest] = {"ours": measurement.ours}
        if measurement.baseline is not None and not self.refusal:
            sides["baseline"] = measurement.baseline
        ended: dict[str, RunnerOutput] = {}

        def note(side: str, outcome: Outcome) -> None:
            if self.left_out or (self.refusal and side == "baseline"):
                return
            if isinstance(outcome, VerifyError):
                raise outcome
            ended[side] = outcome
            if side == last or self.refusal:
                found = Round(ours=ended["ours"], baseline=ended.get("baseline"), only=only)
                (self._shorter if only else self._whole).append(found)

        order = tuple(sides) if number % 2 == 0 else tuple(reversed(sides))
        last = order[-1]
        for side in order:
            steps = int(only is None and side == last)
            yield Run(request=sides[side], text=text or self._text, note=partial(note, side), steps=steps)

    @property
    def _text(self) -> str:
        return f"measuring {self.measurement.model}"

    def _tried(self, outcome: Outcome) -> None:
        self.refusal = f"{outcome.what} ({outcome.code})" if isinstance(outcome, VerifyError) else ""


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


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A library for a target, None when there is none, and its name in reports."""

    library: Path | None
    name: str


def own_baseline(runtime: FullRuntime) -> Baseline:
    """Return the full runtime's own library, which this machine runs."""
    return Baseline(library=runtime.library, name=f"onnxruntime {runtime.version} (official wheel)")


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
        if any(device.row.is_here for device in devices):
            held.enter_context(alone(tell))
        yield
