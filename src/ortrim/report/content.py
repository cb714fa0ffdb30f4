"""What a report says of the library and the package, in words and in order; the forms only lay it out.

With `terminal.side_by_side` and the charts it is all that reads a `VerifyReport`. Every name that comes from a model, a
library or a machine passes through `printable` there.

- What a report says of one device, in words and in order.
- The lines of the report's tables of measures, ready to be read.
- What a report says of a machine on which it was measured, and of what could not be measured there.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortrim.base.console import counted, duration_text, printable
from ortrim.base.processor_cores import cores_text
from ortrim.parity.measurements import (
    CaseTiming,
    Comparison,
    HostFacts,
    LeastMemory,
    OutputParity,
    RunnerResult,
    Verdict,
)
from ortrim.report.figures import (
    NONE,
    budget_text,
    bytes_text,
    difference_text,
    ms_text,
    name_text,
    quantity_text,
    shape_text,
    share_text,
    shortened,
)
from ortrim.verify.reports import (
    NOT_FOR_DEVICE,
    DeviceFailure,
    DeviceReport,
    ReportedArtifact,
    VerifiedModel,
    VerifyReport,
)


@dataclass(frozen=True, kw_only=True)
class ReportPart:
    """One component of the library, one symbol: its name, size and share of the whole."""

    name: str
    component: str
    size: str
    share: float
    share_text: str


def components(report: VerifyReport) -> tuple[ReportPart, ...]:
    """Return the library's components, largest first."""
    found = sorted(report.size.components, key=lambda component: (-component.size_bytes, component.component))
    return tuple(_part(report, name_text(part.component), "", part.size_bytes) for part in found)


def symbols(report: VerifyReport) -> tuple[ReportPart, ...]:
    """Return the library's largest symbols, largest first."""
    found = sorted(report.size.largest_symbols, key=lambda symbol: (-symbol.size_bytes, symbol.name))
    return tuple(_part(report, symbol.name, symbol.component, symbol.size_bytes) for symbol in found)


def gates(report: VerifyReport) -> tuple[tuple[str, Verdict, str], ...]:
    """Return each gate's name, verdict and detail."""
    return tuple((printable(gate.name), gate.verdict, printable(gate.detail)) for gate in report.gates)


