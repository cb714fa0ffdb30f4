"""How far a test is, by what gcloud says; and what it is told."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ortrim.devices.farms.farm import FarmJob
from ortrim.devices.farms.firebase import MatrixProgress, time_limit
from ortrim.errors import NetworkError, VerifyError
from recorded_gcloud import recorded
from refusing import refused

JOB = FarmJob(
    name="kws",
    app=Path("app.apk"),
    test=Path("test.apk"),
    device="MediumPhone.arm-34",
    results="/sdcard/Download/ortrim",
    destination=Path("there"),
    timeout_seconds=300,
    queue_seconds=100,
)
URL = "https://console.firebase.google.com/project/passed/testlab/histories/bh.1/matrices/matrix-passed0"
CREATED = "Test [matrix-1] has been created in the Google Cloud."
RUNNING = "13:42:54 Test is Running"


@dataclass
class Heard:
    """A test that is listened to, with a clock that a test of ours moves."""

    now: float = 0.0
    told: list[str] = field(default_factory=list)

    def progress(self, text: str = "") -> MatrixProgress:
        progress = MatrixProgress(JOB, "firebase:x", self.told.append, largest=6_250_000, clock=lambda: self.now)
        for line in text.splitlines():
            progress.on_output(line)
        return progress


def test_a_recorded_test() -> None:
    """What is told is what a user waits for; the rest is remembered."""
    heard = Heard()
    progress = heard.progress(recorded("passed").stderr)
    assert heard.told == [
        "uploading app.apk",
        "uploading test.apk",
        f"to be seen at {URL}",
        "waiting for a device",
        "running",
    ]
    assert (progress.bucket, progress.matrix, progress.url) == ("test-lab-0a1b2c", "matrix-passed0", URL)
    assert not progress.uploading
    assert not progress.cancelled


def test_a_test_that_may_have_been_created() -> None:
    """Once the files are there, nobody knows what becomes of it until gcloud says so."""
    text = recorded("passed").stderr.split("Test [")[0]
    progress = Heard().progress(text)
    assert (progress.uploading, progress.matrix) == (False, "")
    assert progress.place == "https://console.firebase.google.com"


def test_an_upload_has_a_limit() -> None:
    """Five minutes, and a second for each half megabit; for each file anew. A lost connection is not found out else."""
    heard = Heard()
    progress = heard.progress("Uploading [/a/app.apk] to Firebase Test Lab...")
    heard.now = 400
    progress.check()
    progress.on_output("Uploading [/a/test.apk] to Firebase Test Lab...")
    heard.now = 800
    progress.check()
    heard.now = 801
    error = refused(NetworkError, progress.check)
    assert error.code == "farm-upload-lost"
    assert "400 seconds" in error.why


def test_waiting_for_a_device_has_a_limit() -> None:
    """It begins with the test, so uploads do not count."""
    heard = Heard()
    text = recorded("passed").stderr.split("Test [")[0]
    progress = heard.progress(text)
    heard.now = 5000
    progress.check()
    progress.on_output(CREATED)
    heard.now = 5100
    progress.check()
    heard.now = 5101
    error = refused(VerifyError, progress.check)
    assert error.code == "farm-timeout"
    assert "no device was free within 100 seconds" in error.what


def test_a_test_that_runs_does_not_wait() -> None:
    """Its own limit is the farm's; ours is for a farm that does not keep it."""
    heard = Heard()
    progress = heard.progress(f"{CREATED}\n{RUNNING}")
    heard.now = 300 + 900
    progress.on_output(RUNNING)
    progress.check()
    heard.now += 1
    error = refused(VerifyError, progress.check)
    assert error.code == "farm-timeout"
    assert "did not end" in error.what


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"{CREATED}\nTest matrix has been cancelled.", "cancelled matrix-1"),
        (
            f"{CREATED}\nTest results will be streamed to [ {URL} ].",
            f"matrix-1 may still be running; see, or cancel it, at {URL}",
        ),
    ],
)
def test_what_is_left_of_a_test_that_was_stopped(said: str, told: str) -> None:
    heard = Heard()
    progress = heard.progress(
        said.replace(
            CREATED, f"Raw results will be stored in your GCS bucket at [https://c/storage/browser/b/d/]\n{CREATED}"
        )
    )
    progress.tell_what_is_left()
    assert heard.told[-1] == told


def test_time_limits() -> None:
    assert [time_limit(seconds) for seconds in (0.5, 60, 60.1, 900)] == [60, 60, 61, 900]
