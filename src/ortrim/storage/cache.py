"""Where ortrim keeps what it can make or fetch again."""

import os
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from ortrim.errors import StorageError
from ortrim.storage.files import storage_errors


def cache_folder(kind: str) -> Path:
    """Return the cache folder for one kind of thing (`sources`, `tools`, ...), absolute, created when absent.

    It lies in the user's cache folder unless the environment variable `ORTRIM_CACHE` names another. Symbolic links in
    it are followed: upstream's `build.py` does so too, and the paths that are kept out of objects and of compiler
    cache keys have to be those that the compiler sees. Raises `StorageError` when it cannot be made, `no-home` among
    them.
    """
    folder = chosen_folder("ORTRIM_CACHE", user_cache_path) / kind
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve()


def chosen_folder(variable: str, otherwise: Callable[[str], Path]) -> Path:
    """Return the folder that an environment variable names, absolute, or else ortrim's own among the user's.

    Raises `StorageError` (`no-home`) for a user without a home folder, such as a container's that is only a number.
    """
    chosen = os.environ.get(variable)
    try:
        return Path(chosen).expanduser().absolute() if chosen else otherwise("ortrim")
    except RuntimeError as error:
        hint = f"set HOME, or name a folder by its whole path in the environment variable {variable}"
        raise StorageError(
            "no-home", "this user has no home folder", where=variable, why=str(error), hint=hint
        ) from error
