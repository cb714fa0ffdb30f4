"""What was dispatched, kept beside the plan: with it a run can be taken up again after this program has ended."""

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
Text = Annotated[str, Field(max_length=4096)]


@dataclass(frozen=True, kw_only=True)
class DispatchRecord:
    """One dispatch: where to, its mark, its run once that is known, and what is compiled there.

    `site` is host/owner/name; `jobs` are the digests of the targets' jobs, by the targets' identifiers. `models` is the
    ref under which models were uploaded, empty when they stayed here; then there are no digests.
    """

    schema: Literal["ortrim-dispatch/1"] = "ortrim-dispatch/1"
    site: Text
    workflow: Text
    ref: Text
    correlation_id: Text
    models: Annotated[str, Field(pattern=rf"^({MODELS.pattern})?$")] = ""
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

    def marks(self, run: Run) -> bool:
        """Whether it was this dispatch that a run was started by."""
        return f"[{self.record.correlation_id}]" in run.display_title

    def with_run(self, run: Run) -> "Kept":
        """Write down which run it became. Raises `StorageError`."""
        return keep(replace(self.record, run=run.id), self.file)

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
    return replace(asked, output=output, elsewhere=True)


def jobs_of(plan: BuildPlan) -> tuple[tuple[str, str], ...]:
    """Return what `DispatchRecord.jobs` holds of a plan."""
    return tuple((target.job.target.identifier, digest(target.job)) for target in plan.targets)


def records_in(output: Path, spec: str = "*") -> tuple[Kept, ...]:
    """Return the records in a folder for output, of one buildspec or of all, the newest first.

    Raises `StorageError` (`record-damaged`).
    """
    found = (_read(file) for file in output.glob(f"{spec}/*/{FOLDER}/*.json"))
    return tuple(sorted(found, key=lambda kept: (kept.record.run or 0, kept.file.name), reverse=True))


def _read(file: Path) -> Kept:
    with storage_errors(file), file.open("rb") as opened:
        content = opened.read(LARGEST)
    try:
        return Kept(record=from_json(DispatchRecord, content), file=file)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['type']}"
    what, hint = "is no record of a dispatch that this version wrote", "remove it, then run the same command again"
    raise StorageError("record-damaged", what, where=str(file), why=why, hint=hint)
