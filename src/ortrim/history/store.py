"""The history's file: an SQLite database that several builds may write at once."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from ortrim.core.build_history import BuildEntry, BuiltModel, Measure, MeasuredOn
from ortrim.core.library_facts import ComponentSize
from ortrim.errors import StorageError
from ortrim.history.database import DAMAGED, opened
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import locked

NAME: Final = "history.sqlite3"
SIDE_FILES: Final = ("", "-wal", "-shm")
"""What the name of a database ends with: the file itself, and those of its write-ahead log."""
LISTS: Final = {"components": ComponentSize, "measures": Measure, "models": BuiltModel, "machines": MeasuredOn}
COLUMNS: Final = tuple(field.name for field in fields(BuildEntry) if field.name not in LISTS)


def record(path: Path, entry: BuildEntry) -> Path | None:
    """Add a build to the store. Returns and raises as `write_whole` does."""
    return write_whole(path, lambda connection: _add(connection, entry))


def write_whole(path: Path, write: Callable[[sqlite3.Connection], None]) -> Path | None:
    """Let `write` add to the store, which is made when there is none; all of it is written or nothing.

    A file that is damaged is set aside, a new one is begun, and the damaged file's new path is returned. Raises
    `StorageError` (`history-busy`, `history-newer`, `history-failed`, and as `storage_errors` does).
    """
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(path, write)
    except StorageError as error:
        if error.reference != DAMAGED:
            raise
    else:
        return None
    aside = _set_aside(path)
    _write(path, write)
    return aside


def builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the builds in the order in which they were recorded, all or those of a spec and a target.

    Raises `StorageError` (`history-missing`, `history-damaged` and as `record` does).
    """
    require_store(path)
    with opened(path) as connection:
        return tuple(numbered_builds(connection, spec=spec, target=target).values())


def require_store(path: Path) -> None:
    """Raise `StorageError` (`history-missing`) when there is no store."""
    if not path.is_file():
        hint = "every finished build that was verified is in it: run invoke build"
        raise StorageError("history-missing", "there is no history yet", where=str(path), hint=hint)


def numbered_builds(connection: sqlite3.Connection, *, spec: str = "", target: str = "") -> dict[int, BuildEntry]:
    """Return the builds by their numbers, in the order in which they were recorded."""
    wanted = {name: value for name, value in (("spec", spec), ("target", target)) if value}
    condition = " AND ".join(f"{name} = :{name}" for name in wanted) or "1"
    names = ", ".join(COLUMNS)
    found = connection.execute(f"SELECT id, {names} FROM builds WHERE {condition} ORDER BY id", wanted)  # noqa: S608
    return {row[0]: _entry(connection, row) for row in found.fetchall()}


def _entry(connection: sqlite3.Connection, row: tuple[Any, ...]) -> BuildEntry:
    number, *values = row
    found: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
    for name, kind in LISTS.items():
        found[name] = _rows(connection, name, kind, number)
    return BuildEntry(**found)


def _rows(connection: sqlite3.Connection, table: str, kind: Any, build: int) -> tuple[Any, ...]:
    names = [field.name for field in fields(kind)]
    columns = ", ".join(f'"{name}"' for name in names)
    found = connection.execute(f"SELECT {columns} FROM {table} WHERE build = ? ORDER BY rowid", (build,))  # noqa: S608
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in found.fetchall())


def _add(connection: sqlite3.Connection, entry: BuildEntry) -> None:
    number = insert(connection, "builds", {name: getattr(entry, name) for name in COLUMNS})
    for table in LISTS:
        for each in getattr(entry, table):
            insert(connection, table, {"build": number, **asdict(each)})


def _write(path: Path, write: Callable[[sqlite3.Connection], None]) -> None:
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        write(connection)
        connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int | None:
    """Insert a row and return its number; the names of table and columns are our own."""
    columns = ", ".join(f'"{name}"' for name in values)
    places = ", ".join(f":{name}" for name in values)
    return connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values).lastrowid  # noqa: S608


def _set_aside(path: Path) -> Path | None:
    """Give a damaged store another name; the path stays as it is when somebody else has mended it meanwhile."""
    with locked(path):
        try:
            with opened(path):
                return None
        except StorageError as error:
            if error.reference != DAMAGED:
                raise
        aside = next(each for number in range(1, 10_000) if not (each := _aside(path, number)).exists())
        with storage_errors(path):
            for ending in SIDE_FILES:
                with suppress(FileNotFoundError):
                    path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
        return aside


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")
