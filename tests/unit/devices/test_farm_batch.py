"""A device of a farm: all runs in one go, and then what each ended with, as any other device would say it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device_samples import GOOD, REPORT, sample_request
from failing_runs import error_of, output_of
from harness_farm import DEVICE, PHONE, URL, FakeFarm, Work, carry_out, write_results
from ortrim.devices.device import Outcome
from ortrim.devices.farms.farm import INSTALL_SECONDS, FarmDevice
from ortrim.devices.harness import MOST_SECONDS, HarnessContent
from ortrim.errors import NetworkError, VerifyError
from ortrim.parity.runner import RunRequest
from refusing import refused

PHYSICAL_MINUTES = 45
"""The longest run on a phone of Test Lab's, as `gcloud firebase test android run --help` has it; the least of all."""
WHERE = f"firebase:Pixel8-34 ({DEVICE}, {URL})"
ENDED = {"how": "exit", "code": 0, "stdout": REPORT, "stderr": "", "seconds": 1.0, "thermal": 0}


def device_on(farm: FakeFarm, folder: Path) -> FarmDevice:
    return FarmDevice(farm=farm, device="Pixel8-34", make_apks=farm.make_apks, folder=folder / "farm")


def ended(tmp_path: Path, work: Work, *requests: RunRequest) -> tuple[FarmDevice, list[Outcome]]:
    """Run these requests on a phone, and return it with what each ended with."""
    device = device_on(FakeFarm(work), tmp_path)
    return device, list(device.run_all(requests))


def run(tmp_path: Path, work: Work, request: RunRequest) -> Outcome:
    return ended(tmp_path, work, request)[1][0]


def leaving(*runs: dict[str, Any], **changes: Any) -> Work:
    def work(content: HarnessContent, folder: Path) -> None:
        write_results(folder, content, runs=list(runs), **changes)

    return work


def test_equal_requests_have_each_its_own_end(tmp_path: Path) -> None:
    """Whatever is asked between them, as rounds of two libraries are."""
    one, other = (sample_request(tmp_path / name, f"{GOOD}\n# {name}") for name in ("one", "other"))
    other = replace(other, runner=one.runner)
    (tmp_path / "other" / "libonnxruntime.so").write_bytes(b"another library")
    reports = [REPORT.replace('"1.21.0"', f'"{number}"') for number in range(4)]
    _, outcomes = ended(tmp_path, leaving(*(ENDED | {"stdout": text} for text in reports)), one, other, other, one)
    assert [output_of(each).runtime_version for each in outcomes] == ["0", "1", "2", "3"]


def test_what_the_farm_is_asked_for(tmp_path: Path) -> None:
    """One job, with the app that carries the requests, where farms look for results, and a limit."""
    farm = FakeFarm(carry_out)
    device = device_on(farm, tmp_path)
    list(device.run_all((sample_request(tmp_path / "files"),)))
    (job,) = farm.jobs
    assert (job.app, job.test, job.device) == (Path("app.apk"), Path("test.apk"), "Pixel8-34")
    assert (job.results, job.destination) == ("/sdcard/Download/ortrim", tmp_path / "farm")
    assert job.timeout_seconds == 600
    assert len(json.loads(farm.contents[0].requests)["runs"]) == 1


def test_the_device_that_ran_it_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    farm = FakeFarm(carry_out)
    device = FarmDevice(
        farm=farm, device="voice/phones", make_apks=farm.make_apks, folder=tmp_path / "farm", tell=told.append
    )
    list(device.run_all((sample_request(tmp_path / "files"),)))
    assert told == ["running", f"it ran on {DEVICE}"]


def test_an_app_that_died_before_it_wrote_results(tmp_path: Path) -> None:
    """The device's log says of what."""

    def work(_content: HarnessContent, folder: Path) -> None:
        (folder / "half.npy").write_bytes(b"")
        (tmp_path / "device.log").write_text("I x: begins\nF libc: Fatal signal 11 (SIGSEGV)\n")

    farm = FakeFarm(work)
    farm.log = tmp_path / "device.log"
    error = refused(VerifyError, list, device_on(farm, tmp_path).run_all((sample_request(tmp_path / "files"),)))
    assert (error.code, error.where) == ("farm-results-missing", WHERE)
    assert error.why == "F libc: Fatal signal 11 (SIGSEGV)"


def test_the_longest_job_is_well_within_what_farms_allow() -> None:
    """With minutes to spare for what a farm counts besides: a job that a farm ends has no results at all."""
    longest = MOST_SECONDS + INSTALL_SECONDS
    assert longest <= (PHYSICAL_MINUTES - 5) * 60


