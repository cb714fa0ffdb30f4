"""Indices of units: those that travel with ortrim, and those that it has learnt on this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.units import LARGEST_INDEX, UnitIndex, Variant, bad_index, read_index, render_index
from ortrim.errors import SourcesError, StorageError
from ortrim.pins.shipped import pin_text
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.storage.records import is_kept, record_entry

LEARNT: Final = "units"


@dataclass(frozen=True, kw_only=True)
class IndexFound:
    """An index, None when there is none; `note` says why one that is there was set aside, and is empty otherwise."""

    index: UnitIndex | None
    note: str = ""


def find_index(variant: Variant) -> IndexFound:
    """Return the index of a variant: the shipped one, else the learnt one. Raises as `shipped_index` does."""
    shipped = shipped_index(variant)
    return learnt_index(variant) if shipped is None else IndexFound(index=shipped)


def shipped_index(variant: Variant) -> UnitIndex | None:
    """Return the index that is pinned for a variant, None when there is none.

    As of every pin file, one in the user's pins folder comes first. Raises `SourcesError` (`bad-unit-index`).
    """
    name = f"units/{variant.stem}.json"
    try:
        text = pin_text(name)
    except UnicodeDecodeError as error:
        raise bad_index(name, str(error)) from error
    return None if text is None else _index_of(variant, text, name)


def learnt_index(variant: Variant) -> IndexFound:
    """Return what an earlier full build taught; a file that cannot be read or believed is set aside with a note."""
    try:
        path = cache_folder(LEARNT) / f"{variant.stem}.json"
        content = None if path.is_file() and not is_kept(path) else _read(path)
        return IndexFound(index=None if content is None else _index_of(variant, content, str(path)))
    except (SourcesError, StorageError) as error:
        note = f"what was learnt of an earlier build is set aside: {error.where} {error.what} ({error.why})"
        return IndexFound(index=None, note=note)


def save_learnt(index: UnitIndex) -> Path:
    """Keep an index for later builds of its variant, in place of any older one; return its file.

    Raises `StorageError`; the older one then stays.
    """
    path = cache_folder(LEARNT) / f"{index.variant.stem}.json"
    write_atomically(path, render_index(index))
    record_entry(path)
    return path


def _index_of(variant: Variant, text: str | bytes, where: str) -> UnitIndex:
    index = read_index(text, where)
    if index.variant != variant:
        raise bad_index(where, f"it is the index of {index.variant.stem}, not of {variant.stem}")
    return index


def _read(path: Path) -> bytes | None:
    """Return a file's bytes, at most one more than an index may have; None when there is no such file."""
    with storage_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            return file.read(LARGEST_INDEX + 1)
