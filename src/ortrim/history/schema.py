"""The tables of the history, and how an older store becomes one of today.

`user_version` is the number of steps that a store has gone through. A step, once released, is never edited: what comes
later is a further step. Figures of other kinds of work get tables of their own that refer to `builds`.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

STEPS: Final[Sequence[tuple[str, ...]]] = (
    (
        """CREATE TABLE builds (
            id INTEGER PRIMARY KEY,
            recorded_at TEXT NOT NULL,
            spec TEXT NOT NULL,
            target TEXT NOT NULL,
            profile TEXT NOT NULL,
            ort_version TEXT NOT NULL,
            ortrim_version TEXT NOT NULL,
            plan_digest TEXT NOT NULL,
            verdict TEXT NOT NULL,
            package_bytes INTEGER NOT NULL,
            file_bytes INTEGER NOT NULL,
            loadable_bytes INTEGER NOT NULL,
            compressed_bytes INTEGER NOT NULL,
            build_seconds REAL NOT NULL
        ) STRICT""",
        "CREATE INDEX builds_of_target ON builds (spec, target, profile, id)",
        """CREATE TABLE components (
            build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
            component TEXT NOT NULL,
            size_bytes INTEGER NOT NULL
        ) STRICT""",
        "CREATE INDEX components_of_build ON components (build)",
        """CREATE TABLE measures (
            build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
            device TEXT NOT NULL,
            model TEXT NOT NULL,
            "case" TEXT NOT NULL,
            measure TEXT NOT NULL,
            unit TEXT NOT NULL,
            value REAL NOT NULL
        ) STRICT""",
        "CREATE INDEX measures_of_build ON measures (build)",
    ),
)


class NewerStore(Exception):
    """A later version of ortrim made the store; this one must not touch it."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store to today's tables, in one transaction that other writers wait for.

    Raises `NewerStore`, and `sqlite3.Error` for what is no store of ours.
    """
    if _version(connection) == len(STEPS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _take_steps(connection, _version(connection))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _take_steps(connection: sqlite3.Connection, version: int) -> None:
    if version > len(STEPS):
        raise NewerStore
    for step in STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
