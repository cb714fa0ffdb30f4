"""What the history keeps of one finished build: figures that can be compared across builds. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ortrim.core.library_facts import ComponentSize
from ortrim.core.measurements import Host, RunnerResult, Unit
from ortrim.core.processor_cores import cores_text
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
class BuiltModel:
    """A model of a build, by the digests of the file as given and as converted."""

    name: str
    original_sha256: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class MeasuredOn:
    """A device of a build and the machine that it was, in words; what means nothing there is 0, else 1."""

    device: str
    machine: str
    memory_meaningful: int
    time_meaningful: int


@dataclass(frozen=True, kw_only=True)
class BuildEntry:
    """One verified build of one target; sizes are in bytes, `recorded_at` is UTC as ISO 8601.

    `training_run` is whatever identifies the run that made the models, empty when it was not given. Builds recorded by
    the first versions of ortrim have neither `models` nor `machines`.
    """

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
    training_run: str = ""
    components: tuple[ComponentSize, ...]
    measures: tuple[Measure, ...]
    models: tuple[BuiltModel, ...] = ()
    machines: tuple[MeasuredOn, ...] = ()


def entry_of(report: VerifyReport, recorded_at: str, training_run: str = "") -> BuildEntry:
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
        training_run=training_run,
        components=report.size.components,
        measures=tuple(each for device in report.devices for each in _measures(device) if math.isfinite(each.value)),
        models=tuple(
            BuiltModel(name=model.name, original_sha256=model.original_sha256, sha256=model.sha256)
            for model in report.models
        ),
        machines=tuple(_measured_on(device.device, device.host) for device in report.devices if device.host),
    )


def _measured_on(device: str, host: Host) -> MeasuredOn:
    """Name a machine by all that makes it fast or slow and that stays the same from day to day."""
    cores = f"{host.cores} cores" + (f", on {cores_text(host.pinned_cores)}" if host.pinned_cores else "")
    words = (host.system, host.machine, host.cpu, cores, host.model, host.soc, host.kind)
    return MeasuredOn(
        device=device,
        machine=", ".join(filter(None, words)),
        memory_meaningful=int(host.memory_meaningful),
        time_meaningful=int(host.time_meaningful),
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
