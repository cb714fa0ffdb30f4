"""All devices of a target together: who runs when, and what the failure of one leaves the others."""

import hashlib
import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from android_samples import RUNTIME, sample
from ortrim.base.json import from_json, to_json
from ortrim.buildspec.buildspec import Budgets
from ortrim.devices.device import Device
from ortrim.devices.kinds import DeviceName
from ortrim.errors import Diagnostic, ExitCode, SourcesError, ToolError, UsageError, VerifyError
from ortrim.models.models import PreparedModel
from ortrim.parity.measurements import Coverage, Gate, Verdict
from ortrim.parity.runner import RunnerEnded, RunnerOutput
from ortrim.verify.reports import ReportedArtifact, VerifiedModel, VerifyReport
from ortrim.verify.target import Task, verify_target
from refusing import refused
from sample_tasks import IDENTITY, SavingDevice, sample_task

HOST = DeviceName(kind="host")
USER = DeviceName(kind="qemu-user", detail="cortex-a53")
SYSTEM = DeviceName(kind="qemu-system", detail="cortex-a53")
PHONE = DeviceName(kind="adb", detail="R58M12ABCDE")
ANY_PHONE = DeviceName(kind="adb")
BOARD = DeviceName(kind="ssh", detail="pi@board")

MakeOutput = Callable[..., RunnerOutput]


class Desk:
    """Opens devices by their names, one of each; `refused` are those that cannot be opened or fail when they run."""

    def __init__(self, make: MakeOutput) -> None:
        self.make = make
        self.opened: list[SavingDevice] = []
        self.refused: dict[DeviceName, Diagnostic] = {}
        self.values: dict[DeviceName, Any] = {}
        self.names: dict[DeviceName, str] = {}
        self.raises: dict[DeviceName, Diagnostic] = {}

    def open(self, name: DeviceName) -> Device:
        if name in self.refused:
            raise self.refused[name]
        device = SavingDevice(self.make, self.values.get(name, (1, 2)))
        device.raises = self.raises.get(name)
        device.name = self.names.get(name, str(name))
        self.opened.append(device)
        return device


@pytest.fixture
def desk(make_output: MakeOutput) -> Desk:
    return Desk(make_output)


@pytest.fixture
def task(make_model: Callable[..., PreparedModel], tmp_path: Path) -> Task:
    return sample_task(make_model(), tmp_path)


def verify(task: Task, desk: Desk, *names: DeviceName) -> VerifyReport:
    return verify_target(IDENTITY, task, names, desk.open)


def test_one_device(task: Task, desk: Desk) -> None:
    report = verify(task, desk, HOST)
    assert (report.verdict, report.name, report.package_bytes, report.baseline) == (
        Verdict.PASS,
        "demo",
        5,
        "onnxruntime 1.21.0 (official wheel)",
    )
    assert [line.measure for line in report.comparisons] == ["library", "library compressed", "package"]
    assert [device.device for device in report.devices] == ["host"]
    assert {line.model for line in report.devices[0].comparisons} == {"tiny"}
    assert from_json(VerifyReport, to_json(report)) == report


def test_several_devices_in_the_order_asked_for(task: Task, desk: Desk) -> None:
    names = (PHONE, SYSTEM, HOST, USER, BOARD)
    report = verify(task, desk, *names)
    assert [device.device for device in report.devices] == list(map(str, names))
    assert all(device.closed for device in desk.opened)
    assert desk.opened[0].name == "host"


def test_the_files_and_models_are_those_that_the_report_names(task: Task, desk: Desk) -> None:
    """Digests of the package, of its library and of what lies beside that; an archive has no build-id."""
    linked = sample(f"arm64-v8a-{RUNTIME}")
    task.delivery.library.write_bytes(linked)
    companion = task.folder.with_name("libc++_shared.so")
    companion.write_bytes(sample("no-build-id.so"))
    report = verify(replace(task, delivery=replace(task.delivery, companions=(companion,))), desk, HOST)
    package, ours, beside = report.artifacts
    whole = hashlib.sha256(b"12345").hexdigest()
    assert package == ReportedArtifact(name="package.tar.gz", size_bytes=5, sha256=whole, build_id=None)
    assert (ours.name, ours.size_bytes, ours.sha256) == ("ours.so", len(linked), hashlib.sha256(linked).hexdigest())
    assert ours.build_id == "4fd488fb99dfe0445d9d8bcceea09fad9de939c5"
    assert (beside.name, beside.build_id) == ("libc++_shared.so", None)
    assert report.models == (
        VerifiedModel(name="tiny", original_sha256="a" * 64, sha256="b" * 64, coverage=Coverage(nodes=1, executed=1)),
    )
    assert report.parity_reference == "ort-full@1.21.0"


