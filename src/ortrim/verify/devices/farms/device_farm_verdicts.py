"""What the end of a run at AWS Device Farm means. Pure."""

from collections.abc import Mapping
from typing import Any

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.device_farm_errors import short
from ortrim.verify.devices.farms.polling import Overdue, Stage


def passed(run: Mapping[str, Any], url: str, where: str, minutes: int) -> bool:
    """Return whether the instrumentation passed, from a completed `Run` of the service.

    `minutes` is the time after which the farm ends a run. Raises `VerifyError` when nothing is known of the
    instrumentation: `farm-unsupported`, `farm-trouble`, `farm-timeout`, `farm-cancelled`, `farm-inconclusive`.
    """
    result = run.get("result", "")
    if result in {"PASSED", "FAILED"}:
        return bool(result == "PASSED")
    reference, what = _without_verdict(run, minutes)
    message = short(str(run.get("message", "")))
    why = f"{result}: {message}" if message else f"the farm calls the result {result or 'nothing'}"
    raise VerifyError(reference, what, where=where, why=why, hint=f"see {url}")


def overdue(error: Overdue, url: str, where: str) -> VerifyError:
    """Return the diagnostic of a run that was given up from here."""
    if error.stage is Stage.WAITING:
        what, hint = "no device became free in time", f"choose a pool with more devices, or wait longer; see {url}"
    else:
        what, hint = "the run did not end in time, and was stopped", f"see {url}"
    return VerifyError("farm-timeout", what, where=where, why=str(error), hint=hint)


def _without_verdict(run: Mapping[str, Any], minutes: int) -> tuple[str, str]:
    match run.get("result", ""):
        case "SKIPPED":
            return "farm-unsupported", "the device cannot run the app"
        case "ERRORED":
            return "farm-trouble", "AWS Device Farm could not carry out the run"
        case "STOPPED" if _timed_out(run, minutes):
            return "farm-timeout", f"the run took longer than {minutes} minutes"
        case "STOPPED":
            return "farm-cancelled", "the run was stopped by somebody else"
        case _:
            return "farm-inconclusive", "the run ended without a verdict on the app"


def _timed_out(run: Mapping[str, Any], minutes: int) -> bool:
    """Whether the farm ended a run: it says so, or all the minutes are used."""
    words = str(run.get("message", "")).lower()
    used = run.get("deviceMinutes", {}).get("total", 0.0)
    return "timed out" in words or "timeout" in words or used >= minutes
