"""What a report says, in words and in order; names pass through `printable` here, and the forms only lay them out."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortrim.base.console import counted, duration_text, printable
from ortrim.base.processor_cores import cores_text
from ortrim.parity.measurements import (
    CaseTiming,
    Comparison,
    Coverage,
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
from ortrim.report.table import Cell, Columns, Judged, Table, columns
from ortrim.verify.failures import unproved_models
from ortrim.verify.reports import (
    NOT_FOR_DEVICE,
    DeviceFailure,
    DeviceReport,
    VerifyReport,
)


def components(report: VerifyReport) -> tuple[tuple[str, int], ...]:
    """Return the library's components with their bytes, largest first."""
    found = sorted(report.size.components, key=lambda component: (-component.size_bytes, component.component))
    return tuple((name_text(part.component), part.size_bytes) for part in found)


def part_text(report: VerifyReport, size_bytes: int) -> tuple[str, str]:
    """Write the bytes of a part of the library, and their share of all."""
    whole = report.size.file_bytes
    return bytes_text(size_bytes), share_text(size_bytes / whole) if whole > 0 else NONE


def component_table(report: VerifyReport) -> Table:
    """Return the library's components."""
    rows = [(name, *part_text(report, size)) for name, size in components(report)]
    return Table(columns=(("component", "text"), *columns("number", "size", "share")), rows=rows)


def symbol_table(report: VerifyReport) -> Table:
    """Return the library's largest symbols, largest first."""
    found = sorted(report.size.largest_symbols, key=lambda symbol: (-symbol.size_bytes, symbol.name))
    rows = [(printable(each.name), name_text(each.component), *part_text(report, each.size_bytes)) for each in found]
    headings: Columns = (("symbol", "code"), ("component", "text"), *columns("number", "size", "share"))
    return Table(columns=headings, rows=rows)


