"""Judging measurements by budgets, with further rounds where a verdict is in doubt, as long as there is time."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from ortrim.base.command import signal_name
from ortrim.binaries.elf import LibrarySize
from ortrim.buildspec.buildspec import Budgets
from ortrim.errors import Diagnostic
from ortrim.parity.measurements import (
    ERROR,
    Comparison,
    Distribution,
    Interval,
    OutputParity,
    Unit,
    Verdict,
    distribution,
    median,
    median_interval,
)
from ortrim.parity.runner import CaseRun, Repetition, RunnerEnded, RunnerOutput
from ortrim.verify.measure import ONCE, Measuring, Rounds, Run, missed_runs
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceFailure, DeviceReport

PEAK: Final = "peak RSS"
LOAD: Final = "load"
P50: Final = "latency p50"
P99: Final = "latency p99"
INSTRUCTIONS: Final = "instructions"
MISSED: Final = "missed deadlines"
LOOKS: Final = (9, 18, 36, 72, 144, 288, 576)
"""After how many rounds a verdict may be given; each look is another chance to err."""
PASS_ERRORS: Final = (0.0196, 0.005)
FAIL_ERRORS: Final = (0.002, 0.005)
"""How likely the true median is over an interval, or under it, at the first look and at each later one but the last.

The last look, which comes when time is over, has what is left of `ERROR`. Few rounds that are alike are often so for
another reason: only all of the first nine fail a budget.
"""

Reading = Callable[[RunnerOutput], float | None]
MakeInterval = Callable[[Sequence[float]], Interval]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One quantity of one library against the baseline's: the values, their ratio, and how sure both are."""

    measure: str
    model: str
    case: str = ""
    unit: Unit
    ours: Interval
    baseline: float | None
    ratio: Interval | None


def size_of(measure: str, ours: int, baseline: int | None) -> Quantity:
    """Return a size in bytes, of no model. A baseline of 0 bytes is none."""
    return Quantity(
        measure=measure,
        model="",
        unit="bytes",
        ours=median_interval([ours]),
        baseline=baseline or None,
        ratio=median_interval([ours / baseline]) if baseline else None,
    )


def peak_memory(rounds: Rounds) -> Quantity:
    """Return the most memory that the process ever had resident."""
    return _measured(PEAK, rounds, "bytes", lambda output: output.memory.peak_rss_bytes)


def load_time(rounds: Rounds) -> Quantity:
    """Return the time that creating the session took, without what others on the machine took of it."""
    return _measured(LOAD, rounds, "ms", lambda output: output.own_load_ms)


def latencies(measure: str, rounds: Rounds, read: Callable[[Distribution], float]) -> list[Quantity]:
    """Return a figure of each case's inferences, one quantity for each case."""
    return _of_cases(measure, rounds, "ms", lambda case: read(distribution(case.inference_ms)))


def instructions(rounds: Rounds) -> list[Quantity]:
    """Return how many instructions each case's inference takes; none where the machine does not count them."""
    if any(case.instructions is None for turn in rounds.rounds for case in turn.ours.cases):
        return []
    return _of_cases(
        INSTRUCTIONS, rounds, "instructions", lambda case: median(case.instructions) if case.instructions else None
    )


def missed_deadlines(rounds: Rounds, deadline_ms: float) -> list[Quantity]:
    """Return how many runs of one process missed the deadline, one quantity for each case, without a ratio.

    The baseline's number tells a machine that stalls; a ratio of two numbers of which one is mostly 0 tells nothing.
    """
    missed = _of_cases(MISSED, rounds, "runs", lambda case: missed_runs(case, deadline_ms), median_interval)
    return [replace(quantity, ratio=None) for quantity in missed]


def _of_cases(
    measure: str,
    rounds: Rounds,
    unit: Unit,
    read: Callable[[CaseRun], float | None],
    interval: MakeInterval | None = None,
) -> list[Quantity]:
    def of_case(name: str) -> Reading:
        return lambda output: next((read(case) for case in output.cases if case.name == name), None)

    interval = interval or _interval_of(len(rounds.cases))
    return [replace(_measured(measure, rounds, unit, of_case(case), interval), case=case) for case in rounds.cases]


def _measured(
    measure: str, rounds: Rounds, unit: Unit, read: Reading, interval: MakeInterval | None = None
) -> Quantity:
    """Return a quantity read from each round; the ratio is taken round by round, since a round's noise is shared."""
    interval = interval or _interval_of(1)
    turns = [(read(turn.ours), read(turn.baseline) if turn.baseline else None) for turn in rounds.of(measure)]
    pairs = [(one, other) for one, other in turns if one is not None and other is not None]
    ratios = [one / other for one, other in pairs if other > 0]
    return Quantity(
        measure=measure,
        model=rounds.model,
        unit=unit,
        ours=interval([one for one, _ in turns if one is not None]),
        baseline=median(other for _, other in pairs) if pairs else None,
        ratio=interval(ratios) if ratios else None,
    )


