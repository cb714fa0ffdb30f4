"""What was built before: reports of the latest build, and builds of which nothing is left to do.

Neither compiles, packages or verifies, so that nothing is imported which does.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from ortrim.base.build_bundle import VARIABLE
from ortrim.base.cache import is_verifying
from ortrim.base.checksums import changed_since_made
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import UNITY, ExtraPackage
from ortrim.buildspec.targets import Target
from ortrim.errors import Diagnostic, VerifyError
from ortrim.planning.devices import answers, require_devices
from ortrim.planning.request import Request, host_target, inputs_of, latest_of, load, plan_folder, targets_of
from ortrim.platforms import by_platform
from ortrim.report.write import JSON_NAME, MISPLACED, OUTDATED, report_of
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
    said: list[str] = []
    try:
        loaded = load(request)
        inputs = inputs_of(loaded, targets_of(loaded, request, notes.append), request)
        targets = inputs.loaded.targets
        require_devices(targets, request, host_target())
        folder = plan_folder(loaded.name, latest_of(inputs, request.output).plan, request.output)
        found = [finished_report(folder, each.target, each.cpu or "", request, said.append) for each in targets]
    except Diagnostic:
        return None
    reports = tuple(filter(None, found))
    if len(reports) < len(targets) or lacks_unity(folder, loaded.packages):
        return None
    for note in (*loaded.notes, *notes):
        console.note(note)
    for each, own in by_platform(targets, lambda target: target.target):
        for warning in each.warnings(loaded, own, request):
            console.warn(warning)
    for note in said:
        console.note(note)
    return reports


def finished_report(
    plan: Path, target: Target, cpu: str, request: Request, say: Callable[[str], None]
) -> VerifyReport | None:
    """Return a target's report in the folder of a plan when nothing is left to do; `say` is told that, or why not.

    `cpu` is the least processor that its library is compiled for, empty for any.
    """
    folder, identifier = plan / target.identifier, target.identifier
    if not (folder / JSON_NAME).is_file():
        return None
    try:
        report = report_of(folder)
    except VerifyError as error:
        if error.code not in {OUTDATED, MISPLACED}:
            raise
        say(f"{identifier}: {error.what}, so it is verified again")
        return None
    package = folder / report.package
    if not (package.is_file() and answers(report, target, request, cpu)):
        return None
    if changed := _changed_since_verified(package, report):
        say(f"{identifier}: {changed}, so it is made again and verified")
        return None
    say(f"{identifier}: nothing has changed since {folder / JSON_NAME} was written")
    return report


def lacks_unity(plan: Path, packages: Collection[ExtraPackage]) -> bool:
    """Whether a plan has a package for Unity that is not in its folder as it was made."""
    folder = plan / UNITY
    return UNITY in packages and not (folder.is_dir() and not changed_since_made(folder))


def _changed_since_verified(package: Path, report: VerifyReport) -> str:
    """Say what of a package is not as it was verified, if anything is."""
    beside = {each.name: each.sha256 for each in report.artifacts if each.name.endswith((package.name, ".whl"))}
    for file, digest in ((package.with_name(name), digest) for name, digest in beside.items()):
        if not file.is_file() or sha256_of(file) != digest:
            return f"{file} was changed since it was verified"
    folder = package.with_name(package.name.removesuffix(".tar.gz"))
    return changed_since_made(folder) if folder.is_dir() else ""
