"""What became of a test, by what gcloud prints."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import Completed
from ortrim.devices.farms.firebase import verdict
from ortrim.errors import Diagnostic, ExitCode
from recorded_gcloud import recorded
from refusing import refused

WHERE = "firebase:x"


def ended(returncode: int, stdout: str, stderr: str = "") -> Completed:
    return Completed(argv=("gcloud",), returncode=returncode, stdout=stdout, stderr=stderr)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("passed", (True, "1 test cases passed")),
        ("failed", (False, "1 test cases failed, 2 passed")),
        ("flaky", (False, "1 test cases flaky")),
        ("crashed", (False, "Application crashed (Native crash)")),
        ("failed-to-run", (False, "Test failed to run")),
    ],
)
def test_verdicts_of_the_instrumentation(name: str, expected: tuple[bool, str]) -> None:
    """An exit code of 0 is that of a flaky test too, which here has not passed."""
    assert verdict(recorded(name), WHERE) == expected


def test_gcloud_that_was_ended_by_somebody() -> None:
    error = refused(Diagnostic, verdict, ended(19, "", "Test matrix has been cancelled."), WHERE)
    assert error.code == "farm-cancelled"


@pytest.mark.parametrize(
    "printed",
    ["", "[]", "null", "[1]", "[{}]", '[{"outcome": "Passed"}]', recorded("passed").stdout[:40], "[{}, {}]"],
)
def test_outcomes_that_cannot_be_read(printed: str) -> None:
    """An exit code of 0 alone proves nothing: gcloud has it when there are no results at all."""
    assert refused(Diagnostic, verdict, ended(0, printed), WHERE).code == "farm-inconclusive"


def test_an_outcome_that_nobody_knows() -> None:
    """It has not passed."""
    printed = json.dumps([{"outcome": "Splendid", "axis_value": "x", "test_details": "--"}])
    error = refused(Diagnostic, verdict, ended(0, printed), WHERE)
    assert error.code == "farm-inconclusive"
    assert "Splendid" in error.why


@given(st.integers(-15, 255), st.text(max_size=60), st.text(max_size=60))
def test_only_a_passed_outcome_passes(returncode: int, stdout: str, stderr: str) -> None:
    """Whatever else gcloud prints is a diagnostic."""
    with pytest.raises(Diagnostic):
        verdict(ended(returncode, stdout, stderr), WHERE)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("timed-out", "farm-timeout"),
        ("not-installed", "farm-unsupported"),
        ("skipped-architecture", "farm-unsupported"),
        ("unsupported", "farm-unsupported"),
        ("inconclusive", "farm-inconclusive"),
        ("no-outcome", "farm-inconclusive"),
        ("inconclusive-infrastructure", "farm-failed"),
        ("infrastructure", "farm-failed"),
        ("inconclusive-aborted", "farm-cancelled"),
        ("invalid", "farm-refused"),
        ("invalid-quota", "farm-quota"),
    ],
)
def test_tests_without_a_verdict(name: str, reference: str) -> None:
    """What the farm suffered is not what the library did."""
    with pytest.raises(Diagnostic) as caught:
        verdict(recorded(name), WHERE, url="https://console/m")
    error = caught.value
    assert (error.code, error.where, error.exit_code) == (reference, WHERE, ExitCode.VERIFY)
    assert error.why
    assert error.hint
