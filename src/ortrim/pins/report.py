"""A library of one ONNX Runtime version against that of another: what a new version costs, or saves."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ortrim.errors import VerifyError
from ortrim.report.content import SYMBOLS, measures_memory, measures_time
from ortrim.report.figures import NONE, escaped, name_text, quantity_text, table
from ortrim.report.summary import parity_text, parity_verdict, title, verdict_text
from ortrim.verify.measurements import RunnerResult, Unit
from ortrim.verify.reports import DeviceReport, VerifyReport

SMALLEST_CHANGE: Final = 0.0005
"""Half of the last digit that is shown."""
TIMES: Final = (
    "Sizes are exact. Memory and times come from one verification each, one after the other on the same machine."
)


@dataclass(frozen=True, kw_only=True)
class PinChange:
    """One quantity of both libraries; None where a report has none, or where it means nothing on that device."""

    measure: str
    where: str = ""
    unit: Unit
    last: float | None
    newest: float | None


def changes(last: VerifyReport, newest: VerifyReport) -> tuple[PinChange, ...]:
    """Return sizes, then for each device and model that both reports have: memory, load, the time of a run.

    That time is the median of the case that took longest in the last version. Raises `VerifyError` `reports-unlike`
    for reports of different buildspecs or targets.
    """
    if (last.name, last.target) != (newest.name, newest.target):
        what = f"are of different things: {title(last)}, {title(newest)}"
        raise VerifyError("reports-unlike", what, where="report.json", hint="build one buildspec for one target twice")
    sizes = (
        ("library", last.size.file_bytes, newest.size.file_bytes),
        ("library, compressed", last.size.compressed_bytes, newest.size.compressed_bytes),
        ("package", last.package_bytes, newest.package_bytes),
    )
    found = [PinChange(measure=name, unit="bytes", last=one, newest=other) for name, one, other in sizes]
    for one, other in _pairs(last, newest):
        found += _of_device(one, other)
    return tuple(found)


def against(last: VerifyReport, newest: VerifyReport) -> str:
    """Return the comparison as Markdown: a table of changes, parity, and the verdict on the newer library.

    No name in it can become markup. Raises as `changes` does.
    """
    headings = ("measure", "of", *(escaped(f"ONNX Runtime {each.ort_version}") for each in (last, newest)), "change")
    rows = [_cells(change) for change in changes(last, newest)]
    parity = [_parity(one, other) for one, other in _pairs(last, newest)]
    verdict = f"{SYMBOLS[newest.verdict]} With {newest.ort_version}: {verdict_text(newest)}"
    parts = (f"## {escaped(title(newest))}", table(headings, rows, right=range(2, 5)), *parity, escaped(verdict), TIMES)
    return "\n\n".join(parts) + "\n"


def _pairs(last: VerifyReport, newest: VerifyReport) -> Iterator[tuple[DeviceReport, DeviceReport]]:
    found = {device.device: device for device in last.devices}
    yield from ((found[device.device], device) for device in newest.devices if device.device in found)


def _of_device(last: DeviceReport, newest: DeviceReport) -> Iterator[PinChange]:
    before = {run.model: run for run in last.runs if run.library == "ours"}
    for run in newest.runs:
        if run.library == "ours" and run.model in before:
            where = f"{name_text(run.model)} on {name_text(newest.device)}"
            yield from _of_model(before[run.model], run, where, (last, newest))


def _of_model(
    last: RunnerResult, newest: RunnerResult, where: str, devices: tuple[DeviceReport, DeviceReport]
) -> Iterator[PinChange]:
    if all(map(measures_memory, devices)):
        peaks = last.peak_rss_bytes.p50, newest.peak_rss_bytes.p50
        yield PinChange(measure="peak memory", where=where, unit="bytes", last=peaks[0], newest=peaks[1])
    if all(map(measures_time, devices)):
        loads = last.load_ms.p50, newest.load_ms.p50
        yield PinChange(measure="load", where=where, unit="ms", last=loads[0], newest=loads[1])
        case = _longest(last)
        name = f"latency p50, {name_text(case)}" if case else "latency p50"
        yield PinChange(measure=name, where=where, unit="ms", last=_median(last, case), newest=_median(newest, case))


def _longest(run: RunnerResult) -> str:
    finite = [case for case in run.cases if math.isfinite(case.inference_ms.p50)]
    return max(finite, key=lambda case: case.inference_ms.p50).case if finite else ""


def _median(run: RunnerResult, name: str) -> float | None:
    return next((case.inference_ms.p50 for case in run.cases if case.case == name), None)


def _cells(change: PinChange) -> tuple[str, ...]:
    figures = (quantity_text(value, change.unit) for value in (change.last, change.newest))
    return (escaped(change.measure), escaped(change.where), *figures, _difference(change.last, change.newest))


def _difference(last: float | None, newest: float | None) -> str:
    """Write how much larger the newer figure is: `+1.2 %`, `-3.0 %`, `0 %`."""
    if last is None or newest is None or not (math.isfinite(last) and math.isfinite(newest)) or last <= 0:
        return NONE
    ratio = newest / last - 1
    return "0 %" if abs(ratio) < SMALLEST_CHANGE else f"{100 * ratio:+.1f} %"


def _parity(last: DeviceReport, newest: DeviceReport) -> str:
    text = f"Parity on {name_text(newest.device)}: {parity_text(newest)}; in the last version: {parity_text(last)}."
    return f"{SYMBOLS[parity_verdict(newest)]} {escaped(text)}"
