"""A job from its beginning to its end, with a gcloud that answers as the recorded one did."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_log import encode
from ortrim.base.command import Completed
from ortrim.devices.farms.farm import FarmJob
from ortrim.devices.farms.firebase import FirebaseFarm, Gcloud, gcloud_error, said
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError, ToolError, VerifyError
from recorded_gcloud import recorded
from zips import zipped

AXIS = "MediumPhone.arm-34-en-portrait"
RESULTS = "artifacts/sdcard/Download/ortrim"
NOTHING = Completed(argv=(), returncode=0, stdout="", stderr="")


@dataclass(frozen=True, kw_only=True)
class FakeGcloud(Gcloud):
    """gcloud, with a bucket that holds `files` for the device, and a test that ends as `ends`."""

    files: dict[str, bytes] = field(default_factory=dict)
    ends: str = "passed"
    answers: dict[str, Callable[[], Completed]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:  # noqa: ARG002 - as it is there
        texts = [str(word) for word in words]
        self.asked.append(" ".join(texts))
        command = texts[1] if texts[0] == "storage" else texts[3]
        if command in self.answers:
            return self.answers[command]()
        if command == "ls":
            return self._listed(texts[-1])
        if command == "cp":
            self._copy(texts)
        return NOTHING

    def watch(self, *words: str | Path, on_output: Callable[[str], None], check: Callable[[], None]) -> Completed:
        self.asked.append(" ".join(map(str, words)))
        if "run" in self.answers:
            return self.answers["run"]()
        done = recorded(self.ends)
        for line in done.stderr.splitlines():
            on_output(line)
            check()
        return done

    def _listed(self, pattern: str) -> Completed:
        if not self.files:
            return recorded("objects-none")
        prefix = pattern.removeprefix("gs://").removesuffix("**").partition("/")[2]
        entries = [
            {"type": "cloud_object", "metadata": {"name": f"{prefix}{name}", "size": str(len(content))}}
            for name, content in self.files.items()
        ]
        return replace(NOTHING, stdout=json.dumps([*entries, {"type": "prefix"}]))

    def _copy(self, words: list[str]) -> None:
        target = Path(words[-1])
        for source in words[3:-1]:
            wanted = source.partition(f"{AXIS}/")[2]
            for name, content in self.files.items():
                if name == wanted or name.startswith(f"{wanted}/"):
                    path = target / Path(wanted).name / name.removeprefix(wanted).lstrip("/")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)


@pytest.fixture
def job(tmp_path: Path) -> FarmJob:
    for folder in ("app", "test"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "debug.apk").write_bytes(b"PK")
    return FarmJob(
        name="kws, the demo",
        app=tmp_path / "app" / "debug.apk",
        test=tmp_path / "test" / "debug.apk",
        device="MediumPhone.arm-34",
        results="/sdcard/Download/ortrim",
        destination=tmp_path / "there",
    )


def fake(bucket: str = "", **values: Any) -> FakeGcloud:
    environment = {"ORTRIM_FIREBASE_BUCKET": bucket} if bucket else {}
    return FakeGcloud(path=Path("gcloud"), environment=environment, **values)


FILES = {"logcat": b"a log", f"{RESULTS}/results.json": b"{}", f"{RESULTS}/runs/000/x.bin": b"123"}


def refused(gcloud: FakeGcloud, job: FarmJob) -> Diagnostic:
    """Return what a job is refused with; nothing is left where its results were to go."""
    with pytest.raises(Diagnostic) as caught:
        FirebaseFarm(gcloud=gcloud).run(job, lambda _: None)
    assert not job.destination.exists()
    return caught.value


@pytest.mark.parametrize("ends", ["passed", "invalid"])
def test_packages_are_removed_from_a_bucket_that_costs(job: FarmJob, ends: str) -> None:
    """Whatever became of the test; they have names of their own there."""
    gcloud = fake("gs://ours/", files=FILES, ends=ends)
    farm = FirebaseFarm(gcloud=gcloud)
    if ends == "passed":
        farm.run(job, lambda _: None)
    else:
        refused(gcloud, job)
    (removal,) = (asked for asked in gcloud.asked if asked.startswith("storage rm"))
    app, test = removal.split()[2:]
    assert app.startswith("gs://ours/kws-the-demo-")
    assert (app.rpartition("/")[2], test.rpartition("/")[2]) == ("app.apk", "test.apk")


def test_packages_that_cannot_be_removed_are_reported(job: FarmJob) -> None:
    """The run counts all the same."""
    told: list[str] = []
    gcloud = fake("ours", files=FILES, answers={"rm": lambda: recorded("upload-forbidden")})
    FirebaseFarm(gcloud=gcloud).run(job, told.append)
    assert any(text.startswith("what was uploaded stays at gs://ours/kws-the-demo-") for text in told)


def test_packages_that_never_arrived(job: FarmJob) -> None:
    """There is nothing to remove, and nothing to tell."""
    told: list[str] = []
    gcloud = fake("ours", files=FILES, answers={"rm": lambda: recorded("objects-none")})
    FirebaseFarm(gcloud=gcloud).run(job, told.append)
    assert not any("stays" in text for text in told)


def test_every_run_has_a_folder_of_its_own(job: FarmJob) -> None:
    folders = set()
    for number in range(2):
        gcloud = fake(files=FILES)
        FirebaseFarm(gcloud=gcloud).run(replace(job, destination=job.destination / str(number)), lambda _: None)
        folders.add(next(word for word in gcloud.asked[0].split() if word.startswith("--results-dir=")))
    assert len(folders) == 2


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "there is nothing at gs://test-lab-0a1b2c/kws-the-demo-"),
        ({"logcat": b"", "test_result_1.xml": b""}, "there is: logcat, test_result_1.xml"),
        ({f"{RESULTS}/../../../x": b""}, "leads elsewhere"),
        ({f"{RESULTS}//x": b""}, "leads elsewhere"),
    ],
)
def test_results_that_are_missing(job: FarmJob, files: dict[str, bytes], why: str) -> None:
    error = refused(fake(files=files), job)
    assert (error.code, error.exit_code) == ("farm-results-missing", ExitCode.VERIFY)
    assert why in error.why


def test_results_that_came_in_the_log_alone(job: FarmJob) -> None:
    """The app could not write where Test Lab reads."""
    log = "\n".join(f"11-21 I/ortrim: {line}" for line in encode(zipped({"results.json": "{}"}))).encode()
    run = FirebaseFarm(gcloud=fake(files={"logcat": log})).run(job, lambda _: None)
    assert (run.folder / "results.json").read_bytes() == b"{}"


@pytest.mark.parametrize("printed", ["", "null", "[1]", '[{"type": "cloud_object"}]'])
def test_a_list_of_files_that_is_none(job: FarmJob, printed: str) -> None:
    assert refused(fake(answers={"ls": lambda: replace(NOTHING, stdout=printed)}), job).code == "farm-failed"


def test_a_list_of_files_that_is_refused(job: FarmJob) -> None:
    """Which is not to say that there are none."""
    assert refused(fake(files=FILES, answers={"ls": lambda: recorded("no-account")}), job).code == "farm-credentials"


def test_more_than_is_fetched(job: FarmJob) -> None:
    """A device may have written anything."""

    def listed() -> Completed:
        folder = re.search(r"--results-dir=(\S+)", gcloud.asked[0])
        assert folder
        metadata = {"name": f"{folder[1]}/{AXIS}/{RESULTS}/x", "size": str(1 << 40)}
        return replace(NOTHING, stdout=json.dumps([{"type": "cloud_object", "metadata": metadata}]))

    gcloud = fake(answers={"ls": listed})
    error = refused(gcloud, job)
    assert error.code == "farm-results-missing"
    assert "more than" in error.why


@pytest.mark.parametrize("command", ["ls", "cp"])
def test_results_that_cannot_be_fetched(job: FarmJob, command: str) -> None:
    """They are still there, and where that is is said."""
    error = refused(fake(files=FILES, answers={command: lambda: recorded("catalogue-lost")}), job)
    assert (error.code, error.exit_code) == ("farm-unreachable", ExitCode.NETWORK)
    assert "gcloud storage cp --recursive gs://test-lab-0a1b2c/kws-the-demo-" in error.hint


@pytest.mark.parametrize(("code", "told"), [("tool-timeout", "farm-unreachable"), ("tool-endless", "tool-endless")])
def test_a_command_without_an_end_means_that_the_network_is_gone(job: FarmJob, code: str, told: str) -> None:
    def stopped() -> Completed:
        raise ToolError(code, "did not end within 420 seconds and was stopped")

    assert refused(fake(answers={"ls": stopped}), job).code == told


@pytest.mark.parametrize("missing", ["app", "test"])
def test_packages_that_are_not_there(job: FarmJob, missing: str) -> None:
    gcloud = fake()
    (job.app if missing == "app" else job.test).unlink()
    assert refused(gcloud, job).exit_code == ExitCode.STORAGE
    assert gcloud.asked == []


def test_a_destination_that_is_there(job: FarmJob) -> None:
    """Its files would be taken for those of this run."""
    job.destination.mkdir()
    with pytest.raises(Diagnostic) as caught:
        FirebaseFarm(gcloud=fake()).run(job, lambda _: None)
    assert caught.value.code == "path-in-the-way"
    assert list(job.destination.iterdir()) == []


def test_an_interrupted_run_removes_what_costs(job: FarmJob) -> None:
    """And leaves nothing here."""

    def interrupt() -> Completed:
        raise KeyboardInterrupt

    gcloud = fake("ours", answers={"run": interrupt})
    with pytest.raises(KeyboardInterrupt):
        FirebaseFarm(gcloud=gcloud).run(job, lambda _: None)
    assert gcloud.asked[-1].startswith("storage rm gs://ours/")
    assert not job.destination.exists()


def test_a_device_without_a_version(job: FarmJob) -> None:
    gcloud = fake()
    error = refused(gcloud, replace(job, device="redfin"))
    assert isinstance(error, VerifyError)
    assert (error.code, error.where, gcloud.asked) == ("farm-device-unknown", "firebase:redfin", [])


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
    error = gcloud_error(printed, WHERE)
    assert error.code
    assert len(error.why.split("\n")) <= 4
