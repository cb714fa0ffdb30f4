"""Firebase Test Lab with the real gcloud, from its command line to the files that come back, at a stand-in."""

import json
import re
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from firebase_service import BUCKET, CATALOGUE, TOKEN, Answer, Behaviour, FirebaseService, HangUp
from ortrim.base.command import stopped_by
from ortrim.devices.farms.farm import FarmJob, FarmRun
from ortrim.devices.farms.firebase import FirebaseFarm, Gcloud, find_gcloud
from ortrim.errors import Diagnostic, ExitCode

HEADERS: Final = frozenset({"Location", "Range"})


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: what its path held, its query, its body."""

    method: str
    words: tuple[str, ...]
    query: Mapping[str, str]
    content: bytes
    content_type: str
    content_range: str
    project: str


def _catalogue(service: FirebaseService, call: Call) -> Answer:
    project = call.query.get("projectId", "")
    refused = service.refusal(project, "catalogue") if project else None
    return refused or (200, CATALOGUE)


def _settings(service: FirebaseService, call: Call) -> Answer:
    return service.refusal(call.words[0], "settings") or (200, {"defaultBucket": BUCKET})


def _create(service: FirebaseService, call: Call) -> Answer:
    refused = service.refusal(call.words[0], "create")
    return refused or service.create(call.words[0], json.loads(call.content))


def _look(service: FirebaseService, call: Call) -> Answer:
    return service.look(call.words[1])


def _cancel(service: FirebaseService, call: Call) -> Answer:
    service.matrices[call.words[1]].cancelled = True
    return 200, {"testState": "RUNNING"}


def _execution(service: FirebaseService, call: Call) -> Answer:
    matrix = service.matrices[call.words[1]]
    return 200, {"executionId": call.words[1], "outcome": service.behaviour(matrix.project).outcome}


def _environments(service: FirebaseService, call: Call) -> Answer:
    return service.environments(call.words[1])


def _bucket(_service: FirebaseService, call: Call) -> Answer:
    return 200, {"kind": "storage#bucket", "name": call.words[0], "id": call.words[0], "location": "EU"}


def _insert(service: FirebaseService, call: Call) -> Answer:
    refused = service.refusal(call.project, "upload")
    if refused:
        return refused
    name = f"{call.words[0]}/{call.query.get('name', '')}"
    if call.query["uploadType"] == "resumable":
        number = str(len(service.uploads))
        service.uploads[number] = (name, call.project)
        return 200, {"Location": f"{service.address}/sessions/{number}"}
    boundary = re.search(r"boundary=[\"']?([^\"';]+)", call.content_type)
    assert boundary
    part = call.content.split(b"--" + boundary[1].encode())[2]
    service.objects[name] = part.split(b"\n\n" if b"\r\n\r\n" not in part else b"\r\n\r\n", 1)[1].rstrip(b"\r\n")
    return 200, service.object_message(name)


def _session(service: FirebaseService, call: Call) -> Answer:
    """Take one part of a file; `bytes 0-1048575/6291456` says which."""
    name, _ = service.uploads[call.words[0]]
    part = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", call.content_range)
    assert part
    first, last, size = (int(number) for number in part.groups())
    service.objects[name] = service.objects.get(name, b"")[:first] + call.content
    if last + 1 < size:
        return 308, {"Range": f"bytes=0-{last}"}
    return 200, service.object_message(name)


def _list(service: FirebaseService, call: Call) -> Answer:
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    items, folders = [], set()
    for name in sorted(service.objects):
        bucket, _, path = name.partition("/")
        if bucket != call.words[0] or not path.startswith(prefix):
            continue
        head, found, _ = path[len(prefix) :].partition(delimiter) if delimiter else (path, "", "")
        if found:
            folders.add(f"{prefix}{head}{delimiter}")
        else:
            items.append(service.object_message(name))
    return 200, {"kind": "storage#objects", "items": items, "prefixes": sorted(folders)}


def _object(service: FirebaseService, call: Call) -> Answer:
    name = f"{call.words[0]}/{unquote(call.words[1])}"
    if name not in service.objects:
        return 404, {"error": {"code": 404, "message": f"No such object: {name}"}}
    if call.method == "DELETE":
        del service.objects[name]
        return 204, b""
    content = service.objects[name]
    refused = service.refusal(call.project, "download") if call.project else None
    return refused or (200, content if call.query.get("alt") == "media" else service.object_message(name))


ROUTES: Final[tuple[tuple[str, Callable[[FirebaseService, Call], Answer]], ...]] = (
    (r"GET /v1/testEnvironmentCatalog/ANDROID", _catalogue),
    (r"POST /toolresults/v1beta3/projects/([^/]+):initializeSettings", _settings),
    (r"POST /v1/projects/([^/]+)/testMatrices", _create),
    (r"GET /v1/projects/([^/]+)/testMatrices/([^/:]+)", _look),
    (r"POST /v1/projects/([^/]+)/testMatrices/([^/:]+):cancel", _cancel),
    (r"GET /toolresults/v1beta3/projects/([^/]+)/histories/bh.1/executions/([^/]+)", _execution),
    (r"GET /toolresults/v1beta3/projects/([^/]+)/histories/bh.1/executions/([^/]+)/environments", _environments),
    (r"GET /storage/v1/b/([^/]+)", _bucket),
    (r"POST (?:/resumable)?/upload/storage/v1/b/([^/]+)/o", _insert),
    (r"PUT /sessions/(\d+)", _session),
    (r"GET /storage/v1/b/([^/]+)/o", _list),
    (r"(?:GET|DELETE) (?:/download)?/storage/v1/b/([^/]+)/o/(.+)", _object),
)


class FirebaseServer(ThreadingHTTPServer):
    """The service of all projects, on one port of the loopback; `close` ends it."""

    daemon_threads = True

    def __init__(self, service: FirebaseService) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service
        service.address = f"http://127.0.0.1:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def _project_of(text: str) -> str:
    """Return whose object it is: Cloud Storage is not told, but the folder's name has it in these tests."""
    found = re.search(r"/?([\w-]+)-[0-9a-f]{32}/", text)
    return found[1] if found else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FirebaseServer

    def _answer(self) -> None:
        address = urlsplit(self.path)
        self.server.service.asked.append(f"{self.command} {address.path}")
        try:
            code, body = self._result(address.path, address.query)
        except HangUp:
            linger = struct.pack("ii", 1, 0)  # a reset, as from a network that is gone
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            return
        self._send(code, body)

    def _result(self, path: str, query: str) -> Answer:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            echo = f"Request had invalid authentication credentials: {self.headers.get('Authorization')}"
            return 401, {"error": {"code": 401, "message": echo, "status": "UNAUTHENTICATED"}}
        for pattern, answer in ROUTES:
            match = re.fullmatch(pattern, f"{self.command} {path}")
            if match:
                return self._answered(answer, self._call(match.groups(), query, content))
        return 404, {"error": {"code": 404, "message": f"nothing here: {self.command} {path}"}}

    def _answered(self, answer: Callable[[FirebaseService, Call], Answer], call: Call) -> Answer:
        try:
            return answer(self.server.service, call)
        except (AssertionError, LookupError, ValueError) as error:  # our own: gcloud would try again for minutes
            return 400, {"error": {"code": 400, "message": f"the stand-in cannot answer: {error!r}"}}

    def _call(self, words: tuple[str, ...], query: str, content: bytes) -> Call:
        single = {key: values[0] for key, values in parse_qs(query).items()}
        return Call(
            method=self.command,
            words=words,
            query=single,
            content=content,
            content_type=self.headers.get("Content-Type") or "",
            content_range=self.headers.get("Content-Range") or "",
            project=_project_of(unquote(urlsplit(self.path).path) + "/" + single.get("name", "")),
        )

    def _send(self, code: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name in HEADERS.intersection(body if isinstance(body, dict) else ()):
            self.send_header(name, body[name])
        self.send_header("Content-Type", "application/octet-stream" if body is content else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - as http.server calls them

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as http.server calls it
        """Say nothing."""


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
