"""Where ortrim keeps what it can make or fetch again."""

from pathlib import Path

from platformdirs import user_cache_path

from ortrim.storage.files import chosen_folder, storage_errors


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
