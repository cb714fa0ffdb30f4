"""BrowserStack end to end: over HTTP against a stand-in on loopback that fails in every way it can be told."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from browserstack_service import (
    BUILD,
    DEVICE,
    KEY,
    SESSION,
    USER,
    BrowserStackService,
    authorization,
    log_of,
    said,
)
from device_farm_service import zipped
from failing_runs import failed_job
from loopback_service import LOST, Reply, interrupt
from ortrim.base.command import stopped_by
from ortrim.errors import Diagnostic, ExitCode
from ortrim.farms.browserstack import BrowserStack
from ortrim.farms.farm import FarmTimeouts
from ortrim.verify.devices.batch import FarmJob, FarmRun
from ortrim.verify.devices.harness import encode

QUICK: Final = FarmTimeouts(interval_seconds=0.01, pauses=(0.0, 0.01, 0.01), grace_seconds=0.0)
URL: Final = f"https://app-automate.browserstack.com/dashboard/v2/builds/{BUILD}"
GONE: Final = Reply(status=LOST)
REMOVED: Final = ["DELETE /test-suites/b1", "DELETE /apps/a1"]
STOPPED: Final = ["POST /builds/BUILD/stop", *REMOVED]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrowserStackService]:
    """Run the stand-in for one test; its log carries results unless told otherwise."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("BROWSERSTACK_USERNAME", USER)
    monkeypatch.setenv("BROWSERSTACK_ACCESS_KEY", KEY)
    service = BrowserStackService()
    service.device_log = log_of(zipped({"requests.json": b"{}"}))
    yield service
    service.close()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Take what the user is told; neither there nor in any log is the access key, whatever happens."""
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        yield told
    assert_no_secret("\n".join([*told, caplog.text]))


def assert_no_secret(text: str) -> None:
    """See that a text does not hold the access key, as it is or as it is sent."""
    assert [secret for secret in (KEY, authorization()[6:]) if secret in text] == []


def job(tmp_path: Path, device: str = DEVICE, queue: float = 60.0, timeout: float = 900.0) -> FarmJob:
    """Return a job with an app and a test of a few bytes."""
    for name in ("app", "test"):
        (tmp_path / f"{name}.apk").write_bytes(name.encode())
    return FarmJob(
        name="ortrim demo",
        app=tmp_path / "app.apk",
        test=tmp_path / "test.apk",
        device=device,
        results="/sdcard/Download/ortrim",
        destination=tmp_path / "out" / "run",
        timeout_seconds=timeout,
        queue_seconds=queue,
    )


def farm(service: BrowserStackService) -> BrowserStack:
    """Return the farm, at the stand-in."""
    return BrowserStack(base=service.address, patience=QUICK)


def ran(service: BrowserStackService, tmp_path: Path, told: list[str]) -> FarmRun:
    """Run the job to its end."""
    return farm(service).run(job(tmp_path), told.append)


def failed(service: BrowserStackService, given: FarmJob, told: list[str]) -> Diagnostic:
    """Return the diagnostic of a job that has to fail."""
    return failed_job(farm(service), given, told, assert_no_secret)


def test_a_build_that_passes(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """The app and the test go there, run on the phone, and the results are taken from its log."""
    service.device_log = log_of(zipped({"requests.json": b"{}", "outputs/y.npy": os.urandom(9000)}))
    run = ran(service, tmp_path, told)
    assert (run.passed, run.device, run.url) == (True, DEVICE, URL)
    assert run.folder == tmp_path / "out" / "run" / "results"
    assert sorted(str(path.relative_to(run.folder)) for path in run.folder.rglob("*")) == [
        "outputs", "outputs/y.npy", "requests.json",
    ]  # fmt: skip
    assert run.log is not None
    assert run.log.read_bytes() == service.device_log
    assert sorted(path.name for path in run.folder.parent.iterdir()) == ["device.log", "results"]
    assert service.uploads == {}
    assert told == [
        "uploading app.apk", "uploading test.apk", f"the build: {URL}", "waiting for a device", "running",
        "the build has ended", "fetching the results",
    ]  # fmt: skip


def test_what_a_build_is_asked_for(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """The uploads, the phone, its log, no video; an idle limit within what BrowserStack takes."""
    service.faults["DELETE /apps/a1"] = [said({})]
    ran(service, tmp_path, told)
    assert service.build() == {
        "app": "bs://a1",
        "testSuite": "bs://b1",
        "devices": [DEVICE],
        "project": "ortrim",
        "buildTag": "ortrim demo",
        "deviceLogs": True,
        "video": False,
        "idleTimeout": 900,
    }
    form = service.uploads["a"]
    assert form.startswith(b"--")
    assert b'name="file"; filename="app.apk"\r\n' in form
    assert b"\r\n\r\napp\r\n--" in form
    assert {asked.headers["authorization"] for asked in service.asked} == {authorization()}


def test_a_build_that_fails(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """An instrumentation that failed is a verdict too, with its files."""
    service.statuses = ["failed"]
    run = ran(service, tmp_path, told)
    assert not run.passed
    assert (run.folder / "requests.json").read_bytes() == b"{}"


def test_results_in_the_other_log(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """What is in the instrumentation's log counts too; without a device's log there is none."""
    service.instrumentation_log, service.device_log = service.device_log, b""
    run = ran(service, tmp_path, told)
    assert run.log is None
    assert (run.folder / "requests.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("status", "error", "reference"),
    [
        ("error", None, "farm-failed"),
        ("error", {"message": "Could not start a session : Something went wrong"}, "farm-failed"),
        ("error", "INSTALL_FAILED_OLDER_SDK", "farm-unsupported"),
        ("error", "The build was stopped by user", "farm-cancelled"),
        ("error", "Exceeded the wait limit of the queue", "farm-timeout"),
        ("error", {"message": ["strange"]}, "farm-failed"),
        ("timedout", None, "farm-timeout"),
        ("skipped", None, "farm-inconclusive"),
        ("cancelled", None, "farm-cancelled"),
        ("frozen", None, "farm-inconclusive"),
    ],
)
def test_builds_without_a_verdict(
    service: BrowserStackService, tmp_path: Path, status: str, error: Any, reference: str
) -> None:
    """Each end that says nothing of the app has its reference, BrowserStack's words and where to look."""
    service.statuses, service.error = ["queued", status], error
    caught = failed(service, job(tmp_path), [])
    assert (caught.code, caught.exit_code) == (reference, ExitCode.VERIFY)
    assert status in caught.why
    assert URL in caught.hint
    assert service.uploads == {}


