"""The folders that cases work in: caches of their own, in which what is fetched lies already."""

import os
import shutil
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, publish_folder

FETCHED: Final = ("apt", "cases", "conversions", "downloads", "models", "packages", "runners", "zig")
"""Kinds of things in a cache that every case finds there: none of them holds a compiled part of a library."""
SOURCES: Final = "sources"
COMPILER: Final = "compiler"


def empty_cache(folder: Path) -> Path:
    """Make `folder` a cache, `ORTRIM_CACHE` for one case, that has what is fetched in this user's and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind in FETCHED:
        (folder / kind).symlink_to(cache_folder(kind))
    return folder


def with_sources(folder: Path, sources: Path) -> Path:
    """Return a cache's own tree of the same sources, where `invoke build` has them: beside the build trees."""
    own = folder / SOURCES / sources.name
    publish_folder(own, lambda temporary: _link(sources, temporary))
    return own


def save(folder: Path, copy: Path) -> None:
    """Keep a copy of a cache without its sources, times included; links stay links."""
    shutil.rmtree(copy, ignore_errors=True)
    publish_folder(copy, lambda temporary: _copy(folder, temporary))


def restore(copy: Path, folder: Path) -> Path:
    """Bring a cache back to where it was: build trees hold their own paths."""
    shutil.rmtree(folder, ignore_errors=True)
    _copy(copy, folder)
    return folder


def other_cache(copy: Path, folder: Path) -> Path:
    """Make `folder` an empty cache with the compiled objects of a saved one."""
    empty_cache(folder)
    if (copy / COMPILER).is_dir():
        _copy(copy / COMPILER, folder / COMPILER)
    return folder


def read_through(*folders: Path) -> int:
    """Read all files below some folders, so that no case pays for the disk; return the bytes."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                total += len(path.read_bytes())
    return total


def forget_others(folder: Path) -> None:
    """Remove the folders beside `folder`: what was kept for jobs that are not measured any more."""
    for other in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _copy(folder: Path, copy: Path) -> None:
    def skipped(where: str, _names: list[str]) -> list[str]:
        return [SOURCES] if Path(where) == folder else []

    shutil.copytree(folder, copy, symlinks=True, dirs_exist_ok=True, ignore=skipped)


def _link(folder: Path, copy: Path) -> None:
    shutil.copytree(folder, copy, symlinks=True, dirs_exist_ok=True, copy_function=_link_file)


def _link_file(source: str, destination: str) -> None:
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError:  # another disk
        shutil.copy2(source, destination, follow_symlinks=False)
