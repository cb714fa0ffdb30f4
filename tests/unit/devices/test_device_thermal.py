import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.facts import LONGEST_WAIT_SECONDS, PAUSE_SECONDS, Thermal, decide

ANY = st.builds(
    Thermal,
    status=st.none() | st.integers(-1, 9),
    battery_celsius=st.none() | st.floats(-30, 80, allow_nan=False),
)


@pytest.mark.parametrize(
    ("status", "battery", "waited", "action"),
    [
        (0, 25.0, 0.0, "run"),
        (None, None, 0.0, "run"),
        (None, 35.0, 0.0, "run"),
        (0, 35.1, 0.0, "wait"),
        (1, 20.0, 0.0, "wait"),
        (6, None, 0.0, "wait"),
        (1, 20.0, 180.0, "mark"),
        (None, 40.0, 180.0, "mark"),
        (0, 40.0, 180.0, "run"),
    ],
)
def test_decisions(status: int | None, battery: float | None, waited: float, action: str) -> None:
    """A cool device runs, a hot one waits, and one that stays hot is marked unless it says that nothing throttles."""
    decision = decide(Thermal(status=status, battery_celsius=battery), waited)
    assert decision.action == action
    assert bool(decision.reason) == (action != "run" or battery == 40.0)


@given(ANY)
def test_waiting_ends(thermal: Thermal) -> None:
    """A device that stays as it is is waited for as long as is allowed and not a second more."""
    waited, steps = 0.0, 0
    while (decision := decide(thermal, waited)).action == "wait":
        assert 0 < decision.seconds <= PAUSE_SECONDS
        waited += decision.seconds
        steps += 1
    assert waited in {0.0, LONGEST_WAIT_SECONDS}
    assert steps in {0, 6}


@given(ANY)
def test_a_throttled_device_is_never_trusted(thermal: Thermal) -> None:
    """Whatever was waited, a device that says that it throttles does not simply run."""
    for waited in (0.0, 90.0, 180.0, 1e6):
        assert decide(thermal, waited).action != "run" or not thermal.throttles


def test_the_reason_names_the_status() -> None:
    """A reader sees Android's word for it, and the number that was too high."""
    assert "status 3, severe" in decide(Thermal(status=3, battery_celsius=20), 0).reason
    assert "unknown" in decide(Thermal(status=9, battery_celsius=20), 0).reason
    assert "36.5 °C" in decide(Thermal(status=0, battery_celsius=36.5), 0).reason
