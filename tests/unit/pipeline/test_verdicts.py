"""What a report's verdicts come to: the gravest kind of failure, worded."""

from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.core.measurements import Gate, Verdict, VerifyReport
from ortrim.errors import BinaryError, BudgetMissed, DiagnosticGroup, ExitCode, ParityError
from ortrim.pipeline.verification import gravest_failure
from ortrim.report.write import read_report

RECORDED = Path(__file__).parents[1] / "report" / "data" / "report.json"
GATE = Gate(name="executable stack", verdict=Verdict.FAIL, detail="the library asks for one")


@pytest.fixture
def good() -> VerifyReport:
    """Return a report in which nothing failed."""
    report = read_report(RECORDED)
    return replace(
        report,
        gates=tuple(replace(gate, verdict=Verdict.PASS) for gate in report.gates),
        parity=tuple(replace(output, verdict=Verdict.PASS) for output in report.parity),
        comparisons=tuple(replace(line, verdict=Verdict.PASS) for line in report.comparisons),
    )


def with_gate(report: VerifyReport) -> VerifyReport:
    """Let the library fail a gate."""
    return replace(report, gates=(*report.gates, GATE))


def without_parity(report: VerifyReport) -> VerifyReport:
    """Let one output differ."""
    lost = replace(report.parity[0], verdict=Verdict.FAIL, reason="0.5 at element 3, 1e-4 is allowed")
    return replace(report, parity=(lost, *report.parity[1:]))


def over_budget(report: VerifyReport) -> VerifyReport:
    """Let a size be over its budget."""
    line = replace(
        report.comparisons[0], measure="library", model="", unit="bytes", ours=2e6, budget=1e6, budget_is_ratio=False,
        verdict=Verdict.FAIL,
    )  # fmt: skip
    return replace(report, comparisons=(line,))


def test_without_a_failure_there_is_none(good: VerifyReport) -> None:
    """Passing, unjudged and inconclusive are no failures."""
    unsure = replace(good, comparisons=tuple(replace(c, verdict=Verdict.INCONCLUSIVE) for c in good.comparisons))
    unjudged = replace(good, comparisons=tuple(replace(c, verdict=Verdict.NOT_JUDGED) for c in good.comparisons))
    assert gravest_failure((good, unsure, unjudged)) is None
    assert gravest_failure(()) is None


def test_the_gravest_kind_comes_first(good: VerifyReport) -> None:
    """A library that cannot be loaded, then wrong numbers, then too much of something; in any report."""
    budget, parity, gate = over_budget(good), without_parity(over_budget(good)), with_gate(without_parity(good))
    assert isinstance(gravest_failure((budget,)), BudgetMissed)
    assert isinstance(gravest_failure((good, parity)), ParityError)
    assert isinstance(gravest_failure((budget, parity, gate)), BinaryError)


def test_each_kind_has_its_exit_code(good: VerifyReport) -> None:
    """A script can tell a missed budget from lost parity and from a broken library."""
    failures = [gravest_failure((change(good),)) for change in (over_budget, without_parity, with_gate)]
    codes = [failure.exit_code for failure in failures if failure]
    assert codes == [ExitCode.BUDGET, ExitCode.PARITY, ExitCode.BINARY]


def test_a_missed_budget_shows_both_numbers_with_their_unit(good: VerifyReport) -> None:
    """Bytes are whole and grouped, times short, ratios percentages of the baseline."""
    report = over_budget(good)
    (line,) = report.comparisons
    failure = gravest_failure((report,))
    assert failure is not None
    assert failure.reference == "budget-missed"
    assert (failure.what, failure.where) == ("library is over its budget", report.target)
    assert failure.why == "measured 2,000,000 bytes, budget 1,000,000 bytes"
    slow = replace(line, measure="p99", unit="ms", ours=5.123456, budget=4.0, model="vad")
    failure = gravest_failure((replace(report, comparisons=(slow,)),))
    assert failure is not None
    assert failure.why == "measured 5.123 ms, budget 4 ms"
    assert failure.where == f"{report.target}, model vad"
    large = replace(line, ratio=0.1234, budget=0.09, budget_is_ratio=True)
    failure = gravest_failure((replace(report, comparisons=(large,)),))
    assert failure is not None
    assert failure.why == "measured 12.3% of the baseline's, budget 9.0% of the baseline's"


def test_a_ratio_that_could_not_be_measured_is_worded(good: VerifyReport) -> None:
    """None is not a number to print."""
    (line,) = over_budget(good).comparisons
    nothing = replace(line, ratio=None, budget=0.09, budget_is_ratio=True)
    failure = gravest_failure((replace(good, comparisons=(nothing,)),))
    assert failure is not None
    assert failure.why == "measured nothing, budget 9.0% of the baseline's"


def test_lost_parity_names_output_case_and_model(good: VerifyReport) -> None:
    """All that one needs to run the case by hand."""
    report = without_parity(good)
    lost = report.parity[0]
    failure = gravest_failure((report,))
    assert failure is not None
    assert failure.reference == "parity-lost"
    assert f"output {lost.output} of case {lost.case}" in failure.what
    assert failure.where == f"{report.target}, model {lost.model}"
    assert failure.why == lost.reason


def test_all_failures_of_the_gravest_kind_are_shown(good: VerifyReport) -> None:
    """Two targets that miss are mended in one go."""
    failure = gravest_failure((with_gate(good), replace(with_gate(good), target="linux-arm64")))
    assert isinstance(failure, DiagnosticGroup)
    assert [each.where for each in failure.diagnostics] == [good.target, "linux-arm64"]
    assert failure.exit_code is ExitCode.BINARY