def package_facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return what else is known of package and library, as pairs of a label and a value."""
    library = report.library
    pairs = (
        ("package", f"{report.package} ({bytes_text(report.package_bytes)})"),
        ("library", f"{library.soname or NONE}, {library.machine}"),
        ("needs", ", ".join(library.needed) or "nothing"),
        ("symbol versions", ", ".join(library.symbol_versions) or "none"),
        ("exports", ", ".join(library.exported) or "nothing"),
        ("load alignment", counted(library.load_alignment, "byte")),
        *(("file", _digests(artifact)) for artifact in report.artifacts),
        *(("model", _model_text(model)) for model in report.models),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def _model_text(model: VerifiedModel) -> str:
    layout = f", layout {model.layout}" if model.layout else ""
    return f"{model.name}: SHA-256 {model.sha256}, made of {model.original_sha256}{layout}"


def build_facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return how the library came to be, as pairs of a label and a value."""
    cache, units = report.compiler_cache, report.units
    pairs = (
        ("built in", duration_text(report.build_seconds) if math.isfinite(report.build_seconds) else NONE),
        ("compiler cache", f"{cache.hits} of {counted(cache.requests, 'compilation')}" if cache else "not used"),
        ("compiled", f"{units.compiled} of {counted(units.total, 'file')}" if units else "every file"),
        ("plan", report.plan_digest),
        ("made by", f"ortrim {report.ortrim_version}"),
        *(("not used", remark) for remark in report.left_out),
        *(("damaged-cache", damage) for damage in report.damaged_cache),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def _digests(artifact: ReportedArtifact) -> str:
    build_id = f", build-id {artifact.build_id}" if artifact.build_id else ""
    return f"{artifact.name}: SHA-256 {artifact.sha256}{build_id}"


def _part(report: VerifyReport, name: str, component: str, size_bytes: int) -> ReportPart:
    whole = report.size.file_bytes
    share = size_bytes / whole if whole > 0 else 0.0
    return ReportPart(
        name=printable(name),
        component=name_text(component),
        size=bytes_text(size_bytes),
        share=share,
        share_text=share_text(share) if whole > 0 else NONE,
    )


THERMAL: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""Android's thermal states, from 0."""


def measures_memory(device: DeviceReport) -> bool:
    """Whether the memory of a process there says anything of a real device."""
    return device.host is None or device.host.memory_meaningful


def measures_time(device: DeviceReport) -> bool:
    """Whether the time that a process takes there says anything of a real device."""
    return device.host is None or device.host.time_meaningful


def counts_instructions(device: DeviceReport) -> bool:
    """Whether instructions were counted there."""
    return any(case.instructions for run in device.runs for case in run.cases)


def machine_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return what is known of the machine, as pairs of a label and a value; nothing of one that did not answer."""
    host = device.host
    if host is None:
        return ()
    pairs = (
        ("host", f"{host.system}, {host.machine}, {host.cpu}"),
        ("cores and memory", f"{counted(host.cores, 'core')}, {bytes_text(host.memory_bytes or None)}"),
        ("ran on cores", cores_text(host.pinned_cores)),
        ("device", " · ".join(filter(None, (host.model, host.soc, host.kind)))),
        ("system", " · ".join(filter(None, (host.os_version, host.abi, _api(host))))),
        ("system's build", host.fingerprint),
        ("pages", counted(host.page_bytes, "byte") if host.page_bytes else ""),
        ("processor's features", " ".join(host.cpu_features)),
        ("temperature, before and after", _heat(host)),
        ("battery", "" if host.battery_celsius is None else f"{host.battery_celsius:.1f} °C"),
        ("not judged", "; ".join(not_judged(device))),
    )
    return tuple((label, value) for label, value in pairs if value)


def run_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return how the figures came about and how the run is found again, as pairs of a label and a value."""
    warmup = sorted({run.warmup for run in device.runs})
    sources = sorted({run.peak_source for run in device.runs})
    pairs = (
        ("peak RSS read from", ", ".join(sources) if measures_memory(device) else ""),
        ("warm-up", f"{' or '.join(map(str, warmup))} runs of each case" if warmup and measures_time(device) else ""),
        ("verified", f"{device.started}, in {duration_text(device.duration_s)}"),
        ("run", device.run_id),
        ("seen at", device.provider_url or ""),
        ("device's log", device.log or ""),
    )
    return tuple((label, value) for label, value in pairs if value)


def not_judged(device: DeviceReport) -> tuple[str, ...]:
    """Return each reason why something was not judged, once."""
    return tuple(dict.fromkeys(line.reason for line in device.comparisons if line.reason))


def _api(host: HostFacts) -> str:
    return f"API level {host.api_level}" if host.api_level is not None else ""


def _heat(host: HostFacts) -> str:
    states = (host.thermal_before, host.thermal_after)
    if states == (None, None):
        return ""
    return " → ".join(_state(state) for state in states)


def _state(state: int | None) -> str:
    if state is None:
        return NONE
    return THERMAL[state] if 0 <= state < len(THERMAL) else str(state)


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


ELEMENT: Final = re.compile(r"\[\d+\]")
"""What the name of an output has that is an element of a sequence."""


def agreements(device: DeviceReport) -> tuple[Agreement, ...]:
    """Return every output's parity in the order of the report; elements that are not judged for one reason are one."""
    alike: dict[OutputParity, list[OutputParity]] = {}
    for output in device.parity:
        whole = ELEMENT.sub("[...]", output.output) if output.verdict is Verdict.NOT_JUDGED else output.output
        alike.setdefault(replace(output, output=whole), []).append(output)
    return tuple(_agreement(whole if len(own) > 1 else own[0]) for whole, own in alike.items())


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

    That is each model that does not run there, what it was measured beside when that is not `baseline`, the least
    memory, and profiles.
    """
    other = () if device.baseline == baseline else (("baseline", printable(device.baseline)),)
    failed = (("failed", "\n".join(failure_lines(failure))) for failure in device.failed_models)
    least = (("least memory", _least_memory_text(least)) for least in device.least_memory)
    return (*failed, *other, *least, *(("profile", printable(f"{trace}; {VIEWERS}")) for trace in device.traces))


def failure_lines(failure: DeviceFailure) -> tuple[str, ...]:
    """Return a device's error in words: what it is, where, why, and what to do."""
    where = f"{failure.where}: " if failure.where else ""
    why = [f"why: {failure.why}"] if failure.why else []
    hint = [f"hint: {failure.hint}"] if failure.hint else []
    kind = "not run" if failure.code == NOT_FOR_DEVICE else "error"
    return tuple(map(printable, (f"{kind}: {failure.code}", f"{where}{failure.what}", *why, *hint)))


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


CASE_LETTERS: Final = 18
SYMBOLS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.INCONCLUSIVE: "≈", Verdict.NOT_JUDGED: "·"}


