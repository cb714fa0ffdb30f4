"""The journal of a bench: what is measured is on the disk as soon as it is measured.

One JSON document on a line: first the plan, then each sample. Whatever ends the program, the lines before are whole; a
last line that is not is left out when the journal is taken up again.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from pydantic import ValidationError

from ortrim.core.bench import BenchPlan, Sample
from ortrim.core.serialization import from_json, to_canonical_json
from ortrim.errors import StorageError
from ortrim.storage.files import storage_errors, write_atomically

ENDING: Final = ".jsonl"
DIGITS: Final = 8
STAMP: Final = str.maketrans("", "", "-:+")


@dataclass(frozen=True, kw_only=True)
class Journal:
    """A journal as it is on the disk."""

    path: Path
    plan: BenchPlan
    samples: tuple[Sample, ...]


def new_journal(folder: Path, plan: BenchPlan) -> Journal:
    """Begin a journal in a file of its own, named after what is measured and when. Raises `StorageError`."""
    stamp = plan.recorded_at.partition("+")[0].translate(STAMP)
    stem = f"{plan.name}-{_likeness(plan)}-{stamp}"
    path = next(each for each in _names(folder, stem) if not each.exists())
    write_atomically(path, to_canonical_json(plan) + "\n")
    return Journal(path=path, plan=plan, samples=())


def unfinished(folder: Path, plan: BenchPlan, total: int) -> Journal | None:
    """Return the newest journal of the same measurement that is not at its end, mended; None when there is none.

    How often each case is run may differ: it goes by a first trial. Raises `StorageError` (`journal-damaged`).
    """
    for path in sorted(folder.glob(f"{plan.name}-{_likeness(plan)}-*{ENDING}"), reverse=True):
        journal = read_journal(path)
        if len(journal.samples) < total:
            return journal
    return None


def read_journal(path: Path) -> Journal:
    """Read a journal; what was cut short is taken off its end. Raises `StorageError` (`journal-damaged`)."""
    with storage_errors(path):
        content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_atomically(path, whole)
    first, *rest = whole.splitlines() or [b""]
    try:
        plan, samples = from_json(BenchPlan, first), tuple(from_json(Sample, line) for line in rest)
    except ValidationError as error:
        what, hint = "the journal of a bench is damaged", "remove the file, then run the same command again"
        why = "\n".join(str(error).splitlines()[:3])
        raise StorageError("journal-damaged", what, where=str(path), why=why, hint=hint) from error
    return Journal(path=path, plan=plan, samples=samples)


class Writer:
    """Appends samples to a journal's file."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file

    def add(self, sample: Sample) -> None:
        """Write a sample and see it on the disk. Raises `StorageError`; the lines before stay."""
        with storage_errors(self._path):
            self._file.write(to_canonical_json(sample).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


@contextmanager
def appending(path: Path) -> Iterator[Writer]:
    """Open a journal for more samples. Raises `StorageError`."""
    with storage_errors(path), path.open("ab") as file:
        yield Writer(path, file)


def _names(folder: Path, stem: str) -> Iterator[Path]:
    yield folder / f"{stem}{ENDING}"
    yield from (folder / f"{stem}-{number}{ENDING}" for number in range(2, 10_000))


def _likeness(plan: BenchPlan) -> str:
    """Return the digest of what two runs must have in common to be one: all but the time, and how often is run."""
    models = tuple(
        replace(model, cases=tuple(replace(case, runs=0, warmup=0) for case in model.cases)) for model in plan.models
    )
    alike: Mapping[str, Any] = {"recorded_at": "", "models": models}
    return hashlib.sha256(to_canonical_json(replace(plan, **alike)).encode()).hexdigest()[:DIGITS]
