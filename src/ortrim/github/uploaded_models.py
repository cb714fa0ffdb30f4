"""`invoke build --executor github --upload-models`: everything is done there, parity too, and the delivery comes home.

Models lie in the repository, which has to be private, under a ref that is no branch, as long as the run needs them.

- A run whose models were uploaded: followed to its end, its models removed, its deliveries brought home.
- A buildspec with all files of this machine that it names, to be laid out anew on another machine.
- What a run delivered whose models were uploaded: packages, proof and reports, checked against their sums.
- Models that were uploaded for runs that nobody took up again: the next build at GitHub removes them.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.cache import locked, locked_if_free
from ortrim.base.checksums import SUMS, check_sums
from ortrim.base.console import Console, counted
from ortrim.base.files import require_writable, sha256_of, storage_errors
from ortrim.base.json import to_canonical_json
from ortrim.errors import BuildError, Diagnostic, DiagnosticGroup, ExitCode, NetworkError, PlanError
from ortrim.github.artifacts import fetch_artifact, list_artifacts
from ortrim.github.dispatch import Dispatch, dispatch
from ortrim.github.followed_run import (
    FOLDER,
    FOLDER_NAME,
    UNCERTAIN,
    Connection,
    DispatchRecord,
    Kept,
    Remote,
    WantsCancel,
    Watch,
    asked_by,
    connect,
    followed,
    forgotten_at_last,
    in_sight,
    keep,
    newest,
    read_record,
    records_in,
    run_of,
    run_to_take_up,
)
from ortrim.github.records import Run
from ortrim.github.repositories import (
    StoredFile,
    choose_ref,
    create_ref,
    look_at,
    remove_ref,
    require_private,
    store_commit,
    store_file,
)
from ortrim.github.runs import COMPLETED
from ortrim.github.workflow_files import OF_THE_SPEC, UPLOADED
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import read_stored
from ortrim.package.manifest import WORKFLOW
from ortrim.pipeline.planned import host_target
from ortrim.pipeline.request import Request, load, prepared_models
from ortrim.pipeline.verification import gravest_failure
from ortrim.platforms.planner import select_targets
from ortrim.report.write import JSON_NAME, read_report
from ortrim.spec.buildspec import LoadedSpec
from ortrim.steps.preparation import step_files
from ortrim.verify.reports import VerifyReport


def fetch_deliveries(connection: Connection, run: Run, prefix: str, destination: Path, console: Console) -> None:
    """Fetch the deliveries of a run, whose names begin with `prefix`, into folders of their names.

    Each is checked before its folder is there; one that is there already is left as it is. Raises `NetworkError` as
    `fetch_artifact` does and `PackageError` as `check_sums` does.
    """
    with console.step("fetch what was delivered") as step:
        for artifact in newest(list_artifacts(connection.client, connection.repository, run.id)):
            if artifact.name.startswith(prefix) and FOLDER_NAME.fullmatch(artifact.name):
                folder = destination / artifact.name
                check = partial(_check, folder)
                fetch_artifact(connection.client, connection.repository, artifact, folder, step.progress, check=check)
                step.note(f"{folder}: as its {SUMS} says")
        step.note(connection.client.session.traffic.words)


def _check(folder: Path, unfinished: Path) -> None:
    """Check what is to become a folder; what is wrong is told of that, since the unfinished one will be gone."""
    try:
        check_sums(unfinished)
    except Diagnostic as error:
        for each in (error, *(error.diagnostics if isinstance(error, DiagnosticGroup) else ())):
            each.where, each.why = (text.replace(str(unfinished), str(folder)) for text in (each.where, each.why))
        raise


def delivered_reports(destination: Path) -> tuple[VerifyReport, ...]:
    """Return the reports in the folders of deliveries. Raises as `read_report` does."""
    return tuple(read_report(path) for path in sorted(destination.glob(f"*/*.{JSON_NAME}")))


ENDED: Final = frozenset({"run-cancelled", "run-not-found"})
"""Diagnostics of following a run after which it does not go on."""


def delivered(watch: Watch, run: Run, kept: Kept) -> tuple[VerifyReport, ...]:
    """Follow a run whose models were uploaded, remove them, and bring its deliveries home.

    A run that failed because its reports tell of failures gives those. Raises as `follow` and `fetch_deliveries` do,
    and `BuildError` `delivery-incomplete`.
    """
    with removed_on_error(watch, kept, _may_go_on):
        failure = _failure_of(watch, run, kept)
    kept = remove_models(watch.connection, kept, watch.console)
    with forgotten_at_last(kept):
        folder = _fetched(watch, run, kept)
        reports = _judged(delivered_reports(folder), {target for target, _ in kept.record.jobs}, failure, run)
    kept.at_home()
    return reports


def _may_go_on(error: Diagnostic) -> bool:
    """Whether a run goes on though it is no longer followed."""
    return error.exit_code in {ExitCode.INTERRUPTED, ExitCode.NETWORK} and error.reference not in ENDED


def _fetched(watch: Watch, run: Run, kept: Kept) -> Path:
    attempt = f"-{run.run_attempt}" if run.run_attempt > 1 else ""
    folder = kept.file.parents[1] / f"{run.id}{attempt}"
    with in_sight(watch, run, kept, over=True):
        prefix = f"delivered-{kept.file.parents[2].name}-"
        fetch_deliveries(watch.connection, run, prefix, folder, watch.console)
    return folder


def remove_models(connection: Connection, kept: Kept, console: Console) -> Kept:
    """Remove what was uploaded for a run, and write that down; where that fails, say how it is done by hand."""
    return kept.with_models_removed() if kept.has_models and _are_gone(connection, kept, console) else kept


def give_up(connection: Connection, kept: Kept, console: Console) -> None:
    """Forget a dispatch of which nothing more is to come, once its models are gone from there."""
    if not kept.has_models or _are_gone(connection, kept, console):
        kept.forget()


def give_up_deleted(connection: Connection, kept: Kept, console: Console) -> None:
    """Give up a dispatch whose run is not there, if it was started there.

    Raises `NetworkError` (`repository-not-found`) when that is so only because the token may not see it.
    """
    if kept.record.site == str(connection.site):
        look_at(connection.client, connection.repository)
        give_up(connection, kept, console)


def _are_gone(connection: Connection, kept: Kept, console: Console) -> bool:
    """Remove models, and return whether that could be done."""
    try:
        remove_ref(connection.client, connection.repository, kept.record.models)
    except NetworkError as error:
        how = f"git push https://{connection.site} --delete {kept.record.models}"
        console.warn(f"the models are still at GitHub ({error.reference}); to remove them: {how}")
        return False
    return True


@contextmanager
def removed_on_error(watch: Watch, kept: Kept, may_go_on: Callable[[Diagnostic], bool]) -> Iterator[None]:
    """Remove the models when the block fails, unless there may be a run that still needs them: then say so."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Diagnostic) and may_go_on(error):
            if kept.has_models:
                until = "until the run is taken up or ended, or the next build finds it over"
                watch.console.warn(f"the models stay at GitHub, as {kept.record.models}, {until}")
        else:
            give_up(watch.connection, kept, watch.console)
        raise


