"""AWS Device Farm end to end: the real boto3 against a stand-in on loopback that fails in every way it can be told."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import botocore.session
import pytest
from botocore.model import ServiceModel, StringShape
from botocore.validate import ParamValidator

from device_farm_service import (
    DEVICES,
    POOL,
    PROJECT,
    RUN,
    SIGNATURE,
    DeviceFarmService,
    archive,
    fault,
)
from failing_runs import failed_job
from harness_log import encode
from loopback_service import LOST, Reply, interrupt
from ortrim.base.command import stopped_by
from ortrim.devices.farms.aws_device_farm import STAGES, WORDS, DeviceFarm
from ortrim.devices.farms.farm import FarmJob, FarmRun, FarmTimeouts
from ortrim.errors import Diagnostic, ExitCode
from refusing import refused
from zips import zipped

SECRET: Final = "geheimer-Schluessel-99"  # noqa: S105 - secrets to look for
TOKEN: Final = "geheime-Marke-66"  # noqa: S105
QUICK: Final = FarmTimeouts(interval_seconds=0.01, pauses=(0.0, 0.01, 0.01), grace_seconds=0.0)
URL: Final = "https://us-west-2.console.aws.amazon.com/devicefarm/home#/mobile/projects/5e01a8c7-0000/runs/f00d-0000"
GONE: Final = Reply(status=LOST)
UPLOADS: Final = ["app.apk", "test.apk", "ortrim.yml"]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DeviceFarmService]:
    """Run the stand-in for one test, with credentials in the environment and no settings of the user's own."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    service = DeviceFarmService()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DEVICE_FARM", service.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    yield service
    service.close()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Take what the user is told; neither there nor in any log is a secret, whatever happens."""
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        yield told
    assert_no_secret("\n".join([*told, caplog.text]))


def assert_no_secret(text: str) -> None:
    """See that a text holds no credentials and no signed address."""
    assert [secret for secret in (SECRET, TOKEN, SIGNATURE) if secret in text] == []


def job(tmp_path: Path, device: str = "voice/phones", queue: float = 60.0, timeout: float = 900.0) -> FarmJob:
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


def ran(tmp_path: Path, told: list[str]) -> FarmRun:
    return DeviceFarm(QUICK).run(job(tmp_path), told.append)


def failed(given: FarmJob, told: list[str]) -> Diagnostic:
    return failed_job(DeviceFarm(QUICK), given, told, assert_no_secret)


def test_a_run_that_passes(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.artifacts = [
        ("CUSTOMER_ARTIFACT_LOG", b""),
        ("CUSTOMER_ARTIFACT", archive({"requests.json": b"{}", "outputs/y.npy": b"\x93NUMPY"})),
        ("DEVICE_LOG", b"setup\n"),
        ("DEVICE_LOG", b"tests\n"),
    ]
    run = ran(tmp_path, told)
    assert (run.device, run.url) == ("Google Pixel 8 14", URL)
    assert run.folder == tmp_path / "out" / "run" / "results"
    assert sorted(str(path.relative_to(run.folder)) for path in run.folder.rglob("*")) == [
        "outputs", "outputs/y.npy", "requests.json",
    ]  # fmt: skip
    assert run.log is not None
    assert run.log.read_bytes() == b"setup\ntests\n"
    assert sorted(path.name for path in run.folder.parent.iterdir()) == ["device.log", "results"]
    assert list(service.files) == UPLOADS
    assert (service.files["app.apk"], service.files["test.apk"]) == (b"app", b"test")
    assert b"pull /sdcard/Download/ortrim " in service.files["ortrim.yml"]
    assert service.uploads == {}
    assert "StopRun" not in service.names()
    assert told[:2] == ["uploading app.apk", "app.apk is there"]
    assert told[-5:] == [
        "waiting for a device", "preparing the device", "running", "the run has ended", "fetching the results",
    ]  # fmt: skip


def test_what_a_run_is_asked_for(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """One device of those of the pool that fit, the job's minutes, no video, and the three uploads."""
    ran(tmp_path, told)
    said = service.call("ScheduleRun")
    assert said["projectArn"] == PROJECT
    assert "devicePoolArn" not in said
    assert said["deviceSelectionConfiguration"] == {
        "filters": [{"attribute": "ARN", "operator": "IN", "values": list(DEVICES)}],
        "maxDevices": 1,
    }
    assert said["executionConfiguration"] == {"jobTimeoutMinutes": 15, "videoCapture": False}
    assert [said["appArn"][-2:], said["test"]["testPackageArn"][-2:], said["test"]["testSpecArn"][-2:]] == [
        "/0", "/1", "/2",
    ]  # fmt: skip
    assert said["test"]["type"] == "INSTRUMENTATION"
    assert service.call("GetDevicePoolCompatibility")["devicePoolArn"] == POOL


