"""Builds at GitHub: planned here, compiled by a workflow that is followed to its end, packaged and verified here.

A run is dispatched once; it can be left, taken up again and cancelled.
"""

import re
import secrets
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal

from ortrim.base.cache import cache_folder, locked
from ortrim.base.command import Terminated
from ortrim.base.console import Console, Step
from ortrim.base.files import require_writable, storage_errors, write_atomically
from ortrim.base.json import read_json, to_json
from ortrim.compiling.plan import BuildPlan, PlannedTarget, digest
from ortrim.errors import BuildError, Diagnostic, ExitCode, Interrupted, NetworkError, PlanError, StorageError
from ortrim.github.artifacts import choose_artifact, fetch_artifact, list_artifacts
from ortrim.github.client import Artifact, GitHub, Number, Remote, Run, Text, choose_ref, connect, default_branch
from ortrim.github.plan_input import encode, remote_payload
from ortrim.github.runs import (
    COMPLETED,
    Dispatch,
    RunProgress,
    cancel_run,
    changes,
    dispatch,
    follow,
    get_run,
    kept_in_sight,
    latest_runs,
    require_own_run,
)
from ortrim.github.workflow_files import compiled_artifact
from ortrim.package.manifest import WORKFLOW
from ortrim.pipeline.building import build, check_first, to_compile
from ortrim.pipeline.transfer import import_compiled
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request
from ortrim.verify.reports import VerifyReport

FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of artifacts that become names of folders; others could lead elsewhere."""


def fetch_compiled(
    client: GitHub, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console
) -> None:
    """Fetch compiled targets and put each into the cache as soon as it is here."""
    with console.step("download compiled targets") as step:
        found = list_artifacts(client, run.id)
        wanted = [(each, compiled_artifact(plan, each.identifier)) for each in targets]
        chosen = [(each, choose_artifact(found, name, run)) for each, name in wanted]
        for target, artifact in chosen:
            with tempfile.TemporaryDirectory(dir=cache_folder("fetched"), prefix=f"{run.id}-") as work:
                _fetch(client, artifact, Path(work) / "artifact", step)
                import_compiled((target,), Path(work) / "artifact")
        step.note(client.session.traffic.words)


def fetch_there(client: GitHub, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console) -> None:
    """Fetch those of the targets that a run has left, which need not have ended well."""
    left = {each.name for each in list_artifacts(client, run.id) if not each.expired}
    there = tuple(target for target in targets if compiled_artifact(plan, target.identifier) in left)
    if there:
        fetch_compiled(client, run, plan, there, console)


def fetch_everything(client: GitHub, run: Run, destination: Path, console: Console) -> tuple[Path, ...]:
    """Fetch all artifacts of a run that have not expired into folders of their names, and return those.

    A folder that is there already is left as it is.
    """
    with console.step(f"fetch what the run {run.id} left") as step:
        found = newest(list_artifacts(client, run.id))
        there = tuple(each for each in found if not each.expired)
        folders = tuple(
            destination / (each.name if FOLDER_NAME.fullmatch(each.name) else f"artifact-{each.id}") for each in there
        )
        for artifact, folder in zip(there, folders, strict=True):
            _fetch(client, artifact, folder, step)
        for artifact in set(found) - set(there):
            step.note(f"{artifact.name}: expired")
        step.note(client.session.traffic.words)
    return folders


def newest(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Return artifacts without those that a repeated run has left before."""
    return tuple({each.name: each for each in sorted(artifacts, key=attrgetter("id"))}.values())


def _fetch(client: GitHub, artifact: Artifact, folder: Path, step: Step) -> None:
    def show(done: int, total: int) -> None:
        step.progress(done, total, artifact.name)

    fetch_artifact(client, artifact, folder, show)


FOLDER: Final = "runs"
LARGEST: Final = 1 << 20
UNLISTED_SECONDS: Final = 600.0
"""After how long a dispatch of which GitHub lists no run counts as one that never was; it lists them within seconds."""


