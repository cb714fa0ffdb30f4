"""Test Lab's devices: their names, and its catalogue."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import Diagnostic, ExitCode, VerifyError
from ortrim.farms.firebase_answers import FirebaseDevice, check_device, named_device
from recorded_gcloud import recorded

WHERE = "firebase:x"
CATALOGUE = recorded("models").stdout


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


def test_what_a_device_is_called_elsewhere() -> None:
    """As gcloud's option, and as its folder in the bucket."""
    device = named_device("MediumPhone.arm-34")
    assert device.argument == "model=MediumPhone.arm,version=34,locale=en,orientation=portrait"
    assert device.axis == "MediumPhone.arm-34-en-portrait"


@pytest.mark.parametrize(
    "name", ["", "redfin", "redfin-", "-34", "a,version=33-34", "a b-34", "a/../b-34", "redfin-34\n"]
)
def test_names_that_are_none(name: str) -> None:
    """None of them reaches gcloud, where a comma would say something else."""
    with pytest.raises(VerifyError) as caught:
        named_device(name)
    assert (caught.value.reference, caught.value.exit_code) == ("farm-device-unknown", ExitCode.VERIFY)
    assert "MODEL-VERSION" in caught.value.what


@given(st.text(max_size=40))
def test_any_name_is_a_device_or_a_diagnostic(name: str) -> None:
    """And a device has nothing in it that gcloud would take apart."""
    with suppress(VerifyError):
        device = named_device(name)
        assert device.argument.count(",") == 3
        assert "/" not in device.axis


@pytest.mark.parametrize(("name", "seconds"), [("MediumPhone.arm-34", 3600), ("SH-01L-28", 2700), ("SH-01L-28", 1)])
def test_devices_of_the_catalogue(name: str, seconds: float) -> None:
    """Up to an hour on a virtual one, three quarters on a physical one."""
    check_device(CATALOGUE, named_device(name), seconds, WHERE)


@pytest.mark.parametrize(
    ("name", "seconds", "reference", "hint"),
    [
        ("MediumPhone.arm-99", 60, "farm-device-unknown", "it has: 33, 34"),
        ("SH-01L-34", 60, "farm-device-unknown", "it has: 28"),
        ("MediumPhone-34", 60, "farm-device-unknown", "alike: MediumPhone.arm"),
        ("zzz-34", 60, "farm-device-unknown", "models list"),
        ("MediumPhone.arm-34", 3601, "farm-refused", "less time"),
        ("SH-01L-28", 2701, "farm-refused", "less time"),
    ],
)
def test_what_the_catalogue_does_not_have(name: str, seconds: float, reference: str, hint: str) -> None:
    """It is said before anything is uploaded, with what would do."""
    with pytest.raises(VerifyError) as caught:
        check_device(CATALOGUE, named_device(name), seconds, WHERE)
    assert (caught.value.reference, caught.value.where) == (reference, WHERE)
    assert hint in caught.value.hint


def test_a_model_of_which_little_is_said() -> None:
    """What is empty is left out."""
    with pytest.raises(VerifyError) as caught:
        check_device('[{"id": "redfin"}]', named_device("redfin-30"), 60, WHERE)
    assert caught.value.hint.startswith("it has: none")


@pytest.mark.parametrize(
    "printed", ["", "null", "{}x", "[1]", '[{"name": "redfin"}]', "Listed 0 items.", CATALOGUE[:50]]
)
def test_what_is_no_catalogue(printed: str) -> None:
    """Something else was printed, or not all of it."""
    with pytest.raises(VerifyError) as caught:
        check_device(printed, named_device("redfin-30"), 60, WHERE)
    assert caught.value.reference == "farm-trouble"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "form", "supportedVersionIds"]), inner),
    )
)
def test_any_catalogue_has_a_diagnostic(value: object) -> None:
    """Nothing that is printed makes it fall over."""
    with pytest.raises(Diagnostic):
        check_device(json.dumps(value), named_device("redfin-30"), 60, WHERE)
