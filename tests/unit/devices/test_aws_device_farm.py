import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.devices.farms.aws_device_farm import console_url, failure, overdue, refusal, require_verdict, specification
from ortrim.devices.farms.farm import FarmStage, Overdue, Transient
from ortrim.errors import Diagnostic, ExitCode, VerifyError
from program_files import write_program
from refusing import refused

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
    error, _ = settled(refusal(code[:40], status, message, WHERE))
    assert error.code.startswith("farm-")
    assert error.exit_code == ExitCode.VERIFY
    assert len(error.why) <= 400


RESULTS: Final = "/sdcard/Download/ortrim"
ADB: Final = """#!/bin/sh
echo "$@" >> "$DEVICEFARM_LOG_DIR/asked"
case "$*" in
  *instrument*) cat "$DEVICEFARM_LOG_DIR/printed" ;;
  *pull*) mkdir "$5" && echo '{}' > "$5/results.json" ;;
esac
"""
PASSED: Final = "INSTRUMENTATION_STATUS_CODE: 1\nINSTRUMENTATION_STATUS_CODE: 0\nINSTRUMENTATION_CODE: -1\n"
"""What `am instrument -r` prints of one test that passed, as far as it is looked at."""


def commands(text: str) -> list[str]:
    blocks = text.partition("artifacts:")[0].split("      - |\n")[1:]
    return [textwrap.dedent(block) for block in blocks]


@pytest.fixture
def carried_out(tmp_path: Path) -> Callable[[str, str], list[int]]:
    """Return what carries a specification out beside a stand-in for adb, and gives the commands' exit codes."""
    write_program(tmp_path / "adb", ADB)
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "DEVICEFARM_LOG_DIR": str(tmp_path),
        "DEVICEFARM_DEVICE_UDID": "R58M",
        "DEVICEFARM_TEST_PACKAGE_NAME": "ortrim.harness.test",
        "DEVICEFARM_TEST_PACKAGE_RUNNER": "a.Runner",
    }

    def carry_out(text: str, printed: str) -> list[int]:
        (tmp_path / "printed").write_text(printed)
        return [run(("sh", "-c", line), environment=environment).returncode for line in commands(text)]

    return carry_out


@pytest.mark.parametrize(
    ("printed", "passes"),
    [
        (PASSED, True),
        (PASSED.replace("CODE: 0", "CODE: -2"), False),
        (PASSED.replace("CODE: 0", "CODE: -1"), False),
        (PASSED.replace("CODE: 0", "CODE: -4"), True),
        ("INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n", False),
        ("INSTRUMENTATION_FAILED: ortrim.harness.test/a.Runner\n", False),
        ("", False),
    ],
    ids=["passed", "failed", "error", "assumption", "crashed", "no-runner", "nothing"],
)
def test_commands_end_as_the_instrumentation_does(
    carried_out: Callable[[str, str], list[int]], tmp_path: Path, printed: str, *, passes: bool
) -> None:
    """The farm takes the commands' exit codes for its verdict; the results are there whatever it is."""
    codes = carried_out(specification(RESULTS), printed)
    assert (set(codes) == {0}) == passes
    assert codes[:2] == [0, 0]
    assert (tmp_path / "ortrim-results" / "results.json").is_file()
    assert (tmp_path / "instrument.log").read_text() == printed


def test_what_adb_is_asked(carried_out: Callable[[str, str], list[int]], tmp_path: Path) -> None:
    """The device is named each time, and the harness is told where its results are looked for."""
    carried_out(specification(RESULTS), PASSED)
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"-s R58M shell am instrument -r -w -e additionalTestOutputDir {RESULTS} ortrim.harness.test/a.Runner",
        f"-s R58M pull {RESULTS} {tmp_path}/ortrim-results",
    ]


def test_a_path_runs_nothing(carried_out: Callable[[str, str], list[int]], tmp_path: Path) -> None:
    """Whatever is in the results' path stays a word."""
    carried_out(specification(f"$(touch {tmp_path}/evil); touch {tmp_path}/evil"), PASSED)
    assert not (tmp_path / "evil").exists()


def test_where_it_runs() -> None:
    """The host is named, as Android 15 and newer need, and what it leaves."""
    text = specification(RESULTS)
    assert text.startswith(
        "version: 0.1\nandroid_test_host: amazon_linux_2\nphases:\n  test:\n    commands:\n      - |\n"
    )
    assert text.endswith("artifacts:\n  - $DEVICEFARM_LOG_DIR\n")


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
    error = refused(VerifyError, require_verdict, run, "https://console", WHERE, 15)
    assert (error.code, error.where) == (reference, WHERE)
    assert why in error.why
    assert "https://console" in error.hint


@pytest.mark.parametrize(("stage", "words"), [(FarmStage.WAITING, "no device"), (FarmStage.RUNNING, "was stopped")])
def test_runs_that_were_given_up(stage: FarmStage, words: str) -> None:
    error = overdue(Overdue(stage, 60.0), "https://console", WHERE)
    assert error.code == "farm-timeout"
    assert words in error.what
    assert "60 seconds" in error.why


def test_where_a_person_sees_a_run() -> None:
    """The console's address is made of the run's ARN."""
    arn = "arn:aws:devicefarm:us-west-2:123456789012:run:aaa/bbb"
    url = "https://us-west-2.console.aws.amazon.com/devicefarm/home#/mobile/projects/aaa/runs/bbb"
    assert console_url(arn, "us-west-2") == url
