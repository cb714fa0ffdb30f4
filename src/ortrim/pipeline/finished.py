"""What was built before: reports of the latest build, and builds of which nothing is left to do.

Neither compiles, packages or verifies, so that nothing is imported which does.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ortrim.base.build_bundle import VARIABLE
from ortrim.base.cache import is_verifying
from ortrim.base.checksums import changed_since_made
from ortrim.base.console import Console
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.json import to_canonical_json, to_data
from ortrim.base.tools import EMULATIONS, QEMU_SYSTEM
from ortrim.errors import Diagnostic, VerifyError
from ortrim.planning.request import (
    Inputs,
    Request,
    host_target,
    inputs_of,
    keep_latest,
    latest_of,
    load,
    plan_folder,
    targets_of,
)
from ortrim.platforms import by_platform
from ortrim.report.write import JSON_NAME, read_report, report_of
from ortrim.verify.reports import VerifyReport


def reports_of(request: Request, console: Console) -> tuple[VerifyReport, ...]:
    """Return the reports of what was built last, here or at GitHub."""
    loaded = load(request)
    for note in loaded.notes:
        console.note(note)
    targets = targets_of(loaded, request, console.note)
    problems = []
    for asked in (request, replace(request, elsewhere=True, on_macs=True)):
        inputs = inputs_of(loaded, targets, asked)
        try:
            folder = plan_folder(loaded.name, latest_of(inputs, request.output).plan, request.output)
        except VerifyError as error:
            problems.append(error)
        else:
            return tuple(report_of(folder / target.id) for target in targets)
    first = problems[0]
    raise VerifyError("report-missing", "there is no report of this", where=first.where, why=first.why, hint=first.hint)


def finished_reports(request: Request, console: Console) -> tuple[VerifyReport, ...] | None:
    """Return the reports of a build of which nothing is left to do, and say so; None where something may be.

    That is for a build to find out then, and to refuse.
    """
    if is_verifying() or VARIABLE in os.environ or host_target() is None:
        return None
    notes: list[str] = []
    try:
        loaded = load(request)
        inputs = inputs_of(loaded, targets_of(loaded, request, notes.append), request)
        found = dict(_finished(inputs, request))
    except Diagnostic:
        return None
    if not found:
        return None
    for note in (*loaded.notes, *notes):
        console.note(note)
    for each, own in by_platform(inputs.loaded.targets, lambda target: target.target):
        for warning in each.warnings(loaded, own, request):
            console.warn(warning)
    for file in found:
        console.note(nothing_changed(file.parent.name, file))
    return tuple(found.values())


def nothing_changed(target: str, report: Path) -> str:
    """Say that nothing is left to do for a target."""
    return f"{target}: nothing has changed since {report} was written"


def changed_since_verified(package: Path, report: VerifyReport) -> str:
    """Say what of a package is not as it was verified, if anything is."""
    if any(each.name == package.name and each.sha256 != sha256_of(package) for each in report.artifacts):
        return f"{package} was changed since it was verified"
    folder = package.with_name(package.name.removesuffix(".tar.gz"))
    return changed_since_made(folder) if folder.is_dir() else ""


def _finished(inputs: Inputs, request: Request) -> Iterator[tuple[Path, VerifyReport]]:
    """Yield the file and the report of each target."""
    latest = latest_of(inputs, request.output)
    folder = plan_folder(inputs.loaded.name, latest.plan, request.output)
    known_reports = latest.finished.get(_asked(request), {})
    if known_reports.keys() != {target.id for target in inputs.loaded.targets}:
        return
    for target, known in known_reports.items():
        file = folder / target / JSON_NAME
        with storage_errors(file):
            changed = sha256_of(file) != known
        report = read_report(file)
        package = file.parent / report.package
        if changed or not package.is_file() or changed_since_verified(package, report):
            raise VerifyError("report-missing", "is not as it was", where=str(file))
        yield file, report


def remember_finished(inputs: Inputs, request: Request, targets: Sequence[str]) -> None:
    """Keep that nothing is left to do for who asks for the same, unless that is known."""
    latest = latest_of(inputs, request.output)
    folder = plan_folder(inputs.loaded.name, latest.plan, request.output)
    digests = {target: sha256_of(folder / target / JSON_NAME) for target in targets}
    if latest.finished.get(asked := _asked(request)) != digests:
        keep_latest(inputs, request.output, replace(latest, finished={**latest.finished, asked: digests}))


def _asked(request: Request) -> str:
    """Digest what a request asks for beside a plan, on this machine: which devices are there by default hangs on it."""
    bare = replace(request, spec=Path(), output=Path(), version=None, jobs=None, training_run="")
    programs = sorted({QEMU_SYSTEM.name, *(each.user.name for each in EMULATIONS.values())})
    here = [host_target(), *filter(shutil.which, programs)]
    return hashlib.sha256(to_canonical_json((to_data(bare), to_data(here))).encode()).hexdigest()
