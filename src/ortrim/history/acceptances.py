"""Which builds were accepted: what later ones are held against."""

import sqlite3
from pathlib import Path

from ortrim.core.acceptance import Accepted
from ortrim.core.build_history import BuildEntry
from ortrim.history.database import opened
from ortrim.history.store import insert, numbered_builds, require_store


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


def accepted_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[Accepted, ...]:
    """Return, for each spec and target, the build that was accepted last. Raises as `accept_latest` does."""
    require_store(path)
    with opened(path) as connection:
        entries = numbered_builds(connection, spec=spec, target=target)
        rows = _acceptances(connection)
    last: dict[tuple[str, str], Accepted] = {}
    for build, accepted_at, note in rows:
        if build in entries:
            entry = entries[build]
            last[entry.spec, entry.target] = Accepted(entry=entry, accepted_at=accepted_at, note=note)
    return tuple(last.values())


def _acceptances(connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
    return connection.execute("SELECT build, accepted_at, note FROM acceptances ORDER BY id").fetchall()


def _latest(entries: dict[int, BuildEntry]) -> dict[int, BuildEntry]:
    """Return the last build of each spec and target, by number."""
    numbers = {(entry.spec, entry.target): number for number, entry in entries.items()}
    return {number: entries[number] for number in sorted(numbers.values())}
