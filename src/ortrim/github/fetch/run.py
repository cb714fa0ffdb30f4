"""Fetching what was built, for an app: look up, download, check, place and lock; or only place what is locked."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from ortrim.base.cache import locked_if_free
from ortrim.base.checksums import is_plain_path
from ortrim.base.console import Console
from ortrim.errors import NetworkError, StorageError, UsageError
from ortrim.github.client import GitHub, Remote, connect
from ortrim.github.fetch import placing
from ortrim.github.fetch.offers import EVERYTHING, Offer, Selection, look_up_release, look_up_run, newest_run
from ortrim.github.fetch.provenance import Attestation, ProvenanceClaim, ask_attestations, check_provenance
from ortrim.github.repositories import find_service, find_site

LONGEST: Final = 900
UPDATE: Final = "to change the lock file: --update"


@dataclass(frozen=True, kw_only=True)
class FetchRequest:
    """What the command line says, empty where it says nothing; `latest` asks for the newest run."""

    release: str = ""
    run: int = 0
    latest: bool = False
    selection: Selection = EVERYTHING
    offline: bool = False
    update: bool = False

    @property
    def says_which(self) -> bool:
        """Whether it names a release or a run, or asks for the newest one."""
        return bool(self.release or self.run or self.latest)


def completed(wanted: FetchRequest, lock: placing.Lock | None) -> FetchRequest | None:
    """Return what is to be looked up anew, or None when the lock file is to be followed.

    What an update does not say is taken from the lock file.
    """
    if sum(map(bool, (wanted.release, wanted.run, wanted.latest))) > 1:
        raise UsageError("bad-option", "only one of them can be fetched", where="--release, --run, --latest")
    said = wanted.release + wanted.selection.spec + wanted.selection.target
    if not said.isprintable() or len(said) > LONGEST:
        raise UsageError("bad-option", "no name is like that", where="--release, --spec, --target")
    if wanted.offline and (lock is None or wanted.update):
        what = f"without requests, only what a {placing.NAME} names can be fetched"
        raise UsageError(
            "offline-needs-lock", what, where="--offline", hint=f"fetch once with a network, keep {placing.NAME}"
        )
    if lock is not None and not wanted.update:
        _require_same(wanted, lock)
        return None
    if lock is not None:
        wanted = _filled(wanted, lock)
    if not wanted.says_which:
        hint = "--release TAG, --run ID, or --latest for the newest run; the lock file then records it"
        raise UsageError(
            "fetch-which",
            "there is neither a lock file nor an option that says what to fetch",
            where=placing.NAME,
            why="it is not there",
            hint=hint,
        )
    return wanted


def _require_same(wanted: FetchRequest, lock: placing.Lock) -> None:
    origin = lock.origin
    said = (
        ("--release", wanted.release, origin.release),
        ("--run", str(wanted.run or ""), str(origin.run or "")),
        ("--latest", "the newest run" * wanted.latest, ""),
        ("--spec", wanted.selection.spec, origin.spec),
        ("--target", wanted.selection.target, origin.target),
    )
    for option, asked, locked in said:
        if asked and asked != locked:
            why = f"given {asked}, locked to {locked or origin.words}"
            raise UsageError("lock-differs", f"{placing.NAME} says otherwise", where=option, why=why, hint=UPDATE)


def _filled(wanted: FetchRequest, lock: placing.Lock) -> FetchRequest:
    origin, selection = lock.origin, wanted.selection
    chosen = Selection(spec=selection.spec or origin.spec, target=selection.target or origin.target)
    if wanted.says_which:
        return replace(wanted, selection=chosen)
    return replace(wanted, selection=chosen, release=origin.release, run=origin.run)


SHOWN: Final = 10


def lost_attestation(before: placing.Lock | None, after: placing.Lock) -> str:
    """Return a warning when files were attested before and some are not any more, or by another workflow."""
    signers = {_workflow(file.signer) for file in before.files if file.signer} if before else set()
    others = [file.path for file in after.files if _workflow(file.signer) not in signers]
    if not signers or not others:
        return ""
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"files were attested by {', '.join(sorted(signers))} before; these are not now: {named}"


def _workflow(signer: str) -> str:
    """Return a workflow without the branch or tag that it ran for."""
    return signer.partition("@")[0]


def require_same_offer(lock: placing.Lock, offer: Offer, store: placing.Store | None) -> None:
    """Raise `NetworkError` (`lock-mismatch`), with what differs, unless an offer still has what was locked.

    Without a `store` only the archives are compared; commit and files are known once they are in the store. More than
    what was locked is no difference.
    """
    archives = {each.name: each.sha256 for each in offer.artifacts}
    differences = [*_differences({each.name: each.sha256 for each in lock.artifacts}, archives)]
    if store is not None:
        files = {each.path: each.sha256 for each in offer.files(store)}
        differences += _differences({"commit": lock.origin.commit}, {"commit": offer.commit(store)})
        differences += _differences({each.path: each.sha256 for each in lock.files}, files)
    if differences:
        more = [f"and {len(differences) - SHOWN} more"] * (len(differences) > SHOWN)
        what = f"{lock.origin.words} is not what {placing.NAME} says any more"
        why = "\n".join([*differences[:SHOWN], *more])
        hint = "find out who changed it; if that was intended: invoke fetch --update"
        raise NetworkError("lock-mismatch", what, where=offer.page, why=why, hint=hint)


def _differences(locked: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, value in locked.items():
        if now.get(name) != value:
            yield f"{name}: locked {value}, now {now.get(name, 'absent')}"


@dataclass(frozen=True, kw_only=True)
class App:
    """Where an app wants its files: `folder` has the lock file; `output` None means what the lock file says."""

    folder: Path
    output: Path | None = None


def recorded_output(app: App, before: placing.Lock | None) -> str:
    """Return the output that a lock file remembers: none outside of the app, where others have other folders."""
    given = app.output.as_posix() if app.output else ""
    usable = given and is_plain_path(given) and _is_inside(app, app.folder / given)
    return given if usable else before.output if before else placing.OUTPUT


def output_folder(app: App, lock: placing.Lock | None) -> Path:
    """Return where the files of an app go: into the user's folder, or else the lock file's.

    Who can change a lock file must not decide what is written elsewhere, through a link either.
    """
    output = app.folder / (app.output or (lock.output if lock else placing.OUTPUT))
    if app.output is None and not _is_inside(app, output):
        what, hint = (
            "the lock file's output folder leads out of the app through a link",
            "name another one: --update --output DIR",
        )
        raise UsageError("output-outside", what, where=str(output), why=f"it is {_real(output.parent)}", hint=hint)
    if _real(app.folder).is_relative_to(_real(output)):
        what, hint = "the app itself is in it, and would be replaced", "choose another folder with --output"
        raise StorageError("path-in-the-way", what, where=str(output), hint=hint)
    return output


def _is_inside(app: App, output: Path) -> bool:
    return _real(output.parent).is_relative_to(_real(app.folder))


def _real(path: Path) -> Path:
    """Return a path without links; `Path.resolve` would raise for one that leads to itself."""
    return Path(os.path.realpath(path))


def named_repository(remote: Remote, lock: placing.Lock | None) -> Remote:
    """Return the repository that the user named, or else the lock file's.

    Who can change a lock file must not decide who gets the user's token: the host is the user's to say.
    """
    if remote.repository or lock is None:
        return remote
    origin, host = lock.origin, find_service().host
    if origin.host.lower() != host.lower():
        what = f"{placing.NAME} names a repository at {origin.host}, and the token is for {host}"
        hint = f"if you trust it: --repo {origin.host}/{origin.repository}"
        raise UsageError("lock-other-host", what, where=placing.NAME, hint=hint)
    return replace(remote, repository=origin.repository)


def require_same_repository(remote: Remote, lock: placing.Lock) -> None:
    """Raise `UsageError` (`lock-differs`) when the user names another repository than the lock file does."""
    locked = f"{lock.origin.host}/{lock.origin.repository}"
    if remote.repository and str(find_site(remote.repository, Path())).lower() != locked.lower():
        why = f"given {remote.repository[:200]}, locked to {locked}"
        raise UsageError("lock-differs", f"{placing.NAME} says otherwise", where="--repo", why=why, hint=UPDATE)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """See to it that one fetch at a time is at work for an app."""
    name = sha256(str(folder.resolve()).encode()).hexdigest()
    with locked_if_free(placing.user_store().folder / "apps" / name) as alone:
        if not alone:
            what, hint = "another fetch is running here", "wait for it to end, then run the same command again"
            raise StorageError("fetch-under-way", what, where=str(folder), hint=hint)
        yield


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What was fetched: the lock, where the files lie, whether that changed, what is known of each file's origin."""

    lock: placing.Lock
    output: Path
    changed: bool
    attestations: dict[str, Attestation]