@pytest.mark.parametrize(
    ("end", "reference"),
    [
        ({"how": "endless", "code": 137}, "endless-output"),
        ({"how": "not-started", "code": -1, "stderr": "error=13, Permission denied"}, "runner-not-startable"),
        ({"code": 126, "stderr": "sh: cannot execute binary file"}, "runner-not-startable"),
        ({"code": 127, "stderr": "sh: \x7fELF: not found"}, "runner-not-startable"),
        ({"how": "timeout", "code": 137, "seconds": 20.0}, "runner-timeout"),
        ({"how": "timeout", "code": 137, "seconds": 3.0}, "farm-run-missing"),
    ],
)
def test_a_run_that_the_app_did_not_leave_to_its_end(tmp_path: Path, end: dict[str, Any], reference: str) -> None:
    """A limit that was not the run's own was that of all runs together."""
    request = sample_request(tmp_path / "files")
    assert error_of(run(tmp_path, leaving(ENDED | end), request)).code == reference


def test_an_emulators_times_mean_nothing(tmp_path: Path) -> None:
    facts = PHONE | {"properties": PHONE["properties"].replace("shiba", "ranchu")}
    device, _ = ended(tmp_path, leaving(facts=facts, facts_after=facts))
    assert (device.time_meaningful, device.heat, device.facts().kind) == (False, "", "emulator")


def test_what_came_back_before_is_replaced(tmp_path: Path) -> None:
    """Farms bring results into a folder that is not there yet."""
    request = sample_request(tmp_path / "files")
    for _ in range(2):
        assert output_of(run(tmp_path, carry_out, request)).status == "ok"
        (tmp_path / "farm" / "left").write_bytes(b"")


def test_what_the_farm_says_comes_through(tmp_path: Path) -> None:
    """Nothing is made of it, and nothing is left."""

    def unreachable(content: HarnessContent, folder: Path) -> None:
        raise NetworkError("farm-unreachable", "no answer")

    device = device_on(FakeFarm(unreachable), tmp_path)
    with pytest.raises(NetworkError):
        list(device.run_all((sample_request(tmp_path / "files"),)))
    assert not (tmp_path / "farm").exists()


Spoil = Callable[[Path, Path], None]


def output_is_a_link(run: Path, secret: Path) -> None:
    (run / "outputs" / "only" / "output_000.npy").unlink()
    (run / "outputs" / "only" / "output_000.npy").symlink_to(secret)


def outputs_are_a_link(run: Path, secret: Path) -> None:
    (run / "outputs").rename(run / "moved")
    (run / "outputs").symlink_to(secret.parent)


def run_is_a_link(run: Path, secret: Path) -> None:
    run.rename(run.with_name("moved"))
    run.symlink_to(secret.parent)


def report_is_a_link(run: Path, secret: Path) -> None:
    (run / "report.json").unlink()
    (run / "report.json").symlink_to(secret)


@pytest.mark.parametrize(
    ("spoil", "reference"),
    [
        (output_is_a_link, ""),
        (outputs_are_a_link, ""),
        (run_is_a_link, "runner-garbage"),
        (report_is_a_link, "runner-garbage"),
    ],
)
def test_links_lead_nowhere(tmp_path: Path, spoil: Spoil, reference: str) -> None:
    """Nothing of this machine is taken for what a device sent."""
    secret = tmp_path / "secrets" / "key.npy"
    secret.parent.mkdir()
    secret.write_bytes(b"secret")

    def work(content: HarnessContent, folder: Path) -> None:
        carry_out(content, folder)
        spoil(folder / "runs" / "000", secret)

    outputs = tmp_path / "outputs"
    outputs.mkdir()
    request = replace(sample_request(tmp_path / "files"), outputs=outputs)
    outcome = run(tmp_path, work, request)
    assert (outcome.code if isinstance(outcome, VerifyError) else "") == reference
    left = [path for path in outputs.rglob("*") if not path.is_dir() or path.is_symlink()]
    assert [path for path in left if path.is_symlink() or path.read_bytes() == b"secret"] == []


@pytest.mark.parametrize("name", ["../../secrets/key.npy", "/etc/passwd", "..", "a/b.npy"])
def test_names_of_outputs_lead_nowhere(tmp_path: Path, name: str) -> None:
    saved = json.dumps([{"name": "y", "element_type": "float32", "shape": [1], "file": name}])
    report = REPORT.replace('"outputs":[]', f'"outputs":{saved}')
    request = sample_request(tmp_path / "files")
    error = error_of(run(tmp_path, leaving(ENDED | {"stdout": report}), request))
    assert error.code == "runner-garbage"
    assert "has a path for its name" in error.why


def test_a_report_without_an_end(tmp_path: Path) -> None:

    def work(content: HarnessContent, folder: Path) -> None:
        carry_out(content, folder)
        with (folder / "runs" / "000" / "report.json").open("r+b") as file:
            file.truncate((64 << 20) + 1)

    request = sample_request(tmp_path / "files")
    assert error_of(run(tmp_path, work, request)).code == "endless-output"