def test_arns_are_taken_as_they_are(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """A project and a pool given by their ARNs are not looked for."""
    DeviceFarm(QUICK).run(job(tmp_path, f"{PROJECT}/{POOL}"), told.append)
    assert {"ListProjects", "ListDevicePools"}.isdisjoint(service.names())


def test_the_stand_in_speaks_as_amazon_does(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """Each answer has the shape of Amazon's own model, and what ortrim tells apart are words of that model."""
    service.artifacts.append(("DEVICE_LOG", b""))
    service.run = {"result": "PASSED", "message": "", "deviceMinutes": {"total": 1.5}}
    ran(tmp_path, told)
    model = botocore.session.get_session().get_service_model("devicefarm")
    calls = {name for name, _ in service.said}
    assert calls == set(service.names()) - {"put", "fetch"}
    for name, said in service.said:
        shape = model.operation_model(name).output_shape
        assert shape is not None
        report = ParamValidator().validate(said, shape)
        assert not report.has_errors(), f"{name}: {report.generate_report()}"
    assert set(STAGES) | set(WORDS) | {"PENDING"} <= words_of(model, "ExecutionStatus")
    assert {"PASSED", "FAILED", "SKIPPED", "ERRORED", "STOPPED", "WARNED"} <= words_of(model, "ExecutionResult")
    assert {"CUSTOMER_ARTIFACT", "DEVICE_LOG"} <= words_of(model, "ArtifactType")
    errors = {shape.name for shape in model.error_shapes}
    assert {"LimitExceededException", "NotFoundException", "ArgumentException", "ServiceAccountException"} <= errors


def words_of(model: ServiceModel, name: str) -> set[str]:
    shape = model.shape_for(name)
    assert isinstance(shape, StringShape)
    return set(shape.enum)


def test_the_device_that_ran_it(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    assert ran(tmp_path, told).device == "Google Pixel 8 14"
    service.statuses = ["COMPLETED"]
    service.faults["ListJobs"] = [fault("AccessDeniedException")]
    (tmp_path / "again").mkdir()
    assert DeviceFarm(QUICK).run(job(tmp_path / "again"), told.append).device == ""


def test_a_run_that_fails(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.run = {"result": "FAILED"}
    run = ran(tmp_path, told)
    assert run.log is None
    assert (run.folder / "requests.json").read_bytes() == b"{}"


def test_results_that_travel_in_the_log(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    lines = "\n".join(f"I ORTRIM: {line}" for line in encode(zipped({"a/requests.json": b"[]"})))
    service.artifacts = [("CUSTOMER_ARTIFACT", zipped({"x/instrument.log": b""})), ("DEVICE_LOG", lines.encode())]
    run = ran(tmp_path, told)
    assert (run.folder / "a" / "requests.json").read_bytes() == b"[]"
    assert sorted(path.name for path in run.folder.parent.iterdir()) == ["device.log", "results"]


@pytest.mark.parametrize(
    ("run", "reference"),
    [
        ({"result": "WARNED"}, "farm-inconclusive"),
        ({"result": "PENDING"}, "farm-inconclusive"),
        ({"result": "ERRORED", "message": "the device went away"}, "farm-failed"),
        ({"result": "SKIPPED", "message": "minSdkVersion"}, "farm-unsupported"),
        ({"result": "STOPPED"}, "farm-cancelled"),
        ({"result": "STOPPED", "deviceMinutes": {"total": 15.2}}, "farm-timeout"),
        ({"result": "STOPPED", "message": "The job timed out."}, "farm-timeout"),
    ],
)
def test_runs_without_a_verdict(
    service: DeviceFarmService, tmp_path: Path, told: list[str], run: dict[str, object], reference: str
) -> None:
    service.run = run
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == (reference, ExitCode.VERIFY)
    assert str(run.get("message", "")) in error.why
    assert URL in error.hint
    assert service.uploads == {}


@pytest.mark.parametrize(
    ("refused", "reference"),
    [
        (("ListProjects", "UnrecognizedClientException", 400), "farm-credentials"),
        (("ListProjects", "AccessDeniedException", 400), "farm-credentials"),
        (("ListProjects", "ExpiredTokenException", 400), "farm-credentials"),
        (("ListProjects", "ServiceAccountException", 400), "farm-project"),
        (("ListDevicePools", "NotFoundException", 400), "farm-project"),
        (("CreateUpload", "LimitExceededException", 400), "farm-quota"),
        (("ScheduleRun", "LimitExceededException", 400), "farm-quota"),
        (("ScheduleRun", "ArgumentException", 400), "farm-refused"),
        (("ScheduleRun", "IdempotencyException", 400), "farm-failed"),
        (("GetRun", "ThrottlingException", 400), "farm-quota"),
        (("GetRun", "InternalServiceException", 500), "farm-failed"),
        (("ListArtifacts", "InternalFailure", 503), "farm-failed"),
    ],
)
def test_what_the_service_refuses(
    service: DeviceFarmService, tmp_path: Path, told: list[str], refused: tuple[str, str, int], reference: str
) -> None:
    call, code, status = refused
    service.faults[call] = [fault(code, f"as told\nx-amz-security-token:{TOKEN}", status)]
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == (reference, ExitCode.VERIFY)
    assert error.why == f"{code}: as told"
    assert error.hint
    assert service.uploads == {}
    assert ("StopRun" in service.names()) == (call == "GetRun")


@pytest.mark.parametrize("body", [b"{}", b"<html>", b"[]", b"null", b'{"run": {"created": "x"}}', b"\xff"])
@pytest.mark.parametrize("call", ["ListProjects", "CreateUpload", "GetUpload", "ScheduleRun", "GetRun"])
def test_answers_that_are_not_understood(
    service: DeviceFarmService, tmp_path: Path, told: list[str], call: str, body: bytes
) -> None:
    service.faults[call] = [Reply(body=body, headers={"Content-Type": "application/x-amz-json-1.1"})]
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-failed", ExitCode.VERIFY)
    assert error.why
    assert service.uploads == {}


@pytest.mark.parametrize("missing", ["AWS_SECRET_ACCESS_KEY", "both"])
def test_no_credentials(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str], missing: str
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    if missing == "both":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    error = failed(job(tmp_path), told)
    assert (error.code, service.asked) == ("farm-credentials", [])
    assert "aws configure" in error.hint


def test_a_profile_that_is_not_there(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    """A profile that AWS's settings do not hold is a matter of credentials."""
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    error = failed(job(tmp_path), told)
    assert error.code == "farm-credentials"
    assert "nobody" in error.why


@pytest.mark.parametrize("module", ["boto3", "botocore.exceptions"])
def test_boto3_is_absent(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str], module: str
) -> None:
    """Without the extra there is a command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-tool-missing", ExitCode.TOOL)
    assert 'pip install "ortrim[devicefarm]"' in error.hint


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("voice", ("farm-device-unknown", "PROJECT/POOL")),
        ("/phones", ("farm-device-unknown", "PROJECT/POOL")),
        ("voices/phones", ("farm-project", "there are: voice")),
        ("voice/phone", ("farm-device-unknown", "there are: phones")),
        ("twins/phones", ("farm-project", "give the ARN")),
        ("arn:aws:x/phones", ("farm-refused", "AWS's message")),
    ],
)
def test_names_that_nobody_has(
    service: DeviceFarmService, tmp_path: Path, told: list[str], device: str, expected: tuple[str, str]
) -> None:
    """A project or pool that is not there, or there twice, is told before anything is sent, with what there is."""
    reference, words = expected
    error = failed(job(tmp_path, device), told)
    assert error.code == reference
    assert words in error.hint
    assert "CreateUpload" not in service.names()


def test_no_device_of_the_pool_fits(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    old = {"device": {"arn": DEVICES[0]}, "incompatibilityMessages": [{"message": "needs Android 12", "type": "OS"}]}
    service.compatibility = {"compatibleDevices": [], "incompatibleDevices": [old, old, {"device": {}}]}
    error = failed(job(tmp_path), told)
    assert (error.code, error.why) == ("farm-unsupported", "AWS gives no reason\nneeds Android 12")
    assert "ScheduleRun" not in service.names()
    assert service.uploads == {}


def test_an_empty_pool(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.compatibility = {}
    assert failed(job(tmp_path), told).code == "farm-device-unknown"


def test_an_app_that_is_not_taken(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.upload = {"status": "FAILED", "message": "We could not open your APK."}
    error = failed(job(tmp_path), told)
    assert (error.code, error.why) == ("farm-refused", "We could not open your APK.")
    assert service.uploads == {}


def test_an_app_that_is_looked_at_for_ever(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    monkeypatch.setattr("ortrim.devices.farms.aws_device_farm.LOOKED_AT_SECONDS", 0.05)
    service.upload = {"status": "PROCESSING"}
    error = failed(job(tmp_path), told)
    assert error.code == "farm-timeout"
    assert "app.apk" in error.what
    assert service.uploads == {}


def test_the_region_is_the_services_own(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert ran(tmp_path, told).url == URL
    assert "/us-west-2/devicefarm/aws4_request" in service.asked[0].headers["authorization"]


def test_no_device_becomes_free(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """Whoever waits too long for a device stops the run."""
    service.statuses = ["PENDING_DEVICE"]
    error = failed(job(tmp_path, queue=0.05), told)
    assert error.code == "farm-timeout"
    assert service.names()[-4:] == ["StopRun", "DeleteUpload", "DeleteUpload", "DeleteUpload"]


def test_a_run_that_never_ends(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[str]
) -> None:
    monkeypatch.setattr("ortrim.devices.farms.aws_device_farm.LEAST_MINUTES", 0)
    service.statuses = ["RUNNING"]
    error = failed(job(tmp_path, timeout=0.0), told)
    assert error.code == "farm-timeout"
    assert service.call("StopRun") == {"arn": RUN}


def test_an_upload_is_sent_again(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.faults["put"] = [GONE, Reply(status=503), None]
    ran(tmp_path, told)
    assert list(service.files) == UPLOADS


def test_the_network_is_lost_in_an_upload(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.faults["put"] = [GONE]
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-upload-lost", ExitCode.NETWORK)
    assert service.uploads == {}


def test_the_store_refuses_an_upload(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """A signature that the store does not accept is no fault of the network's."""
    service.faults["put"] = [Reply(status=403)]
    assert failed(job(tmp_path), told).code == "farm-failed"
    assert service.names().count("put") == 1


def test_a_connection_lost_for_a_while(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.faults["GetRun"] = [GONE, fault("InternalFailure", status=500), None, GONE, None]
    ran(tmp_path, told)


def test_the_network_is_lost_while_a_run_goes_on(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """When nothing helps, it is said that the run may still go on, and where; it is stopped if that can be done."""
    service.faults["GetRun"] = [None, GONE]
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-unreachable", ExitCode.NETWORK)
    assert f"may still go on: {URL}" in error.why
    assert "StopRun" in service.names()


def test_a_run_that_cannot_be_stopped(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    for call in ("GetRun", "StopRun", "DeleteUpload"):
        service.faults[call] = [GONE]
    failed(job(tmp_path), told)
    assert f"the run could not be stopped (farm-unreachable) and may still go on: {URL}" in told
    assert [line for line in told if "app.apk stays at AWS" in line] != []


def test_a_run_is_never_begun_twice(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """When the answer to its beginning is lost, it is not known whether it costs: it is not begun again."""
    service.faults["ScheduleRun"] = [GONE]
    error = failed(job(tmp_path), told)
    assert error.code == "farm-unreachable"
    assert "not known whether" in error.what
    assert service.names().count("ScheduleRun") == 1


def test_nobody_listens(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.close()
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-unreachable", ExitCode.NETWORK)


@pytest.mark.parametrize(
    "artifacts",
    [
        [],
        [("DEVICE_LOG", b"nothing here\n")],
        [("CUSTOMER_ARTIFACT", zipped({"Host_Machine_Files/x/instrument.log": b""}))],
        [("CUSTOMER_ARTIFACT", b"not a zip archive")],
        [("CUSTOMER_ARTIFACT", archive({"a": b"0123456789" * 99})[:-30])],
        [("CUSTOMER_ARTIFACT", b"")],
        [("DEVICE_LOG", "\n".join(encode(b"x" * 9000)[1:]).encode())],
    ],
    ids=["none", "no-results-in-log", "no-folder", "no-zip", "cut-short", "empty", "log-lost-a-line"],
)
def test_results_that_are_missing(
    service: DeviceFarmService, tmp_path: Path, told: list[str], artifacts: list[tuple[str, bytes]]
) -> None:
    """A verdict without its results is an error that says what came instead; the run is over and not stopped."""
    service.artifacts = artifacts
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("farm-results-missing", ExitCode.VERIFY)
    assert error.why
    assert "StopRun" not in service.names()


def test_an_app_that_crashed(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """Its results are missing, and what the device's log tells of that comes with it."""
    service.run = {"result": "FAILED"}
    service.artifacts = [("DEVICE_LOG", b"I x: begins\nF libc: Fatal signal 6 (SIGABRT), code -6\nI x: ends\n")]
    error = failed(job(tmp_path), told)
    assert error.code == "farm-results-missing"
    assert error.why.endswith("\nF libc: Fatal signal 6 (SIGABRT), code -6")


def test_an_artifact_that_is_refused(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """An address whose signature has expired brings nothing back."""
    service.faults["fetch"] = [Reply(status=403)]
    assert failed(job(tmp_path), told).code == "farm-results-missing"


def test_the_network_is_lost_while_results_are_fetched(
    service: DeviceFarmService, tmp_path: Path, told: list[str]
) -> None:
    service.faults["fetch"] = [GONE, None]
    ran(tmp_path, told)
    service.faults["fetch"] = [GONE]
    service.statuses = ["COMPLETED"]
    given = job(tmp_path / "out")
    assert failed(given, told).code == "farm-unreachable"


def test_an_address_that_is_not_encrypted(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """Results are not fetched in a way that anybody can listen to."""
    service.meanwhile["ListArtifacts"] = lambda: setattr(service, "store", "ftp://127.0.0.1")
    error = failed(job(tmp_path), told)
    assert error.code == "farm-results-missing"
    assert "not encrypted" in error.why


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a\\b"])
def test_results_that_would_do_harm(service: DeviceFarmService, tmp_path: Path, told: list[str], name: str) -> None:
    """An archive whose names lead elsewhere is not unpacked."""
    service.artifacts = [("CUSTOMER_ARTIFACT", archive({"ok": b""}, name))]
    error = failed(job(tmp_path), told)
    assert (error.code, error.exit_code) == ("unsafe-archive", ExitCode.STORAGE)
    assert list(tmp_path.rglob("*evil*")) == []


@pytest.mark.parametrize(
    ("limit", "reference"),
    [
        ("LARGEST_RESULTS", "archive-too-large"),
        ("LARGEST_ARCHIVE", "farm-results-missing"),
    ],
)
def test_results_that_are_too_large(
    service: DeviceFarmService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, reference: str
) -> None:
    """What claims or sends more than is taken is refused."""
    monkeypatch.setattr(f"ortrim.devices.farms.farm.{limit}", 100)
    service.artifacts = [("CUSTOMER_ARTIFACT", archive({"a": b"0" * 101}))]
    error = failed(job(tmp_path), [])
    assert error.code == reference
    assert service.uploads == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_interrupted_stops_the_run(
    service: DeviceFarmService, tmp_path: Path, number: signal.Signals, told: list[str]
) -> None:
    service.statuses = ["RUNNING"]

    def tell(words: str) -> None:
        told.append(words)
        if words == "running":
            os.kill(os.getpid(), number)

    given = job(tmp_path)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        DeviceFarm(QUICK).run(given, tell)
    assert service.names()[-4:] == ["StopRun", "DeleteUpload", "DeleteUpload", "DeleteUpload"]
    assert service.uploads == {}
    assert not given.destination.exists()


def test_whoever_is_interrupted_at_the_beginning(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    """Ctrl-C before AWS has said which run it is leaves one that may go on: the user is told."""
    service.meanwhile["ScheduleRun"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, told)
    assert "it is not known whether the run was started: look at the project in AWS's console" in told
    assert service.uploads == {}


def test_a_thread_that_is_asked_to_stop(service: DeviceFarmService, tmp_path: Path, told: list[str]) -> None:
    service.statuses = ["RUNNING"]
    asked = threading.Event()

    def tell(words: str) -> None:
        if words == "running":
            asked.set()

    with stopped_by(asked), pytest.raises(KeyboardInterrupt):
        DeviceFarm(QUICK).run(job(tmp_path), tell)
    assert service.names()[-4:] == ["StopRun", "DeleteUpload", "DeleteUpload", "DeleteUpload"]


def test_a_destination_that_is_there(service: DeviceFarmService, tmp_path: Path) -> None:
    """What has the destination's name is found before the run costs anything, and left alone."""
    given = job(tmp_path)
    given.destination.mkdir(parents=True)
    assert refused(Diagnostic, DeviceFarm(QUICK).run, given, lambda _: None).code == "path-in-the-way"
    assert service.asked == []


def test_an_app_that_is_not_there(service: DeviceFarmService, tmp_path: Path) -> None:
    """A file that cannot be read is an error of the disk's, and what was announced is removed."""
    given = job(tmp_path)
    given.app.unlink()
    assert refused(Diagnostic, DeviceFarm(QUICK).run, given, lambda _: None).exit_code == ExitCode.STORAGE
    assert service.uploads == {}


def test_a_farm_tells_nothing_of_itself(service: DeviceFarmService) -> None:
    assert_no_secret(repr(DeviceFarm()) + str(vars(DeviceFarm())))
