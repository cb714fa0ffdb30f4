"""Phones on a Mac's cable, with a stand-in for `xcrun` and for the app."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from device_samples import REPORT, sample_request
from failing_runs import error_of, output_of
from fake_xcrun import FakeXcrun
from ortrim.devices import devicectl
from ortrim.devices.device import Outcome
from ortrim.devices.devicectl import PhoneDevice, open_phone
from ortrim.devices.harness import HarnessContent, PhoneApp
from ortrim.devices.kinds import DeviceName
from ortrim.errors import Diagnostic, ExitCode, VerifyError
from ortrim.parity.runner import RunRequest
from ortrim.planning.devices import open_device
from refusing import refused
from sample_plans import sample_plan

DATA = Path(__file__).parent / "data" / "devicectl"
IDENTIFIER = "6986451F-0000-48DE-A70E-45E06E1F1446"
APP = "ortrim.harness.TEAM"
END = {
    "schema": "ortrim-end/1", "code": 0, "problem": "", "seconds": 1.5, "thermal": 0, "cores": 6,
    "memory_bytes": 5_900_000_000, "page_bytes": 16384,
}  # fmt: skip


class Phone:
    """A phone whose app leaves what it is told to leave; `place` is where its folder lies until it is copied."""

    def __init__(self, folder: Path, **answers: str) -> None:
        self.left = folder / "left"
        self.left.mkdir(parents=True)
        self.content: list[HarnessContent] = []
        copy = (
            f"while [ $# -gt 0 ]; do [ $1 = --destination ] && to=$2; shift; done; cp -R '{self.left}' \"$to/ortrim-1\""
        )
        self.mac = FakeXcrun(
            folder / "mac",
            {
                '*"list devices"*': f"cp '{DATA}/list.json' \"$document\"",
                '*"install app"*': answers.get("install", ":"),
                '*"process launch"*': answers.get("launch", "echo Launched application with ortrim.harness.TEAM"),
                '*"copy from"*': answers.get("copy", copy),
                '*"uninstall app"*': ":",
            },
        )

    def leaves(self, **files: str) -> "Phone":
        for name, text in files.items():
            path = self.left / {"end": "end.json", "report": "report.json", "stderr": "stderr.txt"}.get(name, name)
            path.write_text(text)
        return self

    def outputs(self, content: bytes) -> None:
        (self.left / "outputs" / "only").mkdir(parents=True)
        (self.left / "outputs" / "only" / "output_000.npy").write_bytes(content)

    def opened(self, name: str = "") -> PhoneDevice:
        return open_phone(name, self._app, xcrun=self.mac.xcrun)

    def ends(self, *requests: RunRequest) -> tuple[PhoneDevice, list[Outcome]]:
        """Run these requests on it, and return it with what each ended with."""
        device = self.opened()
        return device, list(device.run_all(requests))

    def error(self, request: RunRequest) -> VerifyError:
        return error_of(self.ends(request)[1][0])

    def _app(self, content: HarnessContent) -> PhoneApp:
        self.content.append(content)
        return PhoneApp(path=Path("/x/Harness.app"), identifier=APP)


def end(**changes: object) -> str:
    return json.dumps({**END, **changes})


def test_a_run_comes_back_whole_and_the_app_is_removed(tmp_path: Path) -> None:
    """It is installed once, launched by the request's number, its folder copied, and in the end uninstalled."""
    phone = Phone(tmp_path / "phone").leaves(end=end(), report=REPORT)
    phone.outputs(b"an output")
    request = dataclasses.replace(sample_request(tmp_path), outputs=tmp_path / "outputs")
    (tmp_path / "outputs").mkdir()
    device, (outcome,) = phone.ends(request)
    assert output_of(outcome).cases[0].name == "only"
    device.close()
    device.close()
    assert (tmp_path / "outputs" / "only" / "output_000.npy").read_bytes() == b"an output"
    listed, install, launch, copy, uninstall = phone.mac.calls
    assert listed == "devicectl list devices"
    assert install == f"devicectl device install app --device {IDENTIFIER} /x/Harness.app"
    assert launch.startswith(
        f"devicectl device process launch --device {IDENTIFIER} --console --terminate-existing --environment-variables "
    )
    nonce = json.loads(launch[launch.index("{") : launch.index("}") + 1])
    assert nonce["ORTRIM_RUN"] == "0"
    assert launch.endswith(f"}} {APP}")
    assert copy.startswith(
        f"devicectl device copy from --device {IDENTIFIER} --domain-type appDataContainer --domain-identifier {APP} "
        f"--source Documents/ortrim-{nonce['ORTRIM_NONCE']} --destination "
    )
    assert uninstall == f"devicectl device uninstall app --device {IDENTIFIER} {APP}"


