import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.kinds import DeviceName
from ortrim.verify.target import turns

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
    """None is lost and none runs twice; the host has no company, and emulators never outnumber the cores."""
    groups = turns(devices, cores)
    assert sorted(map(str, devices)) == sorted(str(device) for group in groups for device in group)
    assert all(len(group) == 1 for group in groups if HOST in group)
    emulated = {USER, SYSTEM, OTHER, ANDROID}
    assert all(len(emulated & set(group)) <= max(1, cores) for group in groups)