def gate_table(report: VerifyReport) -> Table:
    """Return each gate's name, verdict and detail."""
    rows = tuple((printable(gate.name), Judged(gate.verdict), printable(gate.detail)) for gate in report.gates)
    return Table(columns=(("gate", "label"), ("verdict", "verdict"), ("detail", "text")), rows=rows)


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
        *(
            ("file", f"{each.name}: SHA-256 {each.sha256}{f', build-id {each.build_id}' if each.build_id else ''}")
            for each in report.artifacts
        ),
        *(
            (
                "model",
                f"{each.name}: SHA-256 {each.sha256}, made of {each.original_sha256}"
                + (f", layout {each.layout}" if each.layout else ""),
            )
            for each in report.models
        ),
    )
    return tuple((label, printable(value)) for label, value in pairs)


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
    api = "" if host.api_level is None else f"API level {host.api_level}"
    heat = (host.thermal_before, host.thermal_after)
    pairs = (
        ("host", f"{host.system}, {host.machine}, {host.cpu}"),
        ("cores and memory", f"{counted(host.cores, 'core')}, {bytes_text(host.memory_bytes or None)}"),
        ("ran on cores", cores_text(host.pinned_cores)),
        ("device", " · ".join(filter(None, (host.model, host.soc, host.kind)))),
        ("system", " · ".join(filter(None, (host.os_version, host.abi, api)))),
        ("system's build", host.fingerprint),
        ("pages", counted(host.page_bytes, "byte") if host.page_bytes else ""),
        ("processor's features", " ".join(host.cpu_features)),
        ("temperature, before and after", "" if heat == (None, None) else " → ".join(map(_thermal_text, heat))),
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


def _thermal_text(state: int | None) -> str:
    if state is None:
        return NONE
    return THERMAL[state] if 0 <= state < len(THERMAL) else str(state)


VIEWERS: Final = "open it in ui.perfetto.dev or chrome://tracing"
ELEMENT: Final = re.compile(r"\[\d+\]")
"""What the name of an output has that is an element of a sequence."""


def agreements(device: DeviceReport) -> tuple[OutputParity, ...]:
    """Return every output's parity in the order of the report; elements that are not judged for one reason are one."""
    alike: dict[OutputParity, list[OutputParity]] = {}
    for output in device.parity:
        whole = ELEMENT.sub("[...]", output.output) if output.verdict is Verdict.NOT_JUDGED else output.output
        alike.setdefault(replace(output, output=whole), []).append(output)
    return tuple(whole if len(own) > 1 else own[0] for whole, own in alike.items())


def parity_table(device: DeviceReport) -> Table:
    """Return how far every output is from the reference, of how much is allowed."""
    numbers = columns("number", "difference", "RMS", "same graph", "cosine", "top-1 or IoU")
    rows: list[tuple[Cell, ...]] = [
        (
            *map(name_text, (output.model, output.case, output.output)),
            printable(f"{output.element_type} {shape_text(output.shape)}"),
            _of_allowed(output.difference, output.allowed) if output.nan_mismatch == 0 else NONE,
            _of_allowed(output.rms, output.rms_allowed),
            _of_allowed(output.same_graph, output.same_graph_allowed),
            NONE if output.cosine is None else f"{output.cosine:.6f}",
            share_text(output.argmax_agreement) if output.iou is None else f"IoU {output.iou:.3f}",
            Judged(output.verdict, reason=printable(output.reason)),
        )
        for output in agreements(device)
    ]
    headings = columns("text", "model", "case", "output", "type")
    return Table(columns=(*headings, *numbers, ("verdict", "text")), rows=rows)


def timings(device: DeviceReport) -> Table:
    """Return every case's times, ours and the baseline's next to each other; none when time means nothing there."""
    found = [(run, case) for run in device.runs for case in run.cases] if measures_time(device) else []
    keys = dict.fromkeys((run.model, case.case) for run, case in found)
    numbers = ("runs", "first run", "p50", "p90", "p99", "input + inference + output", "jitter", "missed")
    return Table(
        columns=(*columns("text", "model", "case", "library"), *columns("number", *numbers)),
        rows=tuple(_timing(*each) for key in keys for each in found if (each[0].model, each[1].case) == key),
    )


def device_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return what is known of the machine, of the run and of what ours was measured beside: labels and values."""
    pairs = (*machine_facts(device), ("baseline", device.baseline), *run_facts(device))
    return tuple((label, printable(value)) for label, value in pairs)


def findings(device: DeviceReport, baseline: str) -> tuple[tuple[str, str], ...]:
    """Return what else is to be said of it, as pairs of a label and a sentence.

    That is each model that does not run there, what it was measured beside when that is not `baseline`, the least
    memory, which execution providers ran its nodes, and profiles.
    """
    other = () if device.baseline == baseline else (("baseline", printable(device.baseline)),)
    failed = (("failed", "\n".join(failure_lines(failure))) for failure in device.failed_models)
    least = []
    for each in device.least_memory:
        left = f"of which the kernel leaves {bytes_text(each.usable_bytes)}"
        words = f"runs in {each.enough_mib} MiB, {left}, and not in {each.too_little_mib}"
        least.append(("least memory", f"{name_text(each.model)} {words}"))
    placed = (("nodes", f"{name_text(each.model)}: {_placed_text(each.nodes)}") for each in device.placements)
    profiles = (("profile", printable(f"{trace}; {VIEWERS}")) for trace in device.traces)
    return (*failed, *other, *least, *placed, *profiles)


def _placed_text(nodes: Mapping[str, int]) -> str:
    """Say by whom nodes were run: `34 of 97 by Xnnpack, 63 by CPU`."""
    (first, count), *others = ((name.removesuffix("ExecutionProvider"), count) for name, count in nodes.items())
    return ", ".join((f"{count} of {sum(nodes.values())} by {first}", *(f"{more} by {name}" for name, more in others)))


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


def _of_allowed(difference: float | None, allowed: float | None) -> str:
    if difference is None:
        return NONE
    return difference_text(difference) + ("" if allowed is None else f" of {difference_text(allowed)}")


def _timing(run: RunnerResult, case: CaseTiming) -> tuple[str, ...]:
    latency = case.inference_ms
    parts = (case.input_ms.p50, latency.p50, case.output_ms.p50)
    split = " + ".join(ms_text(part).removesuffix(" ms") for part in parts) + " ms"
    times = map(ms_text, (case.first_run_ms, latency.p50, latency.p90, latency.p99))
    names = (name_text(run.model), name_text(case.case), run.library)
    return (*names, str(latency.count), *times, split, ms_text(case.jitter_ms), missed_text(case))


CASE_LETTERS: Final = 18


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


def comparison_table(lines: Sequence[ReportLine], *, several_models: bool) -> Table:
    """Return lines with their verdicts, and with their model where there are several."""
    names = columns("text", "measure", *(("model",) if several_models else ()))
    rows: list[tuple[Cell, ...]] = [
        (
            *((line.measure, line.model) if several_models else (line.measure,)),
            *(line.ours, line.baseline, line.ratio, line.budget),
            Judged(line.verdict),
        )
        for line in lines
    ]
    headings = (*names, *columns("number", "ours", "baseline", "ratio", "budget"), *columns("verdict", "verdict"))
    return Table(columns=headings, rows=rows)


def several_models(lines: Sequence[ReportLine]) -> bool:
    """Whether lines need to say which model they are about."""
    return len({line.model for line in lines if line.model}) > 1


def _line(comparison: Comparison, device: DeviceReport | None = None) -> ReportLine:
    unit, budget, is_ratio = comparison.unit, comparison.budget, comparison.budget_is_ratio
    hidden, deadline = False, None
    if device:
        meaningful = {"instructions": counts_instructions, "bytes": measures_memory}.get(unit, measures_time)
        hidden = not meaningful(device)
        deadlines = (case.deadline_ms for run in device.runs for case in run.cases if case.deadline_ms is not None)
        deadline = next(deadlines, None) if unit == "runs" else None
    if deadline is not None:  # The budget for runs that miss their deadline is the deadline, since none may.
        unit, budget, is_ratio = "ms", deadline, False
    case = f", {shortened(printable(comparison.case), CASE_LETTERS)}" if comparison.case else ""
    return ReportLine(
        device=name_text(device.device) if device else "",
        measure=name_text(comparison.measure) + case,
        model=name_text(comparison.model),
        ours=NONE if hidden else quantity_text(comparison.ours, comparison.unit),
        baseline=NONE if hidden else quantity_text(comparison.baseline, comparison.unit),
        ratio=NONE if hidden else share_text(comparison.ratio, comparison.spread),
        ratio_value=None if hidden else comparison.ratio,
        budget=budget_text(budget, unit, is_ratio=is_ratio),
        verdict=comparison.verdict,
    )


SHOWN: Final = 6
"""How many failures the verdict names."""


def title(report: VerifyReport) -> str:
    """Name what was verified."""
    return f"{name_text(report.name)} for {name_text(report.target)}"


def subtitle(report: VerifyReport) -> str:
    """Say what it was made with, and where it was measured."""
    made = f"ONNX Runtime {report.ort_version}, profile {report.profile}"
    if not report.devices:
        return printable(f"{made} · not run: no device was given")
    if len(report.devices) > 1:
        return printable(f"{made} · measured on {counted(len(report.devices), 'device')} beside {report.baseline}")
    (device,) = report.devices
    where = f"measured on {device.device} ({device.host.cpu}) beside {device.baseline}" if device.host else ""
    return printable(f"{made} · {where or f'no results from {device.device}'}")


def verdict_text(report: VerifyReport) -> str:
    """Say in one sentence how it ended, and name what failed."""
    failed_gates = (gate for gate in report.gates if gate.verdict is Verdict.FAIL)
    gates = (f"{printable(gate.name)}: {printable(gate.detail)}" for gate in failed_gates)
    failures = [*_failed_devices(report), *_missed_budgets(report), *_differing(report), *gates]
    unsure = [line.measure for line in all_lines(report) if line.verdict is Verdict.INCONCLUSIVE]
    if report.verdict is Verdict.FAIL:
        more = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        return "FAIL: " + ("; ".join(failures[:SHOWN] + more) or "see the tables")
    named = ", ".join(dict.fromkeys(unsure))
    if report.verdict is Verdict.INCONCLUSIVE:
        return "INCONCLUSIVE: " + ("; ".join(map(_unproved_text, unproved_models(report))) or "see the tables")
    text = f"{'PASS' if report.verdict is Verdict.PASS else 'NOT JUDGED'}: within every {_judged_budgets(report)}"
    return f"{text}; inconclusive: {named}" if named else text


def _unproved_text(output: OutputParity) -> str:
    return (
        f"no output of {name_text(output.model)} can be judged ({name_text(output.output)}: {printable(output.reason)})"
    )


def coverage_texts(report: VerifyReport) -> tuple[str, ...]:
    """Say of each model how many of its nodes the cases execute, and what none of them enters or looks up."""
    return tuple(
        text
        for model in report.models
        if model.coverage
        for text in (
            coverage_text(model.coverage, f" of {name_text(model.name)} run"),
            *(f"{name_text(model.name)}: {printable(str(each))}" for each in model.coverage.tables),
        )
    )


def coverage_text(coverage: Coverage, said: str = "") -> str:
    """Write `12 of 15 nodes`, what is said of them, and which bodies no case enters."""
    share = printable(f"{coverage.executed:,} of {counted(coverage.nodes, 'node')}{said}")
    if not coverage.idle:
        return share
    more = f" and {len(coverage.idle) - SHOWN} more" if len(coverage.idle) > SHOWN else ""
    return f"{share}; no case enters {', '.join(map(name_text, coverage.idle[:SHOWN]))}{more}"


def parity_text(device: DeviceReport) -> str:
    """Sum parity up in one sentence."""
    if not device.parity:
        return "no outputs were compared"
    cases = len({(output.model, output.case) for output in device.parity})
    failed = sum(output.verdict is Verdict.FAIL for output in device.parity)
    worst = max(device.parity, key=lambda output: rank(_binding(output)[0]))
    _, kind, difference, allowed = _binding(worst)
    place = f"{name_text(worst.case)}, {name_text(worst.output)}"
    total = f"{counted(len(device.parity), 'output')} of {counted(cases, 'case')}"
    if failed:
        agree = f"{failed} of {total} differ"
    elif unjudged := sum(output.verdict is Verdict.NOT_JUDGED for output in device.parity):
        others = "" if unjudged == len(device.parity) else ", the others agree"
        agree = f"{unjudged} of {total} cannot be judged{others}"
    else:
        agree = f"{total} agree"
    return (
        f"{agree}; largest {kind} {difference_text(difference)} where {difference_text(allowed)} is allowed ({place})"
    )


def parity_verdict(device: DeviceReport) -> Verdict:
    """Return the verdict on all outputs together."""
    found = {output.verdict for output in device.parity}
    if Verdict.FAIL in found:
        return Verdict.FAIL
    if device.verdict is Verdict.INCONCLUSIVE:
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if found - {Verdict.NOT_JUDGED} else Verdict.NOT_JUDGED


def _judged_budgets(report: VerifyReport) -> str:
    """Claim no budget that no device can judge."""
    if not report.devices:
        return "budget of the library; it was not run, parity not judged"
    named = (("memory", any(map(measures_memory, report.devices))), ("time", any(map(measures_time, report.devices))))
    unjudged = " and ".join(name for name, meaningful in named if report.devices and not meaningful)
    left_out = f" that can be judged there ({unjudged} cannot)" if unjudged else ""
    places = f" on {counted(len(report.devices), 'device')}" if len(report.devices) > 1 else ""
    # Of parity no more is said than was judged of each model on each device; it may be that nothing is to be judged.
    models = {output.model for device in report.devices for output in device.parity}
    judged = models and all(
        any(output.verdict is not Verdict.NOT_JUDGED and output.model == model for output in device.parity)
        for device in report.devices
        for model in models
    )
    return f"budget{left_out}, {'outputs in parity' if judged else 'parity not judged'}{places}"


RMS: Final = "RMS difference"


def _binding(output: OutputParity) -> tuple[float, str, float, float]:
    """Return the bound of which an output uses most: the share, and what is how large where how much is allowed.

    One without a number is worst of all. Of bounds that are not used at all it is the narrowest in the output's own
    unit; RMS is a share of the reference's.
    """
    pairs = (
        ("difference", output.difference, output.allowed),
        (RMS, output.rms, output.rms_allowed),
        ("difference from the same graph", output.same_graph, output.same_graph_allowed),
    )
    found = [
        (tolerance_share(difference, allowed), kind, difference, allowed)
        for kind, difference, allowed in pairs
        if difference is not None and allowed is not None
    ]
    return max(found, key=lambda each: (rank(each[0]), each[1] != RMS, -each[3]))


def tolerance_share(difference: float, tolerance: float) -> float:
    """Return a difference in units of its tolerance; infinite when none is allowed and there is one."""
    if difference == 0:
        return 0.0
    return difference / tolerance if tolerance > 0 else math.inf


def rank(value: float) -> float:
    """Make a value that can be sorted: not a number comes last."""
    return math.inf if math.isnan(value) else value


def _failed_devices(report: VerifyReport) -> Iterator[str]:
    for device in report.devices:
        if device.failure and device.verdict is Verdict.FAIL:
            yield printable(f"{device.device} could not finish: {device.failure.what} ({device.failure.code})")
        for failure in device.failed_models:
            yield printable(f"{failure.model} does not run on {device.device}: {failure.what} ({failure.code})")


def _missed_budgets(report: VerifyReport) -> Iterator[str]:
    for line in all_lines(report):
        if line.verdict is Verdict.FAIL:
            ratio = "" if line.ratio == NONE else f" ({line.ratio})"
            model = f" of {line.model}" if line.model else ""
            device = f" on {line.device}" if line.device and len(report.devices) > 1 else ""
            yield f"{line.measure}{model}{device} is {line.ours}{ratio}, budget {line.budget}"


def _differing(report: VerifyReport) -> Iterator[str]:
    for device in report.devices:
        failed = [output for output in agreements(device) if output.verdict is Verdict.FAIL]
        if failed:
            first = failed[0]
            place = f" on {name_text(device.device)}" if len(report.devices) > 1 else ""
            why = f"{name_text(first.case)}, {name_text(first.output)}: {printable(first.reason)}"
            yield f"{counted(len(failed), 'output')} out of parity{place} ({why})"