def test_the_phone_is_described_by_the_list_and_by_the_app(tmp_path: Path) -> None:
    """Its numbers are a phone's own."""
    phone = Phone(tmp_path / "phone").leaves(end=end(thermal=1), report=REPORT)
    request = sample_request(tmp_path)
    untouched = phone.opened().facts()
    assert (untouched.cores, untouched.page_bytes) == (1, None)
    device, _ = phone.ends(request)
    facts = device.facts()
    assert (device.name, facts.kind, facts.model) == ("devicectl:Jo's iPhone", "physical", "iPhone 14 Pro (iPhone15,2)")
    assert (facts.cores, facts.memory_bytes, facts.page_bytes) == (6, 5_900_000_000, 16384)
    assert (facts.os_version, facts.thermal_before, facts.thermal_after) == ("iOS 18.4.1", 1, 1)
    assert (facts.memory_meaningful, facts.time_meaningful, device.heat) == (True, True, "")


def test_times_of_a_hot_phone_are_marked(tmp_path: Path) -> None:
    """From "serious" on iOS takes performance away."""
    phone = Phone(tmp_path / "phone").leaves(end=end(thermal=2), report=REPORT)
    request = sample_request(tmp_path)
    device, _ = phone.ends(request)
    assert (device.time_meaningful, device.facts().time_meaningful) == (False, False)
    assert "severe" in device.heat


@pytest.mark.parametrize(
    ("files", "launch", "reference"),
    [
        ({"end": end(code=4), "report": '{"message": "no such operator"}'}, ":", "model-refused"),
        ({"end": end(code=0), "report": "nonsense"}, ":", "runner-garbage"),
        ({"end": end(code=0)}, ":", "runner-garbage"),
        ({"end": end(code=-1, problem="the app has no such request")}, ":", "runner-not-startable"),
        ({"stderr": "runner: load x"}, "echo 'App terminated due to signal 6.'", "runner-crashed"),
        ({"stderr": "runner: load x"}, "echo 'App terminated due to signal 4.'", "illegal-instruction"),
        ({"stderr": "runner: load x"}, "echo 'App terminated due to signal 9.'; exit 1", "runner-crashed"),
        ({"end": '{"schema": "ortrim-end/2"}'}, ":", "phone-trouble"),
        ({"end": "[" * 2000}, ":", "phone-trouble"),
        ({}, ":", "phone-trouble"),
    ],
)
def test_runs_that_end_badly(tmp_path: Path, files: dict[str, str], launch: str, reference: str) -> None:
    """Each end has its own diagnostic, whatever devicectl itself ends with."""
    phone = Phone(tmp_path / "phone", launch=launch).leaves(**files)
    request = sample_request(tmp_path)
    assert phone.error(request).code == reference


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        *(("locked", "device-locked"), ("not-trusted", "app-not-trusted"), ("lost", "device-lost")),
        ("xcode15", "xcode-too-old"),
    ],
)
def test_an_app_that_is_not_launched(tmp_path: Path, answer: str, reference: str) -> None:
    """The phone's owner is told what to do."""
    launch = f"cat '{DATA}/{answer}.txt' >&2; exit 1"
    phone = Phone(tmp_path / "phone", launch=launch, copy="exit 1")
    request = sample_request(tmp_path)
    error = phone.error(request)
    assert (error.code, error.where) == (reference, "devicectl:Jo's iPhone")
    assert error.hint


def test_a_document_tells_what_was_not_printed(tmp_path: Path) -> None:
    """Newer versions write into the document alone that a phone is not there."""
    launch = f"cp '{DATA}/device-unknown.json' \"$document\"; exit 1"
    request = sample_request(tmp_path)
    phone = Phone(tmp_path / "phone", launch=launch, copy="exit 1")
    assert phone.error(request).code == "device-lost"


def test_an_app_that_the_phone_does_not_take(tmp_path: Path) -> None:
    """Nothing is run then, and what may have been installed is removed."""
    phone = Phone(tmp_path / "phone", install=f"cat '{DATA}/not-installed.txt' >&2; exit 1")
    device = phone.opened()
    error = refused(VerifyError, list, device.run_all((sample_request(tmp_path),)))
    assert (error.code, error.exit_code) == ("app-refused", ExitCode.VERIFY)
    device.close()
    assert "uninstall app" in phone.mac.calls[-1]


def test_a_run_without_an_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With devicectl ends the app that it started."""
    monkeypatch.setattr("ortrim.devices.devicectl.START_SECONDS", 0.0)
    phone = Phone(tmp_path / "phone", launch="exec sleep 600")
    request = sample_request(tmp_path, seconds=0.3)
    assert phone.error(request).code == "runner-timeout"


def test_a_phone_that_answers_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy without an end means that the phone is lost."""
    monkeypatch.setattr("ortrim.devices.devicectl.COPY_SECONDS", 0.3)
    phone = Phone(tmp_path / "phone", copy="exec sleep 600")
    request = sample_request(tmp_path)
    assert phone.error(request).code == "device-lost"


