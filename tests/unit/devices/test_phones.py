"""A phone on a Mac's cable: its app's project is made of the plan, and Xcode is left to who has one."""

from dataclasses import replace
from pathlib import Path

import pytest

from device_samples import sample_request
from fake_xcrun import FakeXcrun
from ortrim.devices import devicectl
from ortrim.devices.kinds import DeviceName
from ortrim.errors import VerifyError
from ortrim.planning.devices import open_device
from refusing import refused
from sample_plans import sample_plan

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
