"""What gcloud says, told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.firebase import gcloud_error, said
from ortrim.errors import ExitCode, NetworkError, StorageError
from recorded_gcloud import recorded

WHERE = "firebase:x"
CRASHED = (
    "gcloud crashed (ConnectionError): ('Connection aborted.', "
    "RemoteDisconnected('Remote end closed connection without response'))"
)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("no-account", "farm-credentials"),
        ("token-refused", "farm-credentials"),
        ("no-project", "farm-project"),
        ("project-unknown", "farm-project"),
        ("api-disabled", "farm-project"),
        ("settings-forbidden", "farm-project"),
        ("upload-forbidden", "farm-project"),
        ("look-lost-project", "farm-project"),
        ("model-unknown", "farm-device-unknown"),
        ("version-unknown", "farm-device-unknown"),
        ("locale-unknown", "farm-device-unknown"),
        ("quota", "farm-quota"),
        ("invalid-quota", "farm-quota"),
        ("invalid", "farm-refused"),
        ("unsupported", "farm-unsupported"),
        ("infrastructure", "farm-failed"),
        ("unknown-flag", "farm-failed"),
        ("catalogue-lost", "farm-unreachable"),
    ],
)
def test_recorded_words(name: str, reference: str) -> None:
    """Each cause has its reference, says why in gcloud's words and what to do."""
    error = gcloud_error(recorded(name).stderr, WHERE)
    assert error.code == reference
    assert error.where == WHERE
    assert error.why
    assert error.hint
    assert error.exit_code == (ExitCode.NETWORK if reference == "farm-unreachable" else ExitCode.VERIFY)


@pytest.mark.parametrize(
    ("printed", "reference"),
    [
        ("There was a problem refreshing your current auth tokens: ('invalid_grant: Bad Request')", "farm-credentials"),
        ("Reauthentication failed. cannot prompt during non-interactive execution.", "farm-credentials"),
        ("Your current active account [a@b.c] does not have any valid credentials", "farm-credentials"),
        ("There was a problem refreshing your current auth tokens: Max retries exceeded with url", "farm-unreachable"),
        ("ResponseError 403: This command is authenticated as a@b.c which is the active account", "farm-project"),
        ("ResponseError 403: The testing.googleapis.com API requires a quota project", "farm-project"),
        ("ResponseError 503: The service is currently unavailable.", "farm-failed"),
        ("Could not access bucket [b]. Response error 403: x does not have storage.buckets.get access", "farm-project"),
        ("gcloud crashed (SSLError): certificate verify failed", "farm-unreachable"),
        ("gcloud crashed (TypeError): 'NoneType' object is not iterable", "farm-failed"),
        ("Matrix [m] unexpectedly reached final status ERROR without returning a URL", "farm-failed"),
    ],
)
def test_words_of_googles(printed: str, reference: str) -> None:
    """Words that were not recorded, from gcloud's and Google's own texts."""
    assert gcloud_error(f"ERROR: (gcloud.x) {printed}\n", WHERE).code == reference


def test_a_connection_that_is_lost_in_an_upload() -> None:
    error = gcloud_error(recorded("upload-lost").stderr, WHERE, uploading=True)
    assert isinstance(error, NetworkError)
    assert error.code == "farm-upload-lost"


def test_an_upload_that_came_with_another_size() -> None:
    """It was lost on the way."""
    printed = (
        "ERROR: (gcloud.x) Cloud storage upload failure: Insert response.size=3 bytes but [app.apk] contains 9 bytes."
    )
    assert gcloud_error(printed, WHERE, uploading=True).code == "farm-upload-lost"


def test_a_connection_that_is_lost_during_a_test() -> None:
    """It may go on, which costs: so where it can be cancelled is said."""
    error = gcloud_error(recorded("catalogue-lost").stderr, WHERE, url="https://console/matrix-1")
    assert error.code == "farm-unreachable"
    assert "https://console/matrix-1" in error.hint


def test_a_disk_without_room() -> None:
    """It is this machine's, not the farm's."""
    error = gcloud_error("ERROR: [Errno 28] No space left on device: '/tmp/x'", WHERE)
    assert isinstance(error, StorageError)
    assert error.code == "disk-full"


def test_what_is_quoted() -> None:
    """The error, without the name of the command and without advice that does not help here."""
    assert said(recorded("catalogue-lost").stderr).splitlines() == [
        "Unable to access the Firebase Test Lab environment catalog.",
        CRASHED,
    ]
    assert said(recorded("invalid").stderr).splitlines()[1].startswith("Reason: MALFORMED_APK")
    assert said("one\ntwo\n") == "one\ntwo"


@given(st.text(max_size=300))
def test_any_output_has_a_diagnostic(printed: str) -> None:
    """Of few lines, whatever gcloud prints."""
    error = gcloud_error(printed, WHERE)
    assert error.code
    assert len(error.why.split("\n")) <= 4
