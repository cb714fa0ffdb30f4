"""An app that fetches: its folder, its output, and the repository that its lock file names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ortrim.core.sums import is_plain_path
from ortrim.errors import StorageError, UsageError
from ortrim.fetch.lock import NAME, OUTPUT, Lock
from ortrim.fetch.request import UPDATE
from ortrim.fetch.store import user_store
from ortrim.github.addresses import find_service
from ortrim.github.repositories import find_site
from ortrim.pipeline.github.connection import Remote
from ortrim.storage.folders import locked_if_free


@dataclass(frozen=True, kw_only=True)
class App:
    """Where an app wants its files: `folder` has the lock file; `output` None means what the lock file says."""

    folder: Path
    output: Path | None = None


def recorded_output(app: App, before: Lock | None) -> str:
    """Return the output that a lock file remembers: none outside of the app, where others have other folders."""
    given = app.output.as_posix() if app.output else ""
    usable = given and is_plain_path(given) and _is_inside(app, app.folder / given)
    return given if usable else before.output if before else OUTPUT


def output_folder(app: App, lock: Lock | None) -> Path:
    """Return where the files of an app go: into the user's folder, or else the lock file's.

    Who can change a lock file must not decide what is written elsewhere, through a link either. Raises `UsageError`
    (`output-outside`) for that, and `StorageError` (`path-in-the-way`) where the app itself would have to go.
    """
    output = app.folder / (app.output or (lock.output if lock else OUTPUT))
    if app.output is None and not _is_inside(app, output):
        what, hint = "a link leads the lock file's output out of the app", "name another one: --update --output DIR"
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


def named_repository(remote: Remote, lock: Lock | None) -> Remote:
    """Return the repository that the user named, or else the lock file's.

    Who can change a lock file must not decide who gets the user's token: the host is the user's to say. Raises
    `UsageError` (`lock-other-host`).
    """
    if remote.repository or lock is None:
        return remote
    origin, host = lock.origin, find_service().host
    if origin.host.lower() != host.lower():
        what = f"{NAME} names a repository at {origin.host}, and the token is for {host}"
        hint = f"if you trust it: --repo {origin.host}/{origin.repository}"
        raise UsageError("lock-other-host", what, where=NAME, hint=hint)
    return replace(remote, repository=origin.repository)


def require_same_repository(remote: Remote, lock: Lock) -> None:
    """Raise `UsageError` (`lock-differs`) when the user names another repository than the lock file does."""
    locked = f"{lock.origin.host}/{lock.origin.repository}"
    if remote.repository and str(find_site(remote.repository, Path())).lower() != locked.lower():
        why = f"asked for {remote.repository[:200]}, locked to {locked}"
        raise UsageError("lock-differs", f"{NAME} says otherwise", where="--repo", why=why, hint=UPDATE)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """See to it that one fetch at a time is at work for an app. Raises `StorageError` (`fetch-under-way`)."""
    name = sha256(str(folder.resolve()).encode()).hexdigest()
    with locked_if_free(user_store().folder / "apps" / name) as alone:
        if not alone:
            what, hint = "another fetch is at work here", "wait for it to end, then run the same command again"
            raise StorageError("fetch-under-way", what, where=str(folder), hint=hint)
        yield
