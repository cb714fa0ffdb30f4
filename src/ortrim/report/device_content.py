"""What a report says of one device, in words and in order."""

from dataclasses import dataclass
from typing import Final

from ortrim.console import printable
from ortrim.core.measurements import CaseTiming, LeastMemory, OutputParity, RunnerResult, Verdict
from ortrim.core.reports import NOT_FOR_DEVICE, DeviceFailure, DeviceReport
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, shape_text, share_text
from ortrim.report.machine import machine_facts, measures_time, run_facts
from ortrim.report.names import name_text

VIEWERS: Final = "open it in ui.perfetto.dev or chrome://tracing"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One output's parity, ready to be read."""

    model: str
    case: str
    output: str
    kind: str
    difference: str
    rms: str
    same_graph: str
    cosine: str
    classes: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One case's times on one library, ready to be read; `missed` says how many of how many runs, of which deadline."""

    model: str
    case: str
    library: str
    runs: int
    first: str
    p50: str
    p90: str
    p99: str
    split: str
    jitter: str
    missed: str


def agreements(device: DeviceReport) -> tuple[Agreement, ...]:
    """Return every output's parity in the order of the report."""
    return tuple(_agreement(output) for output in device.parity)


def timings(device: DeviceReport) -> tuple[Timing, ...]:
    """Return every case's times, ours and the baseline's next to each other; none when time means nothing there."""
    if not measures_time(device):
        return ()
    found = [(run, case) for run in device.runs for case in run.cases]
    keys = dict.fromkeys((run.model, case.case) for run, case in found)
    return tuple(_timing(run, case) for key in keys for run, case in found if (run.model, case.case) == key)


def device_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return what is known of the machine, of the run and of what ours was measured beside: labels and values."""
    pairs = (*machine_facts(device), ("baseline", device.baseline), *run_facts(device))
    return tuple((label, printable(value)) for label, value in pairs)


def findings(device: DeviceReport, baseline: str) -> tuple[tuple[str, str], ...]:
    """Return what else is to be said of it, as pairs of a label and a sentence.

    That is what it was measured beside when that is not `baseline`, the least memory, and profiles.
    """
    other = () if device.baseline == baseline else (("baseline", printable(device.baseline)),)
    least = (("least memory", _least_memory_text(least)) for least in device.least_memory)
    return (*other, *least, *(("profile", printable(f"{trace}; {VIEWERS}")) for trace in device.traces))


def failure_lines(failure: DeviceFailure) -> tuple[str, ...]:
    """Return a device's error in words: what it is, where, why, and what to do."""
    where = f"{failure.where}: " if failure.where else ""
    why = [f"why: {failure.why}"] if failure.why else []
    hint = [f"hint: {failure.hint}"] if failure.hint else []
    kind = "not run" if failure.reference == NOT_FOR_DEVICE else "error"
    return tuple(map(printable, (f"{kind}: {failure.reference}", f"{where}{failure.what}", *why, *hint)))


def missed_text(case: CaseTiming) -> str:
    """Say how many runs missed the deadline."""
    if case.deadline_ms is None:
        return NONE
    return f"{case.missed} of {case.total_ms.count} over {case.deadline_ms:g} ms"


def _least_memory_text(least: LeastMemory) -> str:
    """Say in how much memory a model runs, and in how much it does not."""
    left = f"the kernel leaves {bytes_text(least.usable_bytes)}"
    return (
        f"{name_text(least.model)} runs in {least.enough_mib} MiB, of which {left}, and not in {least.too_little_mib}"
    )


def _agreement(output: OutputParity) -> Agreement:
    return Agreement(
        model=name_text(output.model),
        case=name_text(output.case),
        output=name_text(output.output),
        kind=printable(f"{output.element_type} {shape_text(output.shape)}"),
        difference=_of_allowed(output.difference, output.allowed) if output.nan_mismatch == 0 else NONE,
        rms=_of_allowed(output.rms, output.rms_allowed),
        same_graph=_of_allowed(output.same_graph, output.same_graph_allowed),
        cosine=NONE if output.cosine is None else f"{output.cosine:.6f}",
        classes=_classes(output),
        verdict=output.verdict,
        reason=printable(output.reason),
    )


def _of_allowed(difference: float | None, allowed: float | None) -> str:
    if difference is None:
        return NONE
    return difference_text(difference) + ("" if allowed is None else f" of {difference_text(allowed)}")


def _classes(output: OutputParity) -> str:
    """Write the agreement on the best class, or how much boxes overlap."""
    if output.iou is not None:
        return f"IoU {output.iou:.3f}"
    return share_text(output.argmax_agreement)


def _timing(run: RunnerResult, case: CaseTiming) -> Timing:
    parts = (case.input_ms.p50, case.inference_ms.p50, case.output_ms.p50)
    return Timing(
        model=name_text(run.model),
        case=name_text(case.case),
        library=run.library,
        runs=case.inference_ms.count,
        first=ms_text(case.first_run_ms),
        p50=ms_text(case.inference_ms.p50),
        p90=ms_text(case.inference_ms.p90),
        p99=ms_text(case.inference_ms.p99),
        split=" + ".join(ms_text(part).removesuffix(" ms") for part in parts) + " ms",
        jitter=ms_text(case.jitter_ms),
        missed=missed_text(case),
    )
