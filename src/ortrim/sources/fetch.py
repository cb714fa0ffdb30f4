"""Getting the sources: the one function that the rest of ortrim calls."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.errors import NetworkError, SourcesError, ToolError
from ortrim.pins.runtime import RuntimePins
from ortrim.pins.source_sets import ComponentPin
from ortrim.sources.archives import fetch_archives
from ortrim.sources.layout import lay_out
from ortrim.sources.resolution import Resolution, cached_choice, choices_of
from ortrim.sources.tree import SourceTree
from ortrim.storage.files import require_space
from ortrim.storage.records import cached_folder, is_kept

UNPACKED_BYTES: Final = 492_000_000
"""What the sources of 1.21.0 take, unpacked."""


def _silent(_: str) -> None:
    """Say nothing."""


def fetch_sources(
    runtime: RuntimePins,
    kind: str,
    path: Path | None = None,
    announce: Callable[[str], None] = _silent,
    *,
    unread: bool = False,
) -> SourceTree:
    """Return the unpacked sources of a version, fetching and checking what is not in the cache.

    `kind` is `archive`, `git`, `debian`, `path` (then `path` is a checkout; its dependencies come from archives)
    or `auto`: the first kind that is pinned and works. A tree in the cache is used without any network; it is checked
    unless it is to stay `unread` until `sound_sources` is asked for its folder.
    `announce` is told of each longer step. Raises `SourcesError` (`unpinned-source`, `no-source-works`,
    `digest-mismatch`, ...), `NetworkError` or `StorageError`; the cache then holds no part of a tree.
    """
    choices, notes = choices_of(runtime, kind, path)
    cached = cached_choice(choices)
    if cached is not None and (unread or is_kept(cached.folder, large=True)):
        return _tree(cached, () if kind != "auto" else (*notes, f"{cached.label}: taken from the cache"))
    return _first_that_works(choices, notes if kind == "auto" else (), announce)


def sound_sources(tree: SourceTree, announce: Callable[[str], None] = _silent) -> Path:
    """Return the folder of a tree, unpacked anew when it is not what it was. Raises as `fetch_sources` does."""
    if tree.resolution is not None:
        _publish(tree.resolution, announce)
    return tree.folder


def _publish(choice: Resolution, announce: Callable[[str], None]) -> None:
    cached_folder(choice.folder, partial(_fill, choice, announce), large=True)


def _first_that_works(
    choices: tuple[Resolution, ...], notes: tuple[str, ...], announce: Callable[[str], None]
) -> SourceTree:
    failures: list[SourcesError | NetworkError | ToolError] = []
    for choice in choices:
        try:
            _publish(choice, announce)
        except (SourcesError, NetworkError, ToolError) as error:
            failures.append(error)
            notes = (*notes, f"{choice.label}: {error.reference}: {error.what}")
        else:
            return _tree(choice, notes)
    if len(failures) == 1:
        raise failures[0]
    why = "\n".join([*notes, *(str(failure) for failure in failures)])
    hint = "mend one of them, or choose another with onnxruntime.source"
    raise SourcesError("no-source-works", "none of the pinned sources could be fetched", why=why, hint=hint)


def _fill(choice: Resolution, announce: Callable[[str], None], folder: Path) -> None:
    archives = list(choice.dependencies)
    if isinstance(choice.runtime, ComponentPin):
        archives.insert(0, choice.runtime)
    kept = fetch_archives(archives, choice.suite, announce)
    announce("unpack the sources")
    require_space(folder.parent, UNPACKED_BYTES, "unpacking the sources")
    lay_out(choice, kept, folder)


def _tree(choice: Resolution, notes: tuple[str, ...]) -> SourceTree:
    return SourceTree(folder=choice.folder, kind=choice.kind, pins=choice.pins, notes=notes, resolution=choice)
