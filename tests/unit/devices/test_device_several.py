import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ortrim.base.command import run
from ortrim.devices.device import Device, ProgramDevice, on_each
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest


class Fake(ProgramDevice):
    """A device that notes whether it was closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def facts(self) -> HostFacts:
        return HostFacts(system=self.name, machine="", cpu="", cores=1, memory_bytes=1)

    def run(self, request: RunRequest) -> RunnerOutput:
        raise VerifyError("runner-garbage", f"{self.name}: {request.model}")

    def close(self) -> None:
        self.closed = True


def openers(devices: list[Fake]) -> list[Callable[[], Device]]:
    return [lambda made=device: made for device in devices]  # type: ignore[misc]


def at_once(openers: list[Callable[[], Device]], action: Callable[[Device], Any]) -> tuple[Any, ...]:
    return on_each(openers, action, lambda _, error: error)


def test_each_has_its_result_in_order() -> None:
    """Results are those of each device, as asked for, and every device is closed."""
    devices = [Fake(str(number)) for number in range(5)]
    results = at_once(openers(devices), lambda device: device.facts().system)
    assert results == tuple(map(str, range(5)))
    assert all(device.closed for device in devices)


def test_they_run_at_the_same_time() -> None:
    """Every device is at work before any of them is done."""
    barrier = threading.Barrier(3, timeout=20)
    results = at_once(openers([Fake(str(number)) for number in range(3)]), lambda _: barrier.wait() >= 0)
    assert results == (True, True, True)


def test_one_failure_is_one_devices_own() -> None:
    """A device that fails, or cannot even be opened, leaves the others their results."""

    def absent() -> Device:
        raise UsageError("unknown-device", "is not there")

    def act(device: Device) -> str:
        if device.name == "b":
            raise VerifyError("device-lost", "gone")
        return device.name

    devices = [Fake("a"), Fake("b"), Fake("c")]
    results = at_once([*openers(devices), absent], act)
    found = [result if isinstance(result, str) else result.code for result in results]
    assert found == ["a", "device-lost", "c", "unknown-device"]
    assert all(device.closed for device in devices)


def test_a_failure_is_told_while_others_are_at_work() -> None:
    """So that a report says when that device failed, and not when the slowest of the others ended."""
    told = threading.Event()

    def absent() -> Device:
        raise UsageError("unknown-device", "absent")

    def failed(number: int, error: Diagnostic) -> str:
        told.set()
        return f"{number} {error.code}"

    assert on_each([*openers([Fake("a")]), absent], lambda _: told.wait(20), failed) == (True, "1 unknown-device")


def test_a_fault_of_ours_is_not_hidden() -> None:
    """What is no diagnostic is raised, after every device was closed."""
    devices = [Fake("a"), Fake("b")]
    with pytest.raises(ZeroDivisionError):
        at_once(openers(devices), lambda device: 1 // (device.name != "a"))
    assert all(device.closed for device in devices)


def test_no_devices() -> None:
    """Nothing to do is done."""
    assert at_once([], lambda device: device.name) == ()


def test_one_device_gets_no_thread() -> None:
    """Nothing else is at work while it measures."""
    (result,) = at_once(openers([Fake("a")]), lambda _: threading.current_thread() is threading.main_thread())
    assert result is True


def test_two_names_of_one_device() -> None:
    """Only one of them acts on it; both are closed."""
    devices = [Fake("a"), Fake("a")]
    results = at_once(openers(devices), lambda device: device.name)
    found = [result if isinstance(result, str) else result.code for result in results]
    assert sorted(found) == ["a", "device-twice"]
    assert all(device.closed for device in devices)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_stops_what_devices_run(number: int) -> None:
    """Programs that run in threads end at once, cleaning up is left to run, and every device is closed."""
    devices = [Fake("a"), Fake("b")]
    started = threading.Barrier(3, timeout=20)
    cleaned: list[str] = []

    def act(device: Device) -> None:
        started.wait()
        try:
            run(["sleep", "60"], timeout_seconds=100)
        finally:
            cleaned.append(run(["echo", device.name]).stdout)

    def interrupt() -> None:
        started.wait()
        time.sleep(0.3)  # until the main thread, too, has nothing left to do but wait
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        at_once(openers(devices), act)
    thread.join()
    assert sorted(cleaned) == ["a\n", "b\n"]
    assert all(device.closed for device in devices)
