"""The history of builds: one file in the output folder, written after each verification and read by `history`.

- Benches in the history of an output folder.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ortrim.base.console import printable
from ortrim.buildspec.load import name_from
from ortrim.errors import StorageError, UsageError
from ortrim.models.named import SUFFIX
from ortrim.planning.request import Request, is_buildspec, load
from ortrim.report.history import NAME, BenchEntry, BuildEntry, Record, append, benches, builds, entry_of, unread
from ortrim.verify.reports import VerifyReport


def record_build(report: VerifyReport, output: Path, warn: Callable[[str], None], training_run: str = "") -> None:
    """Put a verified build into the history of an output folder; what hinders that is a warning, never an error."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    _record(Record(build=entry_of(report, now, training_run)), "build", output, warn)


def record_benches(found: tuple[BenchEntry, ...], output: Path, warn: Callable[[str], None]) -> None:
    """Put a finished bench into the history; what hinders that is a warning, since the journal has all of it."""
    _record(Record(benches=found), "bench", output, warn)


def _record(record: Record, what: str, output: Path, warn: Callable[[str], None]) -> None:
    path = output / NAME
    earlier = "" if path.exists() else unread(path)
    try:
        aside = append(path, record)
    except StorageError as error:
        warn(f"this {what} is not in the history: {error.where}: {error.what} ({error.why or error.code})")
        return
    if aside:
        warn(f"history-damaged: {path} could not be read; it is now {aside}, and a new history was started")
    elif earlier:
        warn(f"{earlier}: a new history was started")


def history_of(output: Path, spec: str | None, target: str | None) -> tuple[BuildEntry, ...]:
    """Return the recorded builds, oldest first; `spec` is a buildspec or the name of one.

    Raises `UsageError` (`no-such-build`), `SpecError`, `StorageError` (those of `builds`).
    """
    name = spec_name(spec) if spec else ""
    found = builds(output / NAME, spec=name, target=target or "")
    if found:
        return found
    raise no_such_build(output)


def no_such_build(output: Path) -> UsageError:
    """Return the diagnostic for a spec and a target that are not in the history; it names those that are."""
    known = sorted({(each.spec, each.target) for each in builds(output / NAME)})
    hint = "there is: " + printable(", ".join(" ".join(each) for each in known)) if known else "run: invoke build"
    return UsageError("no-such-build", "no build of this spec and target is in the history", hint=hint)


def spec_name(word: str) -> str:
    """Return the name of a buildspec that is named by itself, by its file, or by its model. Raises `SpecError`."""
    path = Path(word)
    if is_buildspec(path):
        return load(Request(spec=path)).spec.name
    return name_from(path) if path.suffix == SUFFIX else word


def builds_and_benches_of(
    output: Path, spec: str | None, target: str | None
) -> tuple[tuple[BuildEntry, ...], tuple[BenchEntry, ...]]:
    """Return what is recorded, oldest first; there may be benches of what was never built.

    Raises as `history_of` does when there is neither.
    """
    name = spec_name(spec) if spec else ""
    found = benches(output / NAME, spec=name, target=target or "")
    try:
        return history_of(output, spec, target), found
    except UsageError as error:
        if error.code == "no-such-build" and found:
            return (), found
        raise
