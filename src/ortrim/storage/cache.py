"""Where ortrim keeps what it can make or fetch again."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder(kind: str) -> Path:
    """Return the cache folder for one kind of thing (`sources`, `tools`, ...), created when absent.

    It lies in the user's cache folder unless the environment variable `ORTRIM_CACHE` names another.
    """
    chosen = os.environ.get("ORTRIM_CACHE")
    folder = (Path(chosen) if chosen else user_cache_path("ortrim")) / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder
