import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.device_farm import failure, refusal
from ortrim.devices.farm import Transient
from ortrim.errors import Diagnostic, ExitCode

WHERE = "devicefarm:voice/phones"


def settled(found: Diagnostic | Transient) -> tuple[Diagnostic, bool]:
    return (found.diagnostic, True) if isinstance(found, Transient) else (found, False)


@pytest.mark.parametrize(
    ("code", "status", "reference", "transient"),
    [
        ("AccessDeniedException", 400, "farm-credentials", False),
        ("ExpiredToken", 403, "farm-credentials", False),
        ("InvalidSignatureException", 403, "farm-credentials", False),
        ("LimitExceededException", 400, "farm-quota", False),
        ("ThrottlingException", 400, "farm-quota", True),
        ("Throttling", 503, "farm-quota", True),
        ("NotFoundException", 400, "farm-project", False),
        ("ServiceAccountException", 400, "farm-project", False),
        ("NotEligibleException", 400, "farm-project", False),
        ("ArgumentException", 400, "farm-refused", False),
        ("IdempotencyException", 400, "farm-failed", False),
        ("InternalServiceException", 500, "farm-failed", True),
        ("InternalFailure", 503, "farm-failed", True),
        ("SomethingNew", 400, "farm-failed", False),
        ("", 0, "farm-failed", False),
    ],
)
def test_what_the_service_says(code: str, status: int, reference: str, *, transient: bool) -> None:
    """Each code has its reference; only what the service itself suffers from is asked again."""
    error, again = settled(refusal(code, status, "as told", WHERE))
    assert (error.code, again, error.where) == (reference, transient, WHERE)
    assert error.why == f"{code}: as told"
    assert error.hint


@pytest.mark.parametrize(
    ("kinds", "reference", "transient"),
    [
        (("EndpointConnectionError", "ConnectionError", "BotoCoreError"), "farm-unreachable", True),
        (("ReadTimeoutError", "HTTPClientError", "BotoCoreError"), "farm-unreachable", True),
        (("SSOTokenLoadError", "SSOError", "BotoCoreError"), "farm-credentials", False),
        (("NoCredentialsError", "BotoCoreError"), "farm-credentials", False),
        (("ProfileNotFound", "BotoCoreError"), "farm-credentials", False),
        (("ParamValidationError", "BotoCoreError"), "farm-refused", False),
        (("ResponseParserError", "BotoCoreError"), "farm-failed", False),
        (("ValueError",), "farm-failed", False),
    ],
)
def test_what_the_client_says(kinds: tuple[str, ...], reference: str, *, transient: bool) -> None:
    """Exceptions are told by their class or one above it."""
    error, again = settled(failure(kinds, "as told", WHERE))
    assert (error.code, again, error.where) == (reference, transient, WHERE)
    assert error.why


def test_only_the_first_line_is_repeated() -> None:
    """AWS shows the headers it signed anew when a signature is wrong."""
    message = (
        "The request signature we calculated does not match.\n\nThe Canonical String:\nx-amz-security-token:geheim"
    )
    error, _ = settled(refusal("InvalidSignatureException", 403, message, WHERE))
    assert "geheim" not in str(error)
    assert "does not match" in error.why


def test_what_is_wrong_with_a_parameter_is_reported() -> None:
    """The client says what is wrong in its second line."""
    error, _ = settled(
        failure(("ParamValidationError",), "Parameter validation failed:\nInvalid length for arn", WHERE)
    )
    assert "Invalid length for arn" in error.why


@given(st.text(), st.integers(0, 999), st.text())
def test_any_answer_has_a_diagnostic(code: str, status: int, message: str) -> None:
    """Whatever a service says, there is a diagnostic of few words."""
    error, _ = settled(refusal(code[:40], status, message, WHERE))
    assert error.code.startswith("farm-")
    assert error.exit_code == ExitCode.VERIFY
    assert len(error.why) <= 400
