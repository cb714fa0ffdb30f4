"""What a report comes to, in sentences: its title, its verdict, its parity."""

import math
from collections.abc import Iterable
from typing import Final

from ortrim.console import printable
from ortrim.core.measurements import OutputParity, Verdict, VerifyReport
from ortrim.report.content import agreements, gates, lines, name_text
from ortrim.report.figures import counted, difference_text
from ortrim.report.machine import unjudged_measures

SHOWN: Final = 6
"""How many failures the verdict names."""


def title(report: VerifyReport) -> str:
    """Name what was verified."""
    return f"{name_text(report.name)} for {name_text(report.target)}"


def subtitle(report: VerifyReport) -> str:
    """Say what it was made with, and where it was measured."""
    made = f"ONNX Runtime {report.ort_version}, profile {report.profile}"
    return printable(f"{made} · measured on {report.device} ({report.host.cpu}) beside {report.baseline}")


def verdict_text(report: VerifyReport) -> str:
    """Say in one sentence how it ended, and name what failed."""
    failures = [*_missed_budgets(report), *_differing(report), *_failed_gates(report)]
    unsure = [line.measure for line in lines(report) if line.verdict is Verdict.INCONCLUSIVE]
    if report.verdict is Verdict.FAIL:
        more = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        return "FAIL: " + ("; ".join(failures[:SHOWN] + more) or "see the tables")
    named = ", ".join(dict.fromkeys(unsure))
    if report.verdict is Verdict.INCONCLUSIVE:
        return f"INCONCLUSIVE: the differences lie inside the run's own spread ({named or 'see the tables'})"
    text = f"PASS: within every {_judged_budgets(report)}" if report.verdict is Verdict.PASS else "NOT JUDGED"
    return f"{text}; inconclusive: {named}" if named else text


def parity_text(report: VerifyReport) -> str:
    """Sum parity up in one sentence."""
    if not report.parity:
        return "no outputs were compared"
    cases = len({(output.model, output.case) for output in report.parity})
    failed = sum(output.verdict is Verdict.FAIL for output in report.parity)
    worst = worst_output(report.parity)
    place = f"{name_text(worst.case)}, {name_text(worst.output)}"
    total = f"{counted(len(report.parity), 'output')} of {counted(cases, 'case')}"
    agree = f"{failed} of {total} differ" if failed else _agreement(report.parity, total)
    difference, tolerance = difference_text(worst.max_absolute), difference_text(worst.absolute_tolerance)
    return f"{agree}; largest difference {difference} where {tolerance} is allowed ({place})"


def _judged_budgets(report: VerifyReport) -> str:
    """Claim no budget that the device cannot judge."""
    unjudged = unjudged_measures(report)
    left_out = f" that can be judged there ({unjudged} cannot)" if unjudged else ""
    return f"budget{left_out}, {_parity_claim(report)}"


def _parity_claim(report: VerifyReport) -> str:
    """Say no more of parity than was judged: a model that draws random numbers has none to show."""
    return "outputs in parity" if any(map(_judged, report.parity)) else "parity not judged"


def _agreement(parity: tuple[OutputParity, ...], total: str) -> str:
    unjudged = sum(not _judged(output) for output in parity)
    if not unjudged:
        return f"{total} agree"
    return f"{unjudged} of {total} cannot be judged" + ("" if unjudged == len(parity) else ", the others agree")


def _judged(output: OutputParity) -> bool:
    return output.verdict is not Verdict.NOT_JUDGED


def worst_output(parity: tuple[OutputParity, ...]) -> OutputParity:
    """Return the output whose difference is largest for its tolerance; one without a number is worst of all."""
    return max(parity, key=lambda output: rank(tolerance_share(output.max_absolute, output.absolute_tolerance)))


def tolerance_share(difference: float, tolerance: float) -> float:
    """Return a difference in units of its tolerance; infinite when none is allowed and there is one."""
    if difference == 0:
        return 0.0
    return difference / tolerance if tolerance > 0 else math.inf


def rank(value: float) -> float:
    """Make a value that can be sorted: not a number comes last."""
    return math.inf if math.isnan(value) else value


def _missed_budgets(report: VerifyReport) -> Iterable[str]:
    for line in lines(report):
        if line.verdict is Verdict.FAIL:
            of_model = f" of {line.model}" if line.model else ""
            yield f"{line.measure}{of_model} is {line.ours} ({line.ratio}), budget {line.budget}"


def _differing(report: VerifyReport) -> Iterable[str]:
    failed = [output for output in agreements(report) if output.verdict is Verdict.FAIL]
    if failed:
        first = failed[0]
        yield f"{counted(len(failed), 'output')} out of parity ({first.case}, {first.output}: {first.reason})"


def _failed_gates(report: VerifyReport) -> Iterable[str]:
    for name, verdict, detail in gates(report):
        if verdict is Verdict.FAIL:
            yield f"{name}: {detail}"
