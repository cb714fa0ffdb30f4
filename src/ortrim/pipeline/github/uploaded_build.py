"""`invoke build --executor github --upload-models`: everything is done there, parity too, and the delivery comes home.

Models lie in the repository, which has to be private, under a ref that is no branch, as long as the run needs them.
"""

import hashlib
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.delivery import WORKFLOW
from ortrim.core.reports import VerifyReport
from ortrim.core.serialization import to_canonical_json
from ortrim.github.dispatch import Dispatch, dispatch
from ortrim.github.git_objects import create_ref, require_private, store_commit, store_file
from ortrim.github.records import Run
from ortrim.github.refs import choose_ref
from ortrim.pipeline.converted import Request, load, prepared_models
from ortrim.pipeline.github.connection import Connection, Remote, connect
from ortrim.pipeline.github.dispatch_records import FOLDER, DispatchRecord, Kept, asked_by, keep
from ortrim.pipeline.github.left_models import sweep_models
from ortrim.pipeline.github.run_followed import UNCERTAIN, WantsCancel, Watch
from ortrim.pipeline.github.taking_up import run_to_take_up
from ortrim.pipeline.github.uploaded_run import delivered, removed_on_error
from ortrim.pipeline.github.uploads import Bundle, bundle
from ortrim.pipeline.planned import host_target
from ortrim.planning import select_targets
from ortrim.storage.files import require_writable, sha256_of, storage_errors
from ortrim.storage.folders import locked
from ortrim.workflows.inputs import OF_THE_SPEC, UPLOADED

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
