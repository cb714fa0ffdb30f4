from pathlib import Path

import pytest

from ortrim.base.command import Completed
from ortrim.devices.facts import Thermal
from ortrim.devices.remote import CooledDevice, RemoteDevice, RemoteMachine
from ortrim.errors import VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import MemoryUse, RunnerOutput, RunRequest
from refusing import refused

REQUEST = RunRequest(runner=Path("r"), library=Path("l"), model=Path("m"), cases=())
MEMORY = MemoryUse(
    opened_rss_bytes=1, loaded_rss_bytes=1, peak_rss_bytes=1, inference_peak_rss_bytes=None, peak_source="VmHWM"
)
COOL = Thermal(status=0, battery_celsius=25.0)
WARM = Thermal(status=0, battery_celsius=38.0)
HOT = Thermal(status=2, battery_celsius=38.0)


class NoTransport:
    """A machine that is never reached."""

    def execute(self, *_: object, **__: object) -> Completed:
        raise VerifyError("device-lost", "gone")

    push = pull = execute


class Phone:
    """A device whose heat follows a list, and the runs and naps that it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *heat: Thermal) -> None:
        self.heat = list(heat)
        self.naps: list[float] = []
        self.runs = 0
        monkeypatch.setattr(RemoteDevice, "run", self.run)
        machine = RemoteMachine(
            name="adb:x",
            transport=NoTransport(),  # type: ignore[arg-type]
            base="/data/local/tmp",
            describe=lambda: HostFacts(system="Linux", machine="aarch64", cpu="", cores=1, memory_bytes=1),
            thermal=self.thermal,
        )
        self.told: list[str] = []
        self.device = CooledDevice(machine, self.told.append, sleep=self.naps.append)

    def thermal(self) -> Thermal:
        return self.heat.pop(0) if len(self.heat) > 1 else self.heat[0]

    def run(self, _: RunRequest) -> RunnerOutput:
        self.device.before_run()
        self.runs += 1
        return RunnerOutput(
            schema="ortrim-runner/1",
            status="ok",
            runtime_version="1",
            open_ms=self.runs,
            load_ms=0,
            cases=(),
            memory=MEMORY,
        )


def test_a_cool_phone_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    phone = Phone(monkeypatch, COOL)
    phone.device.run(REQUEST)
    assert (phone.naps, phone.runs, phone.device.time_meaningful, phone.device.heat) == ([], 1, True, "")
    assert phone.told == []


def test_a_phone_that_cools_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said which device, how warm, and for how long at most, so that nobody takes it for a hang."""
    phone = Phone(monkeypatch, HOT, WARM, COOL)
    phone.device.run(REQUEST)
    assert (phone.naps, phone.runs, phone.device.time_meaningful) == ([30, 30], 1, True)
    assert phone.told == [
        "adb:x cools down, 180 seconds at most: the device throttles (thermal status 2, moderate)",
        "adb:x cools down, 150 seconds at most: the battery has 38.0 °C, more than 35",
    ]


def test_a_phone_that_stays_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once and not before every run; all runs are made, and times mean nothing."""
    phone = Phone(monkeypatch, HOT)
    phone.device.run(REQUEST)
    phone.device.run(REQUEST)
    assert (sum(phone.naps), phone.runs, phone.device.time_meaningful) == (180, 2, False)
    assert "moderate" in phone.device.heat
    assert phone.device.facts().time_meaningful is False


def test_a_warm_battery_that_stays_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone that says that it throttles nothing is believed in the end."""
    phone = Phone(monkeypatch, WARM)
    phone.device.run(REQUEST)
    phone.device.run(REQUEST)
    assert (sum(phone.naps), phone.runs, phone.device.time_meaningful) == (180, 2, True)


def test_a_run_that_heats_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    phone = Phone(monkeypatch, COOL, HOT, COOL, COOL)
    output = phone.device.run(REQUEST)
    assert (phone.runs, output.open_ms, phone.device.time_meaningful) == (2, 2, True)


def test_runs_that_always_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two repetitions times are marked."""
    phone = Phone(monkeypatch, COOL, HOT, COOL, HOT, COOL, HOT)
    phone.device.run(REQUEST)
    assert (phone.runs, phone.device.time_meaningful) == (3, False)


def test_a_phone_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device without thermometers runs."""
    phone = Phone(monkeypatch, Thermal(status=None, battery_celsius=None))
    phone.device.run(REQUEST)
    assert (phone.naps, phone.runs, phone.device.time_meaningful) == ([], 1, True)


def test_a_phone_that_vanishes_while_it_cools(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transport raises is passed on."""
    phone = Phone(monkeypatch, COOL)

    def gone() -> Thermal:
        raise VerifyError("device-lost", "gone")

    phone.device._thermal = gone
    assert (refused(VerifyError, phone.device.run, REQUEST).code, phone.runs) == ("device-lost", 0)
