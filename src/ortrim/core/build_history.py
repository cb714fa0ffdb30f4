"""What the history keeps of one finished build: figures that can be compared across builds. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ortrim.core.library_facts import ComponentSize
from ortrim.core.measurements import RunnerResult, Unit
from ortrim.core.reports import DeviceReport, VerifyReport


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One figure measured on one device: `peak memory`, `load`, and for each case `p50` and `p99`."""

    device: str
    model: str
    case: str
    measure: str
    unit: Unit
    value: float


@dataclass(frozen=True, kw_only=True)
class BuildEntry:
    """One verified build of one target; sizes are in bytes, `recorded_at` is UTC as ISO 8601."""

    recorded_at: str
    spec: str
    target: str
    profile: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    verdict: str
    package_bytes: int
    file_bytes: int
    loadable_bytes: int
    compressed_bytes: int
    build_seconds: float
    components: tuple[ComponentSize, ...]
    measures: tuple[Measure, ...]


def entry_of(report: VerifyReport, recorded_at: str) -> BuildEntry:
    """Return what is kept of a report."""
    return BuildEntry(
        recorded_at=recorded_at,
        spec=report.name,
        target=report.target,
        profile=report.profile,
        ort_version=report.ort_version,
        ortrim_version=report.ortrim_version,
        plan_digest=report.plan_digest,
        verdict=report.verdict.value,
        package_bytes=report.package_bytes,
        file_bytes=report.size.file_bytes,
        loadable_bytes=report.size.loadable_bytes,
        compressed_bytes=report.size.compressed_bytes,
        build_seconds=report.build_seconds,
        components=report.size.components,
        measures=tuple(each for device in report.devices for each in _measures(device) if math.isfinite(each.value)),
    )


def _measures(device: DeviceReport) -> Iterator[Measure]:
    for run in device.runs:
        if run.library == "ours":
            yield from _of_run(device.device, run)


def _of_run(device: str, run: RunnerResult) -> Iterator[Measure]:
    def measure(name: str, unit: Unit, value: float, case: str = "") -> Measure:
        return Measure(device=device, model=run.model, case=case, measure=name, unit=unit, value=value)

    yield measure("load", "ms", run.load_ms.p50)
    yield measure("peak memory", "bytes", run.peak_rss_bytes.p50)
    for case in run.cases:
        yield measure("p50", "ms", case.inference_ms.p50, case.case)
        yield measure("p99", "ms", case.inference_ms.p99, case.case)
