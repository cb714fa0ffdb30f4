"""The pages of a product's models, written beside a target's reports by `page`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

from ortrim.analysis.cost.run import costs_of_cases
from ortrim.analysis.lint.findings import LintFinding
from ortrim.analysis.lint.rules import BY_CODE, placed
from ortrim.analysis.lint.run import Library, findings_of
from ortrim.analysis.page.content import LintGroup, ModelSubject, OperatorTimes, ShippedModel, SizeShare, size_share
from ortrim.analysis.page.html import model_page
from ortrim.analysis.size.run import size_of
from ortrim.base.console import Console, Step
from ortrim.base.files import write_atomically
from ortrim.compiling.plan import JobResult, PlannedTarget
from ortrim.compiling.size.accounting import NO_OPERATOR, Leaf, by_operator, shares
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.models import OrtModel
from ortrim.models.operators import parse_config
from ortrim.pipeline.executors import built_before
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.planning.request import Request, require_known
from ortrim.report.write import report_of
from ortrim.verify.operator_times import operator_times
from ortrim.verify.reports import VerifyReport

NAME: Final = "model-{}.html"
MISSING: Final = frozenset({"report-missing", "not-built", "report-outdated"})
"""What a page of a model can do without."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """Which pages to write, and how closely to look at the models: `run` is as `findings_of` has it."""

    planned: Planned
    names: tuple[str, ...]
    request: Request
    run: bool
    console: Console


@dataclass(frozen=True, kw_only=True)
class _Target:
    """One target with what there is of it: its finished build and its report."""

    planned: PlannedTarget
    folder: Path
    result: JobResult | None
    report: VerifyReport | None


def make_model_pages(request: Request, only: tuple[str, ...], console: Console, *, run: bool) -> tuple[Path, ...]:
    """Write the page of each model, or `only` of those named, for each target.

    What was built and verified before is on it, if anything was. Raises `UsageError` (`no-such-model`), as planning
    does, `StorageError` for a damaged report or a full disk.
    """
    planned = planned_for(request, console)
    known = _names(planned)
    require_known("no-such-model", "--only", only, known)
    names = tuple(name for name in known if not only or name in only)
    wanted = _Wanted(planned=planned, names=names, request=request, run=run, console=console)
    written: list[Path] = []
    for target in planned.plan.targets:
        subject = _target(planned, target)
        if subject.report is None:
            console.note(f"{target.job.target.identifier}: not verified yet, so that the pages have no measurements")
        with console.step(f"pages for {target.job.target.identifier}") as step:
            written += _write(wanted, subject, step)
    return tuple(written)


def _names(planned: Planned) -> tuple[str, ...]:
    return tuple(spec.name for spec in planned.models.loaded.spec.models)


def _target(planned: Planned, target: PlannedTarget) -> _Target:
    folder = target_folder(planned, target)
    result = _if_there(lambda: built_before(target.job))
    report = _if_there(lambda: report_of(folder))
    return _Target(planned=target, folder=folder, result=result, report=report)


def _if_there(read: Callable[[], T]) -> T | None:
    """Return what is read; None for what a page can do without."""
    try:
        return read()
    except VerifyError as error:
        if error.code not in MISSING:
            raise
    return None


def _write(wanted: _Wanted, target: _Target, step: Step) -> list[Path]:
    leaves = _leaves(wanted, target)
    written = []
    for number, name in enumerate(wanted.names):
        step.progress(number, len(wanted.names), name)
        path = target.folder / NAME.format(name)
        write_atomically(path, model_page(_subject(wanted, target, name, leaves)))
        written.append(path)
    step.note(f"{target.folder}: {', '.join(path.name for path in written)}")
    return written


def _leaves(wanted: _Wanted, target: _Target) -> tuple[Leaf, ...]:
    """Return the library's bytes by operator; none when they cannot be told."""
    result = target.result
    if result is None:
        return ()
    try:
        return size_of(str(result.library), wanted.request, result.link_map, wanted.console).accounting.leaves
    except Diagnostic as error:
        wanted.console.warn(f"the size is not known by operator: {error.what} ({error.code})")
        return ()


def _subject(wanted: _Wanted, target: _Target, name: str, leaves: tuple[Leaf, ...]) -> ModelSubject:
    from ortrim.models.graph_facts import read_graph  # noqa: PLC0415 - it imports onnx

    number = _names(wanted.planned).index(name)
    models = wanted.planned.models.for_target(target.planned.job.target)
    prepared, converted = models.prepared[number], models.converted
    graph, preparation = read_graph(prepared.path), models.preparations[number]
    library = _library(converted, number, leaves)
    found = findings_of(name, prepared.path, graph, models.runtime.version, library, run=wanted.run)
    return ModelSubject(
        name=name,
        product=wanted.planned.plan.spec_name,
        target=target.planned.job.target.identifier,
        graph=graph,
        converted=converted[number],
        costs=tuple(costs_of_cases(prepared, wanted.planned.cases[number])),
        lint=tuple(_groups(found.findings)),
        not_checked=found.not_checked,
        steps=preparation.report if preparation else None,
        share=_share(converted, number, leaves),
        times=tuple(_times(target, name)),
        report=target.report,
    )


def _groups(findings: tuple[LintFinding, ...]) -> Iterator[LintGroup]:
    for code, group in groupby(findings, key=lambda finding: finding.code):
        rule = BY_CODE[code]
        yield LintGroup(
            level=rule.level,
            code=code,
            title=rule.title,
            why=rule.why,
            fix=rule.fix,
            places=tuple(map(placed, group)),
        )


def _library(models: tuple[OrtModel, ...], number: int, leaves: tuple[Leaf, ...]) -> Library:
    """Return what operators cost in the library, for the rules of lint."""
    groups = shares(leaves, by_operator)
    sizes = tuple((group.name[0], group.size_bytes) for group in groups if group.name[0] != NO_OPERATOR)
    others = (parse_config(model.config) for model in (*models[:number], *models[number + 1 :]))
    elsewhere = frozenset((each.domain, each.name) for other in others for each in other.operators)
    untold = () if leaves else ("what operators cost: the library's bytes are not known by operator",)
    return Library(sizes=sizes or None, untold=untold, elsewhere=elsewhere)


def _share(models: tuple[OrtModel, ...], number: int, leaves: tuple[Leaf, ...]) -> SizeShare | None:
    shipped = [
        ShippedModel(name=model.name, size_bytes=model.size_bytes, operators=parse_config(model.config))
        for model in models
    ]
    own = shipped.pop(number)
    return size_share(leaves, own, tuple(shipped)) if leaves else None


def _times(target: _Target, model: str) -> Iterator[OperatorTimes]:
    """Yield the times of operators on each device whose profile of this model is there."""
    for device in target.report.devices if target.report else ():
        for trace in device.traces:
            path = target.folder / trace
            if path.parent.name == model and path.is_file():
                times = operator_times(path, f"{device.device}, model '{model}'")
                yield OperatorTimes(device=device.device, times=tuple(times.items()))
