"""What is measured: the builds of buildspecs, made before, and their models with each choice of settings."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.base.console import Console
from ortrim.buildspec.buildspec import SessionSettings, SessionSpec, settings_of
from ortrim.cli.options import request_from
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.errors import UsageError
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for

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


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build for this machine: its plan and library, and a runner."""

    planned: Planned
    library: Path
    runner: Path


def find_build(spec: Path, console: Console) -> Built:
    """Return the build of a buildspec for this machine. Raises `UsageError` (`not-built`) and as planning does."""
    with tempfile.TemporaryDirectory(prefix="ortrim-session-") as scratch:
        request = request_from(str(spec), output=scratch)
        planned = planned_for(request, console)
        (target,) = planned.plan.targets
        library = _library(target.job, spec)
        with console.step("compile the runner") as step:
            runner = executor_for(planned, target, request, step).run_runner(target.runner)
    return Built(planned=planned, library=library, runner=runner)


def _library(job: BuildJob, spec: Path) -> Path:
    folder = finished_build(job)
    if not folder.is_dir():
        what, hint = "it was not built for this machine", f"run: invoke build -s {spec}"
        raise UsageError("not-built", what, where=str(spec), hint=hint)
    return result_of(folder).library


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
