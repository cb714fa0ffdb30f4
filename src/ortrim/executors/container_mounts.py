"""What a job's container sees of this machine: its own folders, under their own names, and nothing else."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ortrim.executors.paths import JobPaths
from ortrim.storage.cache import cache_folder
from ortrim.tools.containers import Mount

WRITTEN: Final = ("ZIG_GLOBAL_CACHE_DIR",)
"""Variables of a job that name folders it writes into."""
CONFIGURATION: Final = "CCACHE_CONFIGPATH"
"""The variable that names the compiler cache's settings; beside them ccache writes what it counted."""


def job_mounts(paths: JobPaths, environment: Mapping[str, str]) -> tuple[Mount, ...]:
    """Return the mounts of a job: sources and tools read-only, the build folder and the caches to be written to.

    Folders have the same name inside, so that a build tree, its compiler cache keys and its commands are those that
    the native executor would have.
    """
    read = (paths.sources, paths.tools, paths.runner, *_linked(paths))
    written = (paths.build.parent, *_caches(environment, paths.build.parent))
    return (
        *(Mount(source=folder, target=str(folder)) for folder in read),
        *(Mount(source=folder, target=str(folder), writable=True) for folder in written),
    )


def _linked(paths: JobPaths) -> tuple[Path, ...]:
    """Return the folder of the static library that a runner links, if it does."""
    return () if paths.archive == Path() else (paths.archive.parent,)


def _caches(environment: Mapping[str, str], own: Path) -> Iterator[Path]:
    for name in WRITTEN:
        if name in environment and not Path(environment[name]).is_relative_to(own):
            yield Path(environment[name])
    if CONFIGURATION in environment:
        yield cache_folder("compiler")
        yield Path(environment[CONFIGURATION]).parent
