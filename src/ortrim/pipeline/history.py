"""The history of builds, one file in the output folder; accepting builds, and comparing later ones with them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from ortrim.base.console import first_lines, printable
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import read_json, to_json
from ortrim.buildspec.load import name_from
from ortrim.errors import Regression, StorageError, UsageError
from ortrim.models.prepare import SUFFIX
from ortrim.planning.request import Request, is_buildspec, load
from ortrim.report.figures import quantity_text
from ortrim.report.history import (
    NAME,
    AcceptedBuild,
    Allowed,
    BenchEntry,
    BuildEntry,
    Check,
    Checked,
    Record,
    accept_latest,
    accepted_builds,
    append,
    benches,
    builds,
    check,
    entry_of,
    latest_builds,
)
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
    try:
        aside = append(path, record)
    except StorageError as error:
        warn(f"this {what} is not in the history: {error.where}: {error.what} ({error.why or error.code})")
        return
    if aside:
        warn(f"history-damaged: {path} could not be read; it is now {aside}, and a new history was started")


def history_of(output: Path, spec: str | None, target: str | None) -> tuple[BuildEntry, ...]:
    """Return the recorded builds, oldest first; `spec` is a buildspec or the name of one."""
    found = builds(output / NAME, spec=spec_name(spec), target=target or "")
    if found:
        return found
    raise no_such_build(output)


def no_such_build(output: Path) -> UsageError:
    """Return the diagnostic for a spec and a target that are not in the history; it names those that are."""
    known = sorted({(each.spec, each.target) for each in builds(output / NAME)})
    hint = "there is: " + printable(", ".join(" ".join(each) for each in known)) if known else "run: invoke build"
    return UsageError("no-such-build", "no build of this spec and target is in the history", hint=hint)


def spec_name(word: str | None) -> str:
    """Return the name of a buildspec that is named by itself, by its file, or by its model; empty for none."""
    if not word:
        return ""
    path = Path(word)
    if is_buildspec(path):
        return load(Request(spec=path)).name
    return name_from(path) if path.suffix == SUFFIX else word


def builds_and_benches_of(
    output: Path, spec: str | None, target: str | None
) -> tuple[tuple[BuildEntry, ...], tuple[BenchEntry, ...]]:
    """Return what is recorded, oldest first; there may be benches of what was never built."""
    found = benches(output / NAME, spec=spec_name(spec), target=target or "")
    try:
        return history_of(output, spec, target), found
    except UsageError as error:
        if error.code == "no-such-build" and found:
            return (), found
        raise


MOST_LINES: Final = 12
BESIDE: Final = ".accepted.json"
"""How the file of accepted builds beside a buildspec ends."""


@dataclass(frozen=True, kw_only=True)
class AcceptedFile:
    """The accepted builds of a product as a file that can be kept beside its buildspec, for machines without a past."""

    schema: Literal["ortrim-accepted/1"] = "ortrim-accepted/1"
    builds: tuple[AcceptedBuild, ...]


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What `check_builds` found; `unaccepted` are builds of which none of the same kind was accepted yet."""

    checks: tuple[Check, ...]
    unaccepted: tuple[BuildEntry, ...]


def accept_builds(output: Path, spec: str | None, target: str | None, note: str) -> tuple[BuildEntry, ...]:
    """Mark the latest build of each spec and target as accepted and return these builds."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    accepted = accept_latest(output / NAME, spec=spec_name(spec), target=target or "", accepted_at=now, note=note)
    if not accepted:
        raise no_such_build(output)
    return accepted


def write_accepted(output: Path, entries: tuple[BuildEntry, ...], path: Path) -> None:
    """Write what was accepted last of the kinds of some builds to a file."""
    kinds = {(entry.spec, entry.target) for entry in entries}
    found = [each for each in accepted_builds(output / NAME) if (each.entry.spec, each.entry.target) in kinds]
    # Where the bytes are is not compared, and would make the file change with every build.
    slim = tuple(replace(each, entry=replace(each.entry, components=())) for each in found)
    write_atomically(path, to_json(AcceptedFile(builds=slim)))


def check_builds(
    output: Path, spec: str | None, target: str | None, allowed: Allowed, against: Path | None = None
) -> Checks:
    """Compare the latest build of each spec and target with the one that was accepted last, or that a file has."""
    name = spec_name(spec)
    path = output / NAME
    accepted = read_accepted(against) if against else accepted_builds(path, spec=name, target=target or "")
    latest = latest_builds(path, spec=name, target=target or "")
    if not latest:
        raise no_such_build(output)
    known = {(each.entry.spec, each.entry.target): each for each in accepted}
    return _checks([(entry, known.get((entry.spec, entry.target))) for entry in latest], allowed)


def check_reports(spec: Path, reports: tuple[VerifyReport, ...]) -> Checks:
    """Compare the reports of a workflow's job with the file beside the buildspec; nothing is compared without one.

    Time is not: no two machines of a workflow are the same.
    """
    file = spec.with_suffix(BESIDE)
    if not file.is_file():
        return Checks(checks=(), unaccepted=())
    known = {(each.entry.spec, each.entry.target): each for each in read_accepted(file)}
    allowed = Allowed(latency=math.inf)
    entries = [entry_of(report, "") for report in reports]
    pairs = [(entry, known.get((entry.spec, entry.target))) for entry in entries]
    return _checks(pairs, allowed)


def read_accepted(path: Path) -> tuple[AcceptedBuild, ...]:
    """Read a file of accepted builds."""
    where = str(path)
    if not path.is_file():
        hint = "write it: invoke accept-build --to FILE"
        raise StorageError("accepted-missing", "there is no such file", where=where, hint=hint)
    with storage_errors(path):
        content = path.read_bytes()
    what = "not a file of accepted builds that this version of ortrim can read"
    hint = "write it again: invoke accept-build --to FILE"
    return read_json(AcceptedFile, content, StorageError("accepted-damaged", what, where=where, hint=hint)).builds


def regression_of(found: Checks) -> Regression | None:
    """Return the diagnostic with which the command ends, the figures in it; None when nothing has grown too much."""
    lines = [
        f"{each.latest.spec} {each.latest.target}: {_words(line)}" for each in found.checks for line in each.regressions
    ]
    if not lines:
        return None
    return Regression(
        "regression",
        "a build is worse than the accepted one by more than the limit",
        why=printable(first_lines(lines, MOST_LINES)),
        hint="correct the cause, or accept the build: invoke accept-build",
    )


def _checks(pairs: list[tuple[BuildEntry, AcceptedBuild | None]], allowed: Allowed) -> Checks:
    return Checks(
        checks=tuple(check(entry, each, allowed) for entry, each in pairs if each),
        unaccepted=tuple(entry for entry, each in pairs if each is None),
    )


def _words(line: Checked) -> str:
    place = ", ".join(filter(None, (line.measure, line.model, line.case, line.device)))
    before, after = quantity_text(line.before, line.unit), quantity_text(line.after, line.unit)
    growth = "" if line.growth is None else f" ({100 * line.growth:+.1f} %)"
    return f"{place}: {after}{growth}, was {before}; {100 * line.allowed:g} % more is allowed"
