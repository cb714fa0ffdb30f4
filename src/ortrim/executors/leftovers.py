"""What compilers leave in a build tree that nobody reads again."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ortrim.executors.paths import JobPaths


@contextmanager
def without_leftovers(paths: JobPaths) -> Iterator[None]:
    """Remove what an earlier build left in a tree when it was killed, and in the end what this one leaves.

    That is zig's local cache: an empty folder for each compilation, and a second copy of the precompiled header, a
    third of what a kept tree takes. And a precompiled header that was never finished; see `toolchains.wrappers`. What
    cannot be removed does no harm.
    """
    _remove(paths)
    try:
        yield
    finally:
        _remove(paths)


def _remove(paths: JobPaths) -> None:
    shutil.rmtree(paths.compiler_scratch, ignore_errors=True)
    for half in paths.configured.glob("precompiled-*.pch.*"):
        with suppress(OSError):
            half.unlink()
