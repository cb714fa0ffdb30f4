"""Caches in which nothing was built, beside what the user's has fetched and compiled."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder

FETCHED_OR_COMPILED: Final = ("apt", "compiler", "downloads", "packages", "sources", "zig")


def link_parts(folder: Path, parts: Mapping[str, Path]) -> None:
    for kind, part in parts.items():
        (folder / kind).symlink_to(part)


@contextmanager
def own_cache(folder: Path, *shared: str) -> Iterator[dict[str, str]]:
    """Lay out a cache in a folder, with the user's parts of some kinds, and give the environment that names it."""
    trees = cache_folder("trees")
    with tempfile.TemporaryDirectory(prefix="trees-of-a-test-", dir=trees.parent) as own:
        link_parts(folder, {kind: cache_folder(kind) for kind in shared} | {"trees": Path(own)})
        yield {**os.environ, "ORTRIM_CACHE": str(folder)}


def zig_of_tests() -> Path:
    """Return where zig keeps, from run to run, what it compiled of its own libraries: each time would take a minute."""
    return cache_folder("tests") / "zig"
