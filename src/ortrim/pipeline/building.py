"""The second half: from a plan to verified packages, one after the other."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ortrim.base.cache import cache_damages, cache_folder, is_kept
from ortrim.base.console import Console
from ortrim.base.files import require_space, require_writable
from ortrim.compiling.native import TREE_BYTES
from ortrim.compiling.plan import JobResult, PlannedTarget
from ortrim.compiling.trees import finished_build, result_of
from ortrim.errors import Diagnostic, VerifyError
from ortrim.pipeline.executors import compiled_before, executor_for
from ortrim.pipeline.finished import changed_since_verified, nothing_changed, remember_finished
from ortrim.pipeline.packaging import PackageGroup, Results, groups, packaged
from ortrim.pipeline.recording import record_build
from ortrim.pipeline.transfer import is_compiled
from ortrim.pipeline.verification import Packaged, make_references, verify
from ortrim.planning.devices import answers, require_ready
from ortrim.planning.inputs import inputs_of
from ortrim.planning.planned import Planned, planned_for, target_folder, with_compilers
from ortrim.planning.prediction import Prediction, predictions, remember, require_reachable
from ortrim.planning.preparing import write_steps
from ortrim.planning.request import Request
from ortrim.report.write import JSON_NAME, MISPLACED, OUTDATED, report_of, write_reports
from ortrim.verify.reports import VerifyReport


def build(request: Request, console: Console, planned: Planned | None = None) -> tuple[VerifyReport, ...]:
    """Do everything: plan unless it is `planned` already, then build, package, verify and report each target.

    A target whose report is there already, with every device asked for, is not touched again. The verdicts are in the
    reports; a missed budget or a device that fails is not raised here, so that every target gets its report.
    """
    require_writable(request.output)
    planned = planned or planned_for(request, console, to_run=True)
    before = [
        (group, [_finished(planned, target, request, console.note) for target in group.targets])
        for group in groups(planned.plan)
    ]
    ahead = tuple(target for group, found in before if not all(found) for target in group.targets)
    if ahead:
        check_first(planned, ahead, request, console)
    reports: list[VerifyReport] = []
    for group, found in before:
        if all(found):
            reports += filter(None, found)
            continue
        results = []
        for target in group.targets:
            results.append(_build(planned, target, request, console))  # noqa: PERF401 - hours, one after the other
        for report, each in zip(found, packaged(planned, group, tuple(results), request, console), strict=True):
            reports.append(report or _verify(planned, each, request, console))
    every = [target for group, _ in before for target in group.targets]
    with suppress(Diagnostic):  # Then the next run looks closer.
        if all(_finished(planned, target, request, lambda _: None) for target in every):
            remember_finished(planned.inputs, request, [target.identifier for target in every])
    return tuple(reports)


def check_first(planned: Planned, targets: tuple[PlannedTarget, ...], request: Request, console: Console) -> None:
    """Say what is expected of targets that are to be built, and find now what would fail after the compiler.

    Where nothing is left to compile, a device may be away: the others are verified, and the report names it.

    Raises `PlanError` (`budget-unreachable`), `StorageError` (`disk-full`), what `require_ready` raises for devices,
    and what `make_references` raises for cases.
    """
    expected = predictions(targets, request)
    for each in expected:
        console.note(each.text)
    require_reachable(planned, zip(targets, expected, strict=True))
    _require_room(planned, expected, request)
    unbuilt = [target.job.target for target, each in zip(targets, expected, strict=True) if not each.is_built]
    require_ready(unbuilt, request)
    make_references(planned, request, console)


def _require_room(planned: Planned, expected: Sequence[Prediction], request: Request) -> None:
    """Refuse an output folder without room for packages, as folders and as archives, and a cache without for a tree."""
    models = sum(model.size_bytes for model in planned.models.converted)
    require_space(request.output, sum(2 * (each.most + models) for each in expected), "packaging")
    if not request.elsewhere and not all(each.builds for each in expected):
        require_space(cache_folder("trees"), TREE_BYTES, "building")


def to_compile(planned: Planned, request: Request) -> tuple[PlannedTarget, ...]:
    """Return the targets that `build` would have to compile something for, their runners included."""
    unfinished = (
        group
        for group in groups(planned.plan)
        if not all(_finished(planned, target, request, lambda _: None) for target in group.targets)
    )
    return tuple(target for group in unfinished for target in group.targets if not is_compiled(target))


def verify_again(request: Request, console: Console, planned: Planned | None = None) -> tuple[VerifyReport, ...]:
    """Measure what was built before, here or elsewhere, once more and write its reports anew.

    Raises `VerifyError` (`not-built`, `no-device`) and `UsageError` for devices that are none.
    """
    require_writable(request.output)
    request = replace(request, elsewhere=True)
    planned, built = (planned, _results(planned)) if planned else _built_before(request, console)
    make_references(planned, request, console)
    return tuple(
        _verify(planned, each, request, console)
        for group, results in built
        for each in packaged(planned, group, results, request, console)
    )


def _built_before(request: Request, console: Console) -> tuple[Planned, list[tuple[PackageGroup, Results]]]:
    """Return the plan of what was built before and its results: as this machine plans it, or else as GitHub's do.

    They differ in compilers, since GitHub's machines and containers have NDKs and an Xcode that this one may lack.
    """
    planned = planned_for(request, console, to_run=True)
    inputs = planned.inputs
    try:
        return planned, _results(planned)
    except VerifyError:
        there = inputs_of(inputs.loaded, inputs.targets, replace(request, on_macs=True))
        if there.toolchains == inputs.toolchains:
            raise
        planned = with_compilers(planned, there, request.output)
        return planned, _results(planned)


def _results(planned: Planned) -> list[tuple[PackageGroup, Results]]:
    return [
        (group, tuple(compiled_before(target, group.assembly) for target in group.targets))
        for group in groups(planned.plan)
    ]


def _finished(
    planned: Planned, target: PlannedTarget, request: Request, say: Callable[[str], None]
) -> VerifyReport | None:
    """Return a target's report when nothing is left to do. Raises `StorageError` for one that is damaged."""
    folder, identifier = target_folder(planned, target), target.identifier
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
    if not (package.is_file() and answers(report, target.job.target, request, target.job.cpu)):
        return None
    if changed := changed_since_verified(package, report):
        say(f"{identifier}: {changed}, so it is made again and verified")
        return None
    say(nothing_changed(identifier, folder / JSON_NAME))
    return report


def _build(planned: Planned, target: PlannedTarget, request: Request, console: Console) -> JobResult:
    job = target.job
    with console.step(f"build {job.target.identifier}") as step:
        done = finished_build(job)
        if is_kept(done):
            step.skip("built before")
            return result_of(done)
        executor = executor_for(planned, target, request, step)
        step.note(f"{executor.parallelism.jobs} at a time ({executor.parallelism.reason}); log: {executor.log}")
        step.progress(0, 0, "tools and configuration")
        result = executor.run(job)
        remember(job, result, console.warn)
        return result


def _verify(planned: Planned, subject: Packaged, request: Request, console: Console) -> VerifyReport:
    folder = target_folder(planned, subject.target)
    report = replace(verify(planned, subject, request, console), damaged_cache=cache_damages())
    with console.step("report") as step:
        write_reports(report, folder)
        for preparation in filter(None, planned.models.preparations):
            write_steps(preparation.report, folder)
        step.note(f"{folder}: {subject.delivery.archive.name}, report.html, report.md, {JSON_NAME}")
    record_build(report, request.output, console.warn, request.training_run)
    return report
