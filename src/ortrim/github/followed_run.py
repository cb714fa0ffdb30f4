"""A run from its dispatch to what it left: followed before the user's eyes, taken up again, or given up."""

import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ortrim.base.cache import cache_folder
from ortrim.base.command import Terminated
from ortrim.base.console import Console, Step
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.compiling.plan import BuildPlan, PlannedTarget, digest
from ortrim.errors import Diagnostic, ExitCode, Interrupted, NetworkError, StorageError
from ortrim.github.artifacts import choose_artifact, fetch_artifact, list_artifacts
from ortrim.github.client import Artifact, GitHub, Number, RetryingSession, Run
from ortrim.github.credentials import find_token
from ortrim.github.repositories import Repository, Site, find_site
from ortrim.github.runs import COMPLETED, RunProgress, cancel_run, changes, follow, get_run, kept_in_sight, latest_runs
from ortrim.github.workflow_files import compiled_artifact
from ortrim.package.manifest import WORKFLOW
from ortrim.pipeline.transfer import import_compiled
from ortrim.planning.request import Request


@dataclass(frozen=True, kw_only=True)
class Remote:
    """What the command line says of where a run is: the repository, the branch or tag, the file that has the token.

    Without `repository` and `ref` they are found out; see `find_site` and `choose_ref`. `workflow` is the file's name
    of the one that is dispatched and listed: `build.yml`, or one that calls it.
    """

    repository: str = ""
    ref: str = ""
    token_file: Path | None = None
    workflow: str = WORKFLOW


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A repository and a client that may ask for it."""

    site: Site
    client: GitHub

    @property
    def repository(self) -> Repository:
        """Return the repository."""
        return self.site.repository


def connect(remote: Remote, console: Console) -> Connection:
    """Find out which repository is meant, and the token for it; asks nothing of GitHub yet."""
    site = find_site(remote.repository, Path.cwd())
    token = find_token(site.service.host, file=remote.token_file)
    return Connection(site=site, client=GitHub(site.service, token, RetryingSession(token, announce=console.note)))


FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of artifacts that become names of folders; others could lead elsewhere."""


def fetch_compiled(
    connection: Connection, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console
) -> None:
    """Fetch compiled targets and put each into the cache as soon as it is here."""
    with console.step("download compiled targets") as step:
        found = list_artifacts(connection.client, connection.repository, run.id)
        wanted = [(each, compiled_artifact(plan, each.identifier)) for each in targets]
        chosen = [(each, choose_artifact(found, name, run)) for each, name in wanted]
        for target, artifact in chosen:
            with tempfile.TemporaryDirectory(dir=cache_folder("fetched"), prefix=f"{run.id}-") as work:
                _fetch(connection, artifact, Path(work) / "artifact", step)
                import_compiled((target,), Path(work) / "artifact")
        step.note(connection.client.session.traffic.words)


def fetch_there(
    connection: Connection, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console
) -> None:
    """Fetch those of the targets that a run has left, which need not have ended well."""
    left = {each.name for each in list_artifacts(connection.client, connection.repository, run.id) if not each.expired}
    there = tuple(target for target in targets if compiled_artifact(plan, target.identifier) in left)
    if there:
        fetch_compiled(connection, run, plan, there, console)


def fetch_everything(connection: Connection, run: Run, destination: Path, console: Console) -> tuple[Path, ...]:
    """Fetch all artifacts of a run that have not expired into folders of their names, and return those.

    A folder that is there already is left as it is.
    """
    with console.step(f"fetch what the run {run.id} left") as step:
        found = newest(list_artifacts(connection.client, connection.repository, run.id))
        there = tuple(each for each in found if not each.expired)
        folders = tuple(
            destination / (each.name if FOLDER_NAME.fullmatch(each.name) else f"artifact-{each.id}") for each in there
        )
        for artifact, folder in zip(there, folders, strict=True):
            _fetch(connection, artifact, folder, step)
        for artifact in set(found) - set(there):
            step.note(f"{artifact.name}: expired")
        step.note(connection.client.session.traffic.words)
    return folders