@dataclass(frozen=True, kw_only=True)
class DispatchRecord:
    """One dispatch: where to, its mark, its run once that is known, and what is compiled there.

    `site` is host/owner/name; `jobs` are the digests of the targets' jobs, by the targets' identifiers.
    """

    schema: Literal["ortrim-dispatch/1"] = "ortrim-dispatch/1"
    site: Text
    workflow: Text
    ref: Text
    correlation_id: Text
    run: Number | None = None
    asked: Request
    jobs: tuple[tuple[Text, Text], ...]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A record and its file."""

    record: DispatchRecord
    file: Path

    @property
    def output(self) -> Path:
        """Return the folder for output in which it lies."""
        return self.file.parents[3]

    @property
    def may_be_listed_yet(self) -> bool:
        """Return whether GitHub may still come to list the run of it."""
        with storage_errors(self.file), suppress(FileNotFoundError):
            return self.record.run is None and time.time() - self.file.stat().st_mtime < UNLISTED_SECONDS
        return False

    def marks(self, run: Run) -> bool:
        """Whether it was this dispatch that a run was started by."""
        return f"[{self.record.correlation_id}]" in run.display_title

    def with_run(self, run: Run) -> "Kept":
        """Write down which run it became."""
        return keep(replace(self.record, run=run.id), self.file)

    def forget(self) -> None:
        """Remove it: no run came of it, or what the run left is gone."""
        self.file.unlink(missing_ok=True)


def keep(record: DispatchRecord, file: Path) -> Kept:
    """Write a record, whole or not at all."""
    write_atomically(file, to_json(record))
    return Kept(record=record, file=file)


def asked_by(request: Request) -> Request:
    """Return what a request asks for, so that it means the same in another folder."""
    return replace(request, spec=request.spec.absolute(), ndk=None, container=None, jobs=None)


def request_of(asked: Request, output: Path) -> Request:
    """Return the request that a record was made of, for a machine that compiles nothing."""
    return replace(asked, output=output, elsewhere=True, on_macs=True)


def jobs_of(plan: BuildPlan) -> tuple[tuple[str, str], ...]:
    """Return what `DispatchRecord.jobs` holds of a plan."""
    return tuple((target.identifier, digest(target.job)) for target in plan.targets)


def records_in(output: Path, spec: str = "*") -> tuple[Kept, ...]:
    """Return the records in a folder for output, of one buildspec or of all, the newest first."""
    return tuple(sorted(_found(output, spec), key=lambda kept: (kept.record.run or 0, kept.file.name), reverse=True))


def _found(output: Path, spec: str) -> Iterator[Kept]:
    for file in output.glob(f"{spec}/*/{FOLDER}/*.json"):
        kept = read_record(file)
        if kept:
            yield kept


def read_record(file: Path) -> Kept | None:
    """Read a record, None when another program has forgotten it."""
    content = None
    with storage_errors(file), suppress(FileNotFoundError), file.open("rb") as opened:
        content = opened.read(LARGEST)
    if content is None:
        return None
    what, hint = "is not a dispatch record of this version", "remove it, then run the same command again"
    damaged = StorageError("record-damaged", what, where=str(file), hint=hint)
    return Kept(record=read_json(DispatchRecord, content, damaged), file=file)


UNCERTAIN: Final = frozenset({"run-left", "run-not-found", "run-ambiguous", "github-unexpected-answer"})
"""Diagnostics of a dispatch that may have been carried out all the same."""

WantsCancel = Callable[[Run], bool]
"""Asks the user, who pressed Ctrl-C, whether a run is to be cancelled; otherwise it goes on."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """With what a run is followed: where it is, what the user sees, and how the user is asked."""

    client: GitHub
    console: Console
    wants_cancel: WantsCancel


GONE: Final = frozenset({"artifact-expired", "artifact-missing", "run-not-found"})
PASSING: Final = frozenset({ExitCode.NETWORK, ExitCode.STORAGE, ExitCode.INTERRUPTED})
"""Classes of errors after which what a run left may still be brought home."""


@contextmanager
def forgotten_at_last(kept: Kept) -> Iterator[None]:
    """Forget a dispatch when the block fails for good: its run failed, or what it left is gone or of no use."""
    try:
        yield
    except Diagnostic as error:
        passing = error.exit_code in PASSING and error.code not in {*GONE, "run-cancelled"}
        if not passing:
            kept.forget()
        raise


def bring_home(watch: Watch, run: Run, plan: BuildPlan, kept: Kept) -> None:
    """Follow a run to its end and put what it compiled of a plan into the cache.

    Of a run in which some targets failed, the others are taken before its error is raised.
    """
    with forgotten_at_last(kept):
        with in_sight(watch, run, kept) as options:
            _follow_or_save(watch, run, plan, options)
        with in_sight(watch, run, kept, over=True):
            fetch_compiled(watch.client, run, plan, plan.targets, watch.console)


def _follow_or_save(watch: Watch, run: Run, plan: BuildPlan, options: str) -> None:
    """Follow a run; when jobs of it failed, take what the others left."""
    try:
        followed(watch, run, options)
    except Diagnostic as error:
        if error.exit_code == ExitCode.BUILD:
            with suppress(Diagnostic):
                fetch_there(watch.client, run, plan, plan.targets, watch.console)
        raise


@contextmanager
def in_sight(watch: Watch, run: Run, kept: Kept | None, *, over: bool = False) -> Iterator[str]:
    """Make whatever ends the block say how to take the run up again; on Ctrl-C, cancel it if the user wants that.

    Nobody is asked for a run that is `over`, or when the system ends us. Gives the words with which `invoke attach`
    finds the run.
    """
    options = _options(watch.client, kept)
    try:
        with kept_in_sight(run, options):
            yield options
    except Interrupted as left:
        told_to_end = isinstance(left.__context__, Terminated)
        if over or told_to_end or left.code != "run-left" or not watch.wants_cancel(run):
            raise
        with kept_in_sight(run, options):
            cancel_run(watch.client, run.id)
        raise Interrupted("run-cancelled", "interrupted; the run is being cancelled", where=run.html_url) from None


def followed(watch: Watch, run: Run, options: str) -> Run:
    """Follow a run to its end, showing its jobs and their steps: as a bar, or in a log one line for each change.

    `options` are what `invoke attach` needs to find it.
    """
    with watch.console.step(f"run {run.id}") as step:
        step.note(run.html_url)
        return follow(watch.client, run, _shown_in(step), options=options)


def _shown_in(step: Step) -> Callable[[RunProgress], None]:
    last: RunProgress | None = None

    def show(progress: RunProgress) -> None:
        nonlocal last
        if step.live:
            step.progress(*progress.steps, progress.words)
        for words, over in changes(last, progress):
            if over or not step.live:
                step.note(words)
        last = progress

    return show


def _options(client: GitHub, kept: Kept | None) -> str:
    """Return the words with which `invoke attach` finds a run: where its record is, or without one, where it is."""
    if kept is None:
        return f"--repo {client.site}"
    return "" if kept.output == Path("artifacts") else f"--output {shlex.quote(str(kept.output))}"


def run_to_take_up(
    client: GitHub, output: Path, spec_name: str, jobs: tuple[tuple[str, str], ...]
) -> tuple[Kept, Run] | None:
    """Return an earlier dispatch for all of `jobs`, when its run is still going, or has succeeded and is not here yet.

    Records of it are looked for in the folder `output`; one of which nothing is to come is forgotten. Raises
    `NetworkError`; but a run that is gone is none.
    """
    for kept in records_in(output, spec_name):
        if kept.record.site == str(client.site) and set(jobs) <= set(kept.record.jobs):
            run = run_of(client, kept)
            if run is not None and (run.status != COMPLETED or run.conclusion == "success"):
                return kept.with_run(run), run
            if run is not None or not kept.may_be_listed_yet:
                kept.forget()
    return None


def run_of(client: GitHub, kept: Kept) -> Run | None:
    """Return the run of a dispatch, found by its mark where the answer never came; None when there is none."""
    if kept.record.run is None:
        runs = latest_runs(client, kept.record.workflow, 100)
        return next((run for run in runs if kept.marks(run)), None)
    try:
        return get_run(client, kept.record.run)
    except NetworkError as error:
        if error.code != "run-not-found":
            raise
        return None


def record_of(run_id: int, output: Path) -> Kept | None:
    """Return the record of a run in a folder for output."""
    return next((kept for kept in records_in(output) if kept.record.run == run_id), None)


def record_sought(client: GitHub, run_id: int, output: Path) -> Kept | None:
    """Return the record of a run whose number may never have come; GitHub is asked only where there is such a one."""
    if all(kept.record.run for kept in records_in(output)):
        return None
    return record_marked(get_run(client, run_id), output)


def record_marked(run: Run, output: Path) -> Kept | None:
    """Return the record of a dispatch whose answer never came, by its mark in the run's name."""
    found = next((kept for kept in records_in(output) if kept.record.run is None and kept.marks(run)), None)
    return found.with_run(run) if found else None


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
        plan = remote_payload(planned.plan, missing)
        text = encode(planned.given, plan)
        watch = Watch(client=connect(remote, console), console=console, wants_cancel=wants_cancel)
        with locked(planned.folder / FOLDER, lambda: console.note("waits for another dispatch of the same")):
            taken = run_to_take_up(watch.client, here.output, plan.spec_name, jobs_of(plan))
            if taken:
                console.note(f"{taken[1].html_url} was dispatched for the same build: following it")
            kept, run = taken or _dispatched(watch, remote, here, planned.folder, plan=plan, text=text)
        bring_home(watch, run, plan, kept)
    else:
        console.note("all targets were compiled before: no run is dispatched")
    return build(here, console, planned)


