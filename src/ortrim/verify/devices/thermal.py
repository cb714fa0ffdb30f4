"""Whether a device is cool enough for a number that means something. Pure.

The limits are other people's, who measure phones for a living:
- Android's thermal status is 0 when nothing is throttled and 1 from the first, "light" throttling on
  (android.os.PowerManager, since API level 29).
- Chromium's telemetry begins no story before the battery has cooled to 35 degrees (`story_runner.py`,
  `WaitForBatteryTemperature(35)`): the battery is the one thermometer that every phone has.
- androidx.benchmark sleeps 90 seconds when it finds the processor throttled, twice at most, and repeats the run
  (`BenchmarkState.kt`, `THROTTLE_BACKOFF_S` and `THROTTLE_MAX_RETRIES`).
"""

from dataclasses import dataclass
from typing import Final, Literal

NOT_THROTTLED: Final = 0
STATUS_NAMES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
COOL_BATTERY_CELSIUS: Final = 35.0
REPETITIONS: Final = 2
"""How often a run is repeated during which the device began to throttle."""
LONGEST_WAIT_SECONDS: Final = 180.0
"""For one device in one verification, all its runs together: a phone in the sun would take hours otherwise."""
PAUSE_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class Thermal:
    """A device's heat now: Android's thermal status (0 to 6) and the battery's temperature; None when unknown."""

    status: int | None
    battery_celsius: float | None


UNKNOWN_HEAT: Final = Thermal(status=None, battery_celsius=None)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do before a run: run, wait so many seconds and look again, or run and mark the times."""

    action: Literal["run", "wait", "mark"]
    seconds: float = 0.0
    reason: str = ""


def decide(thermal: Thermal, waited_seconds: float) -> Decision:
    """Say what to do before a run on a device that has been waited for `waited_seconds` already.

    When all waiting is used up, a warm battery alone does not make times worthless if the device itself says that it
    throttles nothing.
    """
    reason = _heat(thermal)
    if not reason:
        return Decision(action="run")
    remaining = LONGEST_WAIT_SECONDS - waited_seconds
    if remaining > 0:
        return Decision(action="wait", seconds=min(PAUSE_SECONDS, remaining), reason=reason)
    if thermal.status == NOT_THROTTLED:
        return Decision(action="run", reason=reason)
    return Decision(action="mark", reason=reason)


def throttled(thermal: Thermal) -> bool:
    """Whether the device says that it throttles."""
    return thermal.status is not None and thermal.status > NOT_THROTTLED


def throttling_text(thermal: Thermal) -> str:
    """Say how much a device throttles, in Android's word for it."""
    status = thermal.status or NOT_THROTTLED
    name = STATUS_NAMES[status] if 0 <= status < len(STATUS_NAMES) else "unknown"
    return f"the device throttles (thermal status {status}, {name})"


def _heat(thermal: Thermal) -> str:
    if throttled(thermal):
        return throttling_text(thermal)
    battery = thermal.battery_celsius
    if battery is not None and battery > COOL_BATTERY_CELSIUS:
        return f"the battery has {battery:.1f} °C, more than {COOL_BATTERY_CELSIUS:g}"
    return ""