def fetch_files(wanted: FetchRequest, remote: Remote, app: App, console: Console) -> Fetched:
    """Fetch what is wanted, or what the lock file of the app says, and place it.

    Then folder and lock file are as they were.
    """
    with alone(app.folder):
        lock = placing.read_lock(app.folder / placing.NAME)
        output_folder(app, lock)  # refused before anything is asked
        anew = completed(wanted, lock)
        if anew is not None:
            return _fetch_anew(anew, lock, named_repository(remote, lock), app, console)
        assert lock is not None
        return _follow(lock, wanted, remote, app, console)


def _follow(lock: placing.Lock, wanted: FetchRequest, remote: Remote, app: App, console: Console) -> Fetched:
    """Make the files of a lock file again; GitHub is asked only for what is not in the cache."""
    require_same_repository(remote, lock)
    store = placing.user_store()
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


def _fetch_locked(lock: placing.Lock, client: GitHub, store: placing.Store, console: Console) -> None:
    origin, digests = lock.origin, {each.name: each.sha256 for each in lock.artifacts}
    selection = Selection(spec=origin.spec, target=origin.target)
    with console.step(f"look up {origin.words}"):
        offer = _offer(FetchRequest(release=origin.release, run=origin.run, selection=selection), client, digests)
        require_same_offer(lock, offer, None if offer.artifacts else store)
    _download(offer, client, store, console)
    require_same_offer(lock, offer, store)


