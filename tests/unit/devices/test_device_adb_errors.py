from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.adb import adb_error, known_error, state_error

DATA = Path(__file__).parent / "data" / "adb"


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("push-disk-full", "device-full"),
        ("push-offline", "device-lost"),
        ("shell-offline", "device-lost"),
        ("shell-unknown-device", "device-lost"),
        ("push-not-permitted", None),
        ("pull-absent", None),
    ],
)
def test_recorded_outputs(name: str, reference: str | None) -> None:
    """What adb says is told apart; what it says of files that are not there is left to whoever asked."""
    error = known_error((DATA / f"{name}.txt").read_text(), "x")
    assert (error.code if error else None) == reference
    assert error is None or (error.where == "adb:x" and error.why and error.hint)


@pytest.mark.parametrize(
    ("printed", "reference"),
    [
        ("error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", "device-unauthorized"),
        ("error: device still authorizing", "device-unauthorized"),
        ("error: insufficient permissions for device: user in plugdev group", "device-no-permission"),
        ("error: no devices/emulators found", "device-lost"),
        ("remote couldn't create file: Permission denied", "device-not-permitted"),
        ("remote couldn't create file: Read-only file system", "device-not-permitted"),
        ("remote write failed: Disk quota exceeded", "device-full"),
        ("error: closed", "device-lost"),
        ("", "device-lost"),
    ],
)
def test_words_of_adb(printed: str, reference: str) -> None:
    """Each cause has its reference; without a word, the device has gone."""
    assert adb_error(printed, "x").code == reference


@given(st.text(max_size=200))
def test_any_output_has_a_diagnostic(printed: str) -> None:
    """Whatever adb prints, there is a diagnostic of few lines."""
    assert len(adb_error(printed, "x").why.split("\n")) <= 4


@given(st.text(max_size=20))
def test_any_state_has_a_diagnostic(state: str) -> None:
    """A state that nobody knows is not ready."""
    error = state_error(state, "x")
    assert error.code.startswith("device-")
    assert state in error.why
