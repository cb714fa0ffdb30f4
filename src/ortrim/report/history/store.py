"""The history's file: a line of JSON for each build, bench and acceptance, which several programs may append at once.

A line that was not written to its end, because the writer was killed or the disk is full, is no line: readers leave it
out, and the next writer cuts it off.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from ortrim.base.cache import locked
from ortrim.base.files import storage_errors
from ortrim.base.json import first_fault, from_json, to_data
from ortrim.errors import StorageError
from ortrim.report.history.rows import AcceptedBuild, BenchEntry, BuildEntry

NAME: Final = "history.jsonl"
SQLITE: Final = "history.sqlite3"
"""What earlier versions of ortrim wrote; it is not read."""
BEGINNING: Final = b'{"schema":"ortrim-history/'
DAMAGED: Final = "history-damaged"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line: a verified build, all that is kept of one bench, or what was accepted with one command."""

    schema: Literal["ortrim-history/1"] = "ortrim-history/1"
    build: BuildEntry | None = None
    benches: tuple[BenchEntry, ...] = ()
    accepted: tuple[AcceptedBuild, ...] = ()


def append(path: Path, record: Record) -> Path | None:
    """Append a record to the history, which is begun when there is none.

    A history that is damaged is renamed, a new one is begun, and the damaged one's new path is returned. Raises
    `StorageError`.
    """
    with locked(path):
        aside = _rename_damaged(path)
        _append(path, record)
    return aside


def accept_latest(path: Path, *, spec: str, target: str, accepted_at: str, note: str) -> tuple[BuildEntry, ...]:
    """Mark the latest build of each spec and target as accepted, and return these builds.

    An empty `spec` or `target` stands for all. Raises as `read` does; a damaged history stays where it is.
    """
    read(path)  # before the lock, whose file would be made where there is no history
    with locked(path):
        latest = latest_builds(path, spec=spec, target=target)
        if latest:
            accepted = (AcceptedBuild(entry=entry, accepted_at=accepted_at, note=note) for entry in latest)
            _append(path, Record(accepted=tuple(accepted)))
    return latest


def read(path: Path) -> tuple[Record, ...]:
    """Return the records in the order in which they were appended.

    Raises `StorageError`: `history-missing`, `history-damaged`, `history-newer`, and as `storage_errors` does.
    """
    if not path.exists():
        hint = "each verified build is added to it: run invoke build"
        raise StorageError("history-missing", "there is no history yet", where=str(path), why=unread(path), hint=hint)
    with storage_errors(path):
        *lines, torn = path.read_bytes().split(b"\n")
    if not (torn.startswith(BEGINNING) or BEGINNING.startswith(torn)):
        lines.append(torn)
    return tuple(_record(line, f"{path}:{number}") for number, line in enumerate(lines, 1))


def unread(path: Path) -> str:
    """Name the history of an earlier version that lies beside this one; empty when there is none."""
    earlier = path.with_name(SQLITE)
    return f"{earlier} is of an earlier version of ortrim, and is not read" if earlier.is_file() else ""


def builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the builds, all or those of a spec and a target. Raises as `read` does."""
    found = (record.build for record in read(path) if record.build)
    return tuple(entry for entry in found if spec in {"", entry.spec} and target in {"", entry.target})


def latest_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the latest build of each spec and target, in the order of these builds. Raises as `read` does."""
    latest: dict[tuple[str, str], BuildEntry] = {}
    for entry in builds(path, spec=spec, target=target):
        latest.pop((entry.spec, entry.target), None)
        latest[entry.spec, entry.target] = entry
    return tuple(latest.values())


def accepted_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[AcceptedBuild, ...]:
    """Return, for each spec and target, the build that was accepted last. Raises as `read` does."""
    last = {(each.entry.spec, each.entry.target): each for record in read(path) for each in record.accepted}
    return tuple(each for kind, each in last.items() if spec in {"", kind[0]} and target in {"", kind[1]})


def benches(path: Path, *, spec: str = "", target: str = "") -> tuple[BenchEntry, ...]:
    """Return the points of benches, all or those of a spec and a target. Raises as `read` does."""
    found = (entry for record in read(path) for entry in record.benches)
    return tuple(entry for entry in found if spec in {"", entry.spec} and target in {"", entry.target})


def _append(path: Path, record: Record) -> None:
    data = {name: value for name, value in to_data(record).items() if value}
    line = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    with storage_errors(path), path.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(f"{line}\n".encode())


def _record(line: bytes, where: str) -> Record:
    try:
        if line.startswith(BEGINNING):
            return from_json(Record, line)
        why = "not a line of a history"
    except ValidationError as error:
        why = first_fault(error)
    if line.startswith(BEGINNING) and not line.startswith(BEGINNING + b'1"'):
        what, hint = "a later version of ortrim wrote this history", "update ortrim, or move the file away"
        raise StorageError("history-newer", what, where=where, hint=hint)
    hint = "the next build renames it and starts a new one"
    raise StorageError(DAMAGED, "the history is damaged", where=where, why=why, hint=hint)


def _rename_damaged(path: Path) -> Path | None:
    if not path.exists():
        return None
    try:
        read(path)
    except StorageError as error:
        if error.code != DAMAGED:
            raise
    else:
        return None
    names = (f"{path.stem}.damaged-{number}{path.suffix}" for number in range(1, 10_000))
    aside = next(each for each in map(path.with_name, names) if not each.exists())
    with storage_errors(path):
        return path.rename(aside)