def gravest(found: Iterable[Verdict]) -> Verdict:
    """Return the gravest of some verdicts."""
    given = set(found)
    ordered = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
    return next((verdict for verdict in ordered if verdict in given), Verdict.NOT_JUDGED)


@dataclass(frozen=True, kw_only=True)
class ReportLine:
    """One comparison, ready to be read; `device` is empty for what is the library's own."""

    device: str
    measure: str
    model: str
    ours: str
    baseline: str
    ratio: str
    ratio_value: float | None
    budget: str
    verdict: Verdict


def all_lines(report: VerifyReport) -> tuple[ReportLine, ...]:
    """Return the library's lines, then each device's."""
    return (*library_lines(report), *(line for device in report.devices for line in device_lines(device)))


def library_lines(report: VerifyReport) -> tuple[ReportLine, ...]:
    """Return the lines of the library and the package."""
    return tuple(_line(comparison) for comparison in report.comparisons)


def device_lines(device: DeviceReport) -> tuple[ReportLine, ...]:
    """Return a device's lines, model by model in the order of the report."""
    models = dict.fromkeys(comparison.model for comparison in device.comparisons)
    ordered = [comparison for model in models for comparison in device.comparisons if comparison.model == model]
    return tuple(_line(comparison, device) for comparison in ordered)


def several_models(lines: Sequence[ReportLine]) -> bool:
    """Whether lines need to say which model they are about."""
    return len({line.model for line in lines if line.model}) > 1


def _line(comparison: Comparison, device: DeviceReport | None = None) -> ReportLine:
    hidden = device is not None and _means_nothing(comparison, device)
    return ReportLine(
        device=name_text(device.device) if device else "",
        measure=_measure_text(comparison),
        model=name_text(comparison.model),
        ours=NONE if hidden else quantity_text(comparison.ours, comparison.unit),
        baseline=NONE if hidden else quantity_text(comparison.baseline, comparison.unit),
        ratio=NONE if hidden else share_text(comparison.ratio, comparison.spread),
        ratio_value=None if hidden else comparison.ratio,
        budget=_budget_text(comparison, device),
        verdict=comparison.verdict,
    )


def _means_nothing(comparison: Comparison, device: DeviceReport) -> bool:
    """Whether a line's figures say nothing of a real device."""
    if comparison.unit == "instructions":
        return not counts_instructions(device)
    return not (measures_memory(device) if comparison.unit == "bytes" else measures_time(device))


def _measure_text(comparison: Comparison) -> str:
    case = f", {shortened(printable(comparison.case), CASE_LETTERS)}" if comparison.case else ""
    return name_text(comparison.measure) + case


def _budget_text(comparison: Comparison, device: DeviceReport | None) -> str:
    """Write the budget; the one for runs that miss their deadline is the deadline, since none may."""
    deadline = _deadline(device) if device and comparison.unit == "runs" else None
    if deadline is not None:
        return budget_text(deadline, "ms", is_ratio=False)
    return budget_text(comparison.budget, comparison.unit, is_ratio=comparison.budget_is_ratio)


def _deadline(device: DeviceReport) -> float | None:
    deadlines = (case.deadline_ms for run in device.runs for case in run.cases)
    return next((deadline for deadline in deadlines if deadline is not None), None)
