"""The compiler cache of a build: objects compiled before, by any build of this user or of the team."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from ortrim.errors import Diagnostic
from ortrim.storage.files import storage_errors
from ortrim.tools.cache_settings import backend_variables, ccache_settings, chosen_backend
from ortrim.tools.ccache import ccache
from ortrim.tools.running_cache import CompilerCache
from ortrim.tools.sccache import sccache

__all__ = ["CompilerCache", "compiler_cache"]

Attempt = Callable[[], AbstractContextManager[CompilerCache]]


@contextmanager
def compiler_cache(
    programs: Path,
    folder: Path,
    base_folders: tuple[Path, ...],
    on_note: Callable[[str], None],
    *,
    stores: bool = True,
) -> Iterator[CompilerCache | None]:
    """Keep a compiler cache ready for the time of one build; None when none can be used.

    `programs` holds `ccache` and `sccache`; objects lie below `folder`, which any number of builds share. All of
    sources, build and tools lies below `base_folders`, so that a hit does not depend on where these are. The user's
    environment may name a store that a team shares; it is left out when no `stores` can be reached. A build without a
    cache is slow, not wrong: a cache that cannot be used is told to `on_note` in one line and the next best one is
    taken.
    """
    with ExitStack() as stack:
        attempts = (_attempts if stores else _attempts_here)(programs, folder, base_folders)
        yield next((cache for attempt in attempts if (cache := _entered(stack, attempt, on_note))), None)


def _attempts(programs: Path, folder: Path, base_folders: tuple[Path, ...]) -> Iterator[Attempt]:
    """Return the caches to try: the team's by either program, then this machine's."""
    backend, wishes = chosen_backend(os.environ), ccache_settings(os.environ)
    if backend:
        name, secrets = backend.name, backend_variables(os.environ)
        yield lambda: sccache(programs / "sccache", folder / "sccache", base_folders, name, secrets)
    if wishes:
        yield lambda: ccache(programs / "ccache", _made(folder / "ccache"), base_folders, wishes)
    yield lambda: ccache(programs / "ccache", _made(folder / "ccache"), base_folders, {})


def _attempts_here(programs: Path, folder: Path, base_folders: tuple[Path, ...]) -> Iterator[Attempt]:
    """Return the caches to try that need no network; the user's limit for this machine's cache holds all the same."""
    limit = {name: value for name, value in ccache_settings(os.environ).items() if name == "max_size"}
    yield lambda: ccache(programs / "ccache", _made(folder / "ccache"), base_folders, limit)


def _entered(stack: ExitStack, attempt: Attempt, on_note: Callable[[str], None]) -> CompilerCache | None:
    try:
        return stack.enter_context(attempt())
    except (Diagnostic, OSError) as error:
        on_note(f"compiler cache: {_in_one_line(error)}")
        return None


def _in_one_line(error: Diagnostic | OSError) -> str:
    told = f"{error.where} {error.what}: {error.why}" if isinstance(error, Diagnostic) else str(error)
    return " ".join(told.split())


def _made(folder: Path) -> Path:
    """Make the folder, so that what is in its way is told in the words of every other such message."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