@pytest.mark.parametrize(
    ("request_name", "reply", "reference"),
    [
        ("GET /devices.json", said({"error": "Unauthorized"}, 401), "farm-credentials"),
        ("GET /devices.json", said({"message": "no plan"}, 403), "farm-credentials"),
        ("GET /devices.json", said({"strange": 1}), "farm-failed"),
        ("GET /devices.json", Reply(body=b"<html>maintenance</html>"), "farm-failed"),
        ("GET /devices.json", Reply(body=b"[" * 9000), "farm-failed"),
        ("POST /app", said({"error": "[BROWSERSTACK_INVALID_APP_FILE] not an apk"}, 422), "farm-refused"),
        ("POST /app", said({"app_url": "https://elsewhere/"}), "farm-failed"),
        ("POST /app", said({"message": "gone"}, 503), "farm-failed"),
        ("POST /build", said({"message": "[BROWSERSTACK_ALL_PARALLELS_IN_USE] All in use"}, 422), "farm-quota"),
        ("POST /build", said({"message": "Too many"}, 429), "farm-quota"),
        ("POST /build", said({"message": "[BROWSERSTACK_INVALID_DEVICE] Incorrect"}, 422), "farm-device-unknown"),
        ("POST /build", said({"message": "[X_FEATURE_NOT_AVAILABLE_IN_CURRENT_PLAN]"}, 422), "farm-project"),
        ("POST /build", said({"message": f"bad {KEY} https://x.y/z?a={KEY}"}, 422), "farm-refused"),
        ("POST /build", said({"message": {"deep": 1}}, 400), "farm-refused"),
        ("GET /builds/BUILD", said({"message": "Rate limit"}, 429), "farm-quota"),
        ("GET /builds/BUILD", Reply(status=500), "farm-failed"),
        ("GET /builds/BUILD", said({"status": 7}), "farm-failed"),
        ("GET /builds/BUILD/sessions/SESSION", Reply(status=502), "farm-failed"),
    ],
)
def test_what_the_service_refuses(
    service: BrowserStackService, tmp_path: Path, request_name: str, reply: Reply, reference: str
) -> None:
    """Each refusal has its reference and a hint."""
    service.faults[request_name] = [reply]
    told: list[str] = []
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == (reference, ExitCode.VERIFY)
    assert error.hint
    assert service.uploads == {}
    assert ("POST /builds/BUILD/stop" in service.names()) == (request_name == "GET /builds/BUILD")
    assert_no_secret("\n".join(told))


@pytest.mark.parametrize("missing", ["BROWSERSTACK_USERNAME", "BROWSERSTACK_ACCESS_KEY"])
@pytest.mark.parametrize("value", [None, ""])
def test_no_credentials(
    service: BrowserStackService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str, value: str | None
) -> None:
    """Without one of the two, nothing is sent, and it is said which."""
    if value is None:
        monkeypatch.delenv(missing)
    else:
        monkeypatch.setenv(missing, value)
    error = failed(service, job(tmp_path), [])
    assert (error.code, service.asked) == ("farm-credentials", [])
    assert error.why == f"not set: {missing}"


