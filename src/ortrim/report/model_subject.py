"""What the page of a model is made from; what is not known yet is left out of it."""

from dataclasses import dataclass, replace
from typing import Literal

from ortrim.core.graph_facts import GraphFacts
from ortrim.core.measurements import Verdict
from ortrim.core.model_cost import ModelCost
from ortrim.core.models import OrtModel
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.core.steps_report import PreparationReport
from ortrim.report.model_share import SizeShare


@dataclass(frozen=True, kw_only=True)
class LintGroup:
    """What one rule found in a model: how grave it is, in which places, why it matters, and what mends it."""

    level: Literal["error", "advice"]
    reference: str
    title: str
    why: str
    fix: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OperatorTimes:
    """Microseconds that the kernels of each operator took on a device in one profiled run of each case."""

    device: str
    times: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class ModelSubject:
    """One model of a product, with all that is known of it.

    `report` is that of the whole target; None before it was verified. `steps` is None for a model that no step
    prepares, `share` where the library's bytes are not known by operator.
    """

    name: str
    product: str
    target: str
    graph: GraphFacts
    converted: OrtModel
    costs: tuple[ModelCost, ...]
    lint: tuple[LintGroup, ...]
    not_checked: tuple[str, ...]
    steps: PreparationReport | None = None
    share: SizeShare | None = None
    times: tuple[OperatorTimes, ...] = ()
    report: VerifyReport | None = None


def report_of_model(report: VerifyReport, name: str) -> VerifyReport:
    """Return what a target's report says of one model; the library's own lines and gates are left out."""
    devices = tuple(_device(device, name) for device in report.devices)
    found = {verdict for device in devices for verdict in _verdicts(device)}
    models = tuple(model for model in report.models if model.name == name)
    return replace(report, comparisons=(), gates=(), models=models, devices=devices, verdict=_gravest(found))


def _device(device: DeviceReport, name: str) -> DeviceReport:
    return replace(
        device,
        comparisons=tuple(line for line in device.comparisons if line.model == name),
        parity=tuple(output for output in device.parity if output.model == name),
        runs=tuple(run for run in device.runs if run.model == name),
        least_memory=tuple(least for least in device.least_memory if least.model == name),
        traces=tuple(trace for trace in device.traces if f"/{name}/" in trace),
    )


def _verdicts(device: DeviceReport) -> tuple[Verdict, ...]:
    failed = (device.verdict,) if device.failure else ()
    return (*failed, *(line.verdict for line in device.comparisons), *(output.verdict for output in device.parity))


def _gravest(found: set[Verdict]) -> Verdict:
    for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS):
        if verdict in found:
            return verdict
    return Verdict.NOT_JUDGED
