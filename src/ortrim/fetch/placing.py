"""Putting fetched files where an app's build takes them: all of them at once, or none."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ortrim.core.sums import LARGEST_SUMS, SUMS, FileEntry, parse_sums, sums_text
from ortrim.errors import StorageError
from ortrim.fetch.store import Store
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.folders import remove_leftovers

SHOWN: Final = 5


def place(
    files: Sequence[FileEntry],
    store: Store,
    output: Path,
    when_placed: Callable[[], None] = lambda: None,
    *,
    recorded: bool = False,
) -> bool:
    """Make a folder hold these files of the store and their `SHA256SUMS`, and nothing else.

    Returns False when it does so already. An earlier one is replaced as a whole, unless it has files that were not
    fetched: of a folder that the lock file has not `recorded` as the output, only what is still in the store counts as
    fetched, since other programs write `SHA256SUMS`, too. `when_placed` is called when the files are in their place; if
    it raises, they are taken back. The caller sees to it that nobody else is at work there. Raises `StorageError`
    (`path-in-the-way`, `cache-damaged`, or what the disk says), and what `when_placed` raises; then the folder is as it
    was.
    """
    with storage_errors(output):
        if _is_right(files, output):
            when_placed()
            return False
        _require_own(output, None if recorded else store)
        output.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(output)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.partial-") as work:
            _fill(Path(work) / "new", files, store)
            _swap(output, Path(work), when_placed)
    return True


def _is_right(files: Iterable[FileEntry], output: Path) -> bool:
    if output.is_symlink() or not output.is_dir():
        return False
    wanted = {entry.path: entry for entry in files}
    if _inside(output) != {*wanted, SUMS} or (output / SUMS).read_bytes() != sums_text(wanted.values()).encode():
        return False
    return all(_is_as_listed(output / path, entry) for path, entry in wanted.items())


def _is_as_listed(path: Path, entry: FileEntry) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and path.stat().st_size == entry.size_bytes and sha256_of(path) == entry.sha256


def _inside(folder: Path) -> set[str]:
    """Return what is in a folder, but for folders with something in them; links count as themselves."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in found}


def _require_own(output: Path, store: Store | None) -> None:
    """Refuse a folder that holds what was not fetched, for it is going to be removed."""
    hint = "move it away, or choose another folder with --output"
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise StorageError("path-in-the-way", "is not a folder of its own", where=str(output), hint=hint)
    strange = sorted(_inside(output) - _fetched(output, store)) if output.is_dir() else []
    if strange:
        what = "holds something that was not fetched, and would be lost"
        why = ", ".join(strange[:SHOWN]) + (", ..." if len(strange) > SHOWN else "")
        raise StorageError("path-in-the-way", what, where=str(output), why=why, hint=hint)


def _fetched(output: Path, store: Store | None) -> set[str]:
    """Return what a folder's `SHA256SUMS` lists; with a store, what of that the store has."""
    try:
        with (output / SUMS).open("rb") as file:
            listed = parse_sums(file.read(LARGEST_SUMS + 1).decode())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return set()
    return {SUMS, *(path for path, sha256 in listed.items() if store is None or store.path_of(sha256).is_file())}


def _fill(folder: Path, files: Iterable[FileEntry], store: Store) -> None:
    folder.mkdir(mode=0o755)
    for entry in files:
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        store.copy(entry, path)
    (folder / SUMS).write_bytes(sums_text(files).encode())  # the same bytes on every system


def _swap(output: Path, work: Path, when_placed: Callable[[], None]) -> None:
    with ExitStack() as undo:
        if output.exists():
            output.rename(work / "old")
            undo.callback((work / "old").rename, output)
        (work / "new").rename(output)
        undo.callback(output.rename, work / "new")
        when_placed()
        undo.pop_all()
    shutil.rmtree(work / "old", ignore_errors=True)