def test_a_wrong_key(
    service: BrowserStackService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    """A key that is not the user's is refused, and not repeated."""
    monkeypatch.setenv("BROWSERSTACK_ACCESS_KEY", "wrong-0815")
    error = failed(service, job(tmp_path), told)
    assert error.code == "farm-credentials"
    assert "wrong-0815" not in str(error)


@pytest.mark.parametrize("device", ["Samsung Galaxy S22-13.0", "", "iPhone 15-17"])
def test_a_phone_that_nobody_has(service: BrowserStackService, tmp_path: Path, told: list[str], device: str) -> None:
    """A phone that is not there is told before anything is sent, with some that are."""
    error = failed(service, job(tmp_path, device), told)
    assert error.code == "farm-device-unknown"
    assert "Samsung Galaxy S23-13.0" in error.hint
    assert service.names() == ["GET /devices.json"]


def test_no_phone_becomes_free(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """Whoever waits too long gives the build up and says where it can be stopped."""
    service.statuses = ["queued"]
    error = failed(service, job(tmp_path, queue=0.05), told)
    assert error.code == "farm-timeout"
    assert "no device became free" in error.what
    assert service.names()[-3:] == STOPPED
    assert told[-1] == f"BrowserStack did not stop the build: press 'Stop build' at {URL}"


def test_a_build_that_never_ends(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A build that takes too long is given up; where the farm stops builds there is nothing more to tell."""
    service.statuses, service.stoppable = ["running"], True
    error = failed(service, job(tmp_path, timeout=0.05), told)
    assert (error.code, told[-1]) == ("farm-timeout", "stopping the build")
    assert service.names()[-3:] == STOPPED


def test_the_network_is_lost_in_an_upload(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """An upload that does not get through is an error of the network; what was there before is removed."""
    service.faults["POST /test-suite"] = [GONE]
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-upload-lost", ExitCode.NETWORK)
    assert "test.apk" in error.what
    assert service.uploads == {}


def test_a_connection_lost_for_a_while(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A build is followed through some lost connections."""
    service.faults["GET /builds/BUILD"] = [GONE, Reply(status=502), None, GONE, None]
    assert ran(service, tmp_path, told).passed


def test_the_network_is_lost_while_a_build_goes_on(
    service: BrowserStackService, tmp_path: Path, told: list[str]
) -> None:
    """When nothing helps, it is said that the build may still go on, and where."""
    service.faults["GET /builds/BUILD"] = [None, GONE]
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-unreachable", ExitCode.NETWORK)
    assert f"may still go on: {URL}" in error.why
    assert service.uploads == {}


def test_uploads_that_cannot_be_removed(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """What stays at the farm is reported, and is no error."""
    service.faults["DELETE /apps/a1"] = [GONE]
    assert ran(service, tmp_path, told).passed
    assert told[-1] == "app.apk stays at BrowserStack (farm-unreachable), which removes it after 30 days"


def test_a_build_is_never_begun_twice(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """When the answer to its beginning is lost, it is not known whether it costs: it is not begun again."""
    service.faults["POST /build"] = [GONE]
    error = failed(service, job(tmp_path), told)
    assert error.code == "farm-unreachable"
    assert "not known whether" in error.what
    assert service.names().count("POST /build") == 1


def test_nobody_listens(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A service that cannot be reached is told after some tries."""
    service.close()
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-unreachable", ExitCode.NETWORK)


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"nothing here\n",
        log_of(b"not a zip archive"),
        log_of(zipped({})),
        log_of(zipped({"a": os.urandom(9000)})).replace(b"ortrim-result 2/", b"ortrim-result 9/"),
        "\n".join(encode(os.urandom(9000))[:-1]).encode(),
        b"ortrim-result-too-large 99999999\n",
    ],
    ids=["no-log", "nothing", "no-zip", "empty-zip", "lost-line", "no-end", "too-large"],
)
def test_results_that_are_missing(service: BrowserStackService, tmp_path: Path, told: list[str], log: bytes) -> None:
    """A verdict without its results is an error that says what came instead; the build is over and not stopped."""
    service.device_log = log
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-results-missing", ExitCode.VERIFY)
    assert error.why
    assert URL in error.hint
    assert service.names()[-2:] == REMOVED


def test_an_app_that_crashed(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """Its results are missing, and what the device's log tells of that comes with it."""
    service.statuses = ["failed"]
    service.device_log = b"I x: begins\nF libc: Fatal signal 6 (SIGABRT), code -6\nI x: ends\n"
    error = failed(service, job(tmp_path), told)
    assert error.code == "farm-results-missing"
    assert error.why.endswith("\nF libc: Fatal signal 6 (SIGABRT), code -6")


def test_a_log_that_is_not_needed(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """With the results in the device's log, the instrumentation's is not asked for."""
    service.faults["GET /instrumentation-log"] = [Reply(status=404)]
    assert ran(service, tmp_path, told).passed
    assert "GET /instrumentation-log" not in service.names()


def test_a_build_without_sessions(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A build that ended on no device has no results."""
    service.sessions = []
    assert failed(service, job(tmp_path), told).code == "farm-results-missing"


def test_logs_that_come_late(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A log that is not there when the build ends is asked for again."""
    service.faults["GET /device-log"] = [Reply(status=404), Reply(body=b"half of i"), None]
    assert ran(service, tmp_path, told).passed


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a\\b"])
def test_results_that_would_do_harm(service: BrowserStackService, tmp_path: Path, told: list[str], name: str) -> None:
    """An archive whose names lead elsewhere is not unpacked."""
    service.device_log = log_of(zipped({name: b""}))
    error = failed(service, job(tmp_path), told)
    assert (error.code, error.exit_code) == ("unsafe-archive", ExitCode.STORAGE)
    assert list(tmp_path.rglob("*evil*")) == []


def test_a_log_that_is_too_large(
    service: BrowserStackService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    """A log without an end is not read to its end."""
    monkeypatch.setattr("ortrim.farms.browserstack.LARGEST_LOG", 100)
    assert failed(service, job(tmp_path), told).code == "farm-results-missing"


def test_an_answer_that_is_too_large(
    service: BrowserStackService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    """An answer without an end is not read to its end."""
    monkeypatch.setattr("ortrim.farms.browserstack.LARGEST_ANSWER", 100)
    assert "longer than 100 bytes" in failed(service, job(tmp_path), told).why


def test_the_key_goes_to_nobody_else(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """A log at an address that is neither BrowserStack's nor encrypted is not fetched, and nobody gets the key."""
    other = BrowserStackService()
    service.log_address = other.address
    error = failed(service, job(tmp_path), told)
    other.close()
    assert error.code == "farm-results-missing"
    assert "not encrypted" in error.why
    assert other.asked == []


def test_a_session_with_a_strange_name(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """Identifiers that would lead to another address are not used in one."""
    service.sessions = [f"../{SESSION}"]
    assert failed(service, job(tmp_path), told).code == "farm-failed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_interrupted_stops_the_build(
    service: BrowserStackService, tmp_path: Path, number: signal.Signals, told: list[str]
) -> None:
    """Ctrl-C, the end of a session and the like give the build up and remove the uploads."""
    service.statuses = ["running"]

    def tell(words: str) -> None:
        told.append(words)
        if words == "running":
            os.kill(os.getpid(), number)

    given = job(tmp_path)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        farm(service).run(given, tell)
    assert service.names()[-3:] == STOPPED
    assert service.uploads == {}
    assert not given.destination.exists()


def test_whoever_is_interrupted_at_the_beginning(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """Ctrl-C before BrowserStack has said which build it is leaves one that may go on: the user is told."""
    service.meanwhile["POST /build"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        ran(service, tmp_path, told)
    assert [line for line in told if line.startswith("it is not known whether the build was started: look at")] != []
    assert service.uploads == {}


def test_a_thread_that_is_asked_to_stop(service: BrowserStackService, tmp_path: Path, told: list[str]) -> None:
    """Beside other devices a farm hears of Ctrl-C through its thread's request, in the midst of an upload too.

    The service may read that upload later than the removal, which is the last thing that is asked of it.
    """
    asked = threading.Event()

    def tell(words: str) -> None:
        if words == "uploading test.apk":
            asked.set()

    with stopped_by(asked), pytest.raises(KeyboardInterrupt):
        farm(service).run(job(tmp_path), tell)
    asked_for = [name for name in service.names() if name != "POST /test-suite"]
    assert asked_for == ["GET /devices.json", "POST /app", "DELETE /apps/a1"]
    assert "a" not in service.uploads


def test_a_destination_that_is_there(service: BrowserStackService, tmp_path: Path) -> None:
    """What has the destination's name is found before the build costs anything, and left alone."""
    given = job(tmp_path)
    given.destination.mkdir(parents=True)
    with pytest.raises(Diagnostic) as caught:
        farm(service).run(given, lambda _: None)
    assert caught.value.code == "path-in-the-way"
    assert service.asked == []


def test_a_farm_tells_nothing_of_itself() -> None:
    """A farm's repr holds no secret."""
    assert KEY not in repr(BrowserStack(environment={"BROWSERSTACK_ACCESS_KEY": KEY}))
