"""The containers of this user's ortrim: their names, the sign that they are in use, and those that were left."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ortrim.errors import Diagnostic
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import locked, locked_if_free
from ortrim.tools.command import run
from ortrim.tools.containers_choice import ANSWER_SECONDS, UsableEngine

REMOVAL_SECONDS: Final = 120.0
PIPE: Final = "alive"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make the folder of one container, called as that is, and hold its lock; both are gone afterwards.

    It holds a pipe that ends with this program, however that comes.
    """
    folder = cache_folder("containers") / f"{_prefix()}{secrets.token_hex(6)}"
    with locked(folder):
        try:
            with storage_errors(folder):
                folder.mkdir()
                os.mkfifo(folder / PIPE)
                pipe = os.open(folder / PIPE, os.O_RDWR)
            try:
                yield folder
            finally:
                os.close(pipe)
        finally:
            _forget(folder)


def owner() -> str:
    """Return what tells this cache folder from those of other users of the same engine."""
    return hashlib.sha256(str(cache_folder("containers")).encode()).hexdigest()[:12]


def remove(usable: UsableEngine, name: str) -> None:
    """Remove a container that may be gone already; what cannot be removed now is a leftover for the next run."""
    with suppress(Diagnostic):
        run(usable.engine.remove(name), timeout_seconds=REMOVAL_SECONDS)


def remove_leftovers(usable: UsableEngine) -> tuple[str, ...]:
    """Remove the containers and folders that killed runs of this cache folder left; return the containers' names."""
    listed = run(usable.engine.list_owned(owner()), timeout_seconds=ANSWER_SECONDS).stdout
    names = tuple(name for name in map(str.strip, listed.splitlines()) if name.startswith(_prefix()))
    removed = tuple(name for name in names if _removed_if_dead(usable, name))
    for folder in cache_folder("containers").glob(f"{_prefix()}*"):
        if folder.name not in names:
            with locked_if_free(folder) as free:
                if free:
                    _forget(folder)
    return removed


def _removed_if_dead(usable: UsableEngine, name: str) -> bool:
    folder = cache_folder("containers") / name
    with locked_if_free(folder) as free:
        if free:
            remove(usable, name)
            _forget(folder)
    return free


def _forget(folder: Path) -> None:
    """Remove a container's folder and lock file; names are never used again, so nobody waits for the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f".{folder.name}.lock").unlink(missing_ok=True)


def _prefix() -> str:
    return f"ortrim-{owner()}-"
