"""The history's file: an SQLite database that several builds may write at once.

- The history's file as SQLite sees it: opened with today's tables, and its errors in our words.
- The tables of the history, and how an older store becomes one of today.
- Which builds were accepted: what later ones are compared with.
- Benches in the history: a row of `benches` for each point that was measured, its figures in `bench_measures`.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import locked
from ortrim.base.files import storage_errors
from ortrim.binaries.libraries import ComponentSize
from ortrim.errors import StorageError
from ortrim.history.rows import AcceptedBuild, BenchEntry, BenchMeasure, BuildEntry, BuiltModel, Measure, MeasuredOn

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
        hint = "the next build renames it and starts a new one"
        return StorageError(DAMAGED, "the history is damaged", where=where, why=why, hint=hint)
    if kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StorageError("history-busy", "another program holds the history", where=where, why=why)
    if kind == sqlite3.SQLITE_FULL:
        return StorageError("disk-full", "there is no space left", where=where, why=why)
    return StorageError("history-failed", "the history cannot be read or written", where=where, why=why)


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
        if error.code != DAMAGED:
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
        hint = "each verified build is added to it: run invoke build"
        raise StorageError("history-missing", "there is no history yet", where=str(path), hint=hint)


def numbered_builds(connection: sqlite3.Connection, *, spec: str = "", target: str = "") -> dict[int, BuildEntry]:
    """Return the builds by their numbers, in the order in which they were recorded."""
    found = _selected(connection, "builds", COLUMNS, spec, target)
    for number, values in found.items():
        values |= {name: _rows(connection, name, kind, "build", number) for name, kind in LISTS.items()}
    return {number: BuildEntry(**values) for number, values in found.items()}


def _selected(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], spec: str, target: str
) -> dict[int, dict[str, Any]]:
    """Return the rows by their numbers, all or those of a spec and a target; names of table and columns are our own."""
    wanted = {name: value for name, value in (("spec", spec), ("target", target)) if value}
    condition = " AND ".join(f"{name} = :{name}" for name in wanted) or "1"
    query = f"SELECT id, {', '.join(columns)} FROM {table} WHERE {condition} ORDER BY id"  # noqa: S608
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in connection.execute(query, wanted).fetchall()}


def _rows(connection: sqlite3.Connection, table: str, kind: Any, owner: str, number: int) -> tuple[Any, ...]:
    names = [field.name for field in fields(kind)]
    columns = ", ".join(f'"{name}"' for name in names)
    query = f"SELECT {columns} FROM {table} WHERE {owner} = ? ORDER BY rowid"  # noqa: S608
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in connection.execute(query, (number,)).fetchall())


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
            if error.code != DAMAGED:
                raise
        names = (f"{path.stem}.damaged-{number}{path.suffix}" for number in range(1, 10_000))
        aside = next(each for each in map(path.with_name, names) if not each.exists())
        with storage_errors(path):
            for ending in SIDE_FILES:
                with suppress(FileNotFoundError):
                    path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
        return aside


def accept_latest(path: Path, *, spec: str, target: str, accepted_at: str, note: str) -> tuple[BuildEntry, ...]:
    """Mark the latest build of each spec and target as accepted, all of them or none, and return these builds.

    An empty `spec` or `target` stands for all. Raises `StorageError` (`history-missing`, `history-damaged`,
    `history-busy`, `history-newer`, `history-failed`); a damaged store stays where it is.
    """
    require_store(path)
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        latest = _latest(numbered_builds(connection, spec=spec, target=target))
        for number in latest:
            insert(connection, "acceptances", {"build": number, "accepted_at": accepted_at, "note": note})
        connection.execute("COMMIT")
    return tuple(latest.values())


def latest_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the latest build of each spec and target. Raises as `accept_latest` does."""
    require_store(path)
    with opened(path) as connection:
        return tuple(_latest(numbered_builds(connection, spec=spec, target=target)).values())


def accepted_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[AcceptedBuild, ...]:
    """Return, for each spec and target, the build that was accepted last. Raises as `accept_latest` does."""
    require_store(path)
    with opened(path) as connection:
        entries = numbered_builds(connection, spec=spec, target=target)
        rows = connection.execute("SELECT build, accepted_at, note FROM acceptances ORDER BY id").fetchall()
    last: dict[tuple[str, str], AcceptedBuild] = {}
    for build, accepted_at, note in rows:
        if build in entries:
            entry = entries[build]
            last[entry.spec, entry.target] = AcceptedBuild(entry=entry, accepted_at=accepted_at, note=note)
    return tuple(last.values())


def _latest(entries: dict[int, BuildEntry]) -> dict[int, BuildEntry]:
    """Return the last build of each spec and target, by number."""
    numbers = {(entry.spec, entry.target): number for number, entry in entries.items()}
    return {number: entries[number] for number in sorted(numbers.values())}


BENCH_COLUMNS: Final = tuple(field.name for field in fields(BenchEntry) if field.name != "measures")


def record_all(path: Path, entries: Sequence[BenchEntry]) -> Path | None:
    """Add the entries of one bench to the store. Returns and raises as `write_whole` does."""
    return write_whole(path, lambda connection: _benches_add(connection, entries))


def benches(path: Path, *, spec: str = "", target: str = "") -> tuple[BenchEntry, ...]:
    """Return the benches in the order in which they were recorded, all or those of a spec and a target.

    Raises `StorageError` (`history-damaged` and as `write_whole` does).
    """
    with opened(path) as connection:
        found = _selected(connection, "benches", BENCH_COLUMNS, spec, target)
        return tuple(
            BenchEntry(**values, measures=_rows(connection, "bench_measures", BenchMeasure, "bench", number))
            for number, values in found.items()
        )


def _benches_add(connection: sqlite3.Connection, entries: Sequence[BenchEntry]) -> None:
    for entry in entries:
        number = insert(connection, "benches", {name: getattr(entry, name) for name in BENCH_COLUMNS})
        for each in entry.measures:
            insert(connection, "bench_measures", {"bench": number, **asdict(each)})
