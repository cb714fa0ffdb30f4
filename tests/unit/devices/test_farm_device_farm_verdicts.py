import pytest

from ortrim.devices.aws_device_farm import console_url, overdue, require_verdict
from ortrim.devices.farm import FarmStage, Overdue
from ortrim.errors import VerifyError
from refusing import refused

WHERE = "devicefarm:voice/phones"


@pytest.mark.parametrize(
    ("run", "reference", "why"),
    [
        ({"result": "ERRORED", "message": "lost\nmore"}, "farm-failed", "ERRORED: lost"),
        ({"result": "SKIPPED"}, "farm-unsupported", "the farm reports the result SKIPPED"),
        ({"result": "STOPPED", "deviceMinutes": {"total": 14.9}}, "farm-cancelled", "STOPPED"),
        ({"result": "STOPPED", "deviceMinutes": {"total": 15.0}}, "farm-timeout", "STOPPED"),
        ({"result": "STOPPED", "message": "Execution Timeout"}, "farm-timeout", "STOPPED"),
        ({"result": "WARNED"}, "farm-inconclusive", "WARNED"),
        ({}, "farm-inconclusive", "nothing"),
    ],
)
def test_ends_without_a_verdict(run: dict[str, object], reference: str, why: str) -> None:
    """Every other end is an error with the farm's own words."""
    error = refused(VerifyError, require_verdict, run, "https://console", WHERE, 15)
    assert (error.code, error.where) == (reference, WHERE)
    assert why in error.why
    assert "https://console" in error.hint


@pytest.mark.parametrize(("stage", "words"), [(FarmStage.WAITING, "no device"), (FarmStage.RUNNING, "was stopped")])
def test_runs_that_were_given_up(stage: FarmStage, words: str) -> None:
    """Waiting too long and running too long are told apart."""
    error = overdue(Overdue(stage, 60.0), "https://console", WHERE)
    assert error.code == "farm-timeout"
    assert words in error.what
    assert "60 seconds" in error.why


def test_where_a_person_sees_a_run() -> None:
    """The console's address is made of the run's ARN."""
    arn = "arn:aws:devicefarm:us-west-2:123456789012:run:aaa/bbb"
    url = "https://us-west-2.console.aws.amazon.com/devicefarm/home#/mobile/projects/aaa/runs/bbb"
    assert console_url(arn, "us-west-2") == url
