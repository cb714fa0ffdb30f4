"""What a report says of the machine on which it was measured, and of what could not be measured there."""

from collections.abc import Iterable
from typing import Final

from ortrim.core.measurements import Comparison, Host, VerifyReport
from ortrim.report.figures import NONE

THERMAL: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""Android's thermal states, from 0."""


def machine_facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return what is known of the machine besides its processor, as pairs of a label and a value."""
    host = report.host
    pairs = (
        ("device", " · ".join(filter(None, (host.model, host.soc, host.kind)))),
        ("system", " · ".join(filter(None, (host.os_version, host.abi, _api(host))))),
        ("system's build", host.fingerprint),
        ("pages", f"{host.page_bytes} bytes" if host.page_bytes else ""),
        ("processor's features", " ".join(host.cpu_features)),
        ("heat, before and after", _heat(host)),
        ("battery", "" if host.battery_celsius is None else f"{host.battery_celsius:.1f} °C"),
        ("not judged", "; ".join(not_judged(report))),
    )
    return tuple((label, value) for label, value in pairs if value)


def not_judged(report: VerifyReport) -> tuple[str, ...]:
    """Return each reason why something was not judged, once."""
    return tuple(dict.fromkeys(line.reason for line in report.comparisons if line.reason))


def unjudged_measures(report: VerifyReport) -> str:
    """Name what means nothing on the machine: `memory`, `time`, both, or nothing."""
    host = report.host
    named = (("memory", host.memory_meaningful), ("time", host.time_meaningful))
    return _joined(name for name, meaningful in named if not meaningful)


def means_nothing(host: Host, comparison: Comparison) -> bool:
    """Whether a line's figures, of a model's run, say nothing of a real device."""
    measured = host.time_meaningful if comparison.unit == "ms" else host.memory_meaningful
    return bool(comparison.model) and not measured


def _joined(names: Iterable[str]) -> str:
    return " and ".join(names)


def _api(host: Host) -> str:
    return f"API level {host.api_level}" if host.api_level is not None else ""


def _heat(host: Host) -> str:
    states = (host.thermal_before, host.thermal_after)
    if states == (None, None):
        return ""
    return " → ".join(_state(state) for state in states)


def _state(state: int | None) -> str:
    if state is None:
        return NONE
    return THERMAL[state] if 0 <= state < len(THERMAL) else str(state)
