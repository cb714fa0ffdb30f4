"""What the history keeps of a bench: figures that can be compared across models and libraries. Pure.

- What the history keeps of one finished build: figures that can be compared across builds. Pure.
- How a build is compared with the one that was accepted last. Pure.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ortrim.base.json import to_canonical_json
from ortrim.base.processor_cores import cores_text
from ortrim.binaries.elf import ComponentSize
from ortrim.parity.measurements import HostFacts, RunnerResult, Unit
from ortrim.report.history.points import BenchModel, BenchPlan, BenchPoint, BenchReport, BenchRow
from ortrim.verify.reports import DeviceReport, VerifyReport


@dataclass(frozen=True, kw_only=True)
class BenchMeasure:
    """One figure of one case.

    Of the whole run `p50`, `p90`, `p99`, `maximum`, `jitter` and, with a deadline, `missed deadlines`; `input`,
    `inference` and `output`, each a median; `load`, `first run`, `processor` and `peak memory`.
    """

    case: str
    measure: str
    unit: Unit
    value: float


@dataclass(frozen=True, kw_only=True)
class BenchEntry:
    """One point of one model in one bench; `recorded_at` is UTC as ISO 8601 and the same for all of a bench.

    `settings` is the session as JSON with sorted keys, `point` how it differs from that bench's default.
    `training_run` is whatever identifies the run that made the model, empty when it was not given. `deadline_ms` is 0
    without one.
    """

    recorded_at: str
    spec: str
    target: str
    model: str
    model_sha256: str
    training_run: str
    library: str
    library_sha256: str
    ort_version: str
    ortrim_version: str
    point: str
    settings: str
    recommended: int
    rounds: int
    deadline_ms: float
    system: str
    cpu: str
    cores: int
    measures: tuple[BenchMeasure, ...]


def entries_of(report: BenchReport) -> tuple[BenchEntry, ...]:
    """Return what is kept of a finished bench; points that failed are not."""
    found = []
    for each in report.models:
        for point in each.model.points:
            rows = [row for row in each.rows if row.point == point.name]
            if rows:
                found.append(_entry(report.plan, each.model, point, rows, chosen=each.recommended == point.name))
    return tuple(found)


def _entry(plan: BenchPlan, model: BenchModel, point: BenchPoint, rows: list[BenchRow], *, chosen: bool) -> BenchEntry:
    return BenchEntry(
        recorded_at=plan.recorded_at,
        spec=plan.name,
        target=plan.target,
        model=model.name,
        model_sha256=model.sha256,
        training_run=plan.training_run,
        library=plan.library.kind,
        library_sha256=plan.library.sha256,
        ort_version=plan.library.ort_version,
        ortrim_version=plan.ortrim_version,
        point=point.name,
        settings=to_canonical_json({"level": point.level, "session": point.session}),
        recommended=int(chosen),
        rounds=plan.rounds,
        deadline_ms=plan.deadline_ms or 0.0,
        system=plan.machine.os_version,
        cpu=plan.machine.cpu,
        cores=len(plan.machine.pinned_cores) or plan.machine.cores,
        measures=tuple(measure for row in rows for measure in _measures(row, plan.deadline_ms)),
    )


def _measures(row: BenchRow, deadline_ms: float | None) -> Iterator[BenchMeasure]:
    times = {
        "p50": row.total_ms.p50,
        "p90": row.total_ms.p90,
        "p99": row.total_ms.p99,
        "maximum": row.total_ms.maximum,
        "jitter": row.jitter_ms,
        "input": row.input_ms.p50,
        "inference": row.inference_ms.p50,
        "output": row.output_ms.p50,
        "load": row.load_ms,
        "first run": row.first_run_ms,
    }
    if row.cpu_ms is not None:
        times["processor"] = row.cpu_ms
    for name, value in times.items():
        yield BenchMeasure(case=row.case, measure=name, unit="ms", value=value)
    yield BenchMeasure(case=row.case, measure="peak memory", unit="bytes", value=row.peak_rss_bytes)
    if deadline_ms is not None:
        yield BenchMeasure(case=row.case, measure="missed deadlines", unit="runs", value=row.missed)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One figure measured on one device: `peak memory`, `load`, and for each case `p50`, `p99` and `instructions`.

    The last only where the device counts them.
    """

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
        measures=tuple(
            each for device in report.devices for each in _build_history_measures(device) if math.isfinite(each.value)
        ),
        models=tuple(
            BuiltModel(name=model.name, original_sha256=model.original_sha256, sha256=model.sha256)
            for model in report.models
        ),
        machines=tuple(_measured_on(device.device, device.host) for device in report.devices if device.host),
    )


def _measured_on(device: str, host: HostFacts) -> MeasuredOn:
    """Name a machine by all that makes it fast or slow and that stays the same from day to day."""
    cores = f"{host.cores} cores" + (f", on {cores_text(host.pinned_cores)}" if host.pinned_cores else "")
    words = (host.system, host.machine, host.cpu, cores, host.model, host.soc, host.kind)
    return MeasuredOn(
        device=device,
        machine=", ".join(filter(None, words)),
        memory_meaningful=int(host.memory_meaningful),
        time_meaningful=int(host.time_meaningful),
    )


def _build_history_measures(device: DeviceReport) -> Iterator[Measure]:
    for run in device.runs:
        if run.library == "ours":
            yield from _of_run(device, run)


