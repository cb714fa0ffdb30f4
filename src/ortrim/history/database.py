"""The history's file as SQLite sees it: opened with today's tables, and its errors in our words."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ortrim.errors import StorageError
from ortrim.history.schema import NewerStore, migrate

BUSY_SECONDS: Final = 5.0
"""How long a writer waits for another; after that a build goes on without."""
DAMAGED: Final = "history-damaged"
DAMAGE: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""What SQLite says of a file that is no store of ours; a table that is missing is an `SQLITE_ERROR`."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a store with today's tables, made when there is none; what is not committed in the end is undone.

    Raises `StorageError` (`history-damaged`, `history-busy`, `history-newer`, `history-failed`, `disk-full`), also for
    what the caller does with it.
    """
    with _diagnosed(path), closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
        yield connection


@contextmanager
def _diagnosed(path: Path) -> Iterator[None]:
    try:
        yield
    except NewerStore as error:
        what, hint = "a later version of ortrim made this history", "update ortrim, or move the file away"
        raise StorageError("history-newer", what, where=str(path), hint=hint) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter when SQLite quotes what is no text
        raise _storage_error(path, error) from error


def _storage_error(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StorageError:
    unreadable = isinstance(error, UnicodeDecodeError)
    code = sqlite3.SQLITE_CORRUPT if unreadable else getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    kind = code & 0xFF  # the rest tells more than is needed
    where, why = str(path), f"SQLite: {error}"
    if kind in DAMAGE:
        hint = "the next build sets it aside and begins a new one"
        return StorageError(DAMAGED, "the history is damaged", where=where, why=why, hint=hint)
    if kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StorageError("history-busy", "another program holds the history", where=where, why=why)
    if kind == sqlite3.SQLITE_FULL:
        return StorageError("disk-full", "there is no space left", where=where, why=why)
    return StorageError("history-failed", "the history cannot be read or written", where=where, why=why)
