"""From rounds to medians and ratios. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from footprint.contenders import UPSTREAM, WHEEL, WHEEL_ORT
from footprint.record import CaseSample, Library, ModelKind, Record, Round, Sample
from ortrim.parity.measurements import Interval, median, median_interval

Figure = Callable[[Sample], float]


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A contender's figure divided by another's, over the rounds; None where one of them was not measured."""

    of_level: Interval | None
    """To the wheel with the converted model, which is optimized as far."""
    of_default: Interval | None
    """To the wheel with the original model, at its default level."""


@dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """One case: medians over the rounds, milliseconds."""

    case: str
    first_run_ms: float
    p50_ms: float
    p99_ms: float
    p50: Ratio


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One contender with one model; `p50` is of the geometric mean over the cases."""

    spec: str
    model: str
    contender: str
    rounds: int
    disturbed: bool
    library: Library | None
    kind: ModelKind | None
    of_upstream: float | None
    load_ms: float
    peak_rss_bytes: float
    load: Ratio
    peak_rss: Ratio
    p50: Ratio
    cases: tuple[CaseSummary, ...]


def summaries(record: Record) -> tuple[Summary, ...]:
    """Return what each contender came to with each model, the newest libraries alone."""
    return tuple(summary for rounds in record.latest() for summary in _contest(record, rounds))


def _contest(record: Record, rounds: Sequence[Round]) -> Iterator[Summary]:
    for contender in sorted((sample.contender for sample in rounds[0].samples), key=_place):
        yield _summary(record, rounds, contender)


def _place(contender: str) -> tuple[int, str]:
    first = (WHEEL, WHEEL_ORT)
    return (first.index(contender) if contender in first else len(first), contender)


def _summary(record: Record, rounds: Sequence[Round], contender: str) -> Summary:
    samples = [sample for each in rounds if (sample := each.of(contender))]
    spec = rounds[0].spec
    libraries = {each.contender: each for each in record.libraries if each.spec == spec}
    own, recipe = libraries.get(contender), libraries.get(UPSTREAM)
    return Summary(
        spec=spec,
        model=rounds[0].model,
        contender=contender,
        rounds=len(samples),
        disturbed=any(each.disturbed for each in rounds),
        library=own,
        kind=next((each for each in record.kinds if (each.spec, each.model) == (spec, rounds[0].model)), None),
        of_upstream=own.file_bytes / recipe.file_bytes if own and recipe else None,
        load_ms=median(sample.load_ms for sample in samples),
        peak_rss_bytes=median(sample.peak_rss_bytes for sample in samples),
        load=_ratio(rounds, contender, lambda sample: sample.load_ms),
        peak_rss=_ratio(rounds, contender, lambda sample: sample.peak_rss_bytes),
        p50=_ratio(rounds, contender, mean_p50),
        cases=tuple(_case(rounds, contender, samples, index) for index in range(len(samples[0].cases))),
    )


def _case(rounds: Sequence[Round], contender: str, samples: Sequence[Sample], index: int) -> CaseSummary:
    own: list[CaseSample] = [sample.cases[index] for sample in samples]
    return CaseSummary(
        case=own[0].case,
        first_run_ms=median(each.first_run_ms for each in own),
        p50_ms=median(each.p50_ms for each in own),
        p99_ms=median(each.p99_ms for each in own),
        p50=_ratio(rounds, contender, lambda sample: sample.cases[index].p50_ms),
    )


def mean_p50(sample: Sample) -> float:
    """Return the geometric mean of the cases: each counts alike, however long it takes."""
    return exp(fsum(log(max(case.p50_ms, 1e-9)) for case in sample.cases) / len(sample.cases))


def _ratio(rounds: Sequence[Round], contender: str, figure: Figure) -> Ratio:
    return Ratio(
        of_level=ratio_between(rounds, contender, WHEEL_ORT, figure),
        of_default=ratio_between(rounds, contender, WHEEL, figure),
    )


def ratio_between(rounds: Sequence[Round], contender: str, other: str, figure: Figure) -> Interval | None:
    pairs = [(each.of(contender), each.of(other)) for each in rounds]
    ratios = [figure(own) / figure(their) for own, their in pairs if own and their and figure(their) > 0]
    return median_interval(ratios) if ratios else None
