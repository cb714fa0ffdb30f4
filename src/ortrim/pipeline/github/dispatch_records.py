"""What was dispatched, kept beside the plan: with it a run can be taken up again after this program has ended."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ortrim.core.plan import BuildPlan, digest
from ortrim.core.serialization import from_json, to_json
from ortrim.errors import StorageError
from ortrim.github.records import Number, Run
from ortrim.pipeline.converted import Request
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.workflows.inputs import MODELS

FOLDER: Final = "runs"
LARGEST: Final = 1 << 20
UNLISTED_SECONDS: Final = 600.0
"""After how long a dispatch of which GitHub lists no run counts as one that never was; it lists them within seconds."""
Text = Annotated[str, Field(max_length=4096)]


@dataclass(frozen=True, kw_only=True)
class DispatchRecord:
    """One dispatch: where to, its mark, its run once that is known, and what is compiled there.

    `site` is host/owner/name; `jobs` are the digests of the targets' jobs, by the targets' identifiers. `models` is the
    ref under which models were uploaded, empty when they stayed here; with them, each digest is that of all that was
    asked for. `removed` is whether they are gone from there, `home` whether the delivery is here.
    """

    schema: Literal["ortrim-dispatch/1"] = "ortrim-dispatch/1"
    site: Text
    workflow: Text
    ref: Text
    correlation_id: Text
    models: Annotated[str, Field(pattern=rf"^({MODELS.pattern})?$")] = ""
    removed: bool = False
    home: bool = False
    run: Number | None = None
    asked: Request
    jobs: tuple[tuple[Text, Text], ...]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A record and its file."""

    record: DispatchRecord
    file: Path

    @property
    def output(self) -> Path:
        """Return the folder for output in which it lies."""
        return self.file.parents[3]

    @property
    def has_models(self) -> bool:
        """Return whether models that were uploaded for it may still be there."""
        return bool(self.record.models) and not self.record.removed

    @property
    def may_be_listed_yet(self) -> bool:
        """Return whether GitHub may still come to list the run of it. Raises `StorageError`."""
        with storage_errors(self.file), suppress(FileNotFoundError):
            return self.record.run is None and time.time() - self.file.stat().st_mtime < UNLISTED_SECONDS
        return False

    def marks(self, run: Run) -> bool:
        """Whether it was this dispatch that a run was started by."""
        return f"[{self.record.correlation_id}]" in run.display_title

    def with_run(self, run: Run) -> "Kept":
        """Write down which run it became. Raises `StorageError`."""
        return keep(replace(self.record, run=run.id), self.file)

    def with_models_removed(self) -> "Kept":
        """Write down that its models are gone. Raises `StorageError`."""
        return keep(replace(self.record, removed=True), self.file)

    def at_home(self) -> "Kept":
        """Write down that its delivery has come. Raises `StorageError`."""
        return keep(replace(self.record, home=True), self.file)

    def forget(self) -> None:
        """Remove it: no run came of it, or what the run left is gone."""
        self.file.unlink(missing_ok=True)


def keep(record: DispatchRecord, file: Path) -> Kept:
    """Write a record, whole or not at all. Raises `StorageError`."""
    write_atomically(file, to_json(record))
    return Kept(record=record, file=file)


def asked_by(request: Request) -> Request:
    """Return what a request asks for, so that it means the same in another folder."""
    return replace(request, spec=request.spec.absolute(), ndk=None, container=None, jobs=None)


def request_of(asked: Request, output: Path) -> Request:
    """Return the request that a record was made of, for a machine that compiles nothing."""
    return replace(asked, output=output, elsewhere=True, on_macs=True)


def jobs_of(plan: BuildPlan) -> tuple[tuple[str, str], ...]:
    """Return what `DispatchRecord.jobs` holds of a plan."""
    return tuple((target.job.target.identifier, digest(target.job)) for target in plan.targets)


def records_in(output: Path, spec: str = "*") -> tuple[Kept, ...]:
    """Return the records in a folder for output, of one buildspec or of all, the newest first.

    Raises `StorageError` (`record-damaged`).
    """
    return tuple(sorted(_found(output, spec), key=lambda kept: (kept.record.run or 0, kept.file.name), reverse=True))


def _found(output: Path, spec: str) -> Iterator[Kept]:
    for file in output.glob(f"{spec}/*/{FOLDER}/*.json"):
        kept = read_record(file)
        if kept:
            yield kept


def read_record(file: Path) -> Kept | None:
    """Read a record, None when another program has forgotten it. Raises `StorageError` (`record-damaged`)."""
    content = None
    with storage_errors(file), suppress(FileNotFoundError), file.open("rb") as opened:
        content = opened.read(LARGEST)
    if content is None:
        return None
    try:
        return Kept(record=from_json(DispatchRecord, content), file=file)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['type']}"
    what, hint = "is no record of a dispatch that this version wrote", "remove it, then run the same command again"
    raise StorageError("record-damaged", what, where=str(file), why=why, hint=hint)
