"""How long the models of a buildspec should take, in proportion to its reference model where both were measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ortrim.console import Console
from ortrim.core.model_cost import ModelCost
from ortrim.core.proportion import Expectation, Pace, expectation, merged_times
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.errors import VerifyError
from ortrim.pipeline.converted import Request, load
from ortrim.pipeline.planned import make_planned, target_folder
from ortrim.report.write import JSON_NAME, read_report
from ortrim.verify.operator_times import operator_times

Costs = Sequence[ModelCost]


def has_reference(spec: Path) -> bool:
    """Say whether a buildspec has a reference model. Raises `SpecError`."""
    return any(model.reference for model in load(Request(spec=spec)).spec.models)


def expectations_of(request: Request, costs: Costs, console: Console) -> tuple[Expectation, ...]:
    """Return what each case of each other model should take on each device on which the reference was measured.

    The figures are those of the reports in the output folder; without one there is nothing, which is told. Raises as
    planning and `read_report` do.
    """
    reference = next(model.name for model in load(request).spec.models if model.reference)
    planned = make_planned(request, console)
    found: list[Expectation] = []
    for target in planned.plan.targets:
        folder = target_folder(planned, target)
        report = _report(folder, console)
        for device in report.devices if report else ():
            found += expectations_on(device, reference, costs, folder)
    return tuple(found)


def expectations_on(device: DeviceReport, reference: str, costs: Costs, folder: Path) -> Iterator[Expectation]:
    """Yield the expectations on one device; none where time means nothing or the reference was not measured."""
    pace = _pace(device, reference, costs)
    if pace is None:
        return
    for cost in costs:
        if cost.model != reference:
            yield expectation(cost, pace, _median(device, cost.model, cost.case), _times(device, cost.model, folder))


def _report(folder: Path, console: Console) -> VerifyReport | None:
    try:
        return read_report(folder / JSON_NAME)
    except VerifyError as error:
        console.note(f"{folder.name}: {error.what}, so that no latency can be expected; {error.hint}")
        return None


def _pace(device: DeviceReport, reference: str, costs: Costs) -> Pace | None:
    """Return the reference's pace in the case with the most arithmetic of those that were measured."""
    if device.host is not None and not device.host.time_meaningful:
        return None
    measured = [
        (cost, _median(device, reference, cost.case)) for cost in costs if cost.model == reference and cost.macs
    ]
    timed = [(cost, median) for cost, median in measured if median]
    if not timed:
        return None
    cost, median = max(timed, key=lambda each: each[0].macs)
    return Pace(device=device.device, model=reference, case=cost.case, macs=cost.macs, milliseconds=median)


def _median(device: DeviceReport, model: str, case: str) -> float | None:
    runs = (run for run in device.runs if run.model == model and run.library == "ours")
    return next((each.inference_ms.p50 for run in runs for each in run.cases if each.case == case), None)


def _times(device: DeviceReport, model: str, folder: Path) -> dict[str, float] | None:
    """Return the operators' parts of a model's time, when its profile is there."""
    for trace in device.traces:
        path = folder / trace
        if path.parent.name == model and path.is_file():
            return merged_times(operator_times(path, f"{device.device}, model '{model}'"))
    return None