def _interval_of(chances: int) -> MakeInterval:
    """Return how to judge one of so many quantities of which one alone fails a budget: each as often less by chance."""

    def interval(samples: Sequence[float]) -> Interval:
        below, above = (_error(len(samples), errors) for errors in (FAIL_ERRORS, PASS_ERRORS))
        return median_interval(samples, below=below / chances, above=above)

    return interval


def _error(count: int, errors: tuple[float, float]) -> float:
    """Return how likely an interval of so many rounds may be wrong, given what earlier looks have left of `ERROR`."""
    first, later = errors
    earlier = [first, *(later,) * len(LOOKS)][: sum(look < count for look in LOOKS)]
    if count in LOOKS[:-1]:
        return later if earlier else first
    return ERROR - sum(earlier)


SEVERITY: Final = (Verdict.NOT_JUDGED, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
RESOLUTION: Final = 0.002
"""By how much two copies of one library may differ for good, since the page cache holds them otherwise."""
NO_BASELINE: Final = "there is no baseline to compare with"
UNCOUNTED: Final = "instructions: this machine counts none; a qemu-system device does"


def lines_of(quantities: Sequence[Quantity], absolute: float | None, ratio: float | None) -> list[Comparison]:
    """Return one line for each budget, one not judged without any; of several cases, the one that stands worst."""
    if not quantities:
        return []
    judged: list[Comparison] = []
    if ratio is not None:
        judged.append(_worst([_comparison(quantity, ratio, is_ratio=True) for quantity in quantities]))
    if absolute is not None:
        judged.append(_worst([_comparison(quantity, absolute, is_ratio=False) for quantity in quantities]))
    return judged or [_worst([_comparison(quantity, None, is_ratio=False) for quantity in quantities])]


def in_doubt(quantities: Sequence[Quantity], absolute: float | None, ratio: float | None) -> list[Quantity]:
    """Return those whose verdict further rounds may settle, unless another one's has failed the line already."""
    found: list[Quantity] = []
    for budget, is_ratio in ((ratio, True), (absolute, False)):
        lines = [_comparison(quantity, budget, is_ratio=is_ratio) for quantity in quantities]
        if all(line.verdict is not Verdict.FAIL for line in lines):
            judged = zip(quantities, lines, strict=True)
            open_ones = (quantity for quantity, line in judged if line.verdict is Verdict.INCONCLUSIVE)
            found += [quantity for quantity in open_ones if quantity.ratio or not is_ratio]
    return found


def _worst(lines: list[Comparison]) -> Comparison:
    def standing(line: Comparison) -> tuple[int, float]:
        absolute = line.budget is not None and not line.budget_is_ratio
        return SEVERITY.index(line.verdict), line.ours if absolute else line.ratio or 0.0

    return max(lines, key=standing)


def _comparison(quantity: Quantity, budget: float | None, *, is_ratio: bool) -> Comparison:
    incomparable = is_ratio and quantity.baseline is None
    judged = None if incomparable else budget
    interval = quantity.ratio if is_ratio else quantity.ours
    return Comparison(
        measure=quantity.measure,
        model=quantity.model,
        case=quantity.case,
        unit=quantity.unit,
        ours=quantity.ours.median,
        baseline=quantity.baseline,
        ratio=quantity.ratio.median if quantity.ratio else None,
        spread=_spread(quantity.ratio, judged if is_ratio else None) if quantity.ratio and quantity.model else None,
        budget=budget,
        budget_is_ratio=is_ratio,
        verdict=_verdict(interval, quantity.unit, judged, RESOLUTION if quantity.model else 0.0),
        reason=NO_BASELINE if incomparable else "",
    )


def _spread(interval: Interval, budget: float | None) -> float:
    """Return how far the interval reaches towards the budget, so that the verdict can be followed: 107 % ± 3."""
    if budget is None or interval.median <= 0:
        return interval.spread
    return abs((interval.low if interval.median > budget else interval.high) / interval.median - 1)


def _verdict(interval: Interval | None, unit: Unit, budget: float | None, resolution: float) -> Verdict:
    """Judge one value; a ratio without a baseline cannot be judged, which must not pass for a pass.

    What is measured fails when it is over the budget by more than `resolution`, a share of it.
    """
    if budget is None:
        return Verdict.NOT_JUDGED
    if interval is None:
        return Verdict.INCONCLUSIVE
    most = interval.median if unit == "runs" else interval.high  # a stall of the machine is no missed deadline
    if most <= budget:
        return Verdict.PASS
    return Verdict.INCONCLUSIVE if interval.low <= budget * (1 + resolution) else Verdict.FAIL


MAY_MISS: Final = 0.0


@dataclass(frozen=True, kw_only=True)
class NotMeasurable:
    """Why memory, or time, of the device says nothing of a real machine; empty when it does."""

    memory: str = ""
    time: str = ""


ALL_MEASURABLE: Final = NotMeasurable()


def library_comparisons(
    budgets: Budgets, size: LibrarySize, baseline_size: LibrarySize, package_bytes: int
) -> tuple[Comparison, ...]:
    """Return the lines of the library and the package: sizes, which are exact. A baseline of 0 bytes is none."""
    library = size_of("library", size.file_bytes, baseline_size.file_bytes)
    compressed = size_of("library compressed", size.compressed_bytes, baseline_size.compressed_bytes)
    return (
        *lines_of([library], budgets.library_bytes, budgets.library_ratio),
        *lines_of([compressed], None, None),
        *lines_of([size_of("package", package_bytes, None)], None, None),
    )


def model_comparisons(
    budgets: Budgets, measured: tuple[Rounds, ...], not_measurable: NotMeasurable = ALL_MEASURABLE
) -> tuple[Comparison, ...]:
    """Return a line for each budget that is given, and one not judged for each measure without any, for each model.

    What is measured varies from round to round: it passes when the whole interval that holds the true median is within
    the budget, fails when all of it is beyond, and is inconclusive otherwise. Either is wrong in at most 5 % of the
    runs in which the truth is just on the other side. Latency and deadlines are judged for the case that stands worst.
    A deadline is missed when in most rounds some run takes longer; whether that is so in enough rounds to be sure, the
    interval says too. Without a deadline there is no line for it. What is not_measurable on the device is not judged,
    and its line says why; so does a ratio without a baseline.
    """
    return tuple(line for rounds in measured for line in _lines(budgets, rounds, not_measurable))


def doubt_of(
    budgets: Budgets, rounds: Rounds, not_measurable: NotMeasurable = ALL_MEASURABLE
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the measures of one model that further rounds may settle, and the cases whose median latency they may.

    What only long runs tell, as deadlines do, is not among them.
    """
    asked: tuple[tuple[str, Callable[[], list[Quantity]], float | None, float | None, str], ...] = (
        (PEAK, lambda: [peak_memory(rounds)], budgets.peak_rss_bytes, budgets.peak_rss_ratio, not_measurable.memory),
        (LOAD, lambda: [load_time(rounds)], budgets.load_ms, budgets.load_ratio, not_measurable.time),
        (P50, lambda: _medians(rounds), budgets.p50_ms, budgets.p50_ratio, not_measurable.time),
    )
    found = {
        measure: in_doubt(quantities(), absolute, ratio)
        for measure, quantities, absolute, ratio, reason in asked
        if not reason and (absolute is not None or ratio is not None)
    }
    measures = frozenset(measure for measure, quantities in found.items() if quantities)
    return measures, frozenset(quantity.case for quantity in found.get(P50, ()))


def _medians(rounds: Rounds) -> list[Quantity]:
    return latencies(P50, rounds, lambda spread: spread.p50)


def _lines(budgets: Budgets, rounds: Rounds, not_measurable: NotMeasurable) -> list[Comparison]:
    memory = lines_of([peak_memory(rounds)], budgets.peak_rss_bytes, budgets.peak_rss_ratio)
    times = [
        *lines_of([load_time(rounds)], budgets.load_ms, budgets.load_ratio),
        *lines_of(_medians(rounds), budgets.p50_ms, budgets.p50_ratio),
        *lines_of(latencies(P99, rounds, lambda spread: spread.p99), budgets.p99_ms, None),
    ]
    if budgets.deadline_ms is not None:
        times += lines_of(missed_deadlines(rounds, budgets.deadline_ms), MAY_MISS, None)
    return [
        *_unless(not_measurable.memory, memory),
        *_unless(not_measurable.time, times),
        *_counted(budgets, rounds),
    ]


def _counted(budgets: Budgets, rounds: Rounds) -> list[Comparison]:
    """Return the lines of instructions; where none are counted, those that a budget asks for, without a figure."""
    absolute, ratio = budgets.instructions, budgets.instructions_ratio
    if counted := instructions(rounds):
        return lines_of(counted, absolute, ratio)
    if absolute is None and ratio is None:
        return []
    none = replace(size_of(INSTRUCTIONS, 0, None), model=rounds.model, unit="instructions")
    return _unless(UNCOUNTED, lines_of([none], absolute, ratio))


def _unless(reason: str, lines: list[Comparison]) -> list[Comparison]:
    """Return the lines, not judged when there is a reason against it."""
    return [replace(line, verdict=Verdict.NOT_JUDGED, reason=reason) for line in lines] if reason else lines


def overall(verdicts: Iterable[Verdict], proofs: Iterable[Verdict]) -> Verdict:
    """Return the verdict on everything, given those on budgets and gates, and the `proofs` of parity.

    One failure fails. Doubt about a budget does not, but a proof that is inconclusive leaves everything so, and without
    any proof nothing is judged.
    """
    proved = set(proofs) - {Verdict.NOT_JUDGED}
    if Verdict.FAIL in {*verdicts, *proved}:
        return Verdict.FAIL
    if Verdict.INCONCLUSIVE in proved:
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if proved else Verdict.NOT_JUDGED


def parity_of(outputs: Iterable[OutputParity]) -> Verdict:
    """Return the verdict on the outputs of one model: inconclusive when none of them could be judged."""
    found = {output.verdict for output in outputs}
    if Verdict.FAIL in found:
        return Verdict.FAIL
    return Verdict.PASS if Verdict.PASS in found else Verdict.INCONCLUSIVE


class Beginning:
    """When devices began to be opened."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._clock = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long ago that was."""
        return time.monotonic() - self._clock


def failed_device(
    device: str,
    baseline: str,
    error: Diagnostic,
    began: Beginning | None = None,
    *,
    url: str = "",
    log: str | None = None,
) -> DeviceReport:
    """Return the report of a device that gave nothing but a diagnostic: failed, unless the target was not for it."""
    exit_code, signal = ended_with(error)
    return DeviceReport(
        device=device,
        run_id=str(uuid.uuid4()),
        started=began.started if began else "",
        duration_s=began.seconds if began else 0.0,
        exit_code=exit_code,
        signal=signal,
        provider_url=url or None,
        log=log,
        host=None,
        baseline=baseline,
        comparisons=(),
        parity=(),
        runs=(),
        failure=failure_of(error),
        verdict=Verdict.NOT_JUDGED if error.code == NOT_FOR_DEVICE else Verdict.FAIL,
    )


def failure_of(error: Diagnostic, model: str = "") -> DeviceFailure:
    """Return a diagnostic as reports have it: of a device, or of one model there."""
    return DeviceFailure(
        code=error.code,
        what=error.what,
        where=error.where,
        why=error.why,
        hint=error.hint,
        exit_code=int(error.exit_code),
        model=model,
    )


def ended_with(error: Diagnostic) -> tuple[int | None, str | None]:
    """Return the exit code, or the signal, with which the runner ended; neither if it was not the runner."""
    code = error.returncode if isinstance(error, RunnerEnded) else None
    if code is None:
        return None, None
    return (code, None) if code >= 0 else (None, signal_name(code))


SHORT: Final = Repetition(runs=20, warmup=3, seconds=0.25)
"""Many short rounds are more precise than few long ones: the machine changes less within a round."""
MOST_SECONDS: Final = 90.0


def settling(
    measuring: Measuring,
    budgets: Budgets,
    *,
    not_measurable: Callable[[], NotMeasurable] = lambda: ALL_MEASURABLE,
    most_seconds: float = MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Run]:
    """Yield the runs of further rounds that settle verdicts on median latency, memory and loading of one model.

    The number of rounds is doubled as long as one of these is inconclusive, and `most_seconds` are not over. A round
    runs no more than what is in doubt needs.
    """
    until = clock() + most_seconds
    for done, wanted in pairwise(LOOKS):
        measures, slow = doubt_of(budgets, measuring.rounds, not_measurable())
        if not measures or clock() >= until:
            break
        text = f"{measuring.measurement.model}: {' and '.join(sorted(measures))} in doubt, {wanted} rounds"
        # The peak of memory needs every case, loading none.
        cases = measuring.measurement.ours.cases
        needed = tuple(case for case in cases if PEAK in measures or case.name in slow)
        repetition = SHORT if P50 in measures else ONCE
        plan = measuring.measurement.repeated(repetition, measuring.measurement.rounds, needed)
        for number in range(done, wanted):
            if clock() >= until:
                break
            yield from measuring.one_round(plan, number, measures, text)
