import pytest

from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.verify.judge import overall, parity_of

PASS, FAIL, INCONCLUSIVE, NOT_JUDGED = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED


@pytest.mark.parametrize(
    ("budgets", "proofs", "expected"),
    [
        ([INCONCLUSIVE, NOT_JUDGED, PASS], [PASS], PASS),
        ([], [PASS], PASS),
        ([PASS, FAIL], [PASS], FAIL),
        ([PASS], [PASS, FAIL], FAIL),
        ([PASS], [PASS, INCONCLUSIVE], INCONCLUSIVE),
        ([FAIL], [INCONCLUSIVE], FAIL),
        ([PASS], [PASS, NOT_JUDGED], PASS),
        ([PASS], [], NOT_JUDGED),
        ([PASS], [NOT_JUDGED], NOT_JUDGED),
        ([FAIL], [], FAIL),
    ],
)
def test_a_pass_needs_a_proof(budgets: list[Verdict], proofs: list[Verdict], expected: Verdict) -> None:
    """Doubt about a budget is no failure; without any proof of parity there is no pass."""
    assert overall(budgets, proofs) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([PASS, NOT_JUDGED], PASS),
        ([NOT_JUDGED], INCONCLUSIVE),
        ([], INCONCLUSIVE),
        ([NOT_JUDGED, FAIL], FAIL),
        ([PASS, FAIL], FAIL),
    ],
)
def test_a_comparison_of_nothing_is_no_parity(found: list[Verdict], expected: Verdict) -> None:
    """A model is in parity when at least one of its outputs could have differed, and none did."""
    outputs = [
        OutputParity(model="m", case="c", output="y", element_type="float32", shape=(), verdict=verdict)
        for verdict in found
    ]
    assert parity_of(outputs) is expected
