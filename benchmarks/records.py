"""What benchmarks write down: a record, which the next call reads and continues, and the tables of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from ortrim.base.console import Console
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import read_json, to_json
from ortrim.errors import StorageError, UsageError
from ortrim.report.table import Cell, Table, columns

R = TypeVar("R")
HINT = "move the file away, or name another folder with --output"


def read_record(path: Path, empty: R) -> R:
    """Return the record of the same kind in a file, or `empty` when there is none yet.

    Raises `StorageError` (`measurements-damaged`) and, for a record with a machine, `UsageError` (`other-machine`).
    """
    if not path.exists():
        return empty
    damaged = StorageError("measurements-damaged", "not a record", where=str(path), hint=HINT)
    with storage_errors(path):
        record = read_json(type(empty), path.read_bytes(), damaged)
    theirs, ours = (_machine(each) for each in (record, empty))
    if theirs != ours:
        what = "holds measurements of another machine, which say nothing about this one"
        raise UsageError("other-machine", what, where=str(path), why=str(theirs[0]), hint=HINT)
    return record


def _machine(record: Any) -> tuple[object, ...]:
    machine = getattr(record, "machine", None)
    return (machine.cpu, machine.cores, machine.os_version, machine.memory_bytes) if machine else ("",)


def write_results(output: Path, name: str, record: object, markdown: str, console: Console) -> None:
    """Write a record and its tables, and say where they are."""
    write_atomically(output / f"{name}.json", to_json(record))
    write_atomically(output / f"{name}.md", markdown)
    console.note(f"record: {output / name}.json, report: {output / name}.md")


def table_of(headings: tuple[str, ...], rows: Sequence[Sequence[Cell]], texts: int = 1) -> Table:
    """Return a table whose first columns are text; the others stand on the right."""
    kinds = (*columns("text", *headings[:texts]), *columns("number", *headings[texts:]))
    return Table(columns=kinds, rows=rows)
