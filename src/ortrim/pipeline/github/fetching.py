"""Fetching what was built, for an app: look up, download, check, place, lock; or only place what is locked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ortrim.console import Console
from ortrim.core.sums import FileEntry
from ortrim.errors import StorageError
from ortrim.fetch.attested import Attestation, ask_attestations
from ortrim.fetch.lock import NAME, Lock
from ortrim.fetch.lock_file import read_lock, write_lock
from ortrim.fetch.locked import locked_files, lost_attestation, new_origin, require_same_offer
from ortrim.fetch.names import Selection
from ortrim.fetch.offers import Offer
from ortrim.fetch.placing import place
from ortrim.fetch.provenance import Claim, check_provenance
from ortrim.fetch.release_offers import look_up_release
from ortrim.fetch.request import Wanted, completed
from ortrim.fetch.run_offers import look_up_run, newest_run
from ortrim.fetch.side_by_side import download_all
from ortrim.fetch.store import Store, user_store
from ortrim.pipeline.github.apps import (
    App,
    alone,
    named_repository,
    output_folder,
    recorded_output,
    require_same_repository,
)
from ortrim.pipeline.github.connection import Connection, Remote, connect


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What was fetched: the lock, where the files lie, whether that changed, what is known of each file's origin."""

    lock: Lock
    output: Path
    changed: bool
    attestations: dict[str, Attestation]


def fetch_files(wanted: Wanted, remote: Remote, app: App, console: Console) -> Fetched:
    """Fetch what is wanted, or what the lock file of the app says, and place it.

    Raises `UsageError` (as `completed`; `lock-other-host`), `StorageError` (`fetch-under-way`, `not-in-cache`),
    `NetworkError` (`lock-mismatch`), as `output_folder` does, and what looking up, downloading, checking and placing
    raise. Then folder and lock file are as they were.
    """
    with alone(app.folder):
        lock = read_lock(app.folder / NAME)
        output_folder(app, lock)  # refused before anything is asked
        anew = completed(wanted, lock)
        if anew is not None:
            return _fetch_anew(anew, lock, named_repository(remote, lock), app, console)
        assert lock is not None
        return _follow(lock, wanted, remote, app, console)


def _follow(lock: Lock, wanted: Wanted, remote: Remote, app: App, console: Console) -> Fetched:
    """Make the files of a lock file again; GitHub is asked only for what is not in the cache."""
    require_same_repository(remote, lock)
    store = user_store()
    missing = store.missing(file.entry for file in lock.files)
    if missing and wanted.offline:
        what = f"{missing[0].path} and {len(missing) - 1} more are not in the cache"
        hint = "fetch once without --offline"
        raise StorageError("not-in-cache", what, where=str(store.folder), hint=hint)
    if missing:
        _fetch_locked(lock, connect(named_repository(remote, lock), console), store, console)
    known = {
        file.path: Attestation(signer=file.signer, words=f"locked: attested by {file.signer}")
        if file.signer
        else Attestation(words="locked without a checked attestation")
        for file in lock.files
    }
    return _placed(lock, store, app, known, recorded=_is_recorded(app, lock, lock))


def _fetch_locked(lock: Lock, connection: Connection, store: Store, console: Console) -> None:
    origin, digests = lock.origin, {each.name: each.sha256 for each in lock.artifacts}
    selection = Selection(spec=origin.spec, target=origin.target)
    with console.step(f"look up {origin.words}"):
        offer = _offer(Wanted(release=origin.release, run=origin.run, selection=selection), connection, digests)
        require_same_offer(lock, offer, None if offer.artifacts else store)
    _download(offer, connection, store, console)
    require_same_offer(lock, offer, store)


def _fetch_anew(wanted: Wanted, before: Lock | None, remote: Remote, app: App, console: Console) -> Fetched:
    connection, store = connect(remote, console), user_store()
    wanted, offer = _looked_up(wanted, connection, console)
    _download(offer, connection, store, console)
    files, commit = offer.files(store), offer.commit(store)
    claim = Claim(repository=_page(offer, connection), commit=commit)
    known = _attested(claim, files, connection, console)
    lock = Lock(
        origin=new_origin(wanted, commit, connection.site),
        output=recorded_output(app, before),
        artifacts=offer.artifacts,
        files=locked_files(files, known),
    )
    if warning := lost_attestation(before, lock):
        console.warn(warning)
    remember = partial(_remember, app, lock, before)
    return _placed(lock, store, app, known, remember, recorded=_is_recorded(app, lock, before))


def _looked_up(wanted: Wanted, connection: Connection, console: Console) -> tuple[Wanted, Offer]:
    """Return what is wanted, the newest run by its number, and what there is of it."""
    with console.step(f"look up {wanted.release or wanted.run or 'the newest run'}") as step:
        if wanted.latest:
            number = newest_run(connection.client, connection.repository, wanted.selection)
            wanted = replace(wanted, latest=False, run=number)
        offer = _offer(wanted, connection, {})
        step.note(f"{connection.site}: {offer.words}")
    return wanted, offer


def _attested(
    claim: Claim, files: Sequence[FileEntry], connection: Connection, console: Console
) -> dict[str, Attestation]:
    with console.step("ask for attestations"):
        return ask_attestations(connection.client, connection.repository, claim, files, check_provenance)


def _offer(wanted: Wanted, connection: Connection, digests: dict[str, str]) -> Offer:
    client, repository = connection.client, connection.repository
    if wanted.release:
        return look_up_release(client, repository, wanted.release, wanted.selection)
    return look_up_run(client, repository, wanted.run, wanted.selection, digests)


def _download(offer: Offer, connection: Connection, store: Store, console: Console) -> None:
    with console.step(f"fetch from {connection.site}") as step:
        downloads = offer.downloads(store)
        if not downloads:
            step.skip("all of it is in the cache")
            return
        step.note(download_all(downloads, connection.client, step).words)


def _is_recorded(app: App, lock: Lock, before: Lock | None) -> bool:
    """Whether the lock file that there was names the folder that is going to be replaced."""
    return before is not None and output_folder(app, lock) == app.folder / before.output


def _remember(app: App, lock: Lock, before: Lock | None) -> None:
    if lock != before:
        write_lock(app.folder / NAME, lock)


def _placed(
    lock: Lock,
    store: Store,
    app: App,
    known: dict[str, Attestation],
    when_ready: Callable[[], None] = lambda: None,
    *,
    recorded: bool,
) -> Fetched:
    output = output_folder(app, lock)
    changed = place([file.entry for file in lock.files], store, output, when_ready, recorded=recorded)
    return Fetched(lock=lock, output=output, changed=changed, attestations=known)


def _page(offer: Offer, connection: Connection) -> str:
    """Return the repository's page, in capitals and small letters as GitHub writes it: certificates have it so."""
    asked = f"https://{connection.site}"
    shown = offer.page[: len(asked)]
    return shown if shown.lower() == asked.lower() else asked
