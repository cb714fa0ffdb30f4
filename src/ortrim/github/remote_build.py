"""`invoke build --executor github`: planned here, compiled by a workflow, packaged and verified here again."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.cache import locked
from ortrim.base.console import Console
from ortrim.base.files import require_writable
from ortrim.compiling.plan import BuildPlan, PlannedTarget, digest
from ortrim.errors import BuildError, Diagnostic, NetworkError, PlanError
from ortrim.github.client import Run
from ortrim.github.followed_run import (
    FOLDER,
    UNCERTAIN,
    Connection,
    DispatchRecord,
    Kept,
    Remote,
    WantsCancel,
    Watch,
    asked_by,
    bring_home,
    connect,
    fetch_everything,
    followed,
    in_sight,
    jobs_of,
    keep,
    record_marked,
    record_of,
    record_sought,
    request_of,
    run_to_take_up,
)
from ortrim.github.plan_input import encode, remote_payload
from ortrim.github.repositories import choose_ref, look_at
from ortrim.github.runs import Dispatch, cancel_run, dispatch, get_run, latest_runs, require_own_run
from ortrim.package.manifest import WORKFLOW
from ortrim.pipeline.building import build, check_first, to_compile
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request
from ortrim.verify.reports import VerifyReport

LONGEST_TITLE: Final = 200


def build_on_github(
    request: Request, remote: Remote, console: Console, wants_cancel: WantsCancel
) -> tuple[VerifyReport, ...]:
    """Have a workflow compile what was not compiled before, then package, verify and report it as `build` does.

    Where nothing is left to compile, nothing is dispatched; where an earlier dispatch for the same is still going, that
    is followed. `wants_cancel` is asked on Ctrl-C whether the run should end, too.
    """
    require_writable(request.output)
    here = replace(request, elsewhere=True, on_macs=True)
    planned = planned_for(here, console, to_run=True)
    missing = to_compile(planned, here)
    if missing:
        check_first(planned, missing, here, console)
        _compile_there(planned, missing, _Order(request=here, remote=remote, console=console), wants_cancel)
    else:
        console.note("all targets were compiled before: no run is dispatched")
    return build(here, console, planned)


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What was asked for, where it is to be done, and what the user sees of it."""

    request: Request
    remote: Remote
    console: Console


def _compile_there(
    planned: Planned, missing: tuple[PlannedTarget, ...], order: _Order, wants_cancel: WantsCancel
) -> None:
    plan = remote_payload(planned.plan, missing)
    text = encode(planned.given, plan)
    connection = connect(order.remote, order.console)
    with locked(planned.folder / FOLDER, lambda: order.console.note("waits for another dispatch of the same")):
        taken = run_to_take_up(connection, order.request.output, plan.spec_name, jobs_of(plan))
        if taken:
            order.console.note(f"{taken[1].html_url} was dispatched for the same build: following it")
        kept, run = taken or _dispatched(order, connection, planned.folder, plan, text)
    bring_home(Watch(connection=connection, console=order.console, wants_cancel=wants_cancel), run, plan, kept)


def _dispatched(order: _Order, connection: Connection, folder: Path, plan: BuildPlan, text: str) -> tuple[Kept, Run]:
    """Start a run; a record of it is there before anything is sent, and none of what was not started."""
    with order.console.step("dispatch") as step:
        what = Dispatch(
            workflow=order.remote.workflow,
            ref=order.remote.ref or choose_ref(connection.client, connection.repository, Path.cwd()),
            correlation_id=secrets.token_hex(8),
            inputs=(("target", _title(plan)), ("plan", text)),
        )
        step.note(f"{connection.site}, {what.ref}: a plan of {len(text):,} characters, and no model")
        record = DispatchRecord(
            site=str(connection.site),
            workflow=what.workflow,
            ref=what.ref,
            correlation_id=what.correlation_id,
            asked=asked_by(order.request),
            jobs=jobs_of(plan),
        )
        kept = keep(record, folder / FOLDER / f"{what.correlation_id}.json")
        try:
            run = dispatch(connection.client, connection.repository, what)
        except Diagnostic as error:
            if error.code not in UNCERTAIN:
                kept.forget()
            raise
        return kept.with_run(run), run


def _title(plan: BuildPlan) -> str:
    """Name the targets as the run's title shows them."""
    names = ",".join(target.identifier for target in plan.targets)
    return names if len(names) <= LONGEST_TITLE else f"{names[:LONGEST_TITLE].rpartition(',')[0]},*"


FETCHED: Final = "from-github"
"""Where artifacts of runs without a record come to lie: one level too deep for a record, whatever they are called."""


