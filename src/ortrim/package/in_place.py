"""Folders that are written again and again while others keep files of their own in them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from ortrim.package.contents import PackagedFile
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.storage.folders import locked


def write_in_place(destination: Path, files: Sequence[PackagedFile], owned: str) -> None:
    """Write files into a folder, in their order; those that hold the same already are left alone.

    Below the inner folder `owned` nothing else stays; what else is in the destination does. Raises `StorageError`;
    what was written before that stays, so that a second try has less to do.
    """
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
    with locked(destination), storage_errors(destination):
        _remove_others(destination, owned, {file.path for file in files})
        for file in files:
            _bring(destination / file.path, file)


def _remove_others(destination: Path, owned: str, wanted: set[str]) -> None:
    """Remove files that are not wanted any more, links, and folders that are empty then."""
    for path in sorted((destination / owned).rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.is_symlink() or path.relative_to(destination).as_posix() not in wanted:
            path.unlink()


def _bring(path: Path, file: PackagedFile) -> None:
    entry = file.entry
    if path.is_file() and PackagedFile(path=file.path, content=path).entry == entry:
        return
    if isinstance(file.content, bytes):
        write_atomically(path, file.content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    try:
        shutil.copyfile(file.content, temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
