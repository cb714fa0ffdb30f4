"""The history of builds and benches, one line of JSON each, and how a build is compared with the accepted one."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from ortrim.base.cache import locked
from ortrim.base.files import storage_errors
from ortrim.base.json import first_fault, from_json, to_data
from ortrim.base.processor_cores import cores_text
from ortrim.binaries.elf import ComponentSize
from ortrim.errors import StorageError
from ortrim.parity.measurements import HostFacts, Unit
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

    `settings` is the session as JSON with sorted keys, `point` how it differs from that bench's default. `training_run`
    is whatever identifies the run that made the model, empty when it was not given. `deadline_ms` is 0 without one.
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

    `training_run` is whatever identifies the run that made the models, empty when it was not given.
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
        measures=tuple(each for device in report.devices for each in _measures(device)),
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


def _measures(device: DeviceReport) -> Iterator[Measure]:
    for run in device.runs:
        if run.library != "ours":
            continue
        figures: list[tuple[str, str, Unit, float]] = [
            ("", "load", "ms", run.load_ms.p50),
            ("", "peak memory", "bytes", run.peak_rss_bytes.p50),
        ]
        for case in run.cases:
            figures += [
                (case.case, "p50", "ms", case.inference_ms.p50),
                (case.case, "p99", "ms", case.inference_ms.p99),
            ]
            if case.instructions:
                figures.append((case.case, "instructions", "instructions", case.instructions.p50))
        for name, measure, unit, value in figures:
            if math.isfinite(value):
                yield Measure(device=device.device, model=run.model, case=name, measure=measure, unit=unit, value=value)


Kind = Literal["size", "memory", "latency", "instructions"]
Outcome = Literal["regressed", "within", "not compared"]
SIZES: Final = (("library", "file_bytes"), ("library, compressed", "compressed_bytes"), ("package", "package_bytes"))
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
    lines = (*_sizes(latest, accepted.entry, allowed), *_figures(latest, accepted.entry, allowed))
    return Check(latest=latest, accepted=accepted, lines=lines, notes=tuple(_notes(latest, accepted.entry)))


def _sizes(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    for words, field in SIZES:
        old, new = float(getattr(before, field)), float(getattr(latest, field))
        yield _line(Measure(device="", model="", case="", measure=words, unit="bytes", value=old), new, allowed.size)


def _figures(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    values = {(each.device, each.model, each.case, each.measure): each.value for each in latest.measures}
    for each in before.measures:
        if kind := KINDS.get(each.measure):
            value = values.get((each.device, each.model, each.case, each.measure))
            reason = "not measured in this build" if value is None else _why_not(each, kind, latest, before)
            share: float = getattr(allowed, kind)
            yield _line(each, value, share, reason)


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
    old, new = (
        next((each for each in entry.machines if each.device == measure.device), None) for entry in (before, latest)
    )
    if old is None or new is None:
        return "the machine is not known"
    if kind == "instructions":
        return ""
    if kind == "memory":
        return "" if old.memory_meaningful and new.memory_meaningful else "memory is not representative on this device"
    if not (old.time_meaningful and new.time_meaningful):
        return "time is not representative on this device"
    return "" if old.machine == new.machine else "measured on another machine"


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


NAME: Final = "history.jsonl"
BEGINNING: Final = b'{"schema":"ortrim-history/'
DAMAGED: Final = "history-damaged"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line: a verified build, all that is kept of one bench, or what was accepted with one command."""

    schema: Literal["ortrim-history/1"] = "ortrim-history/1"
    build: BuildEntry | None = None
    benches: tuple[BenchEntry, ...] = ()
    accepted: tuple[AcceptedBuild, ...] = ()


def append(path: Path, record: Record) -> Path | None:
    """Append a record to the history, which is begun when there is none.

    A history that is damaged is renamed, a new one is begun, and the damaged one's new path is returned. Raises
    `StorageError`.
    """
    with locked(path):
        aside = _rename_damaged(path)
        _append(path, record)
    return aside


def accept_latest(path: Path, *, spec: str, target: str, accepted_at: str, note: str) -> tuple[BuildEntry, ...]:
    """Mark the latest build of each spec and target as accepted, and return these builds.

    An empty `spec` or `target` stands for all.
    """
    read(path)  # before the lock, whose file would be made where there is no history
    with locked(path):
        latest = latest_builds(path, spec=spec, target=target)
        if latest:
            accepted = (AcceptedBuild(entry=entry, accepted_at=accepted_at, note=note) for entry in latest)
            _append(path, Record(accepted=tuple(accepted)))
    return latest


def read(path: Path) -> tuple[Record, ...]:
    """Return the records in the order in which they were appended."""
    if not path.exists():
        hint = "each verified build is added to it: run invoke build"
        raise StorageError("history-missing", "there is no history yet", where=str(path), hint=hint)
    with storage_errors(path):
        *lines, torn = path.read_bytes().split(b"\n")
    if not (torn.startswith(BEGINNING) or BEGINNING.startswith(torn)):
        lines.append(torn)
    return tuple(_record(line, f"{path}:{number}") for number, line in enumerate(lines, 1))


def builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the builds, all or those of a spec and a target."""
    found = (record.build for record in read(path) if record.build)
    return tuple(entry for entry in found if spec in {"", entry.spec} and target in {"", entry.target})


def latest_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[BuildEntry, ...]:
    """Return the latest build of each spec and target, in the order of these builds."""
    latest: dict[tuple[str, str], BuildEntry] = {}
    for entry in builds(path, spec=spec, target=target):
        latest.pop((entry.spec, entry.target), None)
        latest[entry.spec, entry.target] = entry
    return tuple(latest.values())


def accepted_builds(path: Path, *, spec: str = "", target: str = "") -> tuple[AcceptedBuild, ...]:
    """Return, for each spec and target, the build that was accepted last."""
    last = {(each.entry.spec, each.entry.target): each for record in read(path) for each in record.accepted}
    return tuple(each for kind, each in last.items() if spec in {"", kind[0]} and target in {"", kind[1]})


def benches(path: Path, *, spec: str = "", target: str = "") -> tuple[BenchEntry, ...]:
    """Return the points of benches, all or those of a spec and a target."""
    found = (entry for record in read(path) for entry in record.benches)
    return tuple(entry for entry in found if spec in {"", entry.spec} and target in {"", entry.target})


def _append(path: Path, record: Record) -> None:
    data = {name: value for name, value in to_data(record).items() if value}
    line = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    with storage_errors(path), path.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(f"{line}\n".encode())


def _record(line: bytes, where: str) -> Record:
    try:
        if line.startswith(BEGINNING):
            return from_json(Record, line)
        why = "not a line of a history"
    except ValidationError as error:
        why = first_fault(error)
    if line.startswith(BEGINNING) and not line.startswith(BEGINNING + b'1"'):
        what, hint = "a later version of ortrim wrote this history", "update ortrim, or move the file away"
        raise StorageError("history-newer", what, where=where, hint=hint)
    hint = "the next build renames it and starts a new one"
    raise StorageError(DAMAGED, "the history is damaged", where=where, why=why, hint=hint)


def _rename_damaged(path: Path) -> Path | None:
    if not path.exists():
        return None
    try:
        read(path)
    except StorageError as error:
        if error.code != DAMAGED:
            raise
    else:
        return None
    names = (f"{path.stem}.damaged-{number}{path.suffix}" for number in range(1, 10_000))
    aside = next(each for each in map(path.with_name, names) if not each.exists())
    with storage_errors(path):
        return path.rename(aside)
