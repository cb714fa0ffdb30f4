"""What was measured of session settings: medians, their ratios to the official wheel, and the table of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from ortrim.parity.measurements import HostFacts, median, median_interval, quantile
from ortrim.parity.runner import RunnerOutput

MEASURES: Final = ("load_ms", "first_run_ms", "p50_ms", "p99_ms", "loaded_rss_bytes", "peak_rss_bytes", "cpu_ms")
MEGABYTE: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class Sample:
    output: RunnerOutput
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The median over the rounds, half the width of its 90 % interval as a share of it, and the ratio to the wheel's.

    The ratio is the median of those of the rounds.
    """

    measure: str
    median: float
    spread: float
    ratio: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting with one case of a model; loading, memory and processor time are those of the whole process."""

    model: str
    case: str
    setting: str
    figures: tuple[Figure, ...]

    def ratio(self, measure: str) -> float:
        return next(figure.ratio for figure in self.figures if figure.measure == measure)


@dataclass(frozen=True, kw_only=True)
class Record:
    schema: Literal["ortrim-session-settings/1"] = "ortrim-session-settings/1"
    machine: HostFacts
    rounds: int
    rows: tuple[Row, ...]


def rows_of(model: str, samples: Mapping[str, Sequence[Sample]], wheel: str) -> list[Row]:
    cases = range(len(samples[wheel][0].output.cases))
    return [
        Row(
            model=model,
            case=samples[wheel][0].output.cases[case].name,
            setting=setting,
            figures=tuple(_figure(measure, runs, samples[wheel], case) for measure in MEASURES),
        )
        for case in cases
        for setting, runs in samples.items()
    ]


def _figure(measure: str, runs: Sequence[Sample], wheel: Sequence[Sample], case: int) -> Figure:
    ours, theirs = ([_value(measure, sample, case) for sample in each] for each in (runs, wheel))
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    interval = median_interval(ours)
    return Figure(measure=measure, median=interval.median, spread=interval.spread, ratio=median(ratios))


def _value(measure: str, sample: Sample, case: int) -> float:
    output, run = sample.output, sample.output.cases[case]
    times = sorted(run.total_ms)
    values: dict[str, float] = {
        "load_ms": output.load_ms,
        "first_run_ms": run.first_run_ms,
        "p50_ms": quantile(times, 0.5),
        "p99_ms": quantile(times, 0.99),
        "loaded_rss_bytes": output.memory.loaded_rss_bytes or 0,
        "peak_rss_bytes": output.memory.peak_rss_bytes,
        "cpu_ms": sample.cpu_seconds * 1e3,
    }
    return values[measure]


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table: for each model's first case the medians, and the ratios to the wheel in brackets."""
    head = "| model, case | setting | load ms | first run ms | p50 ms | p99 ms | peak MB | processor ms |\n"
    lines = [head, "|---|---|---|---|---|---|---|---|\n"]
    for _, group in groupby(rows, key=lambda row: row.model):
        own = list(group)
        lines += [_line(row) for row in own if row.case == own[0].case]
    return "".join(lines)


def _line(row: Row) -> str:
    shown = {figure.measure: figure for figure in row.figures}
    wanted = (("load_ms", 1), ("first_run_ms", 1), ("p50_ms", 1), ("p99_ms", 1), ("peak_rss_bytes", MEGABYTE))
    cells = [_cell(shown[measure], unit) for measure, unit in (*wanted, ("cpu_ms", 1))]
    return f"| {row.model}, {row.case} | {row.setting} | {' | '.join(cells)} |\n"


def _cell(figure: Figure, unit: float) -> str:
    return f"{figure.median / unit:.3g} ({figure.ratio:.2f})"
