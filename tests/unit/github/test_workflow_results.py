"""The one job that all others are judged by."""

import json

import pytest

from ortrim.errors import DiagnosticGroup, ExitCode, UsageError, VerifyError
from ortrim.github.runner_setup import require_success
from refusing import refused


def needs(**results: str) -> str:
    return json.dumps({name: {"result": result, "outputs": {}} for name, result in results.items()})


def test_all_ended_well() -> None:
    assert require_success(needs(test="success", android="success")) == ("test", "android")


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped", "", "Success"])
def test_anything_but_success_is_a_failure(result: str) -> None:
    """A job that was skipped or cancelled has proved nothing."""
    error = refused(VerifyError, require_success, needs(test="success", android=result))
    assert (error.code, error.where) == ("job-failed", "android")
    assert error.exit_code is ExitCode.VERIFY


def test_every_job_that_failed_is_named() -> None:
    error = refused(DiagnosticGroup, require_success, needs(test="failure", android="cancelled"))
    assert [each.where for each in error.diagnostics] == ["test", "android"]


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", "{", '{"test": "success"}', '{"test": {}}', '{"test": null}', "[" * 100_000]
)
def test_what_does_not_say_is_no_success(text: str) -> None:
    """Nothing passes because it could not be read."""
    assert refused(UsageError, require_success, text).code == "bad-needs"
