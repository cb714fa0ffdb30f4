"""Where the measurement of session settings begins."""

import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

from ortrim.base.console import Console
from ortrim.base.files import storage_errors
from ortrim.base.json import to_json
from ortrim.devices.host import Host
from ortrim.parity.measurements import HostFacts, median, median_interval, quantile
from ortrim.parity.runner import RunnerOutput, RunRequest
from ortrim.verify.measure import DeviceRuns
from session_settings.subject import CHOICES, WHEEL, Built, find_build, requests_of

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


SPECS: Final = tuple(Path("buildspecs") / f"{name}.toml" for name in ("silero-vad", "multi-model", "transformer"))
NAME: Final = "session-settings"
Run = Callable[[RunRequest], RunnerOutput]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure and where the record goes; without buildspecs, those of the project."""

    specs: tuple[Path, ...]
    rounds: int
    output: Path


def measure(wanted: Wanted, console: Console) -> Record:
    """Measure all settings with all models of the buildspecs, and write the record and the table of it."""
    builds = [find_build(spec, console) for spec in wanted.specs or SPECS]
    record = _measured(builds, wanted.rounds, console)
    with storage_errors(wanted.output):
        wanted.output.mkdir(parents=True, exist_ok=True)
        (wanted.output / f"{NAME}.json").write_text(to_json(record), encoding="utf-8")
        (wanted.output / f"{NAME}.md").write_text(table(record.rows), encoding="utf-8")
    return record


def _measured(builds: list[Built], rounds: int, console: Console) -> Record:
    host, rows = Host(), list[Row]()
    count = rounds * (1 + len(CHOICES)) * sum(len(built.planned.models.prepared) for built in builds)
    with console.step("measure session settings") as step:
        runs = DeviceRuns(count, step.progress)
        for built in builds:
            for name, requests in requests_of(built):
                rows += rows_of(name, in_turn(host.run, requests, rounds, runs), WHEEL)
    return Record(machine=host.facts(), rounds=rounds, rows=tuple(rows))


def in_turn(run: Run, requests: Mapping[str, RunRequest], rounds: int, runs: DeviceRuns) -> dict[str, list[Sample]]:
    """Run everything once in each round; each round begins with the next name."""
    samples: dict[str, list[Sample]] = {name: [] for name in requests}
    for number in range(rounds):
        first = number % len(requests)
        for name in [*requests][first:] + [*requests][:first]:
            with runs.one(name):
                samples[name].append(_sample(run, requests[name]))
    return samples


def _sample(run: Run, request: RunRequest) -> Sample:
    before = _children_seconds()
    output = run(request)
    return Sample(output=output, cpu_seconds=_children_seconds() - before)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
