import os
import signal
import threading
import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.devices.kinds import DeviceName
from ortrim.errors import VerifyError
from ortrim.verify.measure import DeviceRuns
from ortrim.verify.target import AggregateProgress, at_once, turns


def test_works_run_at_the_same_time_and_their_results_are_in_order() -> None:
    barrier = threading.Barrier(3, timeout=20)

    def work(number: int) -> int:
        barrier.wait()
        return number

    assert at_once([partial(work, number) for number in range(3)]) == (0, 1, 2)
    assert at_once([]) == ()


def test_what_one_raises_is_raised_when_all_have_ended() -> None:
    ended: list[bool] = []

    def fails() -> None:
        raise VerifyError("device-lost", "gone")

    def goes_on() -> None:
        time.sleep(0.2)
        ended.append(True)

    with pytest.raises(VerifyError):
        at_once([fails, goes_on])
    assert ended == [True]


def test_one_device_gets_no_thread() -> None:
    assert at_once([threading.current_thread]) == (threading.main_thread(),)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_stops_what_devices_run(number: int) -> None:
    """Programs that run in threads end at once, and cleaning up is left to run."""
    started = threading.Barrier(3, timeout=20)
    cleaned: list[str] = []

    def act(name: str) -> None:
        started.wait()
        try:
            run(["sleep", "60"], timeout_seconds=100)
        finally:
            cleaned.append(run(["echo", name]).stdout)

    def interrupt() -> None:
        started.wait()
        time.sleep(0.3)  # until the main thread, too, has nothing left to do but wait
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        at_once([partial(act, name) for name in "ab"])
    thread.join()
    assert sorted(cleaned) == ["a\n", "b\n"]


HOST = DeviceName(kind="host")
USER = DeviceName(kind="qemu-user", detail="cortex-a53")
SYSTEM = DeviceName(kind="qemu-system", detail="cortex-a53")
OTHER = DeviceName(kind="qemu-system", detail="cortex-a76")
PHONE = DeviceName(kind="adb", detail="R58M12ABCDE")
BOARD = DeviceName(kind="ssh", detail="pi@board")
ANDROID = DeviceName(kind="adb", detail="emulator-5554")
ALL = (HOST, USER, SYSTEM, OTHER, PHONE, BOARD, ANDROID)


@pytest.mark.parametrize(
    ("devices", "cores", "expected"),
    [
        ((), 4, ()),
        ((HOST,), 4, ((HOST,),)),
        ((USER, SYSTEM), 2, ((USER, SYSTEM),)),
        ((USER, SYSTEM, OTHER), 2, ((USER, SYSTEM), (OTHER,))),
        ((USER, SYSTEM), 1, ((USER,), (SYSTEM,))),
        ((USER, SYSTEM), 0, ((USER,), (SYSTEM,))),
        ((PHONE, BOARD), 1, ((PHONE, BOARD),)),
        ((PHONE, HOST, BOARD), 8, ((HOST,), (PHONE, BOARD))),
        ((SYSTEM, HOST, USER), 8, ((HOST,), (SYSTEM, USER))),
        ((USER, PHONE, SYSTEM, BOARD), 1, ((PHONE, BOARD, USER), (SYSTEM,))),
        ((ANDROID, SYSTEM), 1, ((ANDROID,), (SYSTEM,))),
    ],
)
def test_who_runs_beside_whom(
    devices: tuple[DeviceName, ...], cores: int, expected: tuple[tuple[DeviceName, ...], ...]
) -> None:
    """The host runs alone, emulators share the cores, machines elsewhere run beside whatever there is."""
    assert turns(devices, cores) == expected


@pytest.mark.parametrize(
    "back",
    [
        DeviceName(kind="ssh", detail="localhost"),
        DeviceName(kind="ssh", detail="me@127.0.0.1"),
        DeviceName(kind="ssh", detail="ssh://me@localhost:2222"),
        DeviceName(kind="ssh", detail="ssh://[::1]:2222"),
        DeviceName(kind="adb", detail="127.0.0.1:5555"),
    ],
)
def test_an_address_of_this_machine_runs_alone(back: DeviceName) -> None:
    """What leads back here through the network would be disturbed by emulators as the host is."""
    assert turns((SYSTEM, back, PHONE), 8) == ((back,), (PHONE, SYSTEM))


@given(st.lists(st.sampled_from(ALL), unique=True), st.integers(0, 9))
def test_every_device_has_one_turn(devices: list[DeviceName], cores: int) -> None:
    groups = turns(devices, cores)
    assert sorted(map(str, devices)) == sorted(str(device) for group in groups for device in group)
    assert all(len(group) == 1 for group in groups if HOST in group)
    emulated = {USER, SYSTEM, OTHER, ANDROID}
    assert all(len(emulated & set(group)) <= max(1, cores) for group in groups)


def test_several_are_summed_up() -> None:
    """Each counts with what it said last, and one that has not begun as much as the other."""
    told: list[tuple[int, int, str]] = []
    aggregate = AggregateProgress(lambda *words: told.append(words), 2)
    one, other = aggregate.of("a"), aggregate.of("b")
    one(1, 4, "x")
    other(2, 10, "y")
    one(3, 4, "z")
    assert told == [(1, 8, "a: x"), (3, 14, "b: y"), (5, 14, "a: z")]


def test_threads_do_not_lose_each_others_counts() -> None:
    told: list[tuple[int, int]] = []
    aggregate = AggregateProgress(lambda done, total, _: told.append((done, total)), 4)

    def work(name: str) -> None:
        runs = DeviceRuns(200, aggregate.of(name))
        for _ in range(200):
            runs.done("run")

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told[-1] == (800, 800)
    assert len(told) == 800


def test_a_run_counts_when_it_has_ended() -> None:
    """What is announced is not done yet, and what fails is never done."""
    told: list[tuple[int, int, str]] = []
    runs = DeviceRuns(2, lambda *words: told.append(words))
    with runs.one("first"):
        assert told == [(0, 2, "first")]
    assert told[-1] == (1, 2, "first")
    with pytest.raises(ZeroDivisionError), runs.one("second"):
        _ = 1 // 0
    assert told[-1] == (1, 2, "second")