def test_a_package_that_has_gone_is_a_diagnostic(task: Task, desk: Desk) -> None:
    """Nothing is run for a report that could not say of what it is."""
    task.delivery.archive.unlink()
    error = refused(Diagnostic, verify, task, desk, HOST)
    assert (error.exit_code, error.where) == (ExitCode.STORAGE, str(task.delivery.archive))
    assert not desk.opened


def test_each_verification_of_a_device_has_a_name_and_a_time(task: Task, desk: Desk) -> None:
    """One that could not be opened, too."""
    desk.refused[BOARD] = FAILURES[0]
    devices = (*verify(task, desk, HOST, BOARD).devices, *verify(task, desk, HOST).devices)
    assert len({uuid.UUID(device.run_id) for device in devices}) == 3
    for device in devices:
        begun = datetime.fromisoformat(device.started)
        assert begun.utcoffset() == timedelta()
        assert timedelta(hours=-1) < datetime.now(UTC) - begun < timedelta(hours=1)
        assert 0 <= device.duration_s < 3600


@pytest.mark.parametrize(
    ("error", "exit_code", "signal"),
    [
        (RunnerEnded("model-refused", "w", returncode=4), 4, None),
        (RunnerEnded("runner-crashed", "w", returncode=-11), None, "SIGSEGV"),
        (RunnerEnded("runner-crashed", "w", returncode=-64), None, "SIGRTMAX"),
        (RunnerEnded("runner-crashed", "w", returncode=-99), None, "signal 99"),
        (VerifyError("device-lost", "w"), None, None),
    ],
)
def test_how_the_runner_ended(
    task: Task, desk: Desk, error: Diagnostic, exit_code: int | None, signal: str | None
) -> None:
    """Its exit code or its signal; neither when it was something else that failed."""
    desk.raises[HOST] = error
    (device,) = verify(task, desk, HOST).devices
    assert (device.exit_code, device.signal) == (exit_code, signal)


def test_a_runner_that_ended_well_says_so(task: Task, desk: Desk) -> None:
    """Its exit code is 0; what no farm ran has no address there."""
    (device,) = verify(task, desk, HOST).devices
    assert (device.exit_code, device.signal, device.provider_url, device.log) == (0, None, None, None)


def test_a_failed_gate_fails(task: Task, desk: Desk) -> None:
    gates = (Gate(name="g", verdict=Verdict.FAIL, detail="d"),)
    report = verify(replace(task, delivery=replace(task.delivery, gates=gates)), desk, HOST)
    assert (report.verdict, report.devices[0].verdict) == (Verdict.FAIL, Verdict.PASS)


def test_a_missed_budget_of_the_library_fails(task: Task, desk: Desk) -> None:
    """No device has anything to do with it."""
    report = verify(replace(task, budgets=Budgets(library_bytes=9)), desk, HOST)
    assert (report.verdict, report.devices[0].verdict) == (Verdict.FAIL, Verdict.PASS)


def test_a_lack_of_parity_on_one_device_fails(task: Task, desk: Desk) -> None:
    """The others still pass."""
    desk.values[SYSTEM] = (1, 3)
    report = verify(task, desk, USER, SYSTEM)
    assert [device.verdict for device in report.devices] == [Verdict.PASS, Verdict.FAIL]
    assert report.verdict is Verdict.FAIL