def _judged(
    reports: tuple[VerifyReport, ...], targets: set[str], failure: Diagnostic | None, run: Run
) -> tuple[VerifyReport, ...]:
    """Return the reports if there is one of each target and they say themselves what failed."""
    missing = sorted(targets - {report.target for report in reports})
    if failure and (missing or not gravest_failure(reports)):
        raise failure
    if missing:
        what = f"the run has left no report of {', '.join(missing)}"
        raise BuildError("delivery-incomplete", what, where=run.html_url, hint="see the jobs that deliver")
    return reports


def _failure_of(watch: Watch, run: Run, kept: Kept) -> Diagnostic | None:
    """Follow a run and return how its jobs failed, None if they did not."""
    with in_sight(watch, run, kept) as options:
        try:
            followed(watch, run, options)
        except Diagnostic as error:
            if error.exit_code != ExitCode.BUILD or error.reference == "run-cancelled":
                raise
            return error
    return None


LARGEST_FILE: Final = 32 << 20
"""A third more as the text that travels. GitHub gives back files up to 100 MB this way; how much it takes it says
nowhere."""
LARGEST_TOTAL: Final = 96 << 20
MOST_FILES: Final = 500


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Files, and where the buildspec is among them."""

    spec: PurePosixPath
    files: tuple[StoredFile, ...]


def bundle(loaded: LoadedSpec, prepared: tuple[PreparedModel, ...]) -> Bundle:
    """Return a buildspec and the models, weights and recorded cases that it names, as they lie to each other.

    Folders above the one that holds all of them are left out. Raises `PlanError`: `plan-cannot-travel` for sources or
    files that are named by absolute paths, `upload-too-large`.
    """
    if loaded.spec.onnxruntime.path:
        raise _stays("onnxruntime.path", "sources are not uploaded, only models", "use pinned sources")
    places = {Path(os.path.normpath(loaded.file.absolute())): loaded.file}
    for written, file in _named(loaded, prepared):
        if written.is_absolute():
            raise _stays(
                str(loaded.file), f"it names {written}, which is no path on another machine", "name it relatively"
            )
        places[Path(os.path.normpath(loaded.file.absolute().parent / written))] = file
    top = Path(os.path.commonpath([place.parent for place in places]))
    files = tuple(
        StoredFile(path=place.relative_to(top).as_posix(), file=file) for place, file in sorted(places.items())
    )
    _require_small(files, loaded.spec.name)
    return Bundle(spec=PurePosixPath(files[[each.file for each in files].index(loaded.file)].path), files=files)


def _named(loaded: LoadedSpec, prepared: tuple[PreparedModel, ...]) -> Iterator[tuple[Path, Path]]:
    """Yield each file that a buildspec names: its path as written, or beside what was written, and where it is."""
    for spec, model in zip(loaded.spec.models, prepared, strict=True):
        if spec.path:
            yield spec.path, loaded.resolve(spec.path)
            for name in read_stored(model.path.parent).external:
                yield spec.path.parent / name, loaded.resolve(spec.path.parent / name)
        for path in step_files(spec.steps):
            yield path, loaded.resolve(path)
        for case in spec.cases:
            if case.data:
                yield from _data(loaded, case.data)


def _data(loaded: LoadedSpec, path: Path) -> Iterator[tuple[Path, Path]]:
    there = loaded.resolve(path)
    if there.is_dir():
        yield from ((path / file.relative_to(there), file) for file in sorted(there.rglob("*")) if file.is_file())
    else:
        yield path, there


def _require_small(files: tuple[StoredFile, ...], where: str) -> None:
    sizes = {file.path: file.file.stat().st_size for file in files}
    largest = max(sizes, key=lambda path: sizes[path])
    total = sum(sizes.values())
    if sizes[largest] > LARGEST_FILE or total > LARGEST_TOTAL or len(files) > MOST_FILES:
        what = f"{counted(len(files), 'file')} of {total:,} bytes, the largest {largest} with {sizes[largest]:,}"
        why = f"{MOST_FILES} files of {LARGEST_TOTAL:,} bytes are the most, {LARGEST_FILE:,} for each"
        hint = "leave out --upload-models: the models then stay here, and only what they need is compiled at GitHub"
        raise PlanError("upload-too-large", what, where=where, why=why, hint=hint)


def _stays(where: str, why: str, hint: str) -> PlanError:
    return PlanError("plan-cannot-travel", "can be built on this machine alone", where=where, why=why, hint=hint)


def sweep_models(connection: Connection, output: Path, console: Console) -> None:
    """Remove the models of runs in this repository that are over, gone, or were never started.

    Records of them are looked for in the folder `output`. What is being uploaded right now stays, and whatever GitHub
    refuses is left for the next time. Raises `StorageError` (`record-damaged`).
    """
    for kept in records_in(output):
        if kept.has_models and kept.record.site == str(connection.site):
            with locked_if_free(kept.file.parent) as free:
                current = read_record(kept.file) if free else None
                if current:
                    with suppress(NetworkError):
                        _sweep(connection, current, console)


def _sweep(connection: Connection, kept: Kept, console: Console) -> None:
    run = run_of(connection, kept)
    if run and run.status == COMPLETED:
        remove_models(connection, kept.with_run(run), console)
    elif run is None and not kept.may_be_listed_yet:
        give_up_deleted(connection, kept, console)


REFS: Final = "refs/ortrim/models"
MESSAGE: Final = "What one run of ortrim needs, until it is over"


def build_uploaded(
    request: Request, remote: Remote, console: Console, wants_cancel: WantsCancel
) -> tuple[VerifyReport, ...]:
    """Upload a buildspec with its models, have a workflow do everything, and bring home what it delivers.

    Where a run for the very same is still going, or its delivery has not come, that is taken up. Raises what loading
    and preparing raise, `PlanError` as `bundle` does, `NetworkError` (`repository-public`, and what storing,
    dispatching, following and fetching raise). A missed budget is in the reports.
    """
    require_writable(request.output)
    loaded = load(request)
    host = host_target() if request.target is None else None
    for note in loaded.notes:
        console.note(note)
    targets = tuple(target.id for target in select_targets(loaded.spec, request.target, host, console.note))
    found = bundle(loaded, prepared_models(loaded, console))
    connection = connect(remote, console)
    sweep_models(connection, request.output, console)
    require_private(connection.client, connection.repository)
    ref = remote.ref or choose_ref(connection.client, connection.repository, Path.cwd())
    watch = Watch(connection=connection, console=console, wants_cancel=wants_cancel)
    order = _order(request, ref, targets, found)
    jobs = _jobs(order, targets, found)
    folder = request.output / loaded.spec.name / UPLOADED / FOLDER
    with locked(folder, lambda: console.note("waits for another upload of the same buildspec")):
        taken = run_to_take_up(connection, request.output, loaded.spec.name, jobs)
        if taken:
            console.note(f"{taken[1].html_url} was dispatched for the same: it is taken up")
        kept, run = taken or _started(watch, order, found, _kept(request, connection, order, jobs, folder))
    return delivered(watch, run, kept)


def _jobs(order: Dispatch, targets: Iterable[str], found: Bundle) -> tuple[tuple[str, str], ...]:
    """Return what tells a dispatch from others: for each target, the digest of all that is asked for and uploaded."""
    files = {file.path: _digest_of(file.file) for file in found.files}
    asked = {name: word for name, word in order.inputs if name != "models"}
    mark = hashlib.sha256(to_canonical_json({"ref": order.ref, "asked": asked, "files": files}).encode()).hexdigest()
    return tuple((target, mark) for target in targets)


def _digest_of(file: Path) -> str:
    with storage_errors(file):
        return sha256_of(file)


def _started(watch: Watch, order: Dispatch, found: Bundle, kept: Kept) -> tuple[Kept, Run]:
    """Upload and dispatch; models stay behind only where a run may have been started that needs them."""
    with removed_on_error(watch, kept, lambda _: False):
        _upload(watch, found, kept.record.models)
    with removed_on_error(watch, kept, lambda error: error.reference in UNCERTAIN):
        run = _dispatched(watch, order)
    return kept.with_run(run), run


def _upload(watch: Watch, found: Bundle, ref: str) -> None:
    client, repository = watch.connection.client, watch.connection.repository
    blobs: dict[str, str] = {}
    with watch.console.step("upload models") as step:
        for number, file in enumerate(found.files):
            step.progress(number, len(found.files), file.path)
            blobs[file.path] = store_file(client, repository, file.file)
        create_ref(client, repository, ref, store_commit(client, repository, blobs, MESSAGE))
        step.note(f"{watch.connection.site}, {ref}: {', '.join(blobs)}")


def _order(request: Request, ref: str, targets: tuple[str, ...], found: Bundle) -> Dispatch:
    correlation_id = secrets.token_hex(8)
    inputs = {
        "spec": f"{UPLOADED}/{found.spec}",
        "target": ",".join(targets),
        "profile": request.profile or OF_THE_SPEC,
        "models": f"{REFS}/{correlation_id}",
    }
    return Dispatch(workflow=WORKFLOW, ref=ref, correlation_id=correlation_id, inputs=tuple(inputs.items()))


def _kept(
    request: Request, connection: Connection, order: Dispatch, jobs: tuple[tuple[str, str], ...], folder: Path
) -> Kept:
    """Write down what is to be dispatched before anything of it is sent."""
    record = DispatchRecord(
        site=str(connection.site),
        workflow=order.workflow,
        ref=order.ref,
        correlation_id=order.correlation_id,
        models=dict(order.inputs)["models"],
        asked=asked_by(request),
        jobs=jobs,
    )
    return keep(record, folder / f"{order.correlation_id}.json")


def _dispatched(watch: Watch, order: Dispatch) -> Run:
    with watch.console.step("dispatch") as step:
        step.note(f"{watch.connection.site}, {order.ref}")
        return dispatch(watch.connection.client, watch.connection.repository, order)
