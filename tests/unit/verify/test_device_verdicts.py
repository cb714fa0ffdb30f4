from hypothesis import given
from hypothesis import strategies as st

from ortrim.core.measurements import Verdict
from ortrim.errors import Diagnostic, ExitCode
from ortrim.verify.verdicts import diagnostic_of, failed_device, overall


def test_doubt_is_no_failure() -> None:
    """Only a failure fails."""
    assert overall([Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED, Verdict.PASS]) is Verdict.PASS
    assert overall([]) is Verdict.PASS
    assert overall([Verdict.PASS, Verdict.FAIL]) is Verdict.FAIL


@given(st.tuples(*[st.text(max_size=20)] * 5), st.sampled_from(ExitCode))
def test_a_diagnostic_survives_the_report(words: tuple[str, ...], code: ExitCode) -> None:
    """Through a device's report and back it says the same, with the same code."""
    reference, what, where, why, hint = words
    error = Diagnostic(reference, what, where=where, why=why, hint=hint)
    error.exit_code = code
    report = failed_device("adb:1", "none", error)
    assert report.failure is not None
    found = diagnostic_of(report.failure)
    assert (str(found), found.exit_code) == (str(error), code)
    assert (report.verdict, report.host, report.baseline) == (Verdict.FAIL, None, "none")