def _fetch_anew(
    wanted: FetchRequest, before: placing.Lock | None, remote: Remote, app: App, console: Console
) -> Fetched:
    client, store = connect(remote, console), placing.user_store()
    wanted, offer = _looked_up(wanted, client, remote.workflow, console)
    _download(offer, client, store, console)
    files, commit = offer.files(store), offer.commit(store)
    claim = ProvenanceClaim(repository=_page(offer, client), commit=commit)
    with console.step("ask for attestations"):
        known = ask_attestations(client, claim, files, check_provenance)
    lock = placing.Lock(
        origin=placing.Origin(
            host=client.service.host,
            repository=str(client.repository),
            release=wanted.release,
            run=wanted.run,
            commit=commit,
            spec=wanted.selection.spec,
            target=wanted.selection.target,
        ),
        output=recorded_output(app, before),
        artifacts=offer.artifacts,
        files=tuple(
            placing.LockedFile(path=file.path, size=file.size_bytes, sha256=file.sha256, signer=known[file.path].signer)
            for file in files
        ),
    )
    if warning := lost_attestation(before, lock):
        console.warn(warning)

    def remember() -> None:
        if lock != before:
            placing.write_lock(app.folder / placing.NAME, lock)

    return _placed(lock, store, app, known, remember, recorded=_is_recorded(app, lock, before))


def _looked_up(wanted: FetchRequest, client: GitHub, workflow: str, console: Console) -> tuple[FetchRequest, Offer]:
    """Return what is wanted, the newest run by its number, and what there is of it."""
    with console.step(f"look up {wanted.release or wanted.run or 'the newest run'}") as step:
        if wanted.latest:
            number = newest_run(client, wanted.selection, workflow)
            wanted = replace(wanted, latest=False, run=number)
        offer = _offer(wanted, client, {})
        step.note(f"{client.site}: {offer.words}")
    return wanted, offer


def _offer(wanted: FetchRequest, client: GitHub, digests: dict[str, str]) -> Offer:
    if wanted.release:
        return look_up_release(client, wanted.release, wanted.selection)
    return look_up_run(client, wanted.run, wanted.selection, digests)


def _download(offer: Offer, client: GitHub, store: placing.Store, console: Console) -> None:
    with console.step(f"fetch from {client.site}") as step:
        downloads = offer.downloads(store)
        if not downloads:
            step.skip("all of it is in the cache")
            return
        step.note(placing.download_all(downloads, client, step).words)


def _is_recorded(app: App, lock: placing.Lock, before: placing.Lock | None) -> bool:
    """Whether the lock file that there was names the folder that is going to be replaced."""
    return before is not None and output_folder(app, lock) == app.folder / before.output


def _placed(
    lock: placing.Lock,
    store: placing.Store,
    app: App,
    known: dict[str, Attestation],
    when_ready: Callable[[], None] = lambda: None,
    *,
    recorded: bool,
) -> Fetched:
    output = output_folder(app, lock)
    changed = placing.place([file.entry for file in lock.files], store, output, when_ready, recorded=recorded)
    return Fetched(lock=lock, output=output, changed=changed, attestations=known)


def _page(offer: Offer, client: GitHub) -> str:
    """Return the repository's page, in capitals and small letters as GitHub writes it: certificates have it so."""
    asked = f"https://{client.site}"
    shown = offer.page[: len(asked)]
    return shown if shown.lower() == asked.lower() else asked