def _dispatched(
    watch: Watch, remote: Remote, request: Request, folder: Path, *, plan: BuildPlan, text: str
) -> tuple[Kept, Run]:
    """Start a run; a record of it is there before anything is sent, and none of what was not started."""
    client = watch.client
    with watch.console.step("dispatch") as step:
        what = Dispatch(
            workflow=remote.workflow,
            ref=remote.ref or choose_ref(client, Path.cwd()),
            correlation_id=secrets.token_hex(8),
            inputs=(("target", _title(plan)), ("plan", text)),
        )
        step.note(f"{client.site}, {what.ref}: a plan of {len(text):,} characters, and no model")
        record = DispatchRecord(
            site=str(client.site),
            workflow=what.workflow,
            ref=what.ref,
            correlation_id=what.correlation_id,
            asked=asked_by(request),
            jobs=jobs_of(plan),
        )
        kept = keep(record, folder / FOLDER / f"{what.correlation_id}.json")
        try:
            run = dispatch(client, what)
        except Diagnostic as error:
            if error.code not in UNCERTAIN:
                kept.forget()
            raise
        return kept.with_run(run), run


def _title(plan: BuildPlan) -> str:
    """Name the targets as the run's title shows them."""
    names = ",".join(target.identifier for target in plan.targets)
    return names if len(names) <= LONGEST_TITLE else f"{names[:LONGEST_TITLE].rpartition(',')[0]},*"


