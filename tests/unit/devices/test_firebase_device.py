"""Test Lab's devices: their names."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.farms.firebase import FirebaseDevice, named_device
from ortrim.errors import ExitCode, VerifyError
from refusing import refused


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("MediumPhone.arm-34", FirebaseDevice(model="MediumPhone.arm", version="34")),
        ("SH-01L-28", FirebaseDevice(model="SH-01L", version="28")),
        (
            "redfin-30-de_DE-landscape",
            FirebaseDevice(model="redfin", version="30", locale="de_DE", orientation="landscape"),
        ),
        ("SH-01L-28-en-portrait", FirebaseDevice(model="SH-01L", version="28", locale="en", orientation="portrait")),
    ],
)
def test_names(name: str, device: FirebaseDevice) -> None:
    """A model may have hyphens; language and orientation go together."""
    assert named_device(name) == device


@pytest.mark.parametrize(
    "name", ["", "redfin", "redfin-", "-34", "a,version=33-34", "a b-34", "a/../b-34", "redfin-34\n"]
)
def test_names_that_are_none(name: str) -> None:
    error = refused(VerifyError, named_device, name)
    assert (error.code, error.exit_code) == ("farm-device-unknown", ExitCode.VERIFY)
    assert "MODEL-VERSION" in error.what


@given(st.text(max_size=40))
def test_any_name_is_a_device_or_a_diagnostic(name: str) -> None:
    """And a device has nothing in it that gcloud would take apart."""
    with suppress(VerifyError):
        device = named_device(name)
        assert device.argument.count(",") == 3
        assert "/" not in device.axis
