"""The time of each operator in one inference: `profile` shows it, `hot` names the operators that take most of it."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from ortrim.base.console import Console, Step, counted, printable
from ortrim.base.files import require_writable, write_atomically
from ortrim.bench.run import BenchedModel, base_point, request_at, subject_of
from ortrim.buildspec.buildspec import BLOCKS
from ortrim.devices.host import Host
from ortrim.models.hot_operators import HOT_SHARE, RankedOperator, hot_file, named_in, ranked, render_hot, shares_of
from ortrim.models.operators import RequiredOperators, parse_config
from ortrim.parity.runner import TRACE, Repetition, RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_here
from ortrim.planning.request import Request, require_known
from ortrim.report.figures import ms_text, share_text
from ortrim.report.table import Columns, Table, ranking
from ortrim.verify import operator_times
from ortrim.verify.measure import DeviceRuns, own_baseline
from ortrim.verify.operator_times import time_operators

FOLDER: Final = "profile"
"""Where traces lie, in the folder of packages and reports."""
RUNS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """One profile, and the file with its inference of median length, which opens in Perfetto."""

    profile: operator_times.OperatorProfile
    trace: Path


def profiles_of(
    request: Request, library: str, names: Sequence[str], runs: int, console: Console
) -> tuple[Profiled, ...]:
    """Run each case of each model, or those of these names, on this machine with a profile."""
    folder = request.output / FOLDER
    require_writable(folder)
    subject = subject_of(request, library, console)
    known = tuple(dict.fromkeys(each.name for cases in subject.planned.cases for each in cases))
    require_known("no-such-case", "--case", names, known)
    wanted = tuple(_requests(subject, names, runs))
    host, found = Host(request.cores), []
    with console.step("profile") as step:
        progress = DeviceRuns(len(wanted), step.progress)
        for model, run in wanted:
            name = run.cases[0].name
            with progress.one(f"{model}, {name}"):
                events = _events(host, run, f"{model}, {name}")
            profile = operator_times.profiled(events, model=model, case=name, measured_with=subject.library.name)
            found.append(_kept(profile, events, folder / f"{model}-{name}.trace.json"))
    return tuple(found)


def profile_of_trace(trace: Path, output: Path) -> Profiled:
    """Read a trace that was made before: on a device by `invoke verify --trace`, by the runner or by ONNX Runtime."""
    events = operator_times.read_trace(trace, str(trace))
    profile = operator_times.profiled(events, model=trace.stem, case="", measured_with=str(trace))
    return _kept(profile, events, output / FOLDER / f"{trace.stem}.trace.json")


def _requests(subject: BenchedModel, names: Sequence[str], runs: int) -> Iterator[tuple[str, RunRequest]]:
    for number, model in enumerate(subject.planned.models.prepared):
        for each in subject.planned.cases[number]:
            if not names or each.name in names:
                request = request_at(subject, number, base_point(subject, number), (each,))
                yield model.name, replace(request, repetition=Repetition(runs=runs, warmup=1, seconds=60.0))


def _events(host: Host, request: RunRequest, where: str) -> list[operator_times.Event]:
    with tempfile.TemporaryDirectory(prefix="ortrim-profile-") as scratch:
        host.run(replace(request, outputs=Path(scratch), trace=True))
        return operator_times.read_trace(Path(scratch) / TRACE, where)


def _kept(profile: operator_times.OperatorProfile, events: Sequence[operator_times.Event], path: Path) -> Profiled:
    title = f"{profile.model} {profile.case}".strip()
    write_atomically(path, json.dumps(operator_times.one_inference(events, title)) + "\n")
    return Profiled(profile=profile, trace=path)


TOP: Final = 10
BAR_CELLS: Final = 16
Ranked = operator_times.OperatorTime | operator_times.NodeTime


def profile_tables(profile: operator_times.OperatorProfile, top: int | None) -> RenderableType:
    """Return the `top` operators and nodes by their time in one inference; it fits 80 columns."""
    most = top or TOP
    title = printable(f"{profile.model}, {profile.case}" if profile.case else profile.model)
    operators, nodes = (
        ranking(noun, ("time", "share", "", "calls"), found, most, partial(_cells, found))
        for noun, found in (("operator", profile.operators), ("node", profile.nodes))
    )
    return Group(Text(title, "bold"), Text(_about(profile), "dim"), Text(), operators, Text(), nodes)


def microseconds_text(value: float) -> str:
    """Write microseconds: `12.5 µs`, `3.20 ms`."""
    return ms_text(value / 1e3) if value >= 1000 else f"{ms_text(value).removesuffix(' ms')} µs"


def _about(profile: operator_times.OperatorProfile) -> str:
    nodes = sum(node.microseconds for node in profile.nodes)
    of = f"{microseconds_text(nodes)} in nodes of {microseconds_text(profile.run_microseconds)} for an inference"
    return printable(f"{profile.measured_with}; median of {counted(profile.inferences, 'inference')}: {of}")


def _cells(ranked: Sequence[Ranked], found: Sequence[Ranked], *, alone: bool) -> tuple[RenderableType, ...]:
    time, share = sum(each.microseconds for each in found), sum(each.share for each in found)
    calls = sum(each.calls for each in found)
    said = f"{calls:,.0f}" if calls == round(calls) else f"{calls:,.1f}"
    bar = ProgressBar(total=ranked[0].share or 1.0, completed=share, width=BAR_CELLS, complete_style="cyan")
    return microseconds_text(time), share_text(share), bar if alone else "", said


ROUNDS: Final = 3
"""How many processes each case is run in."""
HOT_RUNS: Final = 20
"""How often a process runs its case: a trace holds some 150,000 kernels."""
Timed = Callable[[RunRequest], dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class HotOperators:
    """What was measured, and with what: the operators of all models, and the file that names the hot ones."""

    file: Path
    measured_with: str
    operators: tuple[RankedOperator, ...]


def find_hot(request: Request, console: Console, runs: int = HOT_RUNS) -> HotOperators:
    """Run a buildspec's models on this machine with the official library's profile; write the hot operators beside it.

    Raises as planning, `time_operators` and writing do; the file then stays as it was.
    """
    file = hot_file(request.spec)
    require_writable(file.parent, option="")
    planned = planned_here(request, console)
    with console.step("compile the runner") as step:
        runner = _runner(planned, request, step)
    host = Host()
    measured_with = f"{own_baseline(planned.models.runtime).name}, on {host.facts().cpu}, {datetime.now(UTC):%Y-%m-%d}"
    with console.step("measure operators") as step, tempfile.TemporaryDirectory(prefix="ortrim-hot-") as scratch:
        shares = _shares(planned, runner, runs, lambda each: time_operators(host, each, Path(scratch)), step)
    operators = ranked(shares)
    write_atomically(file, render_hot(operators, _hot_about(request.spec, measured_with)))
    return HotOperators(file=file, measured_with=measured_with, operators=operators)


def _runner(planned: Planned, request: Request, step: Step) -> Path:
    (target,) = planned.plan.targets
    return executor_for(planned, target, request, step).run_runner(target.runner)


def _hot_about(spec: Path, measured_with: str) -> tuple[str, ...]:
    return (
        f"The operators in which the models of {spec.name} spend {100 * HOT_SHARE:.0f} % of their time, each with",
        "its part of that of the model in which it is largest. A build compiles their kernels for speed",
        "and all others for size. `ortrim hot` has written this file.",
        f"Measured with {measured_with}.",
    )


def _shares(planned: Planned, runner: Path, runs: int, timed: Timed, step: Step) -> dict[str, dict[str, float]]:
    progress = DeviceRuns(ROUNDS * sum(map(len, planned.cases)), step.progress)
    shares = {}
    for number, converted in enumerate(planned.models.converted):
        operators, cases = parse_config(converted.config), []
        for request in _hot_requests(planned, number, runner, runs):
            for _ in range(ROUNDS):
                with progress.one(f"{converted.name}, {request.cases[0].name}"):
                    cases.append(_with_domains(timed(request), operators))
        shares[converted.name] = shares_of(cases)
    return shares


def _hot_requests(planned: Planned, number: int, runner: Path, runs: int) -> tuple[RunRequest, ...]:
    """Return a run of each case of a model, with one thread, so that no two operators share a moment."""
    models = planned.models
    # The full runtime runs no NCHWc layout but with its processor's own block size, to which it changes a model itself.
    in_nchwc = planned.plan.models[number].layout in BLOCKS
    model = (models.prepared if in_nchwc else models.converted)[number].path
    session = replace(planned.plan.models[number].session, threads=1, inter_op_threads=1)
    return tuple(
        RunRequest(
            runner=runner,
            library=models.runtime.library,
            model=model,
            cases=(case,),
            session=session,
            repetition=Repetition(runs=runs, warmup=1),
        )
        for case in planned.cases[number]
    )


def _with_domains(times: Mapping[str, float], operators: RequiredOperators) -> dict[str, float]:
    """Name operators with their domains, which a profile does not have; of two of one name, each has the time."""
    return {operator: time for name, time in times.items() for operator in named_in(name, operators)}


def hot_table(operators: Sequence[RankedOperator]) -> RichTable:
    """Return every operator with its largest part of a model's time, the hot ones in bold."""
    rows = [
        tuple(
            Text(printable(word), "bold" if each.hot else "dim")
            for word in (each.operator, share_text(each.share), "hot" if each.hot else "", each.model)
        )
        for each in operators
    ]
    headings: Columns = (("operator", "text"), ("share", "number"), ("", "short"), ("model", "text"))
    return Table(columns=headings, rows=rows).terminal()
