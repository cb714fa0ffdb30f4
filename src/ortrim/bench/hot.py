"""Finding the operators that a buildspec's models spend their time in, and naming them beside it.

- The operators that models spend their time in, as a compact table for the terminal and plain logs.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from ortrim.base.console import Console, Step, printable
from ortrim.base.files import require_writable, write_atomically
from ortrim.devices.host import Host
from ortrim.models.hot_operators import HOT_SHARE, RankedOperator, hot_file, named_in, ranked, render_hot, shares_of
from ortrim.models.operators import RequiredOperators, parse_config
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.pipeline.executors import executor_for
from ortrim.planning.planned import Planned, planned_here
from ortrim.planning.planner import BLOCKS
from ortrim.planning.request import Request
from ortrim.report.figures import plain_table, share_text
from ortrim.verify.measure import DeviceRuns, own_baseline
from ortrim.verify.operator_times import time_operators

ROUNDS: Final = 3
"""How many processes each case is run in."""
RUNS: Final = 20
"""How often a process runs its case: a trace holds some 150,000 kernels."""
Timed = Callable[[RunRequest], dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class HotOperators:
    """What was measured, and with what: the operators of all models, and the file that names the hot ones."""

    file: Path
    measured_with: str
    operators: tuple[RankedOperator, ...]


def find_hot(request: Request, console: Console, runs: int = RUNS) -> HotOperators:
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
    write_atomically(file, render_hot(operators, _about(request.spec, measured_with)))
    return HotOperators(file=file, measured_with=measured_with, operators=operators)


def _runner(planned: Planned, request: Request, step: Step) -> Path:
    (target,) = planned.plan.targets
    return executor_for(planned, target, request, step).run_runner(target.runner)


def _about(spec: Path, measured_with: str) -> tuple[str, ...]:
    return (
        f"The operators in which the models of {spec.name} spend {100 * HOT_SHARE:.0f} % of their time, each with",
        "its part of that of the model in which it is largest. A build compiles their kernels for speed",
        "and all others for size. `ortrim hot` has written this file.",
        f"Measured with {measured_with}.",
    )


def _shares(planned: Planned, runner: Path, runs: int, timed: Timed, step: Step) -> dict[str, dict[str, float]]:
    """Return each operator's part of a model's time, by the model's name."""
    progress = DeviceRuns(ROUNDS * sum(map(len, planned.cases)), step.progress)
    shares = {}
    for number, converted in enumerate(planned.models.converted):
        operators, cases = parse_config(converted.config), []
        for request in _requests(planned, number, runner, runs):
            for _ in range(ROUNDS):
                with progress.one(f"{converted.name}, {request.cases[0].name}"):
                    cases.append(_with_domains(timed(request), operators))
        shares[converted.name] = shares_of(cases)
    return shares


def _requests(planned: Planned, number: int, runner: Path, runs: int) -> tuple[RunRequest, ...]:
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


def hot_table(operators: Sequence[RankedOperator]) -> Table:
    """Return every operator with its largest part of a model's time, the hot ones in bold."""
    table = plain_table("operator", "share", "", "model", left=("",), fold=("model",))
    for each in operators:
        style = "bold" if each.hot else "dim"
        words = (each.operator, share_text(each.share), "hot" if each.hot else "", each.model)
        table.add_row(*(Text(printable(word), style) for word in words))
    return table
