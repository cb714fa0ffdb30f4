from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.adb import AdbListing, choose, read_listing
from ortrim.errors import Diagnostic, ExitCode

DATA = Path(__file__).parent / "data" / "adb"


def listed(name: str) -> tuple[AdbListing, ...]:
    return read_listing((DATA / f"devices-{name}.txt").read_text())


def refused(devices: tuple[AdbListing, ...], serial: str | None) -> Diagnostic:
    with pytest.raises(Diagnostic) as caught:
        choose(devices, serial)
    return caught.value


def test_all_states_are_read() -> None:
    """Each line is a device, whatever its state, and the words of a starting server are none."""
    found = {device.serial: (device.state, device.model) for device in listed("many-states")}
    assert found == {
        "EX0001": ("device", "Phone 5 Pro"),
        "EX0002": ("unauthorized", ""),
        "EX0003": ("offline", ""),
        "EX0004": ("no permissions", ""),
        "EX0005": ("authorizing", ""),
        "EX0006": ("recovery", "Phone 5 Pro"),
        "(no serial number)": ("unauthorized", ""),
        "adb-EX0008-x._adb-tls-connect._tcp": ("device", "Tab"),
        "emulator-5554": ("device", "sdk gphone64 x86 64"),
    }


@pytest.mark.parametrize(
    "printed", ["", "List of devices attached\n\n", "List of devices attached", "nonsense device\n"]
)
def test_nothing_is_no_device(printed: str) -> None:
    assert read_listing(printed) == ()


def test_the_short_form_is_read() -> None:
    """What `adb devices` prints has tabs."""
    assert read_listing("List of devices attached\r\nabc\tdevice\r\n") == (
        AdbListing(serial="abc", state="device", model=""),
    )


@given(st.text(max_size=300))
def test_any_output_can_be_read(printed: str) -> None:
    for device in read_listing(f"List of devices attached\n{printed}"):
        assert device.serial.strip()
        assert device.state


def test_a_device_is_taken_by_its_serial_number() -> None:
    """Among several, the one that was named."""
    assert choose(listed("many-states"), "emulator-5554").serial == "emulator-5554"


@pytest.mark.parametrize(
    ("serial", "reference", "code"),
    [
        ("EX0002", "device-unauthorized", ExitCode.VERIFY),
        ("EX0003", "device-offline", ExitCode.VERIFY),
        ("EX0004", "device-no-permission", ExitCode.VERIFY),
        ("EX0005", "device-unauthorized", ExitCode.VERIFY),
        ("EX0006", "device-not-ready", ExitCode.VERIFY),
        ("absent", "unknown-device", ExitCode.USAGE),
        (None, "several-devices", ExitCode.USAGE),
    ],
)
def test_a_device_that_cannot_be_used(serial: str | None, reference: str, code: ExitCode) -> None:
    """Each cause has a diagnostic of its own that says what to do."""
    error = refused(listed("many-states"), serial)
    assert (error.code, error.exit_code) == (reference, code)
    assert error.hint


def test_no_device() -> None:
    """Without any device, how to connect one is said, named or not."""
    assert refused(listed("none"), None).code == "no-device"
    assert refused(listed("none"), "absent").code == "unknown-device"
    assert "USB debugging" in refused(listed("none"), None).hint


def test_a_single_device_that_is_not_online() -> None:
    """Not that there is none is said, but what is wrong with it."""
    error = refused((AdbListing(serial="x", state="unauthorized", model=""),), None)
    assert (error.code, error.where) == ("device-unauthorized", "adb:x")
