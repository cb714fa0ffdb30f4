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
    (
        """CREATE TABLE benches (
            id INTEGER PRIMARY KEY,
            recorded_at TEXT NOT NULL,
            spec TEXT NOT NULL,
            target TEXT NOT NULL,
            model TEXT NOT NULL,
            model_sha256 TEXT NOT NULL,
            training_run TEXT NOT NULL,
            library TEXT NOT NULL,
            library_sha256 TEXT NOT NULL,
            ort_version TEXT NOT NULL,
            ortrim_version TEXT NOT NULL,
            point TEXT NOT NULL,
            settings TEXT NOT NULL,
            recommended INTEGER NOT NULL,
            rounds INTEGER NOT NULL,
            deadline_ms REAL NOT NULL,
            system TEXT NOT NULL,
            cpu TEXT NOT NULL,
            cores INTEGER NOT NULL
        ) STRICT""",
        "CREATE INDEX benches_of_target ON benches (spec, target, model, id)",
        """CREATE TABLE bench_measures (
            bench INTEGER NOT NULL REFERENCES benches (id) ON DELETE CASCADE,
            "case" TEXT NOT NULL,
            measure TEXT NOT NULL,
            unit TEXT NOT NULL,
            value REAL NOT NULL
        ) STRICT""",
        "CREATE INDEX bench_measures_of_bench ON bench_measures (bench)",
    ),
    (
        "ALTER TABLE builds ADD COLUMN training_run TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE models (
            build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            original_sha256 TEXT NOT NULL,
            sha256 TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX models_of_build ON models (build)",
        """CREATE TABLE machines (
            build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
            device TEXT NOT NULL,
            machine TEXT NOT NULL,
            memory_meaningful INTEGER NOT NULL,
            time_meaningful INTEGER NOT NULL
        ) STRICT""",
        "CREATE INDEX machines_of_build ON machines (build)",
        """CREATE TABLE acceptances (
            id INTEGER PRIMARY KEY,
            build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
            accepted_at TEXT NOT NULL,
            note TEXT NOT NULL
        ) STRICT""",
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
