"""What a report says of a machine on which it was measured, and of what could not be measured there."""

from typing import Final

from ortrim.console import counted, duration_text
from ortrim.core.measurements import Host
from ortrim.core.processor_cores import cores_text
from ortrim.core.reports import DeviceReport
from ortrim.report.figures import NONE, bytes_text

THERMAL: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""Android's thermal states, from 0."""


def measures_memory(device: DeviceReport) -> bool:
    """Whether the memory of a process there says anything of a real device."""
    return device.host is None or device.host.memory_meaningful


def measures_time(device: DeviceReport) -> bool:
    """Whether the time that a process takes there says anything of a real device."""
    return device.host is None or device.host.time_meaningful


def machine_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return what is known of the machine, as pairs of a label and a value; nothing of one that did not answer."""
    host = device.host
    if host is None:
        return ()
    pairs = (
        ("host", f"{host.system}, {host.machine}, {host.cpu}"),
        ("cores and memory", f"{counted(host.cores, 'core')}, {bytes_text(host.memory_bytes or None)}"),
        ("ran on cores", cores_text(host.pinned_cores)),
        ("device", " · ".join(filter(None, (host.model, host.soc, host.kind)))),
        ("system", " · ".join(filter(None, (host.os_version, host.abi, _api(host))))),
        ("system's build", host.fingerprint),
        ("pages", counted(host.page_bytes, "byte") if host.page_bytes else ""),
        ("processor's features", " ".join(host.cpu_features)),
        ("heat, before and after", _heat(host)),
        ("battery", "" if host.battery_celsius is None else f"{host.battery_celsius:.1f} °C"),
        ("not judged", "; ".join(not_judged(device))),
    )
    return tuple((label, value) for label, value in pairs if value)


def run_facts(device: DeviceReport) -> tuple[tuple[str, str], ...]:
    """Return how the figures came about and how the run is found again, as pairs of a label and a value."""
    warmup = sorted({run.warmup for run in device.runs})
    sources = sorted({run.peak_source for run in device.runs})
    pairs = (
        ("peak RSS read from", ", ".join(sources) if measures_memory(device) else ""),
        ("warm-up", f"{' or '.join(map(str, warmup))} runs of each case" if warmup and measures_time(device) else ""),
        ("verified", f"{device.started}, in {duration_text(device.duration_s)}"),
        ("run", device.run_id),
        ("seen at", device.provider_url or ""),
        ("device's log", device.log or ""),
    )
    return tuple((label, value) for label, value in pairs if value)


def not_judged(device: DeviceReport) -> tuple[str, ...]:
    """Return each reason why something was not judged, once."""
    return tuple(dict.fromkeys(line.reason for line in device.comparisons if line.reason))


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