Attached = tuple[tuple[VerifyReport, ...], tuple[Path, ...]]
FETCHED: Final = "from-github"
"""Where artifacts of runs without a record come to lie: one level too deep for a record, whatever they are called."""


def list_runs(remote: Remote, console: Console) -> tuple[Run, ...]:
    """Return the latest runs of the workflow that were dispatched."""
    return latest_runs(connect(remote, console), remote.workflow)


def cancel(run_id: int, output: Path, remote: Remote, console: Console) -> bool:
    """Ask for a run to be cancelled; False when it had ended already.

    One that was deleted has ended, if there is a record of it.
    """
    kept = record_of(run_id, output)
    client = connect(_remote_of(remote, kept), console)
    kept = kept or record_sought(client, run_id, output)
    try:
        asked = cancel_run(client, run_id)
    except NetworkError as error:
        if error.code != "github-not-found" or kept is None or kept.record.site != str(client.site):
            raise
        _forget_deleted(client, kept)
        return False
    if kept and asked:
        kept.forget()
    return asked


def attach(run_id: int, output: Path, remote: Remote, console: Console, wants_cancel: WantsCancel) -> Attached:
    """Follow a run again, fetch what it left, and go on with the build that dispatched it.

    What was asked for then is found in the folder for output. Without that, the artifacts are unpacked there. Returns
    the reports, or else the folders of the artifacts.
    """
    require_writable(output)
    kept = record_of(run_id, output)
    client = connect(_remote_of(remote, kept), console)
    run = _run_there(client, run_id, kept)
    kept = kept or record_marked(run, output)
    watch = Watch(client=client, console=console, wants_cancel=wants_cancel)
    if kept is None:
        return _without_record(watch, run, output)
    return _with_record(watch, run, kept, output)


def _run_there(client: GitHub, run_id: int, kept: Kept | None) -> Run:
    """Return a run; of one that was deleted, nothing is kept there or here."""
    try:
        return get_run(client, run_id)
    except NetworkError as error:
        if kept and error.code == "run-not-found":
            _forget_deleted(client, kept)
        raise


def _forget_deleted(client: GitHub, kept: Kept) -> None:
    """Forget a dispatch whose run is not there, if it was started there."""
    if kept.record.site == str(client.site):
        default_branch(client)
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
    if still_missing := to_compile(planned, request):
        where = ", ".join(target.identifier for target in still_missing)
        what = "the run did not compile it, and it was not compiled on this machine"
        raise BuildError("not-compiled", what, where=where, hint="run: invoke build --executor github")
    return build(request, watch.console, planned), ()


def _without_record(watch: Watch, run: Run, output: Path) -> Attached:
    require_own_run(run, watch.client.repository, WORKFLOW)
    watch.console.note(f"{output} has no record of the run {run.id}: its artifacts are only downloaded")
    attempt = f"-{run.run_attempt}" if run.run_attempt > 1 else ""
    destination = output / FETCHED / FOLDER / f"{run.id}{attempt}"
    with in_sight(watch, run, None) as options:
        followed(watch, run, options)
    with in_sight(watch, run, None, over=True):
        return (), fetch_everything(watch.client, run, destination, watch.console)


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
