"""What a report comes to, in sentences: its title, its verdict, its parity."""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from ortrim.base.console import counted, printable
from ortrim.parity.measurements import Coverage, OutputParity, Verdict
from ortrim.report.content import ReportLine, agreements, all_lines, gates, measures_memory, measures_time
from ortrim.report.figures import NONE, difference_text, name_text
from ortrim.verify.reports import DeviceReport, VerifyReport

SHOWN: Final = 6
"""How many failures the verdict names."""


def title(report: VerifyReport) -> str:
    """Name what was verified."""
    return f"{name_text(report.name)} for {name_text(report.target)}"


def subtitle(report: VerifyReport) -> str:
    """Say what it was made with, and where it was measured."""
    made = f"ONNX Runtime {report.ort_version}, profile {report.profile}"
    return printable(f"{made} · {_places(report)}")


def _places(report: VerifyReport) -> str:
    if not report.devices:
        return "not run: no device was given"
    if len(report.devices) > 1:
        return f"measured on {counted(len(report.devices), 'device')} beside {report.baseline}"
    (device,) = report.devices
    if device.host is None:
        return f"no results from {device.device}"
    return f"measured on {device.device} ({device.host.cpu}) beside {device.baseline}"


def verdict_text(report: VerifyReport) -> str:
    """Say in one sentence how it ended, and name what failed."""
    failures = [*_failed_devices(report), *_missed_budgets(report), *_differing(report), *_failed_gates(report)]
    unsure = [line.measure for line in all_lines(report) if line.verdict is Verdict.INCONCLUSIVE]
    if report.verdict is Verdict.FAIL:
        more = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        return "FAIL: " + ("; ".join(failures[:SHOWN] + more) or "see the tables")
    named = ", ".join(dict.fromkeys(unsure))
    if report.verdict is Verdict.INCONCLUSIVE:
        return "INCONCLUSIVE: " + ("; ".join(unproved_models(report)) or "see the tables")
    text = f"{'PASS' if report.verdict is Verdict.PASS else 'NOT JUDGED'}: within every {_judged_budgets(report)}"
    return f"{text}; inconclusive: {named}" if named else text


def unproved_models(report: VerifyReport) -> tuple[str, ...]:
    """Name each model of which no output could be judged on a device, with the first reason."""
    expected = {model.name for model in report.models if model.expect}
    found: dict[str, str] = {}
    for device in report.devices:
        for output in device.parity:
            judged = any(each.model == output.model and _judged(each) for each in device.parity)
            if not judged and output.model not in expected:
                why = f"{name_text(output.output)}: {printable(output.reason)}"
                found.setdefault(output.model, f"no output of {name_text(output.model)} can be judged ({why})")
    return tuple(found.values())


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
    agree = f"{failed} of {total} differ" if failed else _agreement(device.parity, total)
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
    unjudged = _unjudged_measures(report.devices)
    left_out = f" that can be judged there ({unjudged} cannot)" if unjudged else ""
    places = f" on {counted(len(report.devices), 'device')}" if len(report.devices) > 1 else ""
    return f"budget{left_out}, {_parity_claim(report)}{places}"


def _unjudged_measures(devices: tuple[DeviceReport, ...]) -> str:
    """Name what means nothing on any of the machines: `memory`, `time`, both, or nothing."""
    named = (("memory", any(map(measures_memory, devices))), ("time", any(map(measures_time, devices))))
    return " and ".join(name for name, meaningful in named if devices and not meaningful)


def _parity_claim(report: VerifyReport) -> str:
    """Say no more of parity than was judged of each model on each device; a buildspec may expect nothing to judge."""
    models = {output.model for device in report.devices for output in device.parity}
    judged = models and all(
        any(_judged(output) and output.model == model for output in device.parity)
        for device in report.devices
        for model in models
    )
    return "outputs in parity" if judged and report.devices else "parity not judged"


def _agreement(parity: tuple[OutputParity, ...], total: str) -> str:
    unjudged = sum(not _judged(output) for output in parity)
    if not unjudged:
        return f"{total} agree"
    return f"{unjudged} of {total} cannot be judged" + ("" if unjudged == len(parity) else ", the others agree")


def _judged(output: OutputParity) -> bool:
    return output.verdict is not Verdict.NOT_JUDGED


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
            yield f"{line.measure}{_of(line, report)} is {line.ours}{ratio}, budget {line.budget}"


def _of(line: ReportLine, report: VerifyReport) -> str:
    of_model = f" of {line.model}" if line.model else ""
    return of_model + (f" on {line.device}" if line.device and len(report.devices) > 1 else "")


def _differing(report: VerifyReport) -> Iterator[str]:
    for device in report.devices:
        failed = [output for output in agreements(device) if output.verdict is Verdict.FAIL]
        if failed:
            first = failed[0]
            place = f" on {name_text(device.device)}" if len(report.devices) > 1 else ""
            why = f"{first.case}, {first.output}: {first.reason}"
            yield f"{counted(len(failed), 'output')} out of parity{place} ({why})"


def _failed_gates(report: VerifyReport) -> Iterable[str]:
    for name, verdict, detail in gates(report):
        if verdict is Verdict.FAIL:
            yield f"{name}: {detail}"
