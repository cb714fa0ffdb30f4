"""`invoke build --executor github`: planned here, compiled by a workflow, packaged and verified here again.

Only the operators, the pins and the profile travel. Models, their names and digests, cases, budgets and all results of
measurements stay on this machine.
"""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.delivery import WORKFLOW
from ortrim.core.plan import BuildPlan, PlannedTarget
from ortrim.core.reports import VerifyReport
from ortrim.errors import Diagnostic
from ortrim.github.dispatch import Dispatch, dispatch
from ortrim.github.payload import encode_plan
from ortrim.github.records import Run
from ortrim.github.refs import choose_ref
from ortrim.pipeline.converted import Request
from ortrim.pipeline.github.connection import Connection, Remote, connect
from ortrim.pipeline.github.dispatch_records import FOLDER, DispatchRecord, Kept, asked_by, jobs_of, keep
from ortrim.pipeline.github.left_models import sweep_models
from ortrim.pipeline.github.run_followed import UNCERTAIN, WantsCancel, Watch, bring_home
from ortrim.pipeline.github.taking_up import run_to_take_up
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.pipeline.targets import build_planned, to_compile
from ortrim.pipeline.workflow_jobs.travelling import travelling
from ortrim.storage.files import require_writable
from ortrim.storage.folders import locked

LONGEST_TITLE: Final = 200


def build_on_github(
    request: Request, remote: Remote, console: Console, wants_cancel: WantsCancel
) -> tuple[VerifyReport, ...]:
    """Have a workflow compile what was not compiled before, then package, verify and report it as `build` does.

    Where nothing is left to compile, nothing is dispatched; where an earlier dispatch for the same is still going, that
    is followed. `wants_cancel` is asked on Ctrl-C whether the run should end, too. Raises what planning, dispatching
    and following raise, `PlanError` (`plan-cannot-travel`, `plan-too-large`), and what `build_planned` raises.
    """
    require_writable(request.output)
    here = replace(request, elsewhere=True, on_macs=True)
    planned = make_planned(here, console, to_run=True)
    missing = to_compile(planned, here)
    if missing:
        _compile_there(planned, missing, _Order(request=here, remote=remote, console=console), wants_cancel)
    else:
        console.note("everything was compiled before: nothing is dispatched")
    return build_planned(planned, here, console)


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What was asked for, where it is to be done, and what the user sees of it."""

    request: Request
    remote: Remote
    console: Console


def _compile_there(
    planned: Planned, missing: tuple[PlannedTarget, ...], order: _Order, wants_cancel: WantsCancel
) -> None:
    plan = travelling(planned.plan, missing)
    text = encode_plan(plan)
    connection = connect(order.remote, order.console)
    sweep_models(connection, order.request.output, order.console)
    with locked(planned.folder / FOLDER, lambda: order.console.note("waits for another dispatch of the same")):
        taken = run_to_take_up(connection, order.request.output, plan.spec_name, jobs_of(plan))
        if taken:
            order.console.note(f"{taken[1].html_url} was dispatched for the same: it is taken up")
        kept, run = taken or _dispatched(order, connection, planned.folder, plan, text)
    bring_home(Watch(connection=connection, console=order.console, wants_cancel=wants_cancel), run, plan, kept)


def _dispatched(order: _Order, connection: Connection, folder: Path, plan: BuildPlan, text: str) -> tuple[Kept, Run]:
    """Start a run; a record of it is there before anything is sent, and none of what was not started."""
    with order.console.step("dispatch") as step:
        what = Dispatch(
            workflow=WORKFLOW,
            ref=order.remote.ref or choose_ref(connection.client, connection.repository, Path.cwd()),
            correlation_id=secrets.token_hex(8),
            inputs=(("target", _title(plan)), ("plan", text)),
        )
        step.note(f"{connection.site}, {what.ref}: a plan of {len(text):,} letters, and no model")
        record = _record(connection, what, order.request, plan)
        kept = keep(record, folder / FOLDER / f"{what.correlation_id}.json")
        try:
            run = dispatch(connection.client, connection.repository, what)
        except Diagnostic as error:
            if error.reference not in UNCERTAIN:
                kept.forget()
            raise
        return kept.with_run(run), run


def _record(connection: Connection, what: Dispatch, request: Request, plan: BuildPlan) -> DispatchRecord:
    return DispatchRecord(
        site=str(connection.site),
        workflow=what.workflow,
        ref=what.ref,
        correlation_id=what.correlation_id,
        asked=asked_by(request),
        jobs=jobs_of(plan),
    )


def _title(plan: BuildPlan) -> str:
    """Name the targets as the run's title shows them."""
    names = ",".join(target.job.target.identifier for target in plan.targets)
    return names if len(names) <= LONGEST_TITLE else f"{names[:LONGEST_TITLE].rpartition(',')[0]},*"
