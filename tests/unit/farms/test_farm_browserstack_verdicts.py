import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ortrim.errors import Diagnostic, ExitCode, VerifyError
from ortrim.farms.browserstack_answers import (
    Begun,
    BrowserStackBuild,
    BrowserStackModel,
    Complaint,
    SessionDetails,
    Uploaded,
    clean,
    passed,
    refusal,
)
from ortrim.farms.farm import Transient

WHERE = "browserstack:Samsung Galaxy S23-13.0"


def test_verdicts_of_the_instrumentation() -> None:
    """Passed and failed are verdicts."""
    assert passed("passed", "", "url", WHERE, ran=True)
    assert not passed("failed", "anything", "url", WHERE, ran=True)


@pytest.mark.parametrize(
    ("status", "words", "ran", "reference"),
    [
        ("error", "", True, "farm-failed"),
        ("error", "Could not start a session", False, "farm-failed"),
        ("error", "INSTALL_FAILED_NO_MATCHING_ABIS", False, "farm-unsupported"),
        ("error", "waited in the queue for 15 minutes, cancelled", False, "farm-timeout"),
        ("error", "the message queue broke", True, "farm-failed"),
        ("error", "Stopped by the user", True, "farm-cancelled"),
        ("error", "session timed out", True, "farm-timeout"),
        ("timedout", "", True, "farm-timeout"),
        ("skipped", "", False, "farm-inconclusive"),
        ("stopped", "", True, "farm-cancelled"),
        ("", "", True, "farm-inconclusive"),
        ("done", "", True, "farm-inconclusive"),
    ],
)
def test_ends_without_a_verdict(status: str, words: str, reference: str, *, ran: bool) -> None:
    """Every other end is an error; what `error` stands for is told by its words."""
    with pytest.raises(VerifyError) as caught:
        passed(status, words, "https://dashboard", WHERE, ran=ran)
    assert (caught.value.code, caught.value.where) == (reference, WHERE)
    assert words in caught.value.why
    assert "https://dashboard" in caught.value.hint


@given(st.integers(300, 599), st.text())
def test_any_refusal_has_a_diagnostic(status: int, message: str) -> None:
    """Whatever an answer says, there is a diagnostic of few words."""
    found = refusal(status, message, WHERE)
    error: Diagnostic = found.diagnostic if isinstance(found, Transient) else found
    assert error.code.startswith("farm-")
    assert error.exit_code == ExitCode.VERIFY
    assert error.hint
    assert len(error.why) < 400


def test_only_the_servers_own_faults_pass() -> None:
    """A refusal is final; what the service suffers from itself, and too many questions, are not."""
    assert isinstance(refusal(503, "", WHERE), Transient)
    assert isinstance(refusal(429, "", WHERE), Transient)
    assert isinstance(refusal(422, "[BROWSERSTACK_ALL_PARALLELS_IN_USE]", WHERE), VerifyError)
    assert isinstance(refusal(401, "", WHERE), VerifyError)


def test_words_are_cleaned() -> None:
    """Of a text its first line is kept, and of an address what is not signed."""
    assert clean("see https://a.b/c?token=geheim now\nmore") == "see https://a.b/c now"
    assert clean("") == ""
    assert len(clean("x" * 9000)) == 300


def test_answers_as_they_are_documented() -> None:
    """The samples of BrowserStack's documents are understood."""
    assert Uploaded.model_validate_json('{"app_url": "bs://f7c874f2", "app_name": "a.apk"}').url == "bs://f7c874f2"
    assert Uploaded.model_validate_json('{"test_url": "bs://e994db83"}').url == "bs://e994db83"
    assert Uploaded.model_validate_json('{"test_suite_url": "bs://e994db83"}').url == "bs://e994db83"
    assert Begun.model_validate_json('{"message": "Success", "build_id": "741c219d"}').build_id == "741c219d"
    sample = (
        '{"id": "5", "duration": null, "status": "running", "devices": [{"device": "x", "sessions": [{"id": "c9"}]}]}'
    )
    assert (
        BrowserStackBuild.model_validate_json(sample).status,
        BrowserStackBuild.model_validate_json(sample).sessions,
    ) == (
        "running",
        ("c9",),
    )
    assert (
        BrowserStackModel.model_validate_json('{"device": "Google Pixel 7", "os_version": "13.0"}').name
        == "Google Pixel 7-13.0"
    )
    log = "https://api.browserstack.com/app-automate/espresso/builds/5/sessions/tests/c9/instrumentationlogs"
    sample = f'{{"testcases": {{"data": [{{"class": "A", "testcases": [{{"instrumentation_log": "{log}"}}]}}]}}}}'
    cases = list(SessionDetails.model_validate_json(sample).cases)
    assert [(case.instrumentation_log, case.device_log) for case in cases] == [(log, None)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Uploaded, '{"app_url": "bs://../x"}'),
        (Uploaded, '{"app_url": null}'),
        (Uploaded, "{}"),
        (Begun, '{"build_id": "a/b"}'),
        (BrowserStackBuild, '{"status": ["passed"]}'),
        (BrowserStackBuild, '{"status": "passed", "devices": [{"sessions": [{"id": "../../apps/1"}]}]}'),
        (tuple[BrowserStackModel, ...], '{"device": "x"}'),
        (SessionDetails, '{"testcases": []}'),
        (Complaint, "[]"),
        (Complaint, '{"message": {"deep": 1}}'),
        (Complaint, "[" * 5000),
        (Complaint, "<html>"),
    ],
)
def test_answers_that_are_not_understood(kind: type[object], text: str) -> None:
    """What is not as documented is refused rather than used."""
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"error": "a"}', "a"), ('{"message": "b", "error": "a"}', "b"), ('{"message": null}', ""), ("{}", "")],
)
def test_words_of_a_complaint(text: str, words: str) -> None:
    """A refusal's words stand under the one name or the other."""
    assert Complaint.model_validate_json(text).words == words


@pytest.mark.parametrize(
    ("given_error", "words"), [("null", ""), ('"a"', "a"), ('{"message": "b"}', "b"), ("{}", ""), ("7", "7")]
)
def test_words_of_a_session(given_error: str, words: str) -> None:
    """A session's error is words, in a table or not, or nothing."""
    assert SessionDetails.model_validate_json(f'{{"error": {given_error}}}').error == words