FAILURES = [
    VerifyError("device-lost", "the connection broke", where="ssh:pi@board", why="Broken pipe", hint="plug it in"),
    VerifyError("runner-crashed", "the runner was ended by SIGSEGV"),
    VerifyError("out-of-memory", "there is not enough memory to load the model and run it"),
    ToolError("tool-missing", "is not installed", where="qemu-system-aarch64"),
    SourcesError("apt-missing", "there is no apt-get here"),
    UsageError("several-devices", "adb sees 2 devices, and none was chosen"),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: error.code)
@pytest.mark.parametrize("names", [(BOARD,), (BOARD, PHONE), (PHONE, BOARD, USER)], ids=len)
def test_a_device_that_cannot_be_opened(
    task: Task, desk: Desk, error: Diagnostic, names: tuple[DeviceName, ...]
) -> None:
    """It has its diagnostic word for word in the report; the others have all of theirs."""
    desk.refused[BOARD] = error
    report = verify(task, desk, *names)
    found = {device.device: device for device in report.devices}
    lost = found.pop("ssh:pi@board")
    assert lost.failure is not None
    assert (lost.failure.code, lost.failure.what) == (error.code, error.what)
    assert (lost.failure.where, lost.failure.why, lost.failure.hint) == (error.where, error.why, error.hint)
    assert lost.failure.exit_code == error.exit_code
    assert (lost.host, lost.comparisons, lost.parity, lost.runs) == (None, (), (), ())
    assert all(device.verdict is Verdict.PASS and device.runs for device in found.values())
    assert report.verdict is Verdict.FAIL
    assert from_json(VerifyReport, to_json(report)) == report


def test_a_device_that_fails_half_way(task: Task, desk: Desk, make_output: MakeOutput) -> None:
    """What the library did there is a failure of that device, which is closed all the same."""
    failing = SavingDevice(make_output)
    failing.name, failing.refuses = "adb:R58M12ABCDE", "ours.so"
    report = verify_target(IDENTITY, task, (PHONE, USER), lambda name: failing if name == PHONE else desk.open(name))
    phone, user = report.devices
    assert [failure.code for failure in phone.failed_models] == ["illegal-instruction"]
    assert failing.closed
    assert user.verdict is Verdict.PASS


def test_two_names_for_one_device(task: Task, desk: Desk) -> None:
    """Only one of them uses it; the other says so."""
    desk.names[ANY_PHONE] = str(PHONE)
    report = verify(task, desk, PHONE, ANY_PHONE)
    failures = [device.failure.code for device in report.devices if device.failure]
    assert failures == ["device-twice"]
    assert all(device.closed for device in desk.opened)


def test_a_fault_of_ours_is_not_a_devices_failure(task: Task, desk: Desk) -> None:
    """A mistake in ortrim keeps its traceback."""

    def broken(**_: Any) -> RunnerOutput:
        raise ZeroDivisionError

    desk.make = broken
    with pytest.raises(ZeroDivisionError):
        verify(task, desk, USER, SYSTEM)


def test_the_host_measures_alone(task: Task, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in this thread, before any other device is opened; emulators run side by side in others."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    where: dict[str, bool] = {}
    barrier = threading.Barrier(2, timeout=20)

    def opened(name: DeviceName) -> Device:
        where[str(name)] = threading.current_thread() is threading.main_thread()
        if name != HOST:
            barrier.wait()
        return desk.open(name)

    verify_target(IDENTITY, task, (USER, HOST, SYSTEM), opened)
    assert where == {"host": True, str(USER): False, str(SYSTEM): False}
    assert next(iter(where)) == "host"


def test_progress_of_several_devices_is_summed_up(task: Task, desk: Desk) -> None:
    """Whoever speaks is named, and all runs are done in the end; a single device needs no name."""
    told: list[tuple[int, int, str]] = []
    verify_target(IDENTITY, task, (USER, SYSTEM), desk.open, lambda *words: told.append(words))
    assert {text.partition(": ")[0] for _, _, text in told} == {str(USER), str(SYSTEM)}
    assert told[-1][:2] == (20, 20)
    told.clear()
    verify_target(IDENTITY, task, (HOST,), desk.open, lambda *words: told.append(words))
    assert told[0] == (0, 10, "parity of tiny")
