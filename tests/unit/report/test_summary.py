"""What a report claims in one sentence."""

from dataclasses import replace

from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.report.summary import parity_text, verdict_text


def unjudged(report: VerifyReport, count: int) -> VerifyReport:
    """Return the report with its first `count` outputs not judged, as those of a model that draws random numbers."""
    outputs = tuple(
        replace(output, verdict=Verdict.NOT_JUDGED if number < count else output.verdict)
        for number, output in enumerate(report.parity)
    )
    return replace(report, parity=outputs, verdict=Verdict.PASS)


def test_parity_is_not_claimed_when_no_output_was_judged(report: VerifyReport) -> None:
    """A pass of the budgets alone does not read like a proof of the outputs."""
    all_random = unjudged(report, len(report.parity))
    assert "parity not judged" in verdict_text(all_random)
    assert "in parity" not in verdict_text(all_random)
    assert "cannot be judged" in parity_text(all_random)
    assert "agree" not in parity_text(all_random)


def test_outputs_that_cannot_be_judged_are_counted(report: VerifyReport) -> None:
    """Some random outputs beside others that agree are said."""
    some = unjudged(report, 1)
    assert "outputs in parity" in verdict_text(some)
    assert parity_text(some).startswith(f"1 of {len(report.parity)} outputs")
    assert "the others agree" in parity_text(some)