def _of_run(device: DeviceReport, run: RunnerResult) -> Iterator[Measure]:
    def measure(name: str, unit: Unit, value: float, case: str = "") -> Measure:
        return Measure(device=device.device, model=run.model, case=case, measure=name, unit=unit, value=value)

    yield measure("load", "ms", run.load_ms.p50)
    yield measure("peak memory", "bytes", run.peak_rss_bytes.p50)
    for case in run.cases:
        yield measure("p50", "ms", case.inference_ms.p50, case.case)
        yield measure("p99", "ms", case.inference_ms.p99, case.case)
        if case.instructions:
            yield measure("instructions", "instructions", case.instructions.p50, case.case)


Kind = Literal["size", "memory", "latency", "instructions"]
Outcome = Literal["regressed", "within", "not compared"]
SIZES: Final = (
    ("library", "file_bytes"),
    ("library, compressed", "compressed_bytes"),
    ("package", "package_bytes"),
)
KINDS: Final[dict[str, Kind]] = {
    "peak memory": "memory", "load": "latency", "p50": "latency", "instructions": "instructions",
}  # fmt: skip
"""The measures of a model that are compared with each other. The 99th percentile is not: it is the machine's."""


@dataclass(frozen=True, kw_only=True)
class AcceptedBuild:
    """A build that was accepted: when (UTC as ISO 8601), and with what words."""

    entry: BuildEntry
    accepted_at: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """By how much a build may exceed the accepted one, as a part of that: 0.01 is one percent."""

    size: float = 0.01
    memory: float = 0.05
    latency: float = 0.10
    instructions: float = 0.01


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One figure of a build beside that of the accepted one; `reason` says why they are not compared."""

    measure: str
    device: str
    model: str
    case: str
    unit: Unit
    before: float
    after: float | None
    allowed: float
    outcome: Outcome
    reason: str = ""

    @property
    def growth(self) -> float | None:
        """By what part of the accepted figure this one is larger; None when that cannot be told."""
        return None if self.after is None or not self.before else (self.after - self.before) / self.before


@dataclass(frozen=True, kw_only=True)
class Check:
    """A build beside the accepted one, figure by figure; `notes` say what else has changed."""

    latest: BuildEntry
    accepted: AcceptedBuild
    lines: tuple[Checked, ...]
    notes: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Checked, ...]:
        """The figures that grew by more than is allowed."""
        return tuple(line for line in self.lines if line.outcome == "regressed")


def check(latest: BuildEntry, accepted: AcceptedBuild, allowed: Allowed) -> Check:
    """Compare a build with the accepted one: sizes always, memory and latency where the machines allow it.

    Time is compared on the same machine alone, memory wherever it means anything, instructions where both were
    counted on one emulated processor.
    """
    lines = (*_sizes(latest, accepted.entry, allowed), *_acceptance_measures(latest, accepted.entry, allowed))
    return Check(latest=latest, accepted=accepted, lines=lines, notes=tuple(_notes(latest, accepted.entry)))


def _sizes(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    for words, field in SIZES:
        old, new = float(getattr(before, field)), float(getattr(latest, field))
        yield _line(Measure(device="", model="", case="", measure=words, unit="bytes", value=old), new, allowed.size)


def _acceptance_measures(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    values = {_key(each): each.value for each in latest.measures}
    for each in before.measures:
        kind = KINDS.get(each.measure)
        if kind is None:
            continue
        reason = _why_not(each, kind, latest, before)
        value = values.get(_key(each))
        if value is None:
            reason = "not measured in this build"
        share: float = getattr(allowed, kind)
        yield _line(each, value, share, reason)


def _key(measure: Measure) -> tuple[str, str, str, str]:
    return (measure.device, measure.model, measure.case, measure.measure)


def _line(before: Measure, after: float | None, allowed: float, reason: str = "") -> Checked:
    regressed = after is not None and after > before.value * (1 + allowed)
    outcome: Outcome = "not compared" if reason else "regressed" if regressed else "within"
    return Checked(
        measure=before.measure,
        device=before.device,
        model=before.model,
        case=before.case,
        unit=before.unit,
        before=before.value,
        after=after,
        allowed=allowed,
        outcome=outcome,
        reason=reason,
    )


def _why_not(measure: Measure, kind: Kind, latest: BuildEntry, before: BuildEntry) -> str:
    """Return why a figure says nothing beside the accepted one; empty when it does."""
    old, new = _machine(before, measure.device), _machine(latest, measure.device)
    if old is None or new is None:
        return "the machine is not known"
    if kind == "instructions":
        return ""
    if kind == "memory":
        return "" if old.memory_meaningful and new.memory_meaningful else "memory is not representative on this device"
    if not (old.time_meaningful and new.time_meaningful):
        return "time is not representative on this device"
    return "" if old.machine == new.machine else "measured on another machine"


def _machine(entry: BuildEntry, device: str) -> MeasuredOn | None:
    return next((each for each in entry.machines if each.device == device), None)


def _notes(latest: BuildEntry, before: BuildEntry) -> Iterator[str]:
    if latest.profile != before.profile:
        yield f"the profile was {before.profile}, and is {latest.profile}"
    if latest.ort_version != before.ort_version:
        yield f"ONNX Runtime was {before.ort_version}, and is {latest.ort_version}"
    old, new = ({model.name: model.original_sha256 for model in entry.models} for entry in (before, latest))
    for name in sorted({*old, *new} if old and new else ()):
        if name not in new:
            yield f"the model {name} is no longer there"
        elif name not in old:
            yield f"the model {name} is new"
        elif old[name] != new[name]:
            yield f"the model {name} is another file: {old[name][:12]}, now {new[name][:12]}"
    if latest.training_run != before.training_run:
        yield f"the training run was {before.training_run or 'not given'}, and is {latest.training_run or 'not given'}"
