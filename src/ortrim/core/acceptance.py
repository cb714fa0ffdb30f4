"""How a build is held against the one that was accepted last. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ortrim.core.build_history import BuildEntry, Measure, MeasuredOn
from ortrim.core.measurements import Unit

Kind = Literal["size", "memory", "latency"]
Outcome = Literal["regressed", "within", "not compared"]
SIZES: Final = (
    ("library", "file_bytes"),
    ("library, compressed", "compressed_bytes"),
    ("package", "package_bytes"),
)
KINDS: Final[dict[str, Kind]] = {"peak memory": "memory", "load": "latency", "p50": "latency"}
"""The measures of a model that are held against each other. The 99th percentile is not: it is the machine's."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
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
    accepted: Accepted
    lines: tuple[Checked, ...]
    notes: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Checked, ...]:
        """The figures that grew by more than is allowed."""
        return tuple(line for line in self.lines if line.outcome == "regressed")


def check(latest: BuildEntry, accepted: Accepted, allowed: Allowed) -> Check:
    """Hold a build against the accepted one: sizes always, memory and latency where the machines allow it.

    Time is compared on the same machine alone, memory wherever it means anything.
    """
    lines = (*_sizes(latest, accepted.entry, allowed), *_measures(latest, accepted.entry, allowed))
    return Check(latest=latest, accepted=accepted, lines=lines, notes=tuple(_notes(latest, accepted.entry)))


def _sizes(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    for words, field in SIZES:
        old, new = float(getattr(before, field)), float(getattr(latest, field))
        yield _line(Measure(device="", model="", case="", measure=words, unit="bytes", value=old), new, allowed.size)


def _measures(latest: BuildEntry, before: BuildEntry, allowed: Allowed) -> Iterator[Checked]:
    values = {_key(each): each.value for each in latest.measures}
    for each in before.measures:
        kind = KINDS.get(each.measure)
        if kind is None:
            continue
        reason = _why_not(each, kind, latest, before)
        value = values.get(_key(each))
        if value is None:
            reason = "not measured in this build"
        share = allowed.memory if kind == "memory" else allowed.latency
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
    if kind == "memory":
        return "" if old.memory_meaningful and new.memory_meaningful else "memory means nothing on this device"
    if not (old.time_meaningful and new.time_meaningful):
        return "time means nothing on this device"
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
