"""Where the measurement of session settings begins."""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.base.files import storage_errors
from ortrim.base.json import to_json
from ortrim.devices.host import Host
from ortrim.parity.runner import RunnerOutput, RunRequest
from ortrim.verify.measure import DeviceRuns
from session_settings.record import Record, Row, Sample, rows_of, table
from session_settings.subject import CHOICES, WHEEL, Built, find_build, requests_of

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