@dataclass(frozen=True, kw_only=True)
class Attached:
    """What came of a run that was taken up: reports, or without a record of it, the folders of its artifacts."""

    reports: tuple[VerifyReport, ...] = ()
    folders: tuple[Path, ...] = ()


def list_runs(remote: Remote, console: Console) -> tuple[Run, ...]:
    """Return the latest runs of the workflow that were dispatched."""
    connection = connect(remote, console)
    return latest_runs(connection.client, connection.repository, remote.workflow)


def cancel(run_id: int, output: Path, remote: Remote, console: Console) -> bool:
    """Ask for a run to be cancelled; False when it had ended already.

    One that was deleted has ended, if there is a record of it.
    """
    kept = record_of(run_id, output)
    connection = connect(_remote_of(remote, kept), console)
    kept = kept or record_sought(connection, run_id, output)
    try:
        asked = cancel_run(connection.client, connection.repository, run_id)
    except NetworkError as error:
        if error.code != "github-not-found" or kept is None or kept.record.site != str(connection.site):
            raise
        _forget_deleted(connection, kept)
        return False
    if kept and asked:
        kept.forget()
    return asked


def attach(run_id: int, output: Path, remote: Remote, console: Console, wants_cancel: WantsCancel) -> Attached:
    """Follow a run again, fetch what it left, and go on with the build that dispatched it.

    What was asked for then is found in the folder for output. Without that, the artifacts are unpacked there.
    """
    require_writable(output)
    kept = record_of(run_id, output)
    connection = connect(_remote_of(remote, kept), console)
    run = _run_there(connection, run_id, kept)
    kept = kept or record_marked(run, output)
    watch = Watch(connection=connection, console=console, wants_cancel=wants_cancel)
    if kept is None:
        return _without_record(watch, run, output)
    return _with_record(watch, run, kept, output)


def _run_there(connection: Connection, run_id: int, kept: Kept | None) -> Run:
    """Return a run; of one that was deleted, nothing is kept there or here."""
    try:
        return get_run(connection.client, connection.repository, run_id)
    except NetworkError as error:
        if kept and error.code == "run-not-found":
            _forget_deleted(connection, kept)
        raise


def _forget_deleted(connection: Connection, kept: Kept) -> None:
    """Forget a dispatch whose run is not there, if it was started there."""
    if kept.record.site == str(connection.site):
        look_at(connection.client, connection.repository)
        kept.forget()


def _with_record(watch: Watch, run: Run, kept: Kept, output: Path) -> Attached:
    request = request_of(kept.record.asked, output)
    planned = planned_for(request, watch.console, to_run=True)
    there = tuple(_targets_of(planned, kept))
    missing = tuple(target for target in to_compile(planned, request) if target in there)
    if missing:
        bring_home(watch, run, remote_payload(planned.plan, missing), kept)
    else:
        watch.console.note(f"nothing of the run {run.id} is missing here")
    _require_all(to_compile(planned, request))
    return Attached(reports=build(request, watch.console, planned))


def _require_all(still_missing: tuple[PlannedTarget, ...]) -> None:
    if still_missing:
        where = ", ".join(target.identifier for target in still_missing)
        what, hint = (
            "the run did not compile it, and it was not compiled on this machine",
            "run: invoke build --executor github",
        )
        raise BuildError("not-compiled", what, where=where, hint=hint)


def _without_record(watch: Watch, run: Run, output: Path) -> Attached:
    require_own_run(run, watch.connection.repository, WORKFLOW)
    watch.console.note(f"{output} has no record of the run {run.id}: its artifacts are only downloaded")
    attempt = f"-{run.run_attempt}" if run.run_attempt > 1 else ""
    destination = output / FETCHED / FOLDER / f"{run.id}{attempt}"
    with in_sight(watch, run, None) as options:
        followed(watch, run, options)
    with in_sight(watch, run, None, over=True):
        return Attached(folders=fetch_everything(watch.connection, run, destination, watch.console))


def _remote_of(remote: Remote, kept: Kept | None) -> Remote:
    return replace(remote, repository=kept.record.site) if kept and not remote.repository else remote


def _targets_of(planned: Planned, kept: Kept) -> Iterator[PlannedTarget]:
    """Yield the targets of a record. Raises `PlanError` `plan-changed` when one is not what it was."""
    known = {target.identifier: target for target in planned.plan.targets}
    for identifier, job in kept.record.jobs:
        target = known.get(identifier)
        if target is None or digest(target.job) != job:
            what = "models, buildspec or ortrim have changed since the run was dispatched"
            hint = "run the build again"
            raise PlanError("plan-changed", what, where=identifier, hint=hint)
        yield target