def test_links_from_a_phone_are_not_followed(tmp_path: Path) -> None:
    phone = Phone(tmp_path / "phone")
    (tmp_path / "secret").write_text(end())
    (phone.left / "end.json").symlink_to(tmp_path / "secret")
    request = sample_request(tmp_path)
    assert phone.error(request).code == "phone-trouble"


def test_each_run_is_started_by_its_number(tmp_path: Path) -> None:
    """In their order, whether or not the one before ended well."""
    phone = Phone(tmp_path / "phone", launch="exit 1")
    request = sample_request(tmp_path)
    assert len(phone.ends(request, request)[1]) == 2
    launched = [call for call in phone.mac.calls if "process launch" in call]
    assert [json.loads(each[each.index("{") : each.index("}") + 1])["ORTRIM_RUN"] for each in launched] == ["0", "1"]


@pytest.mark.parametrize("fault", ["echo no >&2; exit 1", "exit 0"])
def test_a_list_that_does_not_come(tmp_path: Path, fault: str) -> None:
    mac = FakeXcrun(tmp_path / "mac", {"*": fault})

    def never(_content: HarnessContent) -> PhoneApp:
        raise AssertionError

    assert refused(Diagnostic, open_phone, "", never, xcrun=mac.xcrun).code == "phone-trouble"


def contents(make: Callable[[Path], RunRequest], folder: Path) -> HarnessContent:
    phone = Phone(folder / "phone")
    phone.ends(make(folder))
    return phone.content[0]


def test_the_app_carries_the_library_and_what_is_read(tmp_path: Path) -> None:
    """Neither the runner, which is compiled into the app, nor anything of this machine's paths."""
    content = contents(sample_request, tmp_path)
    document = json.loads(content.requests)
    (name,) = content.libraries
    assert name.startswith("libortrim_")
    assert name.endswith(".dylib")
    (run,) = document["runs"]
    words = run["words"]
    assert words[words.index("--library") + 1] == f"/@native/{name}"
    assert words[-2:] == ["--json", "/@run/report.json"]
    assert str(tmp_path) not in content.requests
    names = {Path(each["path"]).name for each in document["contents"]}
    assert names == {"model.ort", "input_000.npy"}
    assert set(content.assets) == {each["asset"] for each in document["contents"]}


def test_a_static_library_becomes_a_part_of_the_app(tmp_path: Path) -> None:
    """The runner is told of it by an ending that means what it was linked with."""

    def static(folder: Path) -> RunRequest:
        request = sample_request(folder)
        return dataclasses.replace(request, library=request.library.rename(folder / "libonnxruntime.a"))

    content = contents(static, tmp_path)
    words = json.loads(content.requests)["runs"][0]["words"]
    assert list(content.libraries) == ["libortrim.a"]
    assert words[words.index("--library") + 1] == "/@files/library.a"


LIST = Path(__file__).parent / "data" / "devicectl" / "list.json"


@pytest.mark.parametrize("library", ["libonnxruntime.dylib", "libonnxruntime.a"])
def test_without_an_app_its_project_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """For the plan's own deployment target, with the runtime's headers; the error names the folder and the command."""
    mac = FakeXcrun(tmp_path / "mac", {'*"list devices"*': f"cp '{LIST}' \"$document\""})
    monkeypatch.setattr(devicectl, "find_xcrun", lambda _tool: mac.xcrun)
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "onnxruntime_c_api.h").write_text("/* the API */\n")
    job = sample_plan("ios-arm64").targets[0].job
    request = sample_request(tmp_path)
    request = replace(request, library=request.library.rename(tmp_path / library))
    name = DeviceName(kind="devicectl")
    device = open_device(job.target, name, job=job, headers=tmp_path / "headers", folder=tmp_path / "target")
    error = refused(VerifyError, next, device.run_all((request,)))
    device.close()
    harness = tmp_path / "target" / "harness"
    assert (error.code, error.where) == ("phone-app-missing", str(harness))
    project = (harness / "Harness.xcodeproj" / "project.pbxproj").read_text()
    assert job.apple is not None
    assert f"IPHONEOS_DEPLOYMENT_TARGET = {job.apple.deployment_target};" in project
    assert ("ORTRIM_LINKED" in project) is library.endswith(".a")
    assert (harness / "Harness" / "include" / "onnxruntime_c_api.h").is_file()
    assert len(mac.calls) == 1