def newest(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Return artifacts without those that a repeated run has left before."""
    return tuple({each.name: each for each in sorted(artifacts, key=attrgetter("id"))}.values())


def _fetch(connection: Connection, artifact: Artifact, folder: Path, step: Step) -> None:
    def show(done: int, total: int) -> None:
        step.progress(done, total, artifact.name)

    fetch_artifact(connection.client, connection.repository, artifact, folder, show)


FOLDER: Final = "runs"
LARGEST: Final = 1 << 20
UNLISTED_SECONDS: Final = 600.0
"""After how long a dispatch of which GitHub lists no run counts as one that never was; it lists them within seconds."""
Text = Annotated[str, Field(max_length=4096)]


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
        """Return whether GitHub may still come to list the run of it. Raises `StorageError`."""
        with storage_errors(self.file), suppress(FileNotFoundError):
            return self.record.run is None and time.time() - self.file.stat().st_mtime < UNLISTED_SECONDS
        return False

    def marks(self, run: Run) -> bool:
        """Whether it was this dispatch that a run was started by."""
        return f"[{self.record.correlation_id}]" in run.display_title

    def with_run(self, run: Run) -> "Kept":
        """Write down which run it became. Raises `StorageError`."""
        return keep(replace(self.record, run=run.id), self.file)

    def forget(self) -> None:
        """Remove it: no run came of it, or what the run left is gone."""
        self.file.unlink(missing_ok=True)


def keep(record: DispatchRecord, file: Path) -> Kept:
    """Write a record, whole or not at all. Raises `StorageError`."""
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
    try:
        return Kept(record=from_json(DispatchRecord, content), file=file)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['type']}"
    what, hint = "is not a dispatch record of this version", "remove it, then run the same command again"
    raise StorageError("record-damaged", what, where=str(file), why=why, hint=hint)


UNCERTAIN: Final = frozenset({"run-left", "run-not-found", "run-ambiguous", "github-unexpected-answer"})
"""Diagnostics of a dispatch that may have been carried out all the same."""

WantsCancel = Callable[[Run], bool]
"""Asks the user, who pressed Ctrl-C, whether a run is to be cancelled; otherwise it goes on."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """With what a run is followed: where it is, what the user sees, and how the user is asked."""

    connection: Connection
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
            fetch_compiled(watch.connection, run, plan, plan.targets, watch.console)


def _follow_or_save(watch: Watch, run: Run, plan: BuildPlan, options: str) -> None:
    """Follow a run; when jobs of it failed, take what the others left."""
    try:
        followed(watch, run, options)
    except Diagnostic as error:
        if error.exit_code == ExitCode.BUILD:
            with suppress(Diagnostic):
                fetch_there(watch.connection, run, plan, plan.targets, watch.console)
        raise


@contextmanager
def in_sight(watch: Watch, run: Run, kept: Kept | None, *, over: bool = False) -> Iterator[str]:
    """Make whatever ends the block say how to take the run up again; on Ctrl-C, cancel it if the user wants that.

    Nobody is asked for a run that is `over`, or when the system ends us. Gives the words with which `invoke attach`
    finds the run.
    """
    options = _options(watch.connection, kept)
    try:
        with kept_in_sight(run, options):
            yield options
    except Interrupted as left:
        told_to_end = isinstance(left.__context__, Terminated)
        if over or told_to_end or left.code != "run-left" or not watch.wants_cancel(run):
            raise
        with kept_in_sight(run, options):
            cancel_run(watch.connection.client, watch.connection.repository, run.id)
        raise Interrupted("run-cancelled", "interrupted; the run is being cancelled", where=run.html_url) from None


def followed(watch: Watch, run: Run, options: str) -> Run:
    """Follow a run to its end, showing its jobs and their steps: as a bar, or in a log one line for each change.

    `options` are what `invoke attach` needs to find it.
    """
    with watch.console.step(f"run {run.id}") as step:
        step.note(run.html_url)
        return follow(watch.connection.client, watch.connection.repository, run, _shown_in(step), options=options)


def _shown_in(step: Step) -> Callable[[RunProgress], None]:
    last: RunProgress | None = None

    def show(progress: RunProgress) -> None:
        nonlocal last
        if step.live:
            step.progress(*progress.steps, progress.words)
        for change in changes(last, progress):
            if change.over or not step.live:
                step.note(change.words)
        last = progress

    return show


def _options(connection: Connection, kept: Kept | None) -> str:
    """Return the words with which `invoke attach` finds a run: where its record is, or without one, where it is."""
    if kept is None:
        return f"--repo {connection.site}"
    return "" if kept.output == Path("artifacts") else f"--output {shlex.quote(str(kept.output))}"


def run_to_take_up(
    connection: Connection, output: Path, spec_name: str, jobs: tuple[tuple[str, str], ...]
) -> tuple[Kept, Run] | None:
    """Return an earlier dispatch for all of `jobs`, when its run is still going, or has succeeded and is not here yet.

    Records of it are looked for in the folder `output`; one of which nothing is to come is forgotten. Raises
    `NetworkError`; but a run that is gone is none.
    """
    for kept in records_in(output, spec_name):
        if kept.record.site == str(connection.site) and set(jobs) <= set(kept.record.jobs):
            run = run_of(connection, kept)
            if run is not None and (run.status != COMPLETED or run.conclusion == "success"):
                return kept.with_run(run), run
            if run is not None or not kept.may_be_listed_yet:
                kept.forget()
    return None


def run_of(connection: Connection, kept: Kept) -> Run | None:
    """Return the run of a dispatch, found by its mark where the answer never came; None when there is none."""
    client, repository = connection.client, connection.repository
    if kept.record.run is None:
        runs = latest_runs(client, repository, kept.record.workflow, 100)
        return next((run for run in runs if kept.marks(run)), None)
    try:
        return get_run(client, repository, kept.record.run)
    except NetworkError as error:
        if error.code != "run-not-found":
            raise
        return None


def record_of(run_id: int, output: Path) -> Kept | None:
    """Return the record of a run in a folder for output."""
    return next((kept for kept in records_in(output) if kept.record.run == run_id), None)


def record_sought(connection: Connection, run_id: int, output: Path) -> Kept | None:
    """Return the record of a run whose number may never have come; GitHub is asked only where there is such a one."""
    if all(kept.record.run for kept in records_in(output)):
        return None
    return record_marked(get_run(connection.client, connection.repository, run_id), output)


def record_marked(run: Run, output: Path) -> Kept | None:
    """Return the record of a dispatch whose answer never came, by its mark in the run's name."""
    found = next((kept for kept in records_in(output) if kept.record.run is None and kept.marks(run)), None)
    return found.with_run(run) if found else None
