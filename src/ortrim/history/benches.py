"""Benches in the history: a row of `benches` for each point that was measured, its figures in `bench_measures`."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from ortrim.core.bench_history import BenchEntry, BenchMeasure
from ortrim.history.database import opened
from ortrim.history.store import insert, write_whole

COLUMNS: Final = tuple(field.name for field in fields(BenchEntry) if field.name != "measures")
MEASURES: Final = tuple(field.name for field in fields(BenchMeasure))


def record_all(path: Path, entries: Sequence[BenchEntry]) -> Path | None:
    """Add the entries of one bench to the store. Returns and raises as `write_whole` does."""
    return write_whole(path, lambda connection: _add(connection, entries))


def benches(path: Path, *, spec: str = "", target: str = "") -> tuple[BenchEntry, ...]:
    """Return the benches in the order in which they were recorded, all or those of a spec and a target.

    Raises `StorageError` (`history-damaged` and as `write_whole` does).
    """
    with opened(path) as connection:
        wanted = {name: value for name, value in (("spec", spec), ("target", target)) if value}
        condition = " AND ".join(f"{name} = :{name}" for name in wanted) or "1"
        names = ", ".join(COLUMNS)
        found = connection.execute(f"SELECT id, {names} FROM benches WHERE {condition} ORDER BY id", wanted)  # noqa: S608
        return tuple(_entry(connection, row) for row in found.fetchall())


def _entry(connection: sqlite3.Connection, row: tuple[Any, ...]) -> BenchEntry:
    number, *values = row
    columns = ", ".join(f'"{name}"' for name in MEASURES)
    query = f"SELECT {columns} FROM bench_measures WHERE bench = ? ORDER BY rowid"  # noqa: S608
    measures = tuple(
        BenchMeasure(**dict(zip(MEASURES, each, strict=True)))
        for each in connection.execute(query, (number,)).fetchall()
    )
    found: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
    return BenchEntry(**found, measures=measures)


def _add(connection: sqlite3.Connection, entries: Sequence[BenchEntry]) -> None:
    for entry in entries:
        number = insert(connection, "benches", {name: getattr(entry, name) for name in COLUMNS})
        for each in entry.measures:
            insert(connection, "bench_measures", {"bench": number, **asdict(each)})
