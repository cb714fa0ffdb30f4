"""Session settings: what each costs and gains in load time, memory, latency and processor time."""

import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from builds import Built, find_build
from records import table_of, write_results

from ortrim.base.console import Console
from ortrim.buildspec.buildspec import SessionSettings, SessionSpec, settings_of
from ortrim.devices.host import Host
from ortrim.parity.measurements import HostFacts, median, median_interval, quantile
from ortrim.parity.runner import Repetition, RunnerOutput, RunRequest
from ortrim.report.table import Table
from ortrim.verify.measure import DeviceRuns

WHEEL: Final = "wheel"
CHOICES: Final[Mapping[str, SessionSpec]] = MappingProxyType({
    "default": SessionSpec(),
    "load = bytes": SessionSpec(load="bytes"),
    "load = file": SessionSpec(load="file"),
    "in_place = false": SessionSpec(in_place=False),
    "prepacking = false": SessionSpec(prepacking=False),
    "arena = false": SessionSpec(arena=False),
    "memory_pattern = false": SessionSpec(memory_pattern=False),
    "threads = 2": SessionSpec(threads=2),
    "threads = 2, spinning": SessionSpec(threads=2, spinning=True),
    "inter_op_threads = 2": SessionSpec(inter_op_threads=2),
})  # fmt: skip
"""By their names in tables. The official wheel comes before them, with one thread and for the rest its own defaults."""
REPETITION: Final = Repetition(runs=150, warmup=10, seconds=0.7)


MEASURES: Final = ("load_ms", "first_run_ms", "p50_ms", "p99_ms", "loaded_rss_bytes", "peak_rss_bytes", "cpu_ms")


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


HEADINGS: Final = ("model, case", "setting", "load ms", "first run ms", "p50 ms", "p99 ms", "peak MB", "processor ms")
UNITS: Final = {
    "load_ms": 1.0, "first_run_ms": 1.0, "p50_ms": 1.0, "p99_ms": 1.0, "peak_rss_bytes": 1e6, "cpu_ms": 1.0,
}  # fmt: skip
SPECS: Final = tuple(Path("buildspecs") / f"{name}.toml" for name in ("silero-vad", "multi-model", "transformer"))
Run = Callable[[RunRequest], RunnerOutput]


def table(rows: Sequence[Row]) -> Table:
    """Return each model's first case: the medians, and the ratios to the wheel in brackets."""
    shown = [row for _, own in groupby(rows, lambda row: row.model) for row in _first_case(list(own))]
    return table_of(HEADINGS, [(f"{row.model}, {row.case}", row.setting, *_cells(row)) for row in shown], texts=2)


def _first_case(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.case == rows[0].case]


def _cells(row: Row) -> Iterator[str]:
    figures = {figure.measure: figure for figure in row.figures}
    for measure, unit in UNITS.items():
        yield f"{figures[measure].median / unit:.3g} ({figures[measure].ratio:.2f})"


def measure(console: Console, *, specs: Sequence[Path], rounds: int, output: Path) -> Record:
    """Measure all settings with all models of the buildspecs, and write the record and the table of it."""
    builds = [find_build(spec, console) for spec in specs or SPECS]
    record = _measured(builds, rounds, console)
    write_results(output, "session-settings", record, table(record.rows).markdown(), console)
    return record


def requests_of(built: Built) -> Iterator[tuple[str, dict[str, RunRequest]]]:
    """Yield each model's name with its runs, by the names of the settings, the wheel's first."""
    models = built.planned.models
    for prepared, converted, cases in zip(models.prepared, models.converted, built.planned.cases, strict=True):
        ours = RunRequest(
            runner=built.runner, library=built.library, model=converted.path, cases=cases, repetition=REPETITION
        )
        wheel = replace(ours, library=models.runtime.library, model=prepared.path, session=SessionSettings())
        settings = {
            name: settings_of(choice, style=converted.style, reads_in_place=converted.reads_in_place)
            for name, choice in CHOICES.items()
        }
        yield prepared.name, {WHEEL: wheel} | {name: replace(ours, session=each) for name, each in settings.items()}


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
