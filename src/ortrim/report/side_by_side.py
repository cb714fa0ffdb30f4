"""Several devices beside each other: a row for each quantity, a column for each device."""

import math
from dataclasses import dataclass
from typing import Final

from ortrim.core.measurements import CaseTiming, RunnerResult, Verdict
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.device_content import missed_text
from ortrim.report.figures import NONE, bytes_text, ms_text
from ortrim.report.machine import measures_memory, measures_time
from ortrim.report.names import name_text
from ortrim.report.summary import parity_verdict

LABELS: Final = ("peak RSS", "peak after load", "load", "p50", "p99", "jitter", "missed", "least memory")
"""The figures of each model."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a device says of one quantity; with a verdict when it was judged."""

    text: str
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One quantity on each device."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows that belong together: those of one model under its name, or, without a heading, of the devices as such."""

    heading: str = ""
    rows: tuple[Row, ...]


def device_names(report: VerifyReport) -> tuple[str, ...]:
    """Return the names of the devices, which head the columns."""
    return tuple(name_text(device.device) for device in report.devices)


def side_by_side(report: VerifyReport) -> tuple[Group, ...]:
    """Return the rows; a quantity that no device has is left out, and what means nothing on one is a dash there.

    Times are those of the case that takes longest, the same on every device, so that columns can be compared.
    """
    devices = report.devices
    models = dict.fromkeys(run.model for device in devices for run in device.runs)
    kinds = Row(label="kind", cells=tuple(Cell(text=_kind(device)) for device in devices))
    measures = Row(label="measures", cells=tuple(Cell(text=_measures(device)) for device in devices))
    parity = Row(label="parity", cells=tuple(map(_parity, devices)))
    verdict = Row(label="verdict", cells=tuple(map(_verdict, devices)))
    groups = (_of_model(model, devices) for model in models)
    return (Group(rows=(kinds, measures, parity)), *(group for group in groups if group.rows), Group(rows=(verdict,)))


def _kind(device: DeviceReport) -> str:
    return (device.host.kind or NONE) if device.host else NONE


def _measures(device: DeviceReport) -> str:
    if device.host is None:
        return NONE
    named = (("parity", True), ("memory", measures_memory(device)), ("time", measures_time(device)))
    return ", ".join(name for name, measured in named if measured)


def _parity(device: DeviceReport) -> Cell:
    if not device.parity:
        return Cell(text=NONE)
    judged = [output.verdict for output in device.parity if output.verdict is not Verdict.NOT_JUDGED]
    said = f"{judged.count(Verdict.PASS)} of {len(judged)}" if judged else "not judged"
    return Cell(text=said, verdict=parity_verdict(device))


def _verdict(device: DeviceReport) -> Cell:
    return Cell(text=device.failure.reference if device.failure else device.verdict.value, verdict=device.verdict)


def _of_model(model: str, devices: tuple[DeviceReport, ...]) -> Group:
    """Return the figures of one model."""
    cases = tuple(dict.fromkeys(case.case for device in devices for case in _cases(device, model)))
    longest = max(cases, key=lambda case: _longest(devices, model, case), default="")
    heading = name_text(model) + (f"; times of {name_text(longest)}" if len(cases) > 1 else "")
    columns = [_figures(device, model, longest) for device in devices]
    rows = tuple(
        Row(label=label, cells=tuple(Cell(text=text) for text in texts))
        for label, texts in zip(LABELS, zip(*columns, strict=True), strict=True)
        if any(text != NONE for text in texts)
    )
    return Group(heading=heading, rows=rows)


def _figures(device: DeviceReport, model: str, case: str) -> tuple[str, ...]:
    """Return what a device measured of one model, in the order of `LABELS`."""
    run = _run(device, model)
    return (*_memory_figures(device, run), *_time_figures(device, run, case), _least_memory(device, model))


def _memory_figures(device: DeviceReport, run: RunnerResult | None) -> tuple[str, str]:
    if run is None or not measures_memory(device):
        return NONE, NONE
    after = run.inference_peak_rss_bytes
    return bytes_text(run.peak_rss_bytes.p50), bytes_text(after.p50 if after else None)


def _time_figures(device: DeviceReport, run: RunnerResult | None, name: str) -> tuple[str, str, str, str, str]:
    if run is None or not measures_time(device):
        return NONE, NONE, NONE, NONE, NONE
    load = ms_text(run.load_ms.p50)
    case = next((case for case in run.cases if case.case == name), None)
    if case is None:
        return load, NONE, NONE, NONE, NONE
    latency = case.inference_ms
    return load, ms_text(latency.p50), ms_text(latency.p99), ms_text(case.jitter_ms), missed_text(case)


def _least_memory(device: DeviceReport, model: str) -> str:
    return next((f"{least.enough_mib} MiB" for least in device.least_memory if least.model == model), NONE)


def _run(device: DeviceReport, model: str) -> RunnerResult | None:
    return next((run for run in device.runs if (run.library, run.model) == ("ours", model)), None)


def _cases(device: DeviceReport, model: str) -> tuple[CaseTiming, ...]:
    run = _run(device, model)
    return run.cases if run and measures_time(device) else ()


def _longest(devices: tuple[DeviceReport, ...], model: str, name: str) -> float:
    """Return the largest median of a case; not a number, which only a forged report holds, counts as nothing."""
    found = (case.inference_ms.p50 for device in devices for case in _cases(device, model) if case.case == name)
    return max((value for value in found if not math.isnan(value)), default=0.0)
