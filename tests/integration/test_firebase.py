"""Firebase Test Lab with the real gcloud, from its command line to the files that come back, at a stand-in."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from firebase_server import FirebaseServer
from firebase_service import BUCKET, TOKEN, Behaviour, FirebaseService
from ortrim.base.command import stopped_by
from ortrim.devices.farms.farm import FarmJob, FarmRun
from ortrim.devices.farms.firebase import FirebaseFarm, Gcloud, find_gcloud
from ortrim.errors import Diagnostic, ExitCode

pytestmark = pytest.mark.needs("gcloud")
RESULTS = "artifacts/sdcard/Download/ortrim"
WRITTEN = {"logcat": b"a log\n", f"{RESULTS}/results.json": b"{}", f"{RESULTS}/runs/000/x.bin": bytes(range(256))}
RESUMABLE_BYTES = 6 << 20
"""From 5 MiB on gcloud sends a file in a session of its own."""
DISABLED = (
    "Cloud Testing API has not been used in project 123 before or it is disabled. Enable it by visiting "
    "https://console.developers.google.com/apis/api/testing.googleapis.com/overview?project=123 then retry."
)


def outcome(summary: str, **details: object) -> Behaviour:
    return Behaviour(outcome={"summary": summary, **details}, written=WRITTEN)


BEHAVIOURS = {
    "passes": Behaviour(states=("VALIDATING", "PENDING", "RUNNING", "FINISHED"), written=WRITTEN),
    "fails": outcome("failure"),
    "disabled": Behaviour(refusals={"catalogue": (403, DISABLED)}),
    "exhausted": Behaviour(refusals={"create": (429, "Quota exceeded for quota metric 'Requests'")}),
    "invalid": Behaviour(invalid=(("MALFORMED_APK", "The app APK is not a valid Android application"),)),
    "inconclusive": outcome("inconclusive"),
    "unsupported": outcome("skipped", skippedDetail={"incompatibleArchitecture": True}),
    "broken": Behaviour(states=("ERROR",), error="the device went away"),
    "infrastructure": outcome("inconclusive", inconclusiveDetail={"infrastructureFailure": True}),
    "flaky": outcome("flaky"),
    "aborted": replace(outcome("inconclusive", inconclusiveDetail={"abortedByUser": True}), states=("CANCELLED",)),
    "slow": outcome("failure", failureDetail={"timedOut": True}),
    "empty": Behaviour(written={"logcat": b"F/libc: Fatal signal 6 (SIGABRT)\n"}, outcome={"summary": "failure"}),
    "cut": Behaviour(refusals={"upload": None}),
    "waits": Behaviour(states=("PENDING",)),
    "runs": Behaviour(states=("RUNNING",)),
}


@pytest.fixture(scope="module")
def service() -> Iterator[FirebaseService]:
    service = FirebaseService(BEHAVIOURS)
    server = FirebaseServer(service)
    yield service
    server.close()


@pytest.fixture(scope="module")
def gcloud() -> Gcloud:
    return find_gcloud()


@dataclass(kw_only=True)
class Lab:
    """Test Lab at the stand-in's address, and all that was told while it worked."""

    gcloud: Gcloud
    service: FirebaseService
    folder: Path
    told: list[str] = field(default_factory=list)

    def farm(self, project: str, **changed: str) -> FirebaseFarm:
        environment = {
            **self.gcloud.environment,
            **self.service.environment(project, self.folder / "gcloud"),
            **changed,
        }
        environment = {name: value for name, value in environment.items() if value}
        return FirebaseFarm(gcloud=replace(self.gcloud, environment=environment))

    def job(self, project: str, app_bytes: int = 100) -> FarmJob:
        app, test = self.folder / "app-debug.apk", self.folder / "test-debug.apk"
        app.write_bytes(b"PK\x03\x04" * (app_bytes // 4))
        test.write_bytes(b"PK\x03\x04 test")
        return FarmJob(
            name=project,
            app=app,
            test=test,
            device="MediumPhone.arm-34",
            results="/sdcard/Download/ortrim",
            destination=self.folder / "there",
            timeout_seconds=300,
        )

    def run(self, farm: FirebaseFarm, job: FarmJob, tell: Callable[[str], None] = lambda _: None) -> FarmRun:

        def telling(text: str) -> None:
            self.told.append(text)
            tell(text)

        try:
            return farm.run(job, telling)
        finally:
            assert TOKEN not in "\n".join(self.told)

    def refused(self, farm: FirebaseFarm, job: FarmJob) -> Diagnostic:
        with pytest.raises(Diagnostic) as caught:
            self.run(farm, job)
        assert TOKEN not in str(caught.value)
        assert caught.value.where == f"firebase:{job.device}"
        assert not job.destination.exists()
        return caught.value


@pytest.fixture(scope="module", autouse=True)
def lost_upload(
    gcloud: Gcloud, service: FirebaseService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Future[Diagnostic]]:
    """Begin what takes longest, nearly all of which is waiting."""
    lab = Lab(gcloud=gcloud, service=service, folder=tmp_path_factory.mktemp("cut"))
    with ThreadPoolExecutor() as threads:
        yield threads.submit(lambda: lab.refused(lab.farm("cut"), lab.job("cut")))


@pytest.fixture
def lab(gcloud: Gcloud, service: FirebaseService, tmp_path: Path) -> Lab:
    return Lab(gcloud=gcloud, service=service, folder=tmp_path)


def test_a_run_that_passes(lab: Lab) -> None:
    """From the packages, the larger one sent in parts, to the device's files; the bucket is Google's own."""
    job = lab.job("passes", RESUMABLE_BYTES)
    run = lab.run(lab.farm("passes"), job)
    assert run.passed
    found = {str(path.relative_to(run.folder)): path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    assert found == {"results.json": b"{}", "runs/000/x.bin": bytes(range(256))}
    assert run.log
    assert run.log.read_bytes() == b"a log\n"
    assert run.url.startswith("https://console.firebase.google.com/project/passes/testlab/")
    assert run.device == "MediumPhone.arm-34-en-portrait"
    assert lab.told == [
        "uploading app.apk",
        "uploading test.apk",
        f"to be seen at {run.url}",
        "waiting for a device",
        "running",
        "fetching the results",
    ]
    sent = {name.rpartition("/")[2]: content for name, content in lab.service.objects.items() if name.endswith(".apk")}
    assert sent == {"app.apk": job.app.read_bytes(), "test.apk": job.test.read_bytes()}


def test_what_the_service_is_asked_for(lab: Lab) -> None:
    """One attempt without a video; a run that fails brings its files too. What was sent to one's own bucket goes."""
    run = lab.run(lab.farm("fails", ORTRIM_FIREBASE_BUCKET="ours"), lab.job("fails"))
    assert not run.passed
    assert (run.folder / "results.json").is_file()
    (matrix,) = (matrix for matrix in lab.service.matrices.values() if matrix.project == "fails")
    specification = matrix.body["testSpecification"]
    assert matrix.body.get("flakyTestAttempts", 0) == 0
    assert specification["testTimeout"] == "300s"
    assert specification["disableVideoRecording"]
    assert specification["testSetup"]["directoriesToPull"] == ["/sdcard/Download/ortrim"]
    assert "account" not in specification["testSetup"]
    left = [name for name in lab.service.objects if name.startswith("ours/")]
    assert left
    assert not any(name.endswith(".apk") for name in left)
    assert all(name.startswith(f"{BUCKET}/") for name in lab.service.objects if name not in left)


def test_a_flaky_run_has_failed(lab: Lab) -> None:
    """For gcloud it ends as one that passed, with 0; its files come, too."""
    run = lab.run(lab.farm("flaky"), lab.job("flaky"))
    assert not run.passed
    assert (run.folder / "results.json").is_file()


@pytest.mark.parametrize(
    ("project", "reference", "why"),
    [
        ("disabled", "farm-project", "has not been used in project 123"),
        ("exhausted", "farm-quota", "ResponseError 429"),
        ("invalid", "farm-refused", "MALFORMED_APK"),
        ("inconclusive", "farm-inconclusive", "Unknown reason"),
        ("unsupported", "farm-unsupported", "App architecture"),
        ("broken", "farm-failed", "the device went away"),
        ("infrastructure", "farm-failed", "Infrastructure failure"),
        ("aborted", "farm-cancelled", "Test run aborted by user"),
        ("slow", "farm-timeout", "Test timed out"),
        ("empty", "farm-results-missing", "SIGABRT"),
    ],
)
def test_what_may_become_of_a_run(lab: Lab, project: str, reference: str, why: str) -> None:
    error = lab.refused(lab.farm(project), lab.job(project))
    assert (error.code, error.exit_code) == (reference, ExitCode.VERIFY)
    assert why in error.why
    assert error.hint


def test_an_account_that_is_not_there(lab: Lab) -> None:
    farm = lab.farm("passes", CLOUDSDK_AUTH_ACCESS_TOKEN_FILE="")
    assert lab.refused(farm, lab.job("passes")).code == "farm-credentials"


def test_an_account_that_google_refuses(lab: Lab) -> None:
    """The stand-in sends the token back, as some proxies do: it does not get any further."""
    token = lab.folder / "other"
    token.write_text("ya29.another_secret")
    error = lab.refused(lab.farm("passes", CLOUDSDK_AUTH_ACCESS_TOKEN_FILE=str(token)), lab.job("passes"))
    assert error.code == "farm-credentials"
    assert "Bearer (removed)" in error.why
    assert "another_secret" not in str(error)


def test_a_project_that_is_not_set(lab: Lab) -> None:
    error = lab.refused(lab.farm("passes", CLOUDSDK_CORE_PROJECT=""), lab.job("passes"))
    assert (error.code, "config set project" in error.hint) == ("farm-project", True)


@pytest.mark.parametrize(
    ("device", "why"),
    [("MediumPhone-34", "not a valid model"), ("MediumPhone.arm-34-xx-portrait", "not a valid locale")],
)
def test_a_device_that_is_not_there(lab: Lab, device: str, why: str) -> None:
    """As gcloud finds before it uploads anything."""
    error = lab.refused(lab.farm("passes"), replace(lab.job("passes"), device=device))
    assert error.code == "farm-device-unknown"
    assert why in f"{error.what} {error.why}"


def test_a_device_that_is_never_free(lab: Lab) -> None:
    error = lab.refused(lab.farm("waits"), replace(lab.job("waits"), queue_seconds=1))
    assert error.code == "farm-timeout"
    assert cancelled(lab, "waits")
    assert lab.told[-1].startswith("cancelled matrix-waits")


def test_ctrl_c_cancels_the_test(lab: Lab) -> None:
    """It would go on otherwise, and cost."""

    def interrupt(text: str) -> None:
        if text == "running":
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.run(lab.farm("runs"), lab.job("runs"), interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled(lab, "runs")
    assert not (lab.folder / "there").exists()


def test_another_thread_cancels_the_test(lab: Lab) -> None:
    """As when several devices are used and Ctrl-C is pressed."""
    asked = threading.Event()

    def ask(text: str) -> None:
        if text == "running":
            asked.set()

    lab.service.matrices.clear()
    with stopped_by(asked), pytest.raises(KeyboardInterrupt):
        lab.run(lab.farm("runs"), lab.job("runs"), ask)
    assert cancelled(lab, "runs")


def cancelled(lab: Lab, project: str) -> bool:
    found = [matrix.cancelled for matrix in lab.service.matrices.values() if matrix.project == project]
    return bool(found) and all(found)


def test_a_connection_that_is_lost_in_an_upload(lost_upload: Future[Diagnostic], service: FirebaseService) -> None:
    """It is tried again for half a minute, in which the tests above run; no test is started."""
    error = lost_upload.result()
    assert (error.code, error.exit_code) == ("farm-upload-lost", ExitCode.NETWORK)
    assert not any(matrix.project == "cut" for matrix in service.matrices.values())
